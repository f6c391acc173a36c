"""The statistics and the snapshot of libgm.so, in the form that PyTorch's own allocator gives them."""

import os

from .library import POOLS, Counter

# What torch._C._cuda_memoryStats holds for each pool, and where libgm.so counts it; what it does not know of is 0.
FIELDS = (
    ("allocation", "allocation"),
    ("segment", "segment"),
    ("active", "allocation"),
    ("inactive_split", None),
    ("allocated_bytes", "allocated_bytes"),
    ("reserved_bytes", "reserved_bytes"),
    ("active_bytes", "active_bytes"),
    ("inactive_split_bytes", None),
    ("requested_bytes", "requested_bytes"),
)
UNLIMITED = -1  # max_split_size
SEGMENT = {
    "device": 0, "address": 0, "total_size": 0, "allocated_size": 0, "active_size": 0, "requested_size": 0, "stream": 0,
    "segment_type": "large", "segment_pool_id": (0, 0), "is_expandable": False, "frames": (), "blocks": (),
}
BLOCK = {"address": 0, "size": 0, "requested_size": 0, "state": "inactive", "frames": ()}


def nested(stats):
    """Returns what torch.cuda.memory_stats_as_nested_dict does, and the counts that only libgm.so has."""
    result = {}
    for name, source in FIELDS:
        counters = getattr(stats, source) if source else [Counter() for _ in POOLS]
        result[name] = {pool: counter.as_dict() for pool, counter in zip(POOLS, counters)}
    result.update(
        num_alloc_retries=stats.retries, num_ooms=stats.ooms, num_sync_all_streams=0,
        num_device_alloc=stats.segment[0].allocated, num_device_free=stats.segment[0].freed,
        max_split_size=UNLIMITED, oversize_allocations=Counter().as_dict(), oversize_segments=Counter().as_dict(),
        gm={"stitches": stats.stitches, "driver_calls": stats.driver_calls, "driver_ns": stats.driver_ns})
    return result


def snapshot(segments, devices, pool=None):
    """Returns what torch.cuda.memory._snapshot does: of all pools, or of one; with no history. After a pool's two numbers a newer
    PyTorch says whether it wants the history."""
    segments = [_segment(raw) for raw in segments]
    pool = tuple(pool or (0, 0))[:2]
    if pool != (0, 0):
        segments = [s for s in segments if s["segment_pool_id"] == pool]
    return {
        "segments": segments,
        "device_traces": [[] for _ in range(devices)],
        "allocator_settings": {
            "PYTORCH_CUDA_ALLOC_CONF": os.environ.get("PYTORCH_CUDA_ALLOC_CONF", ""), "max_split_size": UNLIMITED,
            "garbage_collection_threshold": 0.0, "expandable_segments": False, "pinned_num_register_threads": 1,
            "pinned_use_cuda_host_register": False, "release_lock_on_cudamalloc": False, "roundup_power2_divisions": {},
        },
        "external_annotations": [],
    }


def _segment(raw):
    segment = _filled(SEGMENT, raw)
    segment["segment_pool_id"] = tuple(segment["segment_pool_id"])
    segment["blocks"] = [_block(b) for b in segment["blocks"]]
    return segment


def _block(raw):
    return _filled(BLOCK, raw)


def _filled(defaults, raw):
    result = dict(defaults, **raw)
    result["frames"] = list(result["frames"])
    return result
