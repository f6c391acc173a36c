"""What a run says of itself."""

import atexit
import json
import os
import time

from . import say


class Report(object):
    def __init__(self, memory, settings):
        self.memory, self.settings = memory, settings
        self.lanes = None
        self.schedule = None
        self.steps = []  # seconds on the host's clock between the beginnings of two steps, what conducted, and deviations
        self.last = None
        if settings.stats:
            atexit.register(self.write)

    def planned(self, schedule):
        self.schedule = schedule
        gib = float(1 << 30)
        say.line("%s: step %.0f ms (%.0f ms with nothing moved), peak %.2f GiB (%.2f GiB)" % (
            schedule.policy, schedule.step_ns / 1e6, schedule.plain_ns / 1e6, schedule.peak / gib, schedule.plain_peak / gib))

    def step(self, step):
        now = time.monotonic()
        if self.last is not None:
            self.steps.append([now - self.last[0], self.last[1]])
            if self.settings.progress:
                say.line("step %d: %.3f s, %s" % (len(self.steps), *self.steps[-1]))
        self.last = (now, type(step.conduct).__name__)

    def write(self):
        stats = self.lanes.stats() if self.lanes else None
        account = {"pid": os.getpid(), "steps": self.steps}
        if stats:
            account["lanes"] = {name: getattr(stats, name) for name, _ in stats._fields_}
        if self.schedule:
            s = self.schedule
            account["schedule"] = {k: getattr(s, k) for k in ("policy", "step_ns", "plain_ns", "peak", "plain_peak")}
        with open(self.settings.stats, "w") as f:
            json.dump(account, f)
