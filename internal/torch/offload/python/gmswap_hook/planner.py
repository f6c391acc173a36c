"""Has libgm.so make a schedule of a recorded step."""

import json

from .follow import Schedule


class Planner(object):
    def __init__(self, library, settings, report):
        self.library, self.settings, self.report = library, settings, report
        self.timed = self.recipes = self.graph = None  # what was recorded last

    def plan(self, recording):
        """Returns a schedule for what was recorded."""
        self.timed, self.recipes = recording.timed, recording.recipes()
        self.graph = self.timed.graph(self.recipes)
        return self.make()

    def refine(self, nanoseconds):
        """Returns a schedule for the same step with the times of operators as they are when it follows a schedule: copies are beside
        them, and the GPU has no rest in which to cool down."""
        slower = sum(nanoseconds) / max(1, sum(op["ns"] for op in self.graph["ops"]))
        for op, ns in zip(self.graph["ops"], nanoseconds):
            op["ns"] = ns
        for t in self.graph["tensors"]:
            t["recompute_ns"] = int(t.get("recompute_ns", 0) * slower)
        return self.make()

    def make(self):
        request = {"graph": self.graph, "device": self.settings.device, "host": self.settings.host,
                   "policy": self.settings.policy, "link": self.settings.link, "gpus": self.settings.ranks,
                   "record": self.settings.record, "schedule": self.settings.follow}
        answer = self.library.plan(json.dumps(request).encode())
        schedule = Schedule(answer, self.timed, self.recipes)
        self.report.planned(schedule)
        return schedule
