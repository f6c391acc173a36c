"""Checks snapshots as PyTorch's memory_viz page would find them.

Usage: check.py FILE... checks pickles; check.py --like REAL.pickle.gz FILE also that the keys, the segments and the
blocks are those of a real one.
"""
import bisect
import gzip
import pickle
import pickletools
import sys

# What the page's own reader of pickles knows.
READ = set(
    "PROTO APPEND APPENDS LIST TUPLE NEWFALSE NEWTRUE NONE BINGET BININT BININT1 BININT2 EMPTY_DICT EMPTY_LIST FRAME LONG1"
    " LONG_BINGET MARK MEMOIZE BINPUT LONG_BINPUT SETITEMS SETITEM DICT SHORT_BINUNICODE BINUNICODE STOP EMPTY_TUPLE TUPLE1"
    " TUPLE2 TUPLE3 BINFLOAT".split()
)


def check_segment(seg):
    at, active, allocated, requested = seg["address"], 0, 0, 0
    for b in seg["blocks"]:
        assert b["address"] == at and b["size"] > 0, (seg["address"], b["address"], at)
        at += b["size"]
        if b["state"] != "inactive":
            assert 0 < b["requested_size"] <= b["size"]
            active += b["size"]
            requested += b["requested_size"]
        if b["state"] == "active_allocated":
            allocated += b["size"]
    assert at == seg["address"] + seg["total_size"]
    assert (active, allocated, requested) == (seg["active_size"], seg["allocated_size"], seg["requested_size"])


class Replay:
    """What there was before each entry of a device's history, from the last entry to the first."""

    def __init__(self, segments):
        self.segments = {s["address"]: (s["total_size"], s["stream"]) for s in segments}
        self.starts = sorted(self.segments)
        self.blocks = {}  # whether a free is pending, by address
        for s in segments:
            for b in s["blocks"]:
                if b["state"] != "inactive":
                    self.blocks[b["address"]] = b["state"] == "active_pending_free"

    def undo(self, e):
        action, addr = e["action"], e.get("addr")
        if action == "alloc":
            del self.blocks[addr]
            assert self.holder(addr, e["size"]) is not None, "a block in no segment"
        elif action == "free_requested":
            assert self.blocks[addr] is True, "a free of a block that was not pending"
            self.blocks[addr] = False
        elif action == "free_completed":
            assert addr not in self.blocks, "a free of a block that is live"
            self.blocks[addr] = True
            assert self.holder(addr, e["size"]) is not None, "a block in no segment"
        elif action == "segment_alloc":
            assert self.take(addr)[0] == e["size"]
        elif action == "segment_free":
            assert addr not in self.segments
            self.put(addr, e["size"], e["stream"])
        elif action == "segment_map":
            start = self.holder(addr, e["size"])
            size, stream = self.take(start)
            if start < addr:
                self.put(start, addr - start, stream)
            if start + size > addr + e["size"]:
                self.put(addr + e["size"], start + size - addr - e["size"], stream)
        elif action == "segment_unmap":
            self.join(addr, e["size"], e["stream"])
        elif action == "oom":
            assert e["device_free"] >= 0

    def join(self, addr, size, stream):
        for start, (length, of) in list(self.segments.items()):
            if of == stream and (start + length == addr or addr + size == start):
                self.take(start)
                addr, size = min(addr, start), size + length
        self.put(addr, size, stream)

    def holder(self, addr, size):
        if addr in self.segments:
            return addr
        i = bisect.bisect(self.starts, addr) - 1
        if i >= 0 and addr + size <= self.starts[i] + self.segments[self.starts[i]][0]:
            return self.starts[i]

    def put(self, addr, size, stream):
        self.segments[addr] = (size, stream)
        bisect.insort(self.starts, addr)

    def take(self, addr):
        del self.starts[bisect.bisect_left(self.starts, addr)]
        return self.segments.pop(addr)


def check(path):
    with open(path, "rb") as f:
        data = f.read()
    if len(data) < 1 << 20:
        unknown = {op.name for op, _, _ in pickletools.genops(data)} - READ
        assert not unknown, unknown
    snapshot = pickle.loads(data)
    for seg in snapshot["segments"]:
        check_segment(seg)
    assert [s["address"] for s in snapshot["segments"]] == sorted(s["address"] for s in snapshot["segments"])
    for device, entries in enumerate(snapshot["device_traces"]):
        replay = Replay([s for s in snapshot["segments"] if s["device"] == device])
        times = [e["time_us"] for e in entries]
        assert times == sorted(times)
        for e in reversed(entries):
            replay.undo(e)
        assert not any(replay.blocks.values()) or entries, "pending frees with no history"
    return snapshot


def keys(snapshot):
    """The keys of each kind of dict, settings and frames included."""
    found = {"top": {frozenset(snapshot)}, "settings": {frozenset(snapshot["allocator_settings"])}}

    def note(kind, d):
        found.setdefault(kind, set()).add(frozenset(set(d) - {"pool_id"}))

    for seg in snapshot["segments"]:
        note("segment", seg)
        for b in seg["blocks"]:
            note("block", b)
            for f in b["frames"]:
                note("frame", f)
    for entries in snapshot["device_traces"]:
        for e in entries:
            note(e["action"], e)
    for mark in snapshot["external_annotations"]:
        note("mark", mark)
    return found


def layout(snapshot):
    """The segments and blocks, but for what was asked for where nothing is live, and for stacks."""
    segments = []
    for seg in snapshot["segments"]:
        blocks = [
            (b["address"], b["size"], b["state"], b["state"] != "inactive" and b["requested_size"]) for b in seg["blocks"]
        ]
        segments.append({**seg, "blocks": blocks, "frames": None})
    return segments


args = sys.argv[1:]
real = None
if args[0] == "--like":
    with gzip.open(args[1]) as f:
        real = pickle.load(f)
    args = args[2:]
for path in args:
    try:
        snapshot = check(path)
    except Exception as e:
        sys.exit(f"{path}: {type(e).__name__}: {e}")
    if real is not None and keys(snapshot) != keys(real):
        sys.exit(f"{path}: keys are {keys(snapshot)}, those of the real one {keys(real)}")
    if real is not None and layout(snapshot) != layout(real):
        sys.exit(f"{path}: other segments or blocks than the real one")
