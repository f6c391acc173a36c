"""What schedules count on where a device waits for the program that launches its operators."""

import types

from gmswap_hook import pace
from gmswap_hook.pace import OFFLOAD, PREFETCH, Launches, Pace

now = [0]
device = types.SimpleNamespace(mark=lambda: now[0], reach=lambda mark: None, capturing=lambda: False)
pace.time = types.SimpleNamespace(perf_counter_ns=lambda: now[0])


def measured(launches, points, reruns=()):
    """Returns a step whose operators took the program so many nanoseconds, the last until the next step, and what was done at the points between them."""
    p = Pace(device)
    p.begin()
    for ns, acted in zip(launches, points):
        now[0] += ns
        p.end()
        now[0] += acted
        p.begin()
    now[0] += 10**9
    p.end()
    for operators, ns in reruns:
        p.remade(operators, ns)
    return p


def interrupted(p, before, behind):
    """Lets some nanoseconds pass that are measured, and in the middle of them some that are not."""
    now[0] += before
    p.pause()
    now[0] += 1000
    p.resume()
    now[0] += behind


def chain(n):
    return types.SimpleNamespace(chain=types.SimpleNamespace(made=[None] * n))


def test_measured():
    """What is done at the points is none of the operators, nor is what a pause is for."""
    p = measured((5, 7), (100, 50))
    assert p.ns[:2] == [5, 7] and p.acted == 150, (p.ns, p.acted)
    p = Pace(device)
    p.begin()
    interrupted(p, 3, 4)
    p.end()
    assert p.ns == [7] and p.acted == 0
    p.begin()
    p.arrive()
    interrupted(p, 5, 6)
    p.end()
    p.begin()
    assert p.ns == [7, 0, 0] and p.acted == 11, (p.ns, p.acted)


def test_ahead():
    """A program that is far ahead waits for the device at points, and that counts for nothing."""
    reached = []

    def reach(mark):
        now[0] += 1000
        reached.append(mark)

    p = Pace(types.SimpleNamespace(mark=lambda: now[0], reach=reach, capturing=lambda: False))
    begun = []
    for _ in range(2 * Pace.AHEAD):
        begun.append(now[0])
        p.begin()
        now[0] += 2
        p.arrive()
        now[0] += 1
        p.end()
    assert [begun.index(at) for at in reached] == [Pace.AHEAD - Pace.NEAR, 2 * (Pace.AHEAD - Pace.NEAR) + 1], (reached, begun)
    assert p.ns == [2] * (2 * Pace.AHEAD) and p.acted == 2 * Pace.AHEAD - 1, p.ns


def test_lasting():
    """A device that has much to do waits for nothing; one that waits goes on as operators are launched."""
    known = Launches([measured((10, 10, 10), (0, 0, 0)), measured((10, 10, 10), (0, 0, 0)), measured((90, 10, 10), (0, 0, 0))])
    assert known.ns == [10, 10, 10, 0], known.ns
    assert known.lasting([50, 20, 20, 9]) == [50, 20, 20, 9]
    assert known.lasting([1, 2, 3, 9]) == [10, 10, 10, 9]
    assert known.lasting([25, 1, 1, 9]) == [25, 1, 4, 9]
    assert Launches().lasting([1, 2]) == [1, 2]


def test_told():
    """A graph has what the program takes for operators, for actions and to look at what is moved, and to recompute something."""
    p = measured((10, 10, 10), (30, 0, 0), reruns=((2, 8), (3, 15)))
    p.handle(OFFLOAD, 1)
    p.handle(OFFLOAD, 3)
    p.handle(PREFETCH, 3)
    behind = Launches([p, p])
    assert (behind.rerun, behind.looks) == (4, (30 - 8 - 15 - 7) // 3), (behind.rerun, behind.looks)
    graph = {"ops": [{"ns": 1}] * 4, "tensors": [{"bytes": 1}, {"bytes": 2}], "name": "x"}
    told = behind.told(graph, [chain(3), None])
    assert told["ops"] == [{"ns": 1, "launch_ns": ns} for ns in (10, 10, 10, 0)] and told["name"] == "x", told
    assert told["tensors"] == [{"bytes": 1, "relaunch_ns": 5 * 4}, {"bytes": 2}], told
    assert told["handling"] == [1, Launches.HANDLING, 3, Launches.HANDLING, 0, Launches.HANDLING], told
    assert Launches().told(graph, [chain(3), None]) is graph, "nothing is known"
    behind.looks = 100
    told = behind.told(graph, [chain(3), None])
    assert told["handling"][:3] == [101, Launches.HANDLING, 103] and told["tensors"][0]["relaunch_ns"] == 220, told


if __name__ == "__main__":
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            test()
