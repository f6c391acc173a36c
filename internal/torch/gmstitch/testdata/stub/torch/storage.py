"""Stands for torch.storage."""

from . import _C


class UntypedStorage(_C.StorageBase):
    pass
