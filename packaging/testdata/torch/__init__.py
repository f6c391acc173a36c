"""A torch without a GPU that dumps a recorded snapshot."""

from torch import cuda
