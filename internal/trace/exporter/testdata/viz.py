"""Has PyTorch's own memory_viz read snapshots: viz.py FILE... . The exit status is 77 without a PyTorch that has it."""

import pickle
import sys

try:
    from torch.cuda import _memory_viz as viz

    functions = [viz.segsum, viz.trace, viz.trace_plot, viz.segment_plot]
except (ImportError, AttributeError):
    sys.exit(77)

for path in sys.argv[1:]:
    with open(path, "rb") as f:
        data = pickle.load(f)
    for function in functions:
        assert function(data), "%s: %s made nothing" % (path, function.__name__)
