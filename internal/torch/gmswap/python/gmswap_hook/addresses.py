"""Whether the process has addresses left for libgm.so, whose runtime ends a process that has not."""

import os
import resource

NEEDED = 4 << 30  # bytes; it reserves 0.6 GiB when it is loaded, and more for threads and memory


def lacking():
    """Says what is wrong where a limit (ulimit -v) leaves too few addresses, else returns None."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return None
    with open("/proc/self/statm") as f:
        used = int(f.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    if limit - used >= NEEDED:
        return None
    return "a limit of addresses (ulimit -v) leaves less than %d MiB" % (NEEDED >> 20)
