"""Whether the process has enough virtual addresses left for libgm.so, whose runtime ends a process that runs out of them."""

import os
import resource

NEEDED = 4 << 30  # bytes; the library reserves 0.6 GiB when it is loaded, and more for threads and memory


def lacking():
    """Returns what is wrong where a limit (ulimit -v) leaves too few addresses, else None."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return None
    with open("/proc/self/statm") as f:
        used = int(f.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    if limit - used >= NEEDED:
        return None
    return "a limit of addresses (ulimit -v) leaves less than %d MiB" % (NEEDED >> 20)
