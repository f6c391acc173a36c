"""How many gradients that wait for their optimizer leave the device for what steps lack, and when."""

import collections


class Lodging(object):
    """Has gradients leave where requests had memory of the host, as many bytes as lacked: on the host one is read once or twice, which costs less than what an
    operator works on. In the next steps they leave before the lack comes."""

    SMALLEST = 1 << 20  # bytes of a request for which something leaves
    REST = 8  # steps in which nothing lacked, after which half as many leave, and come home in the end; and in which none leave if that was no help
    SIZES = 64  # of steps of which it is remembered what lacked and leaves

    def __init__(self, runtime, home):
        self.runtime, self.home = runtime, home
        self.lacks = 0  # bytes that requests had of the host since it was asked whether something lacks
        self.deepest = 0  # the most that they had at a time in this step, beside what was put there
        self.lacked = [0, 0]  # in this step: before it asks for an entry, and from then on until it asks for the last one
        self.start = 0  # bytes of gradients that are to leave until a step begins
        self.points = {}  # and until a backward pass asks for an entry, by its number
        self.coming = collections.deque()  # the points of this step that it has not come to
        self.next, self.passed = -1, -1  # the number of the first of them, and that of the last entry that was asked for
        self.due, self.wanted = False, 0  # so many bytes are to have left by now, and some may not have
        self.before = {}  # start or points, if more are to leave since this step, by their place in lacked
        self.told = {}  # what lacked in the last step of each kind, by the sizes of its inputs
        self.plans = {}  # start and points of each kind, and whether it was tried with nothing that leaves
        self.common = 0, {}  # those of the last step that had any
        self.out = 0  # bytes of gradients that left in this step, or had left before
        self.recent = 0  # the last step in which more left, or in which it was seen that this is long ago
        self.barred = 0  # the step before which none leave
        self.looks = self.skips = 0  # looks for gradients that did not find as many in this step, and calls in which there is no look

    # Called with memory, between two operators.

    def begin_step(self, dims):
        """Called between two steps, with the dimensions of the inputs of the one that begins. One of a kind that was not there before is as the last one from which
        something left."""
        last = tuple(self.runtime.step.dims)
        self.home.weights.begin_step(sum(self.lacked) + self.lacks, self.deepest, last)
        self.judge(last)
        if self.runtime.steps - self.recent > self.REST:
            self.recent = self.runtime.steps
            self.start, self.points = self.halved(self.start, self.points)
            self.plans = {kind: (*self.halved(start, points), tried) for kind, (start, points, tried) in self.plans.items()}
            self.common = self.halved(*self.common)
        self.file(last)
        self.begin(dims)
        self.home.bring(gradients=not any(start or points for start, points, _ in self.plans.values()) and not self.start and not self.points)

    def begin_instead(self, last, dims):
        """Called when a step begins in place of one that has saved nothing, with the dimensions of both."""
        if tuple(last) != tuple(dims):
            self.remember(tuple(last), 0, {}, True)
            self.begin(dims)

    def begin(self, dims):
        self.start, points, _ = self.plans.get(tuple(dims), (*self.common, False))
        self.points = dict(points)
        self.lacks = self.deepest = self.wanted = self.looks = self.skips = 0
        self.passed, self.due = -1, False
        self.look_ahead(sorted(self.points.items(), reverse=True))
        self.out = self.home.away() if self.start or self.points else 0
        if self.start:
            self.have(self.start)

    def file(self, last):
        """Notes what leaves in steps of a kind. Once nothing leaves any more where there was room for all that left."""
        relief, (_, _, tried) = self.home.relief, self.plans.get(last, (0, {}, False))
        if self.start or self.points:
            self.common = self.start, dict(self.points)
            if not tried and not any(self.told[last]) and relief.weighed and relief.spacious(self.out):
                self.start, self.points, tried = 0, {}, True
        self.remember(last, self.start, dict(self.points), tried)

    def remember(self, kind, *plan):
        self.plans.pop(kind, None)
        self.plans[kind] = plan
        if len(self.plans) > self.SIZES:
            del self.plans[next(iter(self.plans))]

    def judge(self, dims):
        """Takes back that more leave where that was no help: as much lacked in a step as in the last one of its kind."""
        known, lacked, before = self.told.pop(dims, (0, 0)), self.lacked, self.before
        self.told[dims], self.lacked, self.before = lacked, [0, 0], {}
        if len(self.told) > self.SIZES:
            del self.told[next(iter(self.told))]
        for i, value in before.items():
            if 0 < known[i] <= lacked[i]:
                self.start, self.points = (self.start, value) if i else (value, self.points)
                self.barred = self.runtime.steps + self.REST

    def halved(self, start, points):
        return self.half(start), {at: half for at, half in ((at, self.half(nbytes)) for at, nbytes in points.items()) if half}

    def half(self, nbytes):
        return nbytes // 2 if nbytes > 2 * self.SMALLEST else 0

    def look_ahead(self, points):
        self.coming = collections.deque(points)
        self.next = self.coming[0][0] if self.coming else -1

    def lack(self, nbytes):
        """Notes a request that has memory of the host."""
        if nbytes >= self.SMALLEST:
            self.lacks += nbytes
            self.deepest = max(self.deepest, self.runtime.lanes.stats().borrowed_bytes - self.out - self.home.weights.nbytes)

    def pack(self):
        """Called when an entry is saved, and something lacks."""
        self.more(-1, self.make_up(0))

    def unpack(self, index):
        """Called when an entry is asked for, and something lacks, is due or comes now."""
        while self.coming and index <= self.coming[0][0]:
            self.wanted, self.due = max(self.wanted, self.coming.popleft()[1]), True
        self.next = self.coming[0][0] if self.coming else -1
        if self.lacks:
            self.more(self.passed, self.make_up(int(self.passed >= 0)))
        elif self.due and not self.skip():
            self.due = self.have(self.wanted) > 0

    def more(self, point, nbytes):
        """Has so many bytes more leave in the next steps: until a point of their backward passes, or, for -1, until they begin."""
        if nbytes and point < 0:
            self.before.setdefault(0, self.start)
            self.start += nbytes
        elif nbytes:
            self.before.setdefault(1, dict(self.points))
            self.wanted = self.points[point] = max(self.points.get(point, 0), self.wanted) + nbytes

    def make_up(self, place):
        """Has gradients leave for what was lacking, and counts that in its place. Returns its bytes, 0 where none can leave."""
        lacks, self.lacks = self.lacks, 0
        self.lacked[place] += lacks
        if not lacks or self.runtime.steps < self.barred or self.skip():
            return 0
        freed = self.lodge(lacks)
        if freed:
            self.recent = self.runtime.steps
        return min(freed, lacks)

    def have(self, nbytes):
        """Sees to it that gradients of so many bytes have left. Returns how many lack."""
        nbytes -= self.home.away()
        lack = nbytes - self.lodge(nbytes) if nbytes > 0 else 0
        if lack > 0:
            self.look_later()
        return lack

    def lodge(self, nbytes):
        freed = self.home.lodge(nbytes)
        self.out += freed
        if not freed:
            self.look_later()
        return freed

    def look_later(self):
        self.looks += 1
        self.skips = 1 << min(self.looks, 16)

    def skip(self):
        """Returns whether gradients are not looked for: ever more seldom where there are too few."""
        self.skips -= self.skips > 0
        return self.skips > 0
