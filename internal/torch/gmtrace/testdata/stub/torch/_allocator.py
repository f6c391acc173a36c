"""A caching allocator that takes the first block that fits."""

import threading

from . import _driver, _ring

MIB = 1 << 20


class OutOfMemoryError(RuntimeError):
    pass


class Block(object):
    def __init__(self, addr, size):
        self.addr, self.size, self.asked, self.frames = addr, size, 0, []


class Segment(object):
    def __init__(self, addr, size, stream):
        self.addr, self.size, self.stream = addr, size, stream
        self.blocks = [Block(addr, size)]

    def empty(self):
        return len(self.blocks) == 1 and not self.blocks[0].asked


class Allocator(object):
    def __init__(self, device, limit, observers):
        self.device, self.limit, self.observers = device, limit, observers
        self.lock = threading.RLock()
        self.ring = _ring.Ring(device)
        self.enabled = self.context = None
        self.segments = {}
        self.live = {}  # segments and blocks by the block's address
        self.source = _driver.source(device)
        self.counts = {"alloc": 0, "free_completed": 0, "segment_alloc": 0, "segment_free": 0}

    def record(self, enabled, context, max_entries, clear_history):
        with self.lock:
            self.enabled, self.context = enabled, context
            self.ring.limit = max(1, max_entries)
            if not enabled or clear_history:
                self.ring.clear()

    def note(self, action, addr, size, stream):
        if action in self.counts:
            self.counts[action] += 1
        if not self.enabled:
            return []
        frames = None
        if self.context == "all" or self.context == "alloc" and action == "alloc":
            frames = _ring.frames()
        self.ring.append(_ring.make(action, addr, size, stream, frames))
        return frames or []

    def malloc(self, n, stream):
        size = max(512, (n + 511) // 512 * 512)
        with self.lock:
            found = self.find(size, stream) or self.grow(size, stream)
            if found:
                return self.place(found[0], found[1], n, size, stream)
            self.release()
            found = self.grow(size, stream)
            if found:
                return self.place(found[0], found[1], n, size, stream)
            free = self.limit - sum(s.size for s in self.segments.values())
            self.note("oom", free, n, stream)
        for observe in self.observers:
            observe(self.device, size, self.limit, free)
        raise OutOfMemoryError("CUDA out of memory. Tried to allocate %d bytes" % n)

    def find(self, size, stream):
        for _, segment in sorted(self.segments.items()):
            if segment.stream == stream and (size <= MIB) == (segment.size == 2 * MIB):
                for block in segment.blocks:
                    if not block.asked and block.size >= size:
                        return segment, block

    def grow(self, size, stream):
        whole = 2 * MIB if size <= MIB else 20 * MIB if size < 10 * MIB else (size + 2 * MIB - 1) // (2 * MIB) * 2 * MIB
        if sum(s.size for s in self.segments.values()) + whole > self.limit:
            return None
        addr = self.source.alloc(whole)
        if not addr:
            return None
        segment = self.segments[addr] = Segment(addr, whole, stream)
        self.note("segment_alloc", addr, whole, stream)
        return segment, segment.blocks[0]

    def place(self, segment, block, n, size, stream):
        i = segment.blocks.index(block)
        if block.size > size:
            segment.blocks.insert(i + 1, Block(block.addr + size, block.size - size))
            block.size = size
        block.asked = max(n, 1)
        self.live[block.addr] = segment, block
        block.frames = self.note("alloc", block.addr, block.asked, stream)
        return block.addr

    def free(self, addr):
        with self.lock:
            segment, block = self.live.pop(addr)
            self.note("free_requested", addr, block.asked, segment.stream)
            self.note("free_completed", addr, block.asked, segment.stream)
            block.asked, block.frames = 0, []
            i = segment.blocks.index(block)
            for j in (i, i - 1):
                pair = segment.blocks[max(j, 0):j + 2]
                if len(pair) == 2 and not pair[0].asked and not pair[1].asked:
                    pair[0].size += pair[1].size
                    segment.blocks.remove(pair[1])

    def release(self):
        for addr, segment in sorted(self.segments.items()):
            if segment.empty():
                del self.segments[addr]
                self.source.free(addr, segment.size)
                self.note("segment_free", addr, segment.size, segment.stream)

    def stats(self):
        with self.lock:
            return {
                "allocation": {"all": {"allocated": self.counts["alloc"], "freed": self.counts["free_completed"]}},
                "segment": {
                    "all": {"allocated": self.counts["segment_alloc"], "freed": self.counts["segment_free"]},
                },
            }

    def note_snapshot(self):
        with self.lock:
            self.note("snapshot", 0, sum(block.size for _, block in self.live.values()), 0)

    def trace(self, jitter):
        with self.lock:
            return [jitter.apply(entry) for entry in self.ring.ordered()]

    def segment_dicts(self):
        with self.lock:
            return [self.segment_dict(s) for _, s in sorted(self.segments.items())]

    def segment_dict(self, segment):
        blocks = [{
            "address": b.addr, "size": b.size, "requested_size": b.asked, "frames": b.frames,
            "state": "active_allocated" if b.asked else "inactive",
        } for b in segment.blocks]
        active = sum(b.size for b in segment.blocks if b.asked)
        return {
            "device": self.device, "address": segment.addr, "total_size": segment.size, "allocated_size": active,
            "active_size": active, "requested_size": sum(b.asked for b in segment.blocks), "stream": segment.stream,
            "segment_type": "small" if segment.size == 2 * MIB else "large", "segment_pool_id": (0, 0),
            "is_expandable": False, "frames": [], "blocks": blocks,
        }
