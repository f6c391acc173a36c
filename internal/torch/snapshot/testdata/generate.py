#!/usr/bin/env python3
"""Writes the snapshots of this directory, and the rows expected of wrapped.pickle. Python 3.11; no PyTorch."""

import pickle
import random
import struct

T0 = 1_700_000_000_000_000  # us


def frame(name, filename, line):
    return {"name": name, "filename": filename, "line": line}


MAIN = frame("<module>", "train.py", 7)
LOOP = frame("step;inner", "train.py", 21)
INIT = frame("__init__", "model.py", 3)
STACK = [LOOP, MAIN]  # innermost first; shared by several events
RECURSION = [LOOP, LOOP, MAIN]


def event(action, addr, size, time, stream=0, frames=(), metadata="", **more):
    e = {"action": action}
    e["device_free" if action == "oom" else "addr"] = addr
    e.update(size=size, stream=stream, time_us=time, compile_context="N/A", user_metadata=metadata)
    e["frames"] = frames if isinstance(frames, list) else list(frames)
    e.update(more)
    return e


def block(address, size, requested, state, frames=()):
    return {"address": address, "size": size, "requested_size": requested, "state": state, "frames": list(frames)}


def segment(device, address, size, blocks, stream=0, pool=(0, 0), expandable=False):
    active = [b for b in blocks if b["state"] != "inactive"]
    return {
        "device": device, "address": address, "total_size": size,
        "allocated_size": sum(b["size"] for b in active), "active_size": sum(b["size"] for b in active),
        "requested_size": sum(b["requested_size"] for b in active), "stream": stream,
        "segment_type": "large" if size > 2 << 20 else "small", "segment_pool_id": pool,
        "is_expandable": expandable, "frames": [], "blocks": blocks,
    }


MIB = 1 << 20
A = 0x7F0000000000  # small segment, older than the history
B = 0x7F0010000000  # large one of a private pool, allocated in it
C = 0x7F0020000000  # expandable
D = 0x7F0030000000  # older, freed in it
E = 0x7E0000000000  # of device 1


def settings(**changed):
    s = {
        "PYTORCH_CUDA_ALLOC_CONF": "", "max_split_size": -1, "garbage_collection_threshold": 0.0,
        "expandable_segments": False, "pinned_num_register_threads": 1, "release_lock_on_cudamalloc": False,
        "pinned_use_cuda_host_register": False,
        "roundup_power2_divisions": {str(1 << i): 0 for i in range(16)},
    }
    s.update(changed)
    return s


def small():
    """Two devices, a private pool, an expandable segment, and much that is older than the history."""
    device0 = [
        event("free_requested", A, 100, T0 + 10, frames=STACK),  # older
        event("free_completed", A, 100, T0 + 10, frames=STACK),
        event("alloc", A, 50, T0 + 11, frames=STACK, metadata="batch 1"),
        event("free_completed", A + 512, 700, T0 + 12, stream=5),  # older, its free was requested before
        event("segment_alloc", B, 20 * MIB, T0 + 13, stream=3),
        event("alloc", B, 3 * MIB, T0 + 14, stream=3, frames=RECURSION),
        event("segment_unmap", C + 4 * MIB, 2 * MIB, T0 + 15),  # older
        event("segment_map", C + 2 * MIB, 2 * MIB, T0 + 16),
        event("alloc", C + 2 * MIB, MIB, T0 + 17, frames=STACK),
        event("segment_free", D, 2 * MIB, T0 + 18),
        event("oom", 123456, 1 << 40, T0 + 19, frames=[MAIN]),
        event("no_such_action", 1, 1, T0 + 19),
        event("snapshot", 0, 0, T0 + 20),
        event("free_requested", C + 2 * MIB, MIB, T0 + 18),  # runs backwards
    ]
    device1 = [
        event("segment_alloc", E, 2 * MIB, T0 + 12),
        event("alloc", E, 1, T0 + 14, pool_id=(0, 9)),
        event("user_defined", 0, 0, T0 + 30, metadata="here"),
    ]
    return {
        "segments": [
            segment(1, E, 2 * MIB, [block(E, 512, 1, "active_allocated"), block(E + 512, 2 * MIB - 512, 0, "inactive")]),
            segment(0, A, 2 * MIB, [
                block(A, 512, 50, "active_allocated", STACK),
                block(A + 512, 1024, 700, "inactive"),
                block(A + 1536, 512, 300, "active_allocated", [INIT, MAIN]),  # older
                block(A + 2048, 512, 400, "active_pending_free"),  # older
                block(A + 2560, 2 * MIB - 2560, 0, "inactive"),
            ]),
            segment(0, B, 20 * MIB, [
                block(B, 3 * MIB, 3 * MIB, "active_allocated", RECURSION), block(B + 3 * MIB, 17 * MIB, 0, "inactive"),
            ], stream=3, pool=(1, 0)),
            segment(0, C, 4 * MIB, [
                block(C, 2 * MIB, 2 * MIB, "active_allocated"),  # older
                block(C + 2 * MIB, MIB, MIB, "active_pending_free"), block(C + 3 * MIB, MIB, 0, "inactive"),
            ], expandable=True),
        ],
        "device_traces": [device0, device1],
        "allocator_settings": settings(
            PYTORCH_CUDA_ALLOC_CONF="backend:native,max_split_size_mb:1,roundup_power2_divisions:[256:1,>:2]",
            max_split_size=128 * MIB, garbage_collection_threshold=0.8,
            roundup_power2_divisions={"1": 4, "2": 4, "4": 0}),
        "external_annotations": [
            {"name": "step", "stage": "END", "device": 0, "time_us": T0 + 25},
            {"name": "step", "stage": "START", "device": 0, "time_us": T0 + 9},
        ],
        "something_new": [{"with": {"nested": [1, (2.5, None, [True, False])]}}, "dicts"],
    }


