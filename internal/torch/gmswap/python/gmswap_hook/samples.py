"""Checks that recomputed contents are those that the program had made. A branch that a step takes, or a number that is another one in each
step, is not seen where tensors are saved."""

import collections
import weakref

WORDS = 64  # of a tensor that are looked at, which is larger
PIECE = 1 << 22  # numbers of a whole tensor that are compared at a time
NEAR = 1 / 16  # of the largest one, by which others may differ where the last bits do


class Wrong(RuntimeError):
    """Gradients were computed from wrong contents."""


def pieces(a, b):
    """Returns pieces of two lines of numbers, to compare them one by one: PyTorch takes memory for what it compares."""
    return [(a[at : at + PIECE], b[at : at + PIECE]) for at in range(0, a.numel(), PIECE)]


def close(torch, pairs):
    """Returns on the device of each two pieces whether the numbers of the second are near those of the first."""
    largest = lambda x: torch.where(x.isfinite(), x.abs(), torch.zeros_like(x)).max()
    most = torch.stack([largest(x.float()) for x, _ in pairs]).max() * NEAR
    near = lambda x, y: (x.isfinite() & ((x - y).abs() <= most)) | (x == y) | (x.isnan() & y.isnan())
    return [near(x.float(), y.float()).all() for x, y in pairs]


class Sample(object):
    """Some words of a storage: in a row of a table, or in a tensor of its own from the end of the step on."""

    __slots__ = ("table", "row", "before", "__weakref__")

    def __init__(self, table, row):
        self.table, self.row, self.before = table, row, None


class Samples(object):
    """Compares a few words of each tensor. The answer comes a step or two later, without a wait."""

    def __init__(self, memory):
        self.memory, self.torch = memory, memory.torch
        self.tables, self.stream = {}, None  # lists of tables, by types, and the stream in whose order they are written
        self.late = []  # on the device: whether words of earlier steps differed
        self.asked = collections.deque()  # steps, and the answers that are on their way

    def take(self, holder, near=None):
        """Notes some words of a storage: numbers of a type that are to come out near these, or bits that are to be the same. Returns None where
        that is not possible."""
        stream = self.memory.stream()
        if stream != self.stream:
            self.tables, self.late, self.stream = {}, [], stream
        if self.memory.capturing():
            return None
        tables = self.tables.setdefault((near, holder.dtype), [])
        if not tables or len(tables[-1].samples) == Table.ROWS:
            tables.append(Table(self.memory, near or self.words_of(holder), near is not None))
        return tables[-1].take(holder, stream)

    def words_of(self, holder):
        """Returns the type of the words of a storage: the tensor's own, if such words are long enough."""
        return holder.dtype if holder.element_size() > 1 and holder.dtype not in self.memory.quantized else self.torch.int32

    def compare(self, sample, holder):
        """Notes the same words of what was recomputed."""
        if self.memory.stream() != self.stream or self.memory.capturing():
            return
        if sample.before is None:
            sample.table.compare(sample.row, holder, self.stream)
        else:
            self.late.append(sample.table.differ(sample.before, sample.table.words(holder).clone()))

    def ask(self, step):
        """Requests the answer of a step that has ended."""
        tables = [t for tables in self.tables.values() for t in tables if t.samples]
        answers, self.late = self.late, []
        if self.stream == self.memory.stream():
            answers += [t.answer() for t in tables if t.compared]
            for t in tables:
                t.begin()
        else:
            self.tables, answers = {}, []
        if answers:
            differ = answers[0]
            for other in answers[1:]:
                differ = differ.logical_or_(other)
            self.asked.append((step, self.memory.fetch(differ)))

    def answer(self, wait=False):
        """Raises an error if the answer has come and words differed."""
        while self.asked and (wait or self.asked[0][1].come()):
            step, answer = self.asked.popleft()
            if answer.value():
                raise Wrong("step %d does not do what the recorded step did: what was recomputed for its backward pass differs, and "
                            "its gradients are wrong; a policy that makes nothing again is right for this program: see gmswap run --policy. Where cuDNN took "
                            "another algorithm, which a line says, more memory is" % step)


class Table(object):
    """Words of tensors, as they were and as they were recomputed: to note them takes a call or two, with no memory, and to compare them few for all."""

    ROWS = 256

    def __init__(self, memory, dtype, near):
        torch = memory.torch
        self.memory, self.near, self.dtype = memory, near, dtype
        self.size = torch.empty(0, dtype=dtype).element_size()
        self.bits = getattr(torch, "int%d" % (8 * min(8, self.size)))  # of words that are to be the same: what is no number is not equal to itself
        self.before, self.after = (torch.empty(self.ROWS * WORDS, dtype=self.dtype, device=memory.place) for _ in range(2))
        self.addresses = memory.address(self.before), memory.address(self.after)
        self.rows = [(self.before[i : i + WORDS], self.after[i : i + WORDS]) for i in range(0, self.ROWS * WORDS, WORDS)]
        self.samples, self.compared = [], set()  # references to what the rows are for, and the numbers of rows that were compared

    def begin(self):
        """Begins a step. Words of the last one that may still be compared are kept beside the table."""
        for row, weak in enumerate(self.samples):
            sample = weak()
            if sample is not None and row not in self.compared:
                sample.before = self.rows[row][0].clone()
        self.samples, self.compared = [], set()

    def take(self, holder, stream):
        sample = Sample(self, len(self.samples))
        self.samples.append(weakref.ref(sample))
        self.copy(sample.row, 0, holder, stream)
        return sample

    def compare(self, row, holder, stream):
        self.compared.add(row)
        self.copy(row, 1, holder, stream)

    def copy(self, row, side, holder, stream):
        """Notes words of a storage in a row, as they were or as they were recomputed."""
        storage, pick, size = holder.untyped_storage(), self.memory.pick, self.size
        apart = self.apart(storage) * size
        if not pick or not apart or not pick(self.addresses[side] + row * WORDS * size, storage.data_ptr(), apart, size, WORDS, stream):
            self.rows[row][side].copy_(self.words(holder))

    def apart(self, storage):
        """Returns how many words are from one that is looked at to the next one: an odd number, for words of several columns."""
        stride = storage.nbytes() // self.size // WORDS
        return stride - (1 - stride % 2 if stride else 0)

    def words(self, holder):
        storage = holder.untyped_storage()
        stride = self.apart(storage)
        if holder.dtype == self.dtype:
            return holder.as_strided((WORDS,), (stride,), 0)
        return self.memory.torch.empty(0, dtype=self.dtype, device=self.memory.place).set_(storage, 0, (WORDS,), (stride,))

    def answer(self):
        """Returns, on the device, whether words of any row differ."""
        for row in range(len(self.samples)):
            if row not in self.compared:
                self.rows[row][1].copy_(self.rows[row][0])
        return self.differ(*(t[: len(self.samples) * WORDS] for t in (self.before, self.after)))

    def differ(self, before, after):
        if not self.near:
            return (after.view(self.bits) != before.view(self.bits)).any()
        before, after = before.view(-1, WORDS), after.view(-1, WORDS)
        apart = (after - before).abs() > before.abs().amax(1, keepdim=True) * NEAR
        return (apart | (after.isnan() != before.isnan())).any()
