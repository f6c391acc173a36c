"""Requests a schedule of a recorded step."""

import functools
import json
import sys
import threading

from . import say
from .between import Unlike
from .buckets import Buckets
from .family import Family
from .follow import Schedule
from .model import Unsolved
from .pace import Launches
from .remembered import Remembered


VARIES = -1  # stands for a dimension that does


class Turns(object):
    """Has Python's threads take turns sooner while some work beside those of the program. These give the global interpreter lock away with each operator of
    PyTorch's, and would wait for 5 ms to have it again."""

    SECONDS = 1e-4

    def __init__(self):
        self.lock, self.working, self.before = threading.Lock(), 0, 0

    def __enter__(self):
        with self.lock:
            if not self.working:
                self.before = sys.getswitchinterval()
                sys.setswitchinterval(min(self.before, self.SECONDS))
            self.working += 1

    def __exit__(self, *reason):
        with self.lock:
            self.working -= 1
            if not self.working:
                sys.setswitchinterval(self.before)


class Planning(object):
    """A schedule that is being made, in a thread of its own: steps go on meanwhile."""

    turns = Turns()  # of all threads of the process

    def __init__(self, make):
        self.make, self.schedule, self.failed = make, None, ""  # failed is why there is none
        self.thread = threading.Thread(target=self.run, name="gmswap planning", daemon=True)
        self.thread.start()

    def run(self):
        try:
            with self.turns:
                self.schedule = self.make()
        except Exception as e:
            self.failed = say.reason(e)

    def come(self, seconds):
        """Returns whether it has ended, in so many seconds at the most, None for any number."""
        self.thread.join(seconds)
        return not self.thread.is_alive()


