"""Checks that recomputed contents are those that the program had made. A branch that a step takes, or a number that is another one in each
step, is not seen where tensors are saved."""

import collections

WORDS = 64  # of a tensor that are looked at
NEAR = 1 / 16  # of the largest one, by which others may differ where the last bits do


class Wrong(RuntimeError):
    """Gradients were computed from wrong contents."""


class Samples(object):
    """Compares a few words of each tensor. The answer comes a step or two later, without a wait."""

    def __init__(self, memory):
        self.memory, self.torch = memory, memory.torch
        self.tables, self.stream = {}, None  # lists of tables, by types, and the stream in whose order they are written
        self.count = 0  # of times that an answer was requested
        self.asked = collections.deque()  # steps, and the answers that are on their way

    def take(self, holder, dtype=None):
        """Notes some words of a storage: numbers of a type that are to come out near these, or bits that are to be the same."""
        stream = self.memory.stream()
        if stream != self.stream:
            self.tables, self.stream = {}, stream
        tables = self.tables.setdefault(dtype, [])
        if not tables or tables[-1].taken == Table.ROWS:
            tables.append(Table(self.memory, dtype))
        return tables[-1], tables[-1].take(holder), self.count

    def compare(self, sample, holder):
        """Notes the same words of what was recomputed, unless that comes after the step."""
        table, row, count = sample
        if count == self.count:
            table.compare(row, holder)

    def ask(self, step):
        """Requests the answer of a step that has ended."""
        self.count += 1
        tables = [t for tables in self.tables.values() for t in tables if t.taken]
        answers = [t.differ() for t in tables if t.compared] if self.stream == self.memory.stream() else ()
        for t in tables:
            t.clear()
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
                            "its gradients are wrong; a policy that makes nothing again is right for this program: see gmswap run --policy" % step)


class Table(object):
    """Words of tensors, as they were and as they were recomputed: to note them takes two calls, with no memory, and to compare them few for all."""

    ROWS = 256

    def __init__(self, memory, dtype):
        torch = memory.torch
        self.memory, self.near, self.dtype = memory, dtype is not None, dtype or torch.int32
        self.before, self.after = (torch.empty(self.ROWS * WORDS, dtype=self.dtype, device=memory.place) for _ in range(2))
        self.rows = [(self.before[i : i + WORDS], self.after[i : i + WORDS]) for i in range(0, self.ROWS * WORDS, WORDS)]
        self.clear()

    def clear(self):
        self.taken, self.compared = 0, set()  # the first rows, and the numbers of those among them

    def take(self, holder):
        row = self.taken
        self.taken += 1
        self.rows[row][0].copy_(self.words(holder))
        return row

    def compare(self, row, holder):
        self.compared.add(row)
        self.rows[row][1].copy_(self.words(holder))

    def words(self, holder):
        storage = holder.untyped_storage()
        words = self.memory.torch.empty(0, dtype=self.dtype, device=self.memory.place)
        return words.set_(storage, 0, (WORDS,), (storage.nbytes() // words.element_size() // WORDS,))

    def differ(self):
        """Returns, on the device, whether any words differ."""
        for row in range(self.taken):
            if row not in self.compared:
                self.rows[row][1].copy_(self.rows[row][0])
        before, after = (t[: self.taken * WORDS] for t in (self.before, self.after))
        if not self.near:
            return (after != before).any()
        before, after = before.view(-1, WORDS), after.view(-1, WORDS)
        return ((after - before).abs().amax(1) > before.abs().amax(1) * NEAR).any()
