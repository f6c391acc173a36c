"""What tensors contain."""

import hashlib
import zlib

PERIOD = 509  # bytes after which contents repeat: a part that stands at another place is seen


def made(size, n, *contents):
    """Returns this many bytes, of which each depends on all contents and on the number n of what makes them."""
    for data in contents:
        n = zlib.crc32(data, n)
    return (hashlib.shake_128(b"%d" % n).digest(PERIOD) * (size // PERIOD + 1))[:size]
