"""PyTorch's allocation history, shared between gmtrace and the program's own use of it."""

import functools
import importlib
import os
import sys

CONTEXTS = (None, "state", "alloc", "all")  # each records more than the one before
STACKS = ("python", "all")
MOST_ENTRIES = 1000000

# The parameters after the first, of PyTorch since 2.1 and of 2.0.
PARAMETERS = (
    "context", "stacks", "max_entries", "device", "clear_history", "compile_context", "global_record_annotations",
    "skip_actions",
)
LEGACY_PARAMETERS = (
    "record_context", "trace_alloc_max_entries", "trace_alloc_record_context", "device", "record_context_cpp",
    "clear_history", "compile_context", "global_record_annotations",
)


class History(object):
    """Switches the history on and off. While it is on, the program can only make it record more."""

    def __init__(self, torch, settings):
        memory = torch.cuda.memory
        self.real = memory._record_memory_history
        self.own = Extent("alloc" if settings.stacks else None, "python", settings.ring)
        self.asked = None  # the Extent that the program asks for
        self.extent = self.own  # of what is recorded
        self.on = False
        self.pid = 0  # of the process where it is on
        self.keeper = None
        current = getattr(memory, "_record_memory_history_impl", self.real)
        names = _parameters(current)
        self.legacy = "context" not in names
        self.clears = "clear_history" in names  # else every call clears the ring
        self.share()

    def share(self):
        """Puts itself in the place of the function that the program calls."""
        real = self.real

        @functools.wraps(real)
        def record(enabled="all", *args, **kwargs):
            return self.ask(enabled, args, kwargs)

        for name in ("torch.cuda", "torch.cuda.memory", "torch.cuda._memory_viz"):
            module = sys.modules.get(name)
            if getattr(module, "_record_memory_history", None) is real:
                module._record_memory_history = record

    def switch_on(self, keeper):
        """Begins to record; keeper is asked to keep the entries when the ring is emptied, and whether it may be full."""
        self.extent = self.own.with_more(self.asked)
        self.call("all", self.extent, {})
        self.keeper = keeper
        self.pid = os.getpid()
        self.on = True

    def switch_off(self):
        """Leaves the history to the program."""
        self.on = False
        if self.asked is None:
            self.real(False if self.legacy else None)

    def call(self, enabled, extent, more):
        if extent.context is not None:
            _import_namer()
        if not self.legacy:
            return self.real(
                enabled, context=extent.context, stacks=extent.stacks, max_entries=extent.entries, **more)
        return self.real(
            True, record_context=extent.context is not None, trace_alloc_max_entries=extent.entries,
            trace_alloc_record_context=extent.context in CONTEXTS[2:], record_context_cpp=extent.stacks == "all", **more)

    def ask(self, enabled, args, kwargs):
        """Is a call of the program."""
        shared = self.on and os.getpid() == self.pid
        if not shared:
            self.real(enabled, *args, **kwargs)
        if not enabled:
            self.asked = None
            return
        enabled, asked, more = _asked(enabled, args, kwargs)
        if shared:
            self.widen("all" if enabled == "state" else enabled, asked, more)
        self.asked = asked

    def widen(self, enabled, asked, more):
        extent = self.extent.with_more(asked)
        clear = not self.clears
        if extent.entries > self.extent.entries and self.keeper.may_be_full():
            clear = True  # a ring that has gone round would grow in its middle
        if clear:
            self.keeper.keep()
            if self.clears:
                more["clear_history"] = True
        self.call(enabled, extent, more)
        self.extent = extent
        if clear:
            self.keeper.keep()  # so short a history shows that the ring was emptied, not overrun


class Extent(object):
    """How much is recorded."""

    def __init__(self, context, stacks, entries):
        self.context = context
        self.stacks = stacks
        self.entries = entries

    def with_more(self, other):
        """Returns what covers both; of values that PyTorch will refuse, those of other."""
        if other is None:
            return self
        context, stacks = other.context, other.stacks
        if context in CONTEXTS and CONTEXTS.index(context) < CONTEXTS.index(self.context):
            context = self.context
        if other.context is None or stacks in STACKS and STACKS.index(stacks) < STACKS.index(self.stacks):
            stacks = self.stacks
        return Extent(context, stacks, max(self.entries, min(other.entries, MOST_ENTRIES)))


def _import_namer():
    """Imports what PyTorch imports when it first names the frames of a stack.

    In the thread that drains, that could happen while the program imports the same modules, which would then be found
    half done.
    """
    try:
        importlib.import_module("torch._inductor")
    except ImportError:
        pass


def _parameters(function):
    """Returns the names of its parameters, those of the newest PyTorch's if they are not known."""
    code = getattr(function, "__code__", None)
    return PARAMETERS if code is None else code.co_varnames[:code.co_argcount + code.co_kwonlyargcount]


def _asked(enabled, args, kwargs):
    """Returns what a call asks for: enabled, the extent, and the arguments that are passed on unchanged."""
    legacy = isinstance(enabled, bool)
    more = dict(zip(LEGACY_PARAMETERS if legacy else PARAMETERS, args))
    more.update(kwargs)
    for name in ("clear_history", "skip_actions"):
        more.pop(name, None)
    if not legacy:
        extent = Extent(more.pop("context", "all"), more.pop("stacks", "all"), more.pop("max_entries", sys.maxsize))
        return enabled, extent, more
    context = "state" if more.pop("record_context", True) else None
    if more.pop("trace_alloc_record_context", False):
        context = "all"
    stacks = "all" if more.pop("record_context_cpp", False) else "python"
    return "all", Extent(context, stacks, more.pop("trace_alloc_max_entries", 1)), more
