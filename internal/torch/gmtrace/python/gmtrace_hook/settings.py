"""What gmtrace asks for, by environment variables."""

RING = 40000  # entries
LEAST_RING = 16


class Settings(object):
    def __init__(self, environ):
        self.dir = environ.get("GMTRACE_DIR", "")
        self.stacks = environ.get("GMTRACE_STACKS", "") == "python"
        self.only_oom = environ.get("GMTRACE_ONLY_OOM", "") == "1"
        self.ring = max(_number(environ.get("GMTRACE_HISTORY", ""), RING), LEAST_RING)
        self.marks_module, _, self.marks_function = environ.get("GMTRACE_MARKS", "").partition(":")
        self.window = _window(environ.get("GMTRACE_STEPS", ""))


def _number(text, default):
    try:
        return int(text)
    except ValueError:
        return default


def _window(text):
    """Returns the first step and the one after the last, None for all steps."""
    first, _, end = text.partition(":")
    window = (_number(first, 0), _number(end, -1))
    return window if 0 <= window[0] < window[1] else None
