"""Names that an older or another PyTorch does not have."""

import os

NAMES = [name for name in os.environ.get("STUB_TORCH_WITHOUT", "").split(",") if name]


def remove(namespace):
    for name in NAMES:
        namespace.pop(name, None)


def remove_attributes(cls):
    for name in NAMES:
        if name in vars(cls):
            delattr(cls, name)
