"""The moment at which the moving of tensors begins: when CUDA has started."""

import copy
import functools
import itertools
import os
import threading

from . import addresses, say
from .devices import Devices
from .gradients import Gradients
from .hooks import Hooks
from .library import Lanes, Library
from .loading import Loading
from .memory import Memory
from .nested import program
from .planner import Planner
from .recorder import Recorder
from .relief import Relief
from .report import Report
from .runtime import Runtime
from .settings import Settings
from .stepping import Stepping, Store
from .watch import compiling
from .whole import Whole

_pid = 0  # of the process that has tried


def watch(torch):
    """Makes the end of torch.cuda._lazy_init begin. Returns False for a PyTorch without CUDA."""
    stepping = Stepping(torch)
    Loading(torch)
    if os.environ.get("GMSWAP_EARLY", "") == "1":
        update_early(torch, stepping)
    real = getattr(torch._C, "_cuda_init", None)
    if real is None:
        return False
    whole = Whole(torch, compiling(torch))

    @functools.wraps(real)
    def _cuda_init():
        result = real()
        begin(torch, whole, stepping)
        return result

    torch._C._cuda_init = _cuda_init
    return True


def update_early(torch, stepping):
    """Has parameters updated as soon as their gradients are complete."""
    if not hasattr(torch.Tensor, "register_post_accumulate_grad_hook"):
        say.once("no early updates: PyTorch %s is too old, 2.1 is needed" % torch.__version__)
        return
    try:
        gradients = Gradients(torch)
        gradients.apart, stepping.unguarded = stepping.apart, gradients.unguarded
        stepping.early = lambda: gradients.local.ours
    except Exception as e:
        say.once("no early updates: %s: %s" % (type(e).__name__, say.reason(e)))


def begin(torch, whole, stepping):
    global _pid
    if _pid == os.getpid():
        return
    _pid = os.getpid()
    if not hasattr(torch.Tensor, "untyped_storage") or not hasattr(torch._C, "_current_graph_task_id"):
        say.once("nothing is moved: PyTorch %s is too old, 2.0 is needed" % torch.__version__)
        return
    lacking = addresses.lacking()
    if lacking:
        say.once("nothing is moved: %s" % lacking)
        return
    try:
        settings = Settings(os.environ)
        library = Library(settings.library)
        late = Late(torch, library, settings, stepping)
        if not late.one:
            library.on_full_before(late.make_room)
        whole.outermost, whole.met = Hooks(torch, late, late.met).outermost, late.met
    except Exception as e:
        say.once("nothing is moved: %s: %s" % (type(e).__name__, say.reason(e)))


def leave_mark(folder):
    """Lets gmswap know that a process came this far."""
    try:
        if os.path.isdir(folder):
            open(os.path.join(folder, "moving"), "w").close()
    except OSError:
        pass


