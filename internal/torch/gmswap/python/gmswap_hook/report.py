"""What a run reports: progress, and an account at its end."""

import atexit
import json
import os
import time

from . import say
from .samples import Wrong


class Report(object):
    def __init__(self, memory, settings):
        self.memory, self.settings = memory, settings
        self.of = ""  # which device it is of, where there are several
        self.lanes = None
        self.schedule = None
        self.count = 0  # of steps
        self.ways = {}  # how many steps went which way
        self.steps = []  # for a file: seconds on the host's clock between the beginnings of two steps, and the way
        self.last = None  # the step before, and when it began
        self.pid = os.getpid()
        atexit.register(self.end)

    def planned(self, schedule):
        self.schedule = schedule
        which = "step" if schedule.largest is schedule else "largest step"
        schedule, gib = schedule.largest, float(1 << 30)
        if schedule.unfit:
            say.once(schedule.unfit)
        if schedule.device > self.settings.device:
            say.once("%.2f GiB are not enough for this step, whatever is moved: %.2f are used" % (self.settings.device / gib, schedule.device / gib))
        say.line("%s%s: %s %.0f ms (%.0f ms with nothing moved), peak %.2f GiB (%.2f GiB)" % (
            self.of, schedule.policy, which, schedule.step_ns / 1e6, schedule.plain_ns / 1e6, schedule.peak / gib, schedule.plain_peak / gib))

    def step(self, step):
        """Notes that a step begins, maybe one that was begun before and saved nothing."""
        if self.last is not None and self.last[1].number == step.number:
            self.last = (self.last[0], step)
            return
        now = time.monotonic()
        if self.last is not None:
            ended = [now - self.last[0], self.last[1].way()]
            self.count_way(ended[1])
            if self.settings.stats:
                self.steps.append(ended)
            if self.settings.progress:
                say.line("%sstep %d: %.3f s, %s" % (self.of, self.count, *ended))
        self.count += 1
        self.last = (now, step)

    def count_way(self, way):
        self.ways[way] = self.ways.get(way, 0) + 1

    def end(self):
        """Reports what was moved, at the end of the process."""
        if os.getpid() != self.pid or self.lanes is None:
            return
        if self.last is not None:
            self.count_way(self.last[1].way())
        try:
            self.memory.samples.ask(self.count)
            self.memory.samples.answer(wait=True)
            self.account()
        except Wrong as e:
            say.line(e)
        except Exception as e:
            say.line("no account of the run: %s" % say.reason(e))

    def account(self):
        stats, gib = self.lanes.stats(), float(1 << 30)
        if not (self.count or stats.bytes_out or stats.borrows or self.settings.stats):
            return  # no model was served
        ways = ", ".join("%d %s" % (n, way) for way, n in sorted(self.ways.items(), key=lambda item: -item[1]))
        steps = "%d steps%s" % (self.count, " (%s)" % ways if ways else "") if self.count else "no step was served"
        say.line("%s%s: %.1f GiB to the host and %.1f back, at most %.1f GiB there at a time" % (
            self.of, steps, stats.bytes_out / gib, stats.bytes_in / gib, stats.host_peak / gib))
        if stats.borrows:
            too = " and for %d gradients and parameters that waited" % self.lanes.lodged if self.lanes.lodged else ""
            say.line("%s%d requests found no room, and the GPU used memory of the host for them%s, at most %.2f GiB at a time" % (
                self.of, stats.borrows - self.lanes.lodged, too, stats.borrowed_peak / gib))
        if self.settings.stats:
            self.write(stats)

    def write(self, stats):
        account = {"pid": os.getpid(), "steps": self.steps, "ways": self.ways}
        account["lanes"] = {name: getattr(stats, name) for name, _ in stats._fields_}
        if self.schedule:
            s = self.schedule.largest
            account["schedule"] = {k: getattr(s, k) for k in ("policy", "step_ns", "plain_ns", "peak", "plain_peak")}
        write_whole(self.settings.stats, json.dumps(account))


def write_whole(path, text):
    """Writes a file that appears whole or not at all. What is not a regular file is written to in place."""
    if path.startswith(("/dev/", "/proc/")) or os.path.exists(path) and not os.path.isfile(path):
        with open(path, "w") as f:
            f.write(text)
        return
    path = os.path.realpath(path)
    beside = os.path.join(os.path.dirname(path), ".gm-%d-%d" % (os.getpid(), time.time_ns()))
    try:
        with open(beside, "w") as f:
            f.write(text)
        if os.path.exists(path):
            os.chmod(beside, os.stat(path).st_mode & 0o777)
        os.rename(beside, path)
    except OSError:
        if os.path.exists(beside):
            os.remove(beside)
        raise
