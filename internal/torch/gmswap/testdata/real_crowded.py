"""Requests that find no room in steps that follow schedules, on a real PyTorch."""

import itertools
import json
import time
import types

import torch
from gmswap_hook.remake import Remake
from gmswap_hook.pace import Launches

from plans import FREE, ORDER, Planner
from real import main
from real_alone import Spacious, trained
from real_demand import Model, WIDTH, translations

LIMIT = 1 << 30


class Asked(Planner):
    """Moves or recomputes some tensors of many, whose memory is freed late. Notes the memory that schedules are to keep to, and says that they do."""

    def __init__(self, how):
        super().__init__(how)
        self.devices, self.policies = [], []

    def plan(self, request):
        asked = json.loads(request)
        self.devices.append(asked["device"])
        self.policies.append(asked["policy"])
        return super().plan(request)

    def answer(self, graph):
        whole = super().answer(graph)
        forward = sum(op["phase"] == 0 for op in graph["ops"])
        later = lambda kind, at: min(at + 8, forward - 1) if kind == FREE and at < forward else at
        actions = [(kind, tensor, later(kind, at), nbytes) for kind, tensor, at, nbytes in self.actions if tensor % 3 == 1]
        self.actions = sorted(actions, key=lambda a: (a[2], ORDER[a[0]]))
        return dict(whole, actions=self.actions)


