"""How long operators take on a device that runs behind a host, or waits for it."""

import random
import types

from gmswap_hook.measure import Clock, Clocks
from gmswap_hook.memory import Memory
from gmswap_hook.pace import Pace


class Mark(object):
    def __init__(self, device, at):
        self.device, self.at = device, at

    def query(self):
        return self.device.now >= self.at

    def elapsed_time(self, end):
        return (end.at - self.at) / 1e6


class Device(object):
    """Does what it is given in order, while the host goes on. Times are nanoseconds."""

    device, CYCLES, fill, passed, elapsed = 0, Memory.CYCLES, Memory.fill, Memory.passed, staticmethod(Memory.elapsed)

    def __init__(self, sleeps=True):
        self.now = self.busy = 0  # what time it is for the host, and when the device has done all
        self.slept, self.captured = 0, False
        cuda = types.SimpleNamespace(current_device=lambda: 0)
        if sleeps:
            cuda._sleep = self.sleep
        self.torch = types.SimpleNamespace(cuda=cuda)

    def sleep(self, cycles):
        self.slept += cycles / self.CYCLES
        self.run(3000, cycles / self.CYCLES)

    def run(self, launch, takes):
        self.now += launch
        self.busy = max(self.busy, self.now) + takes

    def mark(self):
        self.run(2000, 500)
        return Mark(self, self.busy)

    def capturing(self):
        return self.captured

    def synchronize(self):
        self.now = max(self.now, self.busy)


def step(device, kernels, clock, pause):
    """Runs operators of some kernels, each given as what it takes to be launched and to run. Returns how long the host took."""
    begin = device.now
    for operator in kernels:
        clock.begin()
        for launch, takes in operator:
            device.run(launch, takes)
        clock.end()
        device.now += pause
    device.synchronize()
    return device.now - begin


def measured(kernels, pause, sleeps=True):
    """Returns what operators seem to take, by three steps, and how long one took."""
    device, clocks, took = Device(sleeps), Clocks(), []
    for _ in range(Clocks.STEPS):
        clock = Clock(device)
        took.append(step(device, kernels, clock, pause))
        clocks.add(clock)
    assert len(clocks.clocks) == Clocks.STEPS and isinstance(clocks.next(device), Pace)
    return clocks.medians(), max(took)


def check_times():
    """An operator takes what its kernels do, whether the host is faster than the device or slower."""
    draw = random.Random(0)
    for launch, pause in (1000, 0), (8000, 20000), (30000, 50000), (100000, 200000):
        kernels = [[(launch, draw.randint(2000, 60000)) for _ in range(draw.randint(1, 12))] for _ in range(500)]
        want, host = [sum(takes for _, takes in operator) for operator in kernels], sum(launch * len(operator) + pause for operator in kernels)
        got, took = measured(kernels, pause)
        off = [(n, a, b) for n, (a, b) in enumerate(zip(got, want)) if abs(a - b - 500) > 1]
        assert len(off) <= 10 and sum(got) < 1.02 * sum(want), (launch, sum(got), sum(want), off)
        assert took < max(host, sum(want)) * 1.1 + Clock.MOST + 500 * 20000, (launch, took, host, sum(want))
        if launch == 100000:
            assert sum(measured(kernels, pause, sleeps=False)[0]) > 1.5 * sum(want), "a device that waits seems slower"


def check_long():
    """What takes the host longer than it is ahead at most may have been waited for, in each step: of such times the least is taken. Others are told from it."""
    kernels = [[(100000, 50000)] * 4] * 20 + [[(Clock.MOST, 1000000)] * 2] + [[(100000, 50000)] * 4] * 20
    got, _ = measured(kernels, 10000)
    assert 2e6 <= got.pop(20) <= 2 * Clock.MOST and all(round(ns / 1e5) == 2 for ns in got), got


def check_blocking():
    """Where each launch waits for the device, or the program does now and then, no more is lost than some tenths of a second."""
    class Blocking(Device):
        def __init__(self, of):
            super().__init__()
            self.of, self.count = of, 0

        def run(self, launch, takes):
            super().run(launch, takes)
            self.count += takes == 50000
            if self.of == 1 or takes == 50000 and self.count % self.of == 0:
                self.now = max(self.now, self.busy)

    for of in 1, 2, 4, 8, 20, 50, 100:
        device, kernels = Blocking(of), [[(10000, 50000)]] * 1000
        took = step(device, kernels, Clock(device), 0)
        assert took < 1000 * 80000 + 3 * Clock.IN_VAIN, (of, device.slept, took)


def check_median():
    """The median is that of times that are sure."""
    clocks = Clocks()
    for times, late in ([10, 50, 30], {1}), ([12, 20, 90], {2}), ([14, 22, 80], {2}):
        clocks.add(types.SimpleNamespace(nanoseconds=lambda times=times: times, late=late, saved=0))
    assert clocks.medians() == [12, 22, 30], clocks.medians()
    for clock in clocks.clocks:
        clock.late = {0, 1, 2}
    assert clocks.medians() == [10, 20, 30]


def check_fill():
    """What is to keep the device busy does nothing where it is busy, or where it is not the current one."""
    device = Device()
    device.run(0, 5000)
    busy = Mark(device, device.busy)
    assert not device.fill(busy, 1000) and not device.slept
    device.now = 6000
    assert device.fill(busy, 1000) and device.fill(None, 1000) and abs(device.slept - 2000) < 3
    device.captured = True
    assert not device.fill(busy, 1000) and not device.fill(None, 1000) and not device.passed(busy), "a graph is captured"
    device.captured, device.torch.cuda.current_device = False, lambda: 1
    assert device.fill(busy, 1000) and device.fill(None, 1000) and abs(device.slept - 2000) < 3


if __name__ == "__main__":
    check_times()
    check_long()
    check_blocking()
    check_median()
    check_fill()
