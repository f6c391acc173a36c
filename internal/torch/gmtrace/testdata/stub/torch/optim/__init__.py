"""Stands for torch.optim."""

from .optimizer import Optimizer  # noqa: F401