class Late(object):
    """Becomes a Runtime when the first model is run on a GPU, and several when models turn out to be on several."""

    CALLED = "entered", "left", "watching", "recorded", "parting", "finished", "guessing", "spent"  # by Hooks

    def __init__(self, torch, library, settings, stepping):
        self.torch, self.library, self.settings, self.stepping = torch, library, settings, stepping
        self.runtime, self.thread = None, None
        self.rest = self.wake = lambda: None  # set by Hooks
        self.runtimes, self.refused = {}, set()  # by device, and those that have none
        self.moves = not settings.all
        self.within = threading.local()
        self.one = settings.all or not settings.for_all_sizes()  # what is recorded, or shown, is the step of one device

    def begin(self, module, given, known):
        if not known and (self.thread is None or self.thread is program(self.torch, self.thread) or not self.thread.is_alive()):
            self.meet(self.devices(module, given))
        return self.runtime is not None and self.runtime.begin(module, given, known)

    def met(self, module, args):
        """Has room made on the devices of a model that saves nothing here: by the states of its optimizer."""
        try:
            self.meet(self.devices(module, args))
        except Exception as e:
            say.once("states of optimizers stay on the device: %s" % say.reason(e))

    def make_room(self, device, size, stream):
        """Has room made for a request that finds none before a model is run on its device, by the runtime that is made then."""
        if getattr(self.within, "here", False):
            return 0  # one of what is made
        self.within.here = True
        try:
            self.meet([device])
            runtime = self.runtimes.get(device)
            return runtime.relief.make_room(size, stream) if runtime is not None and runtime.relief is not None else 0
        except Exception as e:
            say.once("no room is made: %s: %s" % (type(e).__name__, say.reason(e)))
            return 0
        finally:
            self.within.here = False

    def meet(self, devices):
        """Makes the runtimes that are missing."""
        new = [device for device in devices if device not in self.runtimes and device not in self.refused]
        if not new or self.runtimes and self.one:
            return
        self.thread = program(self.torch, self.thread)
        for device in new[:1] if self.one else new:
            self.add(device)
        for runtime in self.runtimes.values():
            runtime.settings.host = self.settings.host // len(self.runtimes)  # for schedules; copies share all of it
        self.runtime = Devices(self.runtimes, self.torch.cuda.current_device) if len(self.runtimes) > 1 else next(iter(self.runtimes.values()))
        if len(self.runtimes) > 1:
            for device, runtime in self.runtimes.items():
                runtime.report.of = "GPU %d: " % device
                runtime.rest = runtime.wake = lambda: None  # what one does not look at another one may
        else:
            self.runtime.rest, self.runtime.wake = self.rest, self.wake
        for name in self.CALLED + ("pack", "pack_between", "pack_backward", "leave_alone", "unpack", "mistaken") * self.moves:
            setattr(self, name, getattr(self.runtime, name))

    def guessing(self):
        return False

    def watching(self):
        return True

    def recorded(self):
        return False

    def parting(self):
        return False

    def finished(self):
        return False

    def spent(self):
        return True

    def add(self, device):
        """Makes the runtime of a device. Where that fails for another one than the first, what is saved there stays."""
        try:
            self.runtimes[device] = self.start(device)
        except Exception as e:
            if not self.runtimes:
                raise
            self.refused.add(device)
            say.once("nothing is moved on GPU %d: %s: %s" % (device, type(e).__name__, say.reason(e)))

    def devices(self, module, args):
        """Returns the devices that a model is on. FSDP may keep parameters on the host, and use the current device."""
        tensors = (t for t in itertools.chain(module.parameters(), module.buffers(), args) if isinstance(t, self.torch.Tensor) and t.is_cuda)
        found = list(dict.fromkeys(t.device.index for t in tensors))
        if isinstance(module, self.torch.nn.DataParallel):
            found = module.device_ids
        if not found and any(hasattr(type(m), "_get_fsdp_state") for m in module.modules()):
            found = [self.torch.cuda.current_device()]
        return found

    def start(self, device):
        leave_mark(self.settings.folder)
        memory, settings = Memory(self.torch, device), copy.copy(self.settings)
        settings.complete(self.torch, device)
        if self.runtimes:
            settings.stats = ""  # it is the first one's
        probe = None if getattr(self.within, "here", False) else memory.take(1)  # not one byte may be free where a request asks
        ours = probe is None or self.library.allocates(memory.address(probe))
        if ours:
            memory.count_by(self.library)
        if settings.all:
            return Recorder(memory, settings, self.library)
        report = Report(memory, settings)
        lanes = Lanes(self.library, device, settings.host, settings.timed)
        report.lanes, memory.pick = lanes, lanes.words
        runtime = Runtime(memory, lanes, settings, Planner(self.library, settings, lanes), report)
        if ours:
            if settings.keep_margin(memory.free() + self.library.reserved(device)):
                self.library.bound(device, settings.limit, settings.total)
            self.stepping.stores[device] = store = Store(runtime, self.stepping)
            runtime.relief = Relief(runtime, self.library, settings.limit, store)
        elif settings.limit < settings.total:
            memory.bound(settings.limit)
        return runtime
