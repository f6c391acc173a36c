"""PyTorch's own allocator: numbers that stand for addresses."""


class Allocator(object):
    name = "native"
    initialized = False

    def __init__(self):
        self.used = 0

    def call(self, name, *args):
        pass

    def malloc(self, size, device, stream):
        self.used += size
        return 0x7F0000000000 + self.used

    def free(self, address):
        pass

    def record_stream(self, address, stream):
        pass

    def unsupported(self, what):
        """Is called for what only a pluggable allocator does not support."""
        return {"getDeviceStats": {"reserved_bytes": {"all": {"current": 123}}}, "getMemoryFraction": 1.0}.get(what)
