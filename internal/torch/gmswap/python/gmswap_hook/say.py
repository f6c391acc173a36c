"""What gmswap has to say: a line on standard error."""

import os
import sys

_said = set()


def line(text):
    try:
        sys.stderr.write("gmswap: %s\n" % text)
    except Exception:
        pass  # there is none, or it takes nothing


def once(text):
    key = (os.getpid(), text)
    if key not in _said:
        _said.add(key)
        line(text)


def reason(error):
    """Returns the first line of an exception's text, or its type."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
