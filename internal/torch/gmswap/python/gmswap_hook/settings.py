"""The settings of gmswap run, from the environment."""

import os

MIB = 1 << 20


class Settings(object):
    def __init__(self, environ):
        self.library = environ["GM_LIB"]
        self.device = int(environ.get("GMSWAP_DEVICE", "0"))  # bytes of the device that a schedule may use, 0 for all of it
        self.limit = self.device  # bytes that are ever taken of it, 0 for all of it
        self.ranks = max(1, int(environ.get("LOCAL_WORLD_SIZE", "1") or 1))  # processes of this host, each with a GPU
        self.host = int(environ.get("GMSWAP_HOST", "0")) // self.ranks  # bytes of host memory
        self.policy = environ.get("GMSWAP_POLICY", "auto")
        self.record, self.stats = (self.file(environ, name).replace("%p", str(os.getpid())) for name in ("RECORD", "STATS"))
        self.follow = self.file(environ, "SCHEDULE")  # of a schedule to follow
        self.link = self.file(environ, "LINK")  # of the figures of copies
        self.dry = environ.get("GMSWAP_DRY", "") == "1"  # say what would be done, and do nothing
        self.all = environ.get("GMSWAP_ALL", "") == "1"  # record all that a step does, and move nothing
        self.folder = environ.get("GMSWAP_DIR", "")
        self.oom = environ.get("GMSWAP_OOM", "") == "1"  # requests fail that find no room
        self.progress = environ.get("GMSWAP_PROGRESS", "") == "1"
        self.timed = bool(self.stats)
        self.smallest = MIB  # bytes of a tensor that is moved
        self.window = self.slack = self.total = 0

    @staticmethod
    def file(environ, name):
        """Returns the absolute name of a file: the planner may be in another folder."""
        name = environ.get("GMSWAP_" + name, "")
        return os.path.abspath(name) if name else ""

    def for_all_sizes(self):
        """Returns whether schedules are wanted for steps of all sizes, and not for the recorded step alone."""
        return not (self.dry or self.record or self.follow or self.policy.startswith("memo"))

    def keep_margin(self, available):
        """Leaves memory under the limit for what an allocator needs beside blocks. Where less is available than the limit, some of that is left to what
        libraries take by themselves: cuBLAS and cuDNN begin to in the first step. Returns whether the allocator has to keep to that: not where others
        have a part of the device, which may become free. A schedule that is given has its own idea of how much it may use."""
        lower = available < self.limit
        if lower:
            self.limit = available - min(max(self.total // 64, 512 * MIB), available // 16)
        if lower or not self.follow:
            self.device = min(self.device, self.limit) - self.limit // 64
        return lower and available > self.total - max(self.total // 32, 1024 * MIB)

    def complete(self, torch, device):
        """Fills in what depends on the machine."""
        total = torch.cuda.get_device_properties(device).total_memory
        if not self.device:
            self.device = total * 95 // 100
        self.limit, self.total = self.limit or total, total
        self.smallest = max(MIB // 16, min(MIB, self.limit // 2048))
        self.window = max(64 * MIB, self.device // 32)
        self.slack = self.device // 128  # bytes by which a step may begin with more in use than when it was recorded