class Planner(object):
    NEARER = 1.02  # by so much bounds have to be nearer than shapes to go before them
    DRIFT = 0.05  # by which times may differ from those that a schedule was made for
    ANEW = 2  # times that steps are recorded anew, as those that were do not tell enough
    HOST_PART = 16  # such a part of the host's memory is left to what leaves beside a schedule
    PART, PARTS = 64, 4  # schedules leave such a part of the memory free that they are to keep to, and so many such parts at most

    def __init__(self, library, settings, lanes):
        self.library, self.settings, self.lanes = library, settings, lanes
        self.timed = self.recipes = self.graph = None  # what was recorded last
        self.family = None  # of which that is one, where sizes differ from step to step
        self.other = None  # what has schedules for other kinds of steps, where those of the family turn out to be such
        self.shapes = None  # which of the two tells from its inputs what a step needs
        self.remembered = None  # what steps of other sizes than those of any schedule go by
        self.parts, self.most_parts = 0, self.PARTS  # that schedules leave free, and that they can
        self.anew = self.ANEW  # times that are left
        self.dims = {}  # those of the recorded steps' inputs, VARIES where they differ among these, by how many there are
        self.start = 0  # bytes that were in use when that began
        self.held = 0  # bytes that last on the host
        self.launches = Launches()  # what the program takes, as steps that followed a schedule showed last

    def plan(self, recording, largest):
        """Has a schedule made for what was recorded: where sizes differ from step to step, for all that save up to so many bytes. Raises Unsolved if others can be
        recorded that may tell more."""
        self.timed, self.start, self.remembered = recording.timed, recording.timed.scale.start, None
        self.dims = dimensions([watched.step.dims for watched in recording.steps()])
        self.launches, self.parts, self.most_parts = Launches(), 0, self.PARTS
        self.family = self.other = self.shapes = None
        recording.memory.small.forget()
        recording.arguments()
        self.leave_beside(recording.held_bytes)
        if recording.again is not None:
            self.remembered = Remembered(recording)
            try:
                self.family, self.other, self.shapes = self.families(recording)
                self.family.most = max(self.family.most, largest)
                return self.extend()
            except Unlike as e:
                if self.anew and isinstance(e, Unsolved):
                    self.anew, self.remembered = self.anew - 1, None
                    say.line("others are recorded: %s does not follow from the steps that were" % e)
                    raise
                say.line("steps differ in more than sizes: %s" % e)
        self.recipes = recording.recipes()
        self.graph = self.timed.graph(self.recipes)
        return Planning(functools.partial(self.make, self.graph, self.timed, self.recipes, self.first_policy()))

    def families(self, recording):
        """Returns what has schedules for steps of all sizes, what is to have them instead where sizes turn out to be others, and what tells from its inputs what
        a step needs, the last two None where there is none. Sizes that are known exactly go before shapes that tell them, and these before bounds that allow
        for more. Raises Unlike where the steps have too little in common."""
        given, family = (recording, self.remembered, self.device), None
        try:
            family = Family(*given)
        except Unlike as e:
            why = e
        try:
            shapes = Buckets(*given)
        except Unlike as other:
            if family is None:
                raise other if isinstance(other, Unsolved) else why
            return family, None, None
        first = family is not None and (not family.model.bounded or self.NEARER * family.allows(shapes.growth.seen) < shapes.allows(shapes.growth.seen))
        return (family, shapes, shapes) if first else (shapes, family, shapes)

    def suits(self, step):
        """Returns whether a step's inputs are as those of recorded ones, but for what differed in these."""
        recorded = self.dims.get(len(step.dims))
        return recorded is not None and all(n in (now, VARIES) for n, now in zip(recorded, step.dims))

    def turn(self):
        """Has the schedules made of what is to have them instead of the family, with what that has seen."""
        old, self.family, self.other = self.family, self.other, None
        self.family.most = max(self.family.most, old.most)
        self.family.model.bases.start = max(self.family.model.bases.start, old.model.bases.start)
        return self.extend()

    def extend(self):
        """Has the schedules of the family made that are missing: at first those without which no step can follow any."""
        return Planning(functools.partial(self.family.plan, functools.partial(self.make_sizes, policy=self.first_policy())))

    def first_policy(self):
        """Returns the policy of a first schedule, and of those of a family: steps are moved on demand until they are there. Where it is the only one there is
        time for the best."""
        only = self.settings.dry or self.settings.record
        return "prompt" if self.settings.policy == "auto" and not only else self.settings.policy

    def refine(self, instrument, refined):
        """Has a schedule made for the same step as an instrument has measured it while the step followed a schedule."""
        instrument.correct(self.graph)
        return self.again(refined)

    def again(self, refined):
        """Has a schedule made for the same step by what is known of it now: a first one unless it is to be one with measured times."""
        return Planning(functools.partial(self.make, self.graph, self.timed, self.recipes, self.settings.policy if refined else self.first_policy()))

    @property
    def device(self):
        """Is the bytes that schedules are to keep to."""
        return self.settings.device - self.parts * (self.settings.device // self.PART)

    @property
    def host(self):
        """Is the bytes of host memory that schedules are to keep to, 0 for any number."""
        host = self.settings.host
        return host if self.settings.follow or not host else max(1, host - self.held - host // self.HOST_PART)

    def note_held(self, entries):
        """Notes what lasts on the host between steps: states of optimizers, gradients that wait."""
        self.held = max(0, self.lanes.stats().host_bytes - sum(e.copied for e in entries))

    def leave_more(self, parts):
        """Has schedules that are made from now on leave more memory free, as what is free may be in parts that cannot be put together. Returns whether they can."""
        if self.settings.follow or self.parts == self.most_parts:
            return False
        self.parts = min(self.parts + parts, self.most_parts)
        for family in (self.family, self.other):
            if family is not None:
                family.device = self.device
                family.renew()
        return True

    def give_up(self, memory):
        """Has nothing held of which nothing is recomputed, as there is no schedule."""
        if self.remembered is None:
            memory.small.forget()

    def leave_beside(self, extra):
        """Leaves as much memory free as is held beside what is recomputed: a schedule does not count on that, and one part is left by the limit anyway."""
        self.parts = max(0, min(-(-extra // (self.settings.device // self.PART)) - 1, self.most_parts))

    def leave_less(self):
        """Has schedules leave a part less free, and never more than that: there is none that leaves so much. Returns whether they can."""
        if not self.parts:
            return False
        self.parts -= 1
        self.most_parts = self.parts
        return True

    def outdated(self, clocks):
        """Returns whether operators take another time in steps that were timed now than the schedule was made for."""
        known = self.family.model.ns if self.family is not None else [op["ns"] for op in self.graph["ops"]]
        now = clocks.medians(sum(self.timed.sizes) if self.family is not None else 0)
        before, after = (sum(lasting[:-1]) for lasting in (self.launches.lasting(known), Launches(clocks.paces).lasting(now)))  # the last is there until the next step
        return abs(after - before) > self.DRIFT * before

    def learn(self, clocks):
        """Takes what the program took in steps that were measured now."""
        self.launches = Launches(clocks.paces)

    def make(self, graph, recorded, recipes, policy):
        return self.schedule(self.ask(self.launches.told(graph, recipes), policy), recorded, recipes)

    def make_sizes(self, model, shares, policy, device=0):
        """Has schedules made for steps at some places, at once. Returns them, and errors in place of those that there are not."""
        sizes = [model.sized(share) for share in shares]
        answers = self.ask(self.launches.told(model.timed_graph, model.proven), policy, device, sizes=sizes)["sizes"]
        return [ValueError(answer["error"]) if answer["error"] else self.schedule(answer, model.recorded(share), model.proven)
                for share, answer in zip(shares, answers)]

    def ask(self, graph, policy, device=0, **more):
        request = {"graph": graph, "device": device or self.device, "host": self.host,
                   "policy": policy, "link": self.settings.link, "gpus": self.settings.ranks,
                   "record": self.settings.record, "schedule": self.settings.follow}
        return json.loads(self.library.plan(json.dumps(dict(request, **more)).encode()))

    def schedule(self, answer, recorded, recipes):
        schedule = Schedule(answer, recorded, recipes)
        if not self.settings.dry:
            saved = max(1, sum(recorded.sizes))
            most = min(saved, self.family.most) if self.family is not None else saved  # of the steps that were seen
            self.lanes.expect(schedule.copied * most // saved)
        return schedule


def dimensions(steps):
    """Returns the dimensions of the inputs of steps, VARIES where they differ, or may, by how many a step has. One of several that alone has so many tells
    nothing of the others."""
    found = {}
    for dims in steps:
        found.setdefault(len(dims), []).append(dims)
    alone = len(steps) > 1
    return {count: [VARIES if len(set(n)) > 1 or alone and len(n) == 1 else n[0] for n in zip(*all_)] for count, all_ in found.items()}
