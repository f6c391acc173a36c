"""Runs the hook on tensors of the CPU in a real PyTorch, with copies that are as late as what waits for them allows."""

import contextlib
import ctypes
import time
import types

import torch
from gmswap_hook import hooks, memory, planner, remake, runtime, settings
from gmswap_hook.library import Failure
from plans import Planner

remake.PIECE = 1 << 11  # so small that rows are recomputed in many pieces

torch.set_num_threads(1)
torch.use_deterministic_algorithms(True)


def stand_in():
    """Adds to an old PyTorch, 1.13, what the hook uses of 2.0."""
    torch.Tensor.untyped_storage = lambda t: t.storage().untyped()
    torch._C._functorch = types.SimpleNamespace(is_functorch_wrapped_tensor=lambda t: False)
    torch.cuda.OutOfMemoryError = getattr(torch.cuda, "OutOfMemoryError", MemoryError)
    within = []
    torch._C._current_graph_task_id = lambda: len(within) - 1

    def wrap(owner, name):
        real = getattr(owner, name)

        def backward(*args, **kwargs):
            within.append(0)
            try:
                return real(*args, **kwargs)
            finally:
                within.pop()

        setattr(owner, name, backward)

    wrap(torch.autograd, "backward")
    wrap(torch.autograd, "grad")
    for name in ("register_forward_pre_hook", "register_forward_hook"):
        real = getattr(torch.nn.Module, name)
        setattr(torch.nn.Module, name, lambda self, hook, prepend=False, with_kwargs=False, real=real: real(self, hook))


if not hasattr(torch.Tensor, "untyped_storage"):
    stand_in()


class Answer(object):
    def __init__(self, flag):
        self.flag = flag

    def come(self):
        return True

    def value(self):
        return bool(self.flag)


class Peak(object):
    def begin(self):
        pass

    def bytes(self):
        return 1 << 30

    def begin_within(self):
        return 0

    def end_within(self, before):
        return 1 << 10


class Memory(memory.Memory):
    def __init__(self):
        super().__init__(torch, 0)
        self.place, self.peak = torch.device("cpu"), Peak()

    def movable(self, t):
        return type(t) in self.types and self.ordinary(t)

    def here(self, x):
        return isinstance(x, torch.Tensor) and x.layout == torch.strided and not x.is_nested

    def stream(self):
        return 0

    def mark(self):
        return time.perf_counter()

    def passed(self, mark):
        return False

    @staticmethod
    def reach(mark):
        pass

    def fill(self, mark, nanoseconds):
        return False

    @staticmethod
    def elapsed(begin, end):
        return int((end - begin) * 1e9)

    def fetch(self, flag):
        return Answer(flag)

    def allocated(self):
        return 0

    def nothing(self, *args):
        pass

    synchronize = used_by = follow = nothing

    def on(self, stream):
        return contextlib.nullcontext()

    def new_stream(self):
        return 1

    def name(self):
        return "cpu"

    def capacity(self):
        return 1 << 40

    def capturing(self):
        return False


class Lanes(object):
    """Copies when somebody waits for that, and not before. Calls fail as told: by name, each so many-th one."""

    def __init__(self, room=1 << 40, fail=()):
        self.room, self.fail = room, dict(fail)
        self.count, self.calls = 0, {}
        self.tickets = {}
        self.leaving, self.coming = {}, {}  # copies that have not been waited for
        self.moved = 0

    def may_fail(self, name):
        self.calls[name] = self.calls.get(name, 0) + 1
        if name in self.fail and self.calls[name] % self.fail[name] == 0:
            raise Failure("%s fails" % name)

    def out(self, address, size, stream):
        if size <= 0 or self.calls.get("out", 0) and self.fail.get("out") and self.count % self.fail["out"] == 0 or self.held() + size > self.room:
            self.count += 1
            return 0
        self.may_fail("_")
        self.calls["out"] = 1
        self.count += 1
        self.tickets[self.count] = size
        self.leaving[self.count] = address, size
        return self.count

    def expect(self, nbytes):
        pass

    def stats(self):
        return types.SimpleNamespace(host_bytes=self.held())

    def held(self):
        return sum(n if isinstance(n, int) else len(n) for n in self.tickets.values())

    def left(self, ticket, stream):
        self.may_fail("left")
        if ticket in self.leaving:
            self.tickets[ticket] = ctypes.string_at(*self.leaving.pop(ticket))
            self.moved += len(self.tickets[ticket])

    def passed(self, ticket):
        """Ends a copy, and returns that it has ended: who asks may free the memory."""
        if ticket in self.leaving:
            self.tickets[ticket] = ctypes.string_at(*self.leaving.pop(ticket))
        return True

    def back(self, ticket, address, stream):
        self.may_fail("back")
        assert ticket not in self.coming, "a copy back that nobody waited for"
        if ticket in self.leaving:
            self.tickets[ticket] = ctypes.string_at(*self.leaving.pop(ticket))
        self.coming[ticket] = address

    def ready(self, ticket, stream):
        self.may_fail("ready")
        if ticket in self.coming:
            ctypes.memmove(self.coming.pop(ticket), self.tickets[ticket], len(self.tickets[ticket]))

    def drop(self, ticket):
        if "left" in self.fail:
            self.leaving.pop(ticket, None)
        assert ticket not in self.leaving and ticket not in self.coming, "memory is freed while it is copied"
        del self.tickets[ticket]


class Report(object):
    lines = ()

    def step(self, step):
        pass

    def planned(self, schedule):
        pass


class Hooked(object):
    """The hook, in effect until it is removed."""

    def __init__(self, how="offload", smallest=1024, **lanes):
        self.settings = settings.Settings({"GM_LIB": "", "GMSWAP_POLICY": "memo" if how == "rows" else "auto"})
        self.settings.smallest, self.settings.window, self.settings.device = smallest, 1 << 15, 1 << 40
        self.memory, self.lanes, self.library = Memory(), Lanes(**lanes), Planner(how)
        report = Report()
        self.runtime = runtime.Runtime(self.memory, self.lanes, self.settings, planner.Planner(self.library, self.settings, self.lanes), report)
        self.runtime.planner.DRIFT = float("inf")  # times on a CPU that others use vary
        self.hooks = hooks.Hooks(torch, self.runtime)

    def remove(self):
        self.hooks.remove()
        self.memory.launches.cease(self.runtime.touched.told)
        assert self.hooks.local.stack == [] and not self.hooks.local.pushed
        left = len(self.memory.entries), self.lanes.held()
        assert left == (0, 0), "entries and bytes on the host are left: %s" % (left,)
        assert "left" in self.lanes.fail or not self.memory.lost
