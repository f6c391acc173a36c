"""torch.compile with CUDA graphs: without trees of graphs, which save and restore the state of PyTorch's own allocator.

Graphs are then captured one by one, each with a pool of its own.
"""

import sys

from . import say

CONFIG = "torch._inductor.config"
TREES = "torch._inductor.cudagraph_trees"  # is imported when the first graph is about to be captured
MODULES = (CONFIG, TREES)

_begun = False


def begin():
    """Is called when the allocator has been put in."""
    global _begun
    _begun = True
    for name in MODULES:
        if name in sys.modules:
            imported(name, sys.modules[name])


def imported(name, module):
    if not _begun:
        return
    if name == CONFIG:
        module.triton.cudagraph_trees = False
    else:
        say.once("torch.compile captures CUDA graphs one by one, without cudagraph_trees")
