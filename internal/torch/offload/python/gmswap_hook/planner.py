"""Has libgm.so make a schedule of a recorded step."""

import json

from .follow import Schedule


class Planner(object):
    def __init__(self, library, settings, report):
        self.library, self.settings, self.report = library, settings, report

    def plan(self, recording):
        recipes = recording.recipes()
        timed = recording.timed
        request = {"graph": timed.graph(recipes), "device": self.settings.device, "host": self.settings.host,
                   "policy": self.settings.policy,
                   "record": self.settings.record, "schedule": self.settings.follow}
        answer = self.library.plan(json.dumps(request).encode())
        schedule = Schedule(answer, timed.sequence, timed.sizes, recipes)
        self.report.planned(schedule)
        return schedule
