"""Requests a schedule of a recorded step."""

import json

from .follow import Schedule


class Planner(object):
    def __init__(self, library, settings, report):
        self.library, self.settings, self.report = library, settings, report
        self.timed = self.recipes = self.graph = None  # what was recorded last
        self.start = 0  # bytes that were in use when that began

    def plan(self, recording):
        """Returns a schedule for what was recorded."""
        self.timed, self.recipes = recording.timed, recording.recipes()
        self.graph, self.start = self.timed.graph(self.recipes), self.timed.scale.start
        return self.make()

    def refine(self, instrument):
        """Returns a schedule for the same step as an instrument has measured it while the step followed a schedule."""
        instrument.correct(self.graph)
        return self.make()

    def make(self):
        request = {"graph": self.graph, "device": self.settings.device, "host": self.settings.host,
                   "policy": self.settings.policy, "link": self.settings.link, "gpus": self.settings.ranks,
                   "record": self.settings.record, "schedule": self.settings.follow}
        answer = self.library.plan(json.dumps(request).encode())
        schedule = Schedule(answer, self.timed, self.recipes)
        self.report.planned(schedule)
        return schedule
