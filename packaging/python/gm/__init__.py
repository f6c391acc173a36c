"""GPU memory of PyTorch programs: recorded, shown, and why it ran out.

    import gm
    with gm.trace("job.parquet"):
        train()
    gm.load("job.parquet")      # a table of pandas, polars or pyarrow
    gm.why_oom("job.parquet")   # after torch.OutOfMemoryError
    gm.Trace("job.parquet")     # shown as a page in a notebook

    gm.load_safetensors("model.safetensors")   # weights on a GPU, once for all processes of a user, with gmswap serve
    gm.Store(limit=10 << 30)   # objects that leave a GPU when others need the room, and come back

All is done by the tools gmtrace, gmplan, gmbench, gmstitch and gmswap, and libgm.so, which this package brings along. python -m gm runs the tools.
"""

from gm._capture import trace, why_oom
from gm._safetensors import load_safetensors
from gm._objects import Object, Store, StoreError
from gm._shared import Shared, SharingError, shared
from gm._table import load
from gm._tools import Failed
from gm._view import Trace

__version__ = "0.1.0"

__all__ = [
    "Failed", "Object", "Shared", "SharingError", "Store", "StoreError", "Trace", "load", "load_safetensors", "shared", "trace", "why_oom",
]