def old():
    """As PyTorch 2.0 wrote it: no addresses of blocks, histories for frames, no times."""
    return {
        "segments": [{
            "device": 0, "address": A, "total_size": 2 * MIB, "allocated_size": 1024, "active_size": 1024, "stream": 0,
            "segment_type": "small",
            "blocks": [
                {"size": 512, "requested_size": 10, "state": "active_allocated",
                 "history": [{"addr": A, "real_size": 10, "frames": STACK}]},
                {"size": 512, "state": "active_allocated",
                 "history": [{"addr": A + 512, "real_size": 20, "frames": [MAIN]}, {"addr": A + 512, "real_size": 99}]},
                {"size": 2 * MIB - 1024, "state": "inactive"},
            ],
        }],
        "device_traces": [[
            {"action": "alloc", "addr": A, "size": 10, "stream": 0, "frames": STACK},
            {"action": "alloc", "addr": A + 2048, "size": 30, "stream": 0, "frames": STACK},
            {"action": "free_requested", "addr": A + 2048, "size": 30, "stream": 0},
            {"action": "free_completed", "addr": A + 2048, "size": 30, "stream": 0},
        ]],
    }


def odd():
    """What a recording told to skip kinds of events looks like."""
    return {"device_traces": [[
        event("alloc", A, 10, T0), event("alloc", A, 20, T0 + 1), event("free_completed", A, 20, T0 + 2),
        event("free_completed", A, 20, T0 + 3), event("alloc", A, 0, T0 + 4), event("free_requested", A, 0, T0 + 5),
        event("alloc", A, 30, T0 + 6), event("free_requested", A, 30, T0 + 7), event("free_requested", A, 30, T0 + 8),
        event("alloc", A, 40, T0 + 9),
    ]]}


class Jit:
    """Pickles as torch/csrc/jit/serialization/pickler.cpp does: protocol 2, one mark for a container of any length,
    and what is referenced more than once numbered after it is complete."""

    def __init__(self, value):
        self.out, self.memo, self.uses = bytearray(b"\x80\x02"), {}, {}
        self.count(value)
        self.push(value)
        self.out += b"."

    def count(self, v):
        if isinstance(v, (dict, list, tuple)):
            self.uses[id(v)] = self.uses.get(id(v), 0) + 1
            if self.uses[id(v)] == 1:
                for x in v.values() if isinstance(v, dict) else v:
                    self.count(x)

    def number(self, key):
        n = self.memo[key] = len(self.memo)
        self.out += b"q" + bytes([n]) if n < 256 else b"r" + struct.pack("<I", n)

    def push(self, v):
        key = v if isinstance(v, str) else id(v)
        if isinstance(v, (str, dict, list)) and key in self.memo:
            n = self.memo[key]
            self.out += b"h" + bytes([n]) if n < 256 else b"j" + struct.pack("<I", n)
            return
        if v is None:
            self.out += b"N"
        elif isinstance(v, bool):
            self.out += b"\x88" if v else b"\x89"
        elif isinstance(v, int):
            if 0 <= v < 256:
                self.out += b"K" + bytes([v])
            elif 0 <= v < 65536:
                self.out += b"M" + struct.pack("<H", v)
            elif -(1 << 31) <= v < 1 << 31:
                self.out += b"J" + struct.pack("<i", v)
            else:
                self.out += b"\x8a\x08" + struct.pack("<q", v)
        elif isinstance(v, float):
            self.out += b"G" + struct.pack(">d", v)
        elif isinstance(v, str):
            self.out += b"X" + struct.pack("<I", len(v.encode())) + v.encode()
            self.number(key)
        elif isinstance(v, tuple):
            self.out += b"("
            for x in v:
                self.push(x)
            self.out += b"t"
        else:
            self.out += b"}" if isinstance(v, dict) else b"]"
            if v:
                self.out += b"("
                for x in v.items() if isinstance(v, dict) else v:
                    for y in x if isinstance(v, dict) else (x,):
                        self.push(y)
                self.out += b"u" if isinstance(v, dict) else b"e"
            if self.uses[id(v)] > 1:
                self.number(key)


