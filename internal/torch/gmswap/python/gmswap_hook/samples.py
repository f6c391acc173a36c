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
        self.differ = None  # on the device: whether any words did in this step
        self.stream = None  # that finds it out
        self.asked = collections.deque()  # steps, and the answers that are on their way

    def words(self, holder, dtype):
        storage = holder.untyped_storage()
        empty = self.torch.empty(0, dtype=dtype or self.torch.int32, device=self.memory.place)
        count = storage.nbytes() // empty.element_size()
        step = max(1, count // WORDS)
        return empty.set_(storage, 0, (count // step,), (step,))

    def take(self, holder, dtype=None):
        """Returns some words of a storage: numbers of a type that are to come out near these, or bits that are to be the same."""
        return dtype, self.words(holder, dtype).clone()

    def compare(self, sample, holder):
        dtype, before = sample
        now = self.words(holder, dtype)
        if dtype is None:
            differ = (now != before).any()
        else:
            differ = ((now - before).abs() > before.abs().max() * NEAR).any()
        self.differ = differ if self.differ is None else self.differ.logical_or_(differ)
        self.stream = self.memory.stream()

    def ask(self, step):
        """Requests the answer of a step that has ended."""
        differ, self.differ = self.differ, None
        if differ is not None and self.stream == self.memory.stream():
            self.asked.append((step, self.memory.fetch(differ)))

    def answer(self, wait=False):
        """Raises an error if the answer has come and words differed."""
        while self.asked and (wait or self.asked[0][1].come()):
            step, answer = self.asked.popleft()
            if answer.value():
                raise Wrong("step %d does not do what the recorded step did: what was recomputed for its backward pass differs, and "
                            "its gradients are wrong; a policy that makes nothing again is right for this program: see gmswap run --policy" % step)
