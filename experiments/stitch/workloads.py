"""The workloads: a model, how it is trained, and the batches, which are the same in each run of a seed.

V: the length of a batch changes from step to step. L: LoRA. R: activations are recomputed.
"""

import dataclasses
import random

import torch

import models


@dataclasses.dataclass(frozen=True)
class Workload:
    size: models.Size | None  # None: ResNet-152
    batch: int
    shortest: int  # tokens, or pixels of a side
    longest: int
    lora: bool = False
    recompute: bool = False
    unit: int = 8  # lengths are multiples of it

    def scaled(self, x):
        if x == 1:
            return self
        return dataclasses.replace(self, size=self.size and self.size.scaled(x), batch=max(1, round(self.batch * x)),
                                   shortest=self._length(self.shortest * x), longest=self._length(self.longest * x))

    def _length(self, x):
        return max(self.unit, round(x / self.unit) * self.unit)

    def model(self, **how):
        if self.size is None:
            return models.images(**how)
        return models.transformer(self.size, self.lora, self.recompute, **how)

    def lengths(self, steps, seed):
        """Returns a length for each step. The longest comes in the middle."""
        rng = random.Random(seed)
        span = self.longest - self.shortest
        lengths = [self._length(self.shortest + rng.random() * span) for _ in range(steps)]
        lengths[steps // 2] = self.longest
        return lengths

    def make(self, length, generator, device="cuda"):
        """Returns the batch of a step."""
        if self.size is not None:
            return torch.randint(self.size.vocabulary, (self.batch, length), device=device, generator=generator)
        shape = (self.batch, 3, length, length)
        return (torch.randn(shape, device=device, dtype=torch.bfloat16, generator=generator),
                torch.randint(1000, (self.batch,), device=device, generator=generator))


WORKLOADS = {
    "opt1.3b-V": Workload(models.OPT_1B, 32, 256, 768),
    "opt1.3b-LRV": Workload(models.OPT_1B, 32, 256, 768, lora=True, recompute=True),
    "opt13b-LRV": Workload(models.OPT_13B, 16, 256, 1024, lora=True, recompute=True),
    "neox20b-LRV": Workload(models.NEOX_20B, 12, 256, 1024, lora=True, recompute=True),
    "neox20b-LR": Workload(models.NEOX_20B, 12, 640, 640, lora=True, recompute=True),
    "resnet152-V": Workload(None, 128, 192, 320, unit=16),
    "gpt2m-V": Workload(models.GPT2_MEDIUM, 16, 128, 1024),
}