class Device:
    """A first-fit allocator on two streams, for wrapped.pickle."""

    def __init__(self):
        self.segments, self.live, self.events, self.now = {}, {}, [], T0
        self.next = A

    def log(self, action, addr, size, stream):
        self.now += random.randrange(3)
        self.events.append(event(action, addr, size, self.now, stream))

    def state(self):
        rows = [f"segment_alloc {a} {s['size']} {s['stream']}" for a, s in sorted(self.segments.items())]
        for a, b in sorted(self.live.items()):
            rows.append(f"alloc {a} {b['asked']} {b['stream']}")
            if b["pending"]:
                rows.append(f"free_requested {a} {b['asked']} {b['stream']}")
        return rows

    def alloc(self, size, stream):
        rounded = (size + 511) // 512 * 512
        for base, s in sorted(self.segments.items()):
            at = base
            for a in sorted(x for x in self.live if base <= x < base + s["size"]) + [base + s["size"]]:
                if s["stream"] == stream and a - at >= rounded:
                    return self.put(at, size, rounded, stream)
                at = a + self.live[a]["size"] if a in self.live else a
        base, self.next = self.next, self.next + 4 * MIB
        self.segments[base] = {"size": 2 * MIB, "stream": stream}
        self.log("segment_alloc", base, 2 * MIB, stream)
        self.put(base, size, rounded, stream)

    def put(self, at, size, rounded, stream):
        self.live[at] = {"asked": size, "size": rounded, "stream": stream, "pending": False}
        self.log("alloc", at, size, stream)

    def step(self):
        kind = random.random()
        busy = [a for a, b in self.live.items() if not b["pending"]]
        waiting = [a for a, b in self.live.items() if b["pending"]]
        if kind < 0.5 or not busy:
            self.alloc(random.randrange(1, 400_000), random.choice([0, 7]))
        elif kind < 0.75:
            a = random.choice(busy)
            self.live[a]["pending"] = True
            self.log("free_requested", a, self.live[a]["asked"], self.live[a]["stream"])
        elif kind < 0.97 and waiting:
            a = random.choice(waiting)
            b = self.live.pop(a)
            self.log("free_completed", a, b["asked"], b["stream"])
        else:
            for base in [x for x, s in self.segments.items()
                         if not any(x <= a < x + s["size"] for a in self.live)]:
                s = self.segments.pop(base)
                self.log("segment_free", base, s["size"], s["stream"])

    def snapshot(self, keep):
        segments = []
        for base, s in sorted(self.segments.items()):
            blocks, at = [], base
            for a in sorted(x for x in self.live if base <= x < base + s["size"]):
                b = self.live[a]
                if a > at:
                    blocks.append(block(at, a - at, 0, "inactive"))
                blocks.append(block(a, b["size"], b["asked"], "active_pending_free" if b["pending"] else "active_allocated"))
                at = a + b["size"]
            if at < base + s["size"]:
                blocks.append(block(at, base + s["size"] - at, 0, "inactive"))
            segments.append(segment(0, base, s["size"], blocks, s["stream"]))
        return {"segments": segments, "device_traces": [self.events[-keep:]]}


def wrapped():
    """A history whose beginning was overwritten, and the state where what is left of it begins."""
    random.seed(1)
    d = Device()
    while len(d.events) < 1000:
        d.step()
    states = {len(d.events): d.state()}
    while len(d.events) < 2000:
        d.step()
        states.setdefault(len(d.events), d.state())
    total, start = len(d.events), max(n for n in states if n <= 1400)
    return d.snapshot(total - start), states[start]


def write(name, data):
    with open(name, "wb") as f:
        f.write(data)


if __name__ == "__main__":
    for protocol in range(6):
        write(f"small-p{protocol}.pickle", pickle.dumps(small(), protocol))
    write("small-cpp.pickle", bytes(Jit(small()).out))
    write("old.pickle", pickle.dumps(old(), 4))
    write("odd.pickle", pickle.dumps(odd(), 4))
    write("segments.pickle", pickle.dumps({"segments": small()["segments"]}, 4))
    write("list.pickle", pickle.dumps(old()["segments"], 2))
    data, state = wrapped()
    write("wrapped.pickle", pickle.dumps(data, 4))
    write("wrapped.want", ("\n".join(state) + "\n").encode())
