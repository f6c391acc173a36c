"""Compares words of what was recomputed, in tables that are written once more in each step."""

import ctypes

import torch
from gmswap_hook.samples import Samples, Table, Wrong

HERE = torch.device("cpu")


class Answer(object):
    def __init__(self, flag):
        self.flag = flag

    def come(self):
        return True

    def value(self):
        return bool(self.flag.item())


class Memory(object):
    pick = None

    def __init__(self):
        self.torch, self.place, self.now, self.quantized = torch, HERE, 1, ()

    @staticmethod
    def address(tensor):
        return tensor.untyped_storage().data_ptr()

    def stream(self):
        return self.now

    def capturing(self):
        return False

    def fetch(self, flag):
        return Answer(flag)


class Picking(Memory):
    """Has what copies words by their addresses, but for those of one stream."""

    def __init__(self, refused=None):
        super(Picking, self).__init__()
        self.refused, self.picked = refused, 0

    def pick(self, to, address, apart, size, count, stream):
        if stream == self.refused:
            return False
        for i in range(count):
            ctypes.memmove(to + i * size, address + i * apart, size)
        self.picked += 1
        return True


def holder(byte, changed=None):
    data = bytearray([byte]) * 4096
    if changed is not None:
        data[changed] += 1
    return torch.empty(1024, device=HERE).write(bytes(data))


def wrong(samples):
    """Ends a step. Returns whether what was recomputed in it is said to be wrong."""
    samples.ask(7)
    try:
        samples.answer()
    except Wrong as e:
        assert str(e).startswith("step 7 does not do"), e
        return True
    return False


def check_same(samples):
    """More tensors than a table has rows, each compared, or some never recomputed."""
    for every in (1, 3, Table.ROWS + 1):
        kept = [(samples.take(holder(i % 256)), i % 256) for i in range(2 * Table.ROWS + 5)]
        for sample, byte in kept[::every]:
            samples.compare(sample, holder(byte))
        assert not wrong(samples), "every %d" % every


def check_differs(samples):
    """One word differs, in any row of any table: of 1,024 each fifteenth is looked at."""
    for row in (0, Table.ROWS - 1, Table.ROWS, Table.ROWS + 3):
        kept = [samples.take(holder(3)) for _ in range(Table.ROWS + 4)]
        for i, sample in enumerate(kept):
            samples.compare(sample, holder(3, changed=60 * (i % 50) if i == row else None))
        assert wrong(samples), "row %d" % row
        assert not wrong(samples), "nothing was compared since"


def check_late(samples):
    """What is recomputed after its step is compared with what was there in that step, also where the row is another tensor's by then."""
    for byte in (1, 2):
        late = samples.take(holder(1))
        assert not wrong(samples)
        sample = samples.take(holder(3))
        samples.compare(sample, holder(3))
        samples.compare(late, holder(byte))
        assert wrong(samples) == (byte == 2)
    assert not wrong(samples)


def check_stream(samples):
    """Words that were noted on another stream are not looked at."""
    old = samples.take(holder(1))
    samples.memory.now = 2
    new = samples.take(holder(1))
    samples.compare(old, holder(2))
    samples.compare(new, holder(1))
    assert not wrong(samples)
    new = samples.take(holder(1))
    samples.compare(new, holder(2))
    samples.memory.now = 1
    assert not wrong(samples), "the step ends on another stream"


if __name__ == "__main__":
    for check in (check_same, check_differs, check_late, check_stream):
        check(Samples(Memory()))
        for refused in None, 1:
            memory = Picking(refused)
            check(Samples(memory))
            assert bool(memory.picked) == (refused is None or check is check_stream)
