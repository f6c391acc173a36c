"""libgm.so, as gm.h declares it."""

import ctypes
import json

from . import say

POOLS = ("all", "small_pool", "large_pool")  # enum gm_pool_kind
SNAPSHOT_ROOM = 1 << 16  # bytes to begin with


class Counter(ctypes.Structure):
    """struct gm_counter."""

    _fields_ = [(name, ctypes.c_int64) for name in ("current", "peak", "allocated", "freed")]

    def as_dict(self):
        return {name: getattr(self, name) for name, _ in self._fields_}


class Stats(ctypes.Structure):
    """struct gm_stats."""

    _fields_ = [(name, Counter * len(POOLS)) for name in (
        "allocation", "allocated_bytes", "requested_bytes", "active_bytes", "reserved_bytes", "segment",
    )] + [(name, ctypes.c_int64) for name in ("retries", "ooms", "stitches", "driver_calls", "driver_ns")]


class Library(object):
    def __init__(self, path):
        self.path = path
        self.lib = lib = ctypes.CDLL(path)
        lib.gm_get_stats.argtypes = [ctypes.c_int, ctypes.POINTER(Stats)]
        lib.gm_get_stats.restype = ctypes.c_int
        for reset in (lib.gm_reset_peak_stats, lib.gm_reset_accumulated_stats):
            reset.argtypes, reset.restype = [ctypes.c_int], None
        lib.gm_snapshot.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
        lib.gm_snapshot.restype = ctypes.c_size_t
        lib.gm_version.argtypes, lib.gm_version.restype = [], ctypes.c_char_p

    def address(self, function):
        return ctypes.cast(getattr(self.lib, function), ctypes.c_void_p).value

    def stats(self, device):
        """Returns the account of a device, or zeros if nothing is known of it."""
        stats = Stats()
        if self.lib.gm_get_stats(device, ctypes.byref(stats)) != 0:
            return Stats()
        return stats

    def reset_peak(self, device):
        self.lib.gm_reset_peak_stats(device)

    def reset_accumulated(self, device):
        self.lib.gm_reset_accumulated_stats(device)

    def segments(self):
        """Returns a list of segments, each with its blocks."""
        try:
            segments = json.loads(self._snapshot())
            if not isinstance(segments, list):
                raise ValueError("it is no list")
        except ValueError as e:
            say.once("the snapshot of libgm.so cannot be read: %s" % say.reason(e))
            segments = []
        return segments

    def _snapshot(self):
        """Returns a text that may grow between two calls."""
        room = SNAPSHOT_ROOM
        while True:
            text = ctypes.create_string_buffer(room)
            length = self.lib.gm_snapshot(text, room)
            if length < room:
                return text.value.decode()
            room = length + length // 4 + 1

    def version(self):
        return self.lib.gm_version().decode()
