"""The history of one device, kept and forgotten as PyTorch does (CUDACachingAllocator.cpp, RingBuffer)."""

import json
import os
import random
import sys
import time

BEHIND_US = int(os.environ.get("STUB_TORCH_BEHIND", "0"))

class Ring(object):
    def __init__(self, device):
        self.device = device
        self.log = open_log()
        self.limit = 1
        self.entries = []
        self.next = 0

    def append(self, entry):
        if self.log and self.log.pid == os.getpid():
            self.log.write(dict(entry, device=self.device))
        if len(self.entries) < self.limit:
            self.entries.append(entry)
            return
        self.entries[self.next] = entry
        self.next = (self.next + 1) % self.limit

    def clear(self):
        self.next = 0
        self.entries = []

    def ordered(self):
        return self.entries[self.next:] + self.entries[:self.next]


class Jitter(object):
    """How far the clock of one snapshot is off."""

    def __init__(self):
        most = int(os.environ.get("STUB_TORCH_JITTER", "0"))
        self.us = random.randint(-most, most)

    def apply(self, entry):
        return dict(entry, time_us=entry["time_us"] + self.us)


def make(action, addr, size, stream, frames):
    at = int(time.time() * 1e6) - BEHIND_US
    entry = {"action": action, "size": size, "stream": stream, "time_us": at}
    entry["device_free" if action == "oom" else "addr"] = addr
    entry.update(compile_context="N/A", user_metadata="")
    if frames is not None:
        entry["frames"] = frames
    return entry


def frames():
    """Returns the stack of what called the allocator, innermost first."""
    found, f = [], sys._getframe(1)
    here = os.path.dirname(os.path.abspath(__file__))
    while f is not None:
        code = f.f_code
        if not code.co_filename.startswith(here):
            found.append({"name": code.co_name, "filename": code.co_filename, "line": f.f_lineno})
        f = f.f_back
    return found


class Log(object):
    """Is of one process, and of none that it forks."""

    def __init__(self, folder):
        self.pid = os.getpid()
        path = os.path.join(folder, "log.%d" % self.pid)
        self.file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)  # which stays open until the end

    def write(self, entry):
        os.write(self.file, (json.dumps(entry) + "\n").encode())


def open_log():
    folder = os.environ.get("STUB_TORCH_LOG")
    return Log(folder) if folder else None
