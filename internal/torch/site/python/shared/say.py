"""Messages of a tool: a line on standard error, with the tool's name."""

import os
import sys

TOOL = __name__.partition("_hook.")[0]  # this file is copied into the package of each tool

_said = set()


def line(text):
    try:
        sys.stderr.write("%s: %s\n" % (TOOL, text))
    except Exception:
        pass  # there is no standard error, or it takes nothing


def once(text):
    """Prints a line unless this process has printed it."""
    key = (os.getpid(), text)
    if key not in _said:
        _said.add(key)
        line(text)


def reason(error):
    """Returns the first line of an exception's text, or its type."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def brief(error):
    """Returns a reason that is the same each time: of a request for memory that was refused without its numbers."""
    return "out of memory" if type(error).__name__ == "OutOfMemoryError" else reason(error)
