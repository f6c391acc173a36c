"""What gmstitch has to say: a line on standard error, once in a process."""

import os
import sys

_said = set()


def once(text):
    key = (os.getpid(), text)
    if key in _said or sys.stderr is None:
        return
    _said.add(key)
    try:
        sys.stderr.write("gmstitch: %s\n" % text)
    except Exception:
        pass


def reason(error):
    """Returns the first line of an exception's text, or its type."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