class Least(Asked):
    """Cannot leave more free than two parts of 64: for less memory its schedules keep to twice as much as there is."""

    def answer(self, graph):
        asked = self.devices[-1]
        return dict(super().answer(graph), device=asked if asked >= LIMIT - 2 * (LIMIT // 64) else 2 * LIMIT)


class Crowded(Spacious):
    """Has a request find no room in each step, at an entry of which there are many before and behind it, from a step on. What is freed for it takes a while."""

    def __init__(self, first, how="remake", all_sizes=False, at=20, device=LIMIT, free=lambda relief: 0, asked=Asked):
        super().__init__(LIMIT)
        self.hooked.settings.for_all_sizes, self.hooked.settings.device = lambda: all_sizes, device
        self.hooked.library = self.hooked.runtime.planner.library = self.asked = asked(how)
        runtime, pack = self.hooked.runtime, self.hooked.runtime.pack
        runtime.outlook.leaves_alone = lambda step, instrument: False
        done = set()

        def packed(tensor):
            step = runtime.step
            if step.number >= first and len(step.entries) > at and step.number not in done:
                done.add(step.number)
                with self.hooked.memory:
                    runtime.relief.measured(lambda: (time.sleep(0.05), free(runtime.relief)))
            return pack(tensor)

        runtime.pack = packed


def same(steps=40):
    torch.manual_seed(0)
    model = Model()

    def step(number, draw):
        torch.manual_seed(number)
        yield model(torch.rand(4, 24, WIDTH))

    return trained([model], steps, step)


def run(program, *args, **settings):
    want, crowded = program(), Crowded(*args, **settings)
    got = program()
    crowded.remove()
    assert got == want
    return crowded


def test_more_is_left():
    """Schedules leave more memory free, a part after the other, until that is a sixteenth, or requests find room."""
    crowded = run(lambda: same(80), 0)
    planner = crowded.hooked.runtime.planner
    assert planner.parts == planner.PARTS and sorted(crowded.asked.devices, reverse=True) == crowded.asked.devices, crowded.asked.devices
    assert crowded.asked.devices[0] == LIMIT and crowded.asked.devices[-1] == LIMIT - LIMIT // 16, crowded.asked.devices
    assert {way for way, _ in crowded.steps[6:]} == {"planned"}, crowded.steps
    assert run(lambda: same(40), 1000).hooked.runtime.planner.parts == 0


def test_mapping():
    """So they do where requests take long to have memory mapped: two parts more where that is a sixteenth of the time of steps, and none where a plan may end it."""
    def mapping(share, stitches=10, hopeful=False, steps=16, **settings):
        crowded, left = Crowded(1000, **settings), []
        runtime, count, began = crowded.hooked.runtime, itertools.count(0, stitches), time.perf_counter()
        runtime.relief.layout.hopeful = lambda: hopeful
        runtime.relief.library.account = lambda device: types.SimpleNamespace(stitches=next(count), driver_ns=share * 1e9 * (time.perf_counter() - began))
        more = runtime.planner.leave_more
        runtime.planner.leave_more = lambda parts: more(parts) and (left.append(parts), True)[1]
        same(steps)
        crowded.remove()
        return left, crowded

    assert [mapping(*args)[0][:1] for args in ((0.02,), (0.05,), (0.2,), (0.2, 1), (0.2, 10, True))] == [[], [1], [2], [], []]
    left, crowded = mapping(0.2, steps=60)
    planner, asked = crowded.hooked.runtime.planner, crowded.asked
    assert left == [2, 2] and planner.parts == planner.PARTS, left
    parts = [(LIMIT - device) // (LIMIT // 64) for device in asked.devices]
    assert parts[:2] == [0, 2] and asked.policies[:2] == ["prompt", "prompt"], (parts, asked.policies)
    assert asked.policies[-1] == "auto" and sorted(parts) == parts, (parts, asked.policies)
    left, crowded = mapping(0.2, steps=60, asked=Least)
    assert left[0] == 2 and crowded.hooked.runtime.planner.parts == 2 and crowded.hooked.runtime.schedule.device == LIMIT - 2 * (LIMIT // 64), left


def test_least():
    """Where schedules cannot leave so much they leave less, and are not followed if they keep to more than there is."""
    crowded = run(lambda: same(60), 0, asked=Least)
    planner, part = crowded.hooked.runtime.planner, LIMIT // 64
    assert [(LIMIT - device) // part for device in sorted(set(crowded.asked.devices))] == [3, 2, 1, 0], crowded.asked.devices
    assert (LIMIT - crowded.asked.devices[-1]) // part == 2 and (planner.parts, planner.most_parts) == (2, 2), crowded.asked.devices
    assert crowded.hooked.runtime.schedule.device == planner.device, crowded.hooked.runtime.schedule.device
    assert {way for way, _ in crowded.steps[6:]} == {"planned"}, crowded.steps


def test_made_anew():
    """Schedules for steps that are recorded anew are to keep to all memory again, as some could do with no less."""
    crowded = Crowded(0)
    runtime = crowded.hooked.runtime
    end, asked = runtime.end_step, []

    def ended(step):
        if runtime.planner.parts == runtime.planner.PARTS and runtime.planning is None and not asked:
            asked.extend(crowded.asked.devices)
            runtime.renew()
        end(step)

    runtime.end_step = ended
    same(100)
    crowded.remove()
    assert asked and crowded.asked.devices[: len(asked) + 1] == asked + [LIMIT] and crowded.asked.devices[-1] < LIMIT, (asked, crowded.asked.devices)


def test_given():
    """A schedule that was given stays."""
    crowded = Crowded(0)
    crowded.hooked.settings.follow = "a file"
    same(40)
    crowded.remove()
    assert crowded.hooked.runtime.planner.parts == 0 and set(crowded.asked.devices) == {LIMIT}, crowded.asked.devices


def test_late():
    """What has come of an old schedule tells nothing of the one that takes its place."""
    crowded = Crowded(0)
    runtime = crowded.hooked.runtime
    again, planning, more, arrived, left = runtime.planner.again, [None], runtime.planner.leave_more, [], []
    slow = types.SimpleNamespace(failed="", come=lambda seconds: runtime.steps >= slow.until and real().come(None))

    def real():
        slow.schedule = planning[0].schedule if planning[0].come(None) else None
        return planning[0]

    def begin(refined):
        planning[0], slow.until = again(refined), runtime.steps + 7
        return slow

    runtime.planner.again, runtime.planner.leave_more = begin, lambda parts: more(parts) and (left.append(runtime.steps), True)[1]
    follow = runtime.follow_refined
    runtime.follow_refined = lambda p: (arrived.append(runtime.steps), follow(p))
    same(60)
    crowded.remove()
    assert len(left) == 4 and len(arrived) > 2, (arrived, left)
    assert all(number < step or number >= step + runtime.CROWDED - 1 for step in arrived for number in left), (arrived, left)


def test_reruns():
    """What is done for a request that finds no room while something is recomputed is no part of that."""
    whole, crowded = Remake.whole, Crowded(1000)

    def remake(made, stream):
        with crowded.hooked.memory:
            crowded.hooked.runtime.relief.measured(lambda: time.sleep(0.1))
        return whole(made, stream)

    Remake.whole = remake
    same(30)
    Remake.whole = whole
    crowded.remove()
    launches = crowded.hooked.runtime.planner.launches
    assert len(launches.ns) > 0 and launches.looks < 0.001e9 and launches.rerun == Launches.RERUN, (launches.looks, launches.rerun)


def test_sizes():
    """So do those for steps of all sizes."""
    crowded = run(lambda: translations(80), 0, all_sizes=True, at=10, device=700000)
    planner = crowded.hooked.runtime.planner
    assert planner.parts > 0 and planner.family.device == planner.device < 700000, planner.parts
    assert crowded.asked.devices[-1] < 700000, crowded.asked.devices


def test_measured():
    """What is done for such a request is no part of the operator that is under way, neither on the device nor of the program's time."""
    crowded = run(lambda: same(20), 3)
    planner = crowded.hooked.runtime.planner
    assert len(planner.launches.ns) == len(planner.graph["ops"]) and max(planner.launches.ns) < 0.04e9, planner.launches.ns
    assert max(op["ns"] for op in planner.graph["ops"][:-1]) < 0.04e9, planner.graph["ops"]


def test_first_without_wait():
    """What is on the host already, or can be recomputed, leaves before what has to be copied, as that waits for the copies that are under way."""
    found = []

    def offered(relief):
        step = relief.runtime.step
        if step.conduct.way == "planned" and not step.selected:
            found.append([(e.made is not None or e.passed(), e.index) for e in relief.candidates()])

    run(same, 3, free=offered, at=30)
    assert len(found) > 4, found
    for offers in found:
        ready = [index for now, index in offers if now]
        first = ready[: len(ready) // 2]  # they are offered once more among all others
        assert first and offers[: len(first)] == [(True, index) for index in first] and sorted(set(ready)) == first, offers
        assert any(not now for now, _ in offers), offers


if __name__ == "__main__":
    main(globals())
