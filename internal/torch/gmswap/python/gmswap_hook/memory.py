"""PyTorch's storages on one device."""

import collections
import contextlib
import os
import threading
import weakref

from . import say
from .entry import consists, layout
from .library import Failure
from .measure import Peak
from .modules import gathered, parts, targets
from .origins import Origins
from .samples import Samples, close, pieces
from .small import Small
from .unseen import Launches


class Memory(object):
    """Held by the thread that changes entries, one at a time (with memory)."""

    CYCLES = 1.7  # of a device's clock in a nanosecond, about

    def __init__(self, torch, device):
        from torch.multiprocessing.reductions import StorageWeakRef

        self.torch, self.device = torch, device
        self.place = torch.device("cuda", device)
        self.weak = StorageWeakRef
        self.types, self.strided = (torch.Tensor, torch.nn.Parameter), torch.strided
        self.dispatch = getattr(torch.Tensor, "__torch_dispatch__", None)
        self.zero = getattr(torch.Tensor, "_is_zerotensor", lambda tensor: False)  # which has no memory
        self.wrapped, self.casts = wrapped(torch), casts(torch)
        self.quantized = {getattr(torch, name, None) for name in ("quint8", "qint8", "qint32", "quint4x2", "quint2x4")}  # types of which there are no views
        self.counts = hasattr(torch._C, "_storage_Use_Count")  # whether it tells what holds a storage
        self.count_uses = getattr(torch._C, "_storage_Use_Count", lambda key: 1)
        self.alone = self.uses(torch.empty(1))  # what holds a tensor's storage where nothing else does: some versions count Python's object
        self.failures = (Failure, torch.cuda.OutOfMemoryError)
        self.known = {}  # storages that are never moved, by address, which is not another one's while there is a weak reference
        self.ordinals = {}  # of those that were met in this step, by address
        self.lasting = {}  # by these: weak references to parameters and buffers
        self.stands = {}  # copies that are the memory of parameters now, by the addresses of their storages
        self.waiting = []  # what FSDP has not gathered yet
        self.noted = set()  # modules, by id
        self.models = weakref.WeakSet()  # those that were noted with all that is in them, in any step
        self.ran = set()  # ids of the modules that have run in steps that were recorded
        self.used = set()  # ids of the parameters and buffers that operators were given then, and of parameters that had gradients
        self.last = {}, {}, [], set()  # these four, of the step before
        self.exported = {}  # storages whose addresses the program has asked for in this step, and may write to at any time: weak references, by their own
        self.addresses = {}  # the same, asked for at any time
        self.entries = {}  # by their storage's address, those that autograd has not let go of
        self.copies = None  # those that have a copy, by the address of its storage, once somebody looks for that
        self.closed = None  # a list of those that it has let go of, where somebody wants one
        self.trial = Trial()  # within it requests of this thread may fail
        self.looking = False  # operators look at what storages contain, and are none of the program's
        self.borrowed = None  # says of an address whether memory of the host is used in place there, once there was any
        self.shifts = 0  # times that where a state of an optimizer is has changed, or that it is needed
        self.evictions = 0  # requests that found no room before something left
        self.pick = None  # copies words of a storage, once there is what does
        self.samples, self.small, self.origins, self.launches = Samples(self), Small(self), Origins(torch), Launches.of(torch)
        self.peak = Peak(torch, device)
        self.pid = os.getpid()
        self.forked = False  # this is another process, which has none of the device's memory
        os.register_at_fork(after_in_child=lambda: setattr(self, "forked", True))
        self.lock, self.depth = threading.RLock(), 0
        self.dropped = collections.deque()  # entries whose use has ended, once for each use
        self.present = self.absent = 0  # bytes of entries that are on the device, and of those that are not
        self.streams = []  # beside the program's
        self.marked = {}  # the stream of the last mark, by its address
        self.lost = []  # memory that cannot be freed, as it is not known when a copy of it ends

    def count_by(self, library):
        """Has what allocates tell what is in use, of which PyTorch makes hundreds of numbers for each question, and be told of streams, which it passes through all modes."""
        device = self.device
        self.allocated = lambda: library.allocated(device)
        self.used_by = lambda tensor, stream: library.used_by(self.address(tensor), stream)
        self.peak.reset, self.peak.most = (lambda: library.mark_peak(device)), (lambda: library.peak(device))

    def __enter__(self):
        self.lock.acquire()
        self.depth += 1

    def __exit__(self, *reason):
        try:
            if self.dropped and self.depth == 1:
                self.settle()
        finally:
            self.depth -= 1
            self.lock.release()

    def drop(self, entry):
        """Ends a use of an entry. Python calls this at any moment, in any thread, also amid what changes the entry."""
        if self.forked:
            return
        self.dropped.append(entry)
        if self.lock.acquire(False):
            try:
                if self.depth == 0:
                    self.depth = 1  # what is released may drop more
                    try:
                        self.settle()
                    finally:
                        self.depth = 0
            finally:
                self.lock.release()

    def settle(self):
        while self.dropped:
            self.dropped.popleft().release()

    def copied(self, key):
        """Returns the entry that has its copy in a storage, None if there is none."""
        if self.copies is None:
            self.copies = {}
            for entry in list(self.entries.values()):
                if entry.buffer is not None:
                    self.note_copy(entry)
        return self.copies.get(key)

    def note_copy(self, entry):
        self.copies[entry.buffer.untyped_storage()._cdata] = entry

    def forget_copy(self, buffer):
        self.copies.pop(buffer.untyped_storage()._cdata, None)

    @staticmethod
    def expired(weak):
        return weak.expired()

    @staticmethod
    def address(tensor):
        return tensor.untyped_storage().data_ptr()

    @staticmethod
    def size(tensor):
        return tensor.untyped_storage().nbytes()

    def free(self):
        """Returns the bytes of the device that nobody has taken."""
        return self.torch.cuda.mem_get_info(self.device)[0]

    def bound(self, nbytes):
        """Has PyTorch's own allocator take at most this much of the device."""
        self.torch.cuda.set_per_process_memory_fraction(min(1.0, float(nbytes) / self.capacity()), self.device)

    def sole(self, tensor):
        """Returns whether nothing but a tensor holds its storage, as far as this PyTorch tells."""
        return self.uses(tensor) == self.alone

    def uses(self, tensor):
        return self.count_uses(tensor.untyped_storage()._cdata)

    def addressed(self, tensor):
        """Returns whether the program may know the address of a tensor's memory."""
        weak = self.addresses.get(self.key(tensor))
        return weak is not None and not self.expired(weak)

    def take(self, nbytes, dtype=None):
        """Returns a tensor of so many bytes, of a type if that makes whole elements."""
        size = getattr(dtype, "itemsize", 0)  # since 2.1
        if not size or nbytes % size or dtype in self.quantized:
            size, dtype = 1, self.torch.uint8
        return self.torch.empty(nbytes // size, dtype=dtype, device=self.place)

    def view(self, holder, dtype, size, stride, offset):
        """Returns a tensor of a layout in the storage of another."""
        return holder.as_strided(size, stride, offset) if holder.dtype == dtype else self.placed(holder, dtype, size, stride, offset)

    def placed(self, holder, dtype, size, stride, offset):
        empty = self.torch.empty(0, dtype=dtype, device=self.place)
        return empty.set_(holder.untyped_storage(), offset, size, stride)

    def rows(self, holder, dtype, rows):
        """Returns all of a tensor's storage as this many rows."""
        storage = holder.untyped_storage()
        empty = self.torch.empty(0, dtype=dtype, device=self.place)
        row = storage.nbytes() // rows // empty.element_size()
        return empty.set_(storage, 0, (rows, row), (row, 1))

    def lies_on_host(self, tensor):
        """Returns whether a tensor of the device is in memory of the host, which the device uses in place."""
        return self.borrowed is not None and self.borrowed(self.address(tensor))

    # Streams.

    def stream(self):
        """Returns the current stream's address, 0 for the legacy default stream."""
        return self.torch._C._cuda_getCurrentRawStream(self.device)

    def stream_at(self, address):
        return self.torch.cuda.ExternalStream(address, device=self.place) if address else self.torch.cuda.default_stream(self.device)

    def tracked(self):
        """Returns a context in which tensors are made that operators may change, also amid torch.inference_mode."""
        within = getattr(self.torch, "is_inference_mode_enabled", lambda: False)
        return self.torch.inference_mode(False) if within() else AS_IT_IS

    def on(self, stream):
        """Returns a context in which a stream is the current one."""
        return self.torch.cuda.stream(self.stream_at(stream))

    def follow(self, stream):
        """Makes the current stream wait for what another one holds."""
        self.torch.cuda.current_stream(self.device).wait_stream(self.stream_at(stream))

    def new_stream(self):
        """Returns the address of a stream that is there as long as this is."""
        self.streams.append(self.torch.cuda.Stream(self.device))
        return self.streams[-1].cuda_stream

    def used_by(self, tensor, stream):
        """Says that a stream uses a tensor, whose memory may have been taken in the order of another."""
        tensor.record_stream(self.stream_at(stream))

    # What is moved and what is not.

    def movable(self, tensor):
        """Returns whether a saved tensor may be moved: one of this device, of a plain type."""
        return type(tensor) in self.types and tensor.is_cuda and tensor.device.index == self.device and self.ordinary(tensor)

    def ordinary(self, tensor):
        """Returns whether the memory of a tensor has its numbers, as they are."""
        return (tensor.layout == self.strided and not self.wrapped(tensor) and not tensor.is_conj() and not tensor.is_neg() and not tensor.is_nested
                and not self.zero(tensor))

    def consists_of_others(self, tensor):
        """Returns whether a saved tensor is one of those whose parts may be moved. Others wait for something, as for a collective operation."""
        return type(tensor).__name__ in COMPOSED and type(tensor).__module__.startswith("torch.")

    def here(self, x):
        """Returns whether something is a tensor in memory of this device."""
        return isinstance(x, self.torch.Tensor) and x.is_cuda and x.device.index == self.device and x.layout == self.strided and not x.is_nested

    def storage(self, x):
        """Returns the storage of a tensor that is memory of this device, None for all else."""
        if not self.here(x):
            return None
        try:
            return x.untyped_storage()
        except (RuntimeError, ValueError):
            return None  # it has none, or not yet

    def plain(self, tensor):
        """Returns whether operators on a tensor are PyTorch's own. A type that has its own may do something else each time."""
        return getattr(type(tensor), "__torch_dispatch__", None) is self.dispatch

    def key(self, x):
        """Returns the address of the storage of a tensor that is memory of this device, 0 for all else."""
        if not self.here(x):
            return 0
        try:
            return x.untyped_storage()._cdata
        except (RuntimeError, ValueError):
            return 0  # it has none, or not yet

    def begin_step(self, step=None):
        self.launches.look()
        if len(self.known) > 2 * len(self.ordinals) + 1000:
            self.known = {key: weak for key, weak in self.known.items() if not self.expired(weak)}
        if len(self.addresses) > 1000:
            self.addresses = {key: weak for key, weak in list(self.addresses.items()) if not self.expired(weak)}
        self.last = self.ordinals, self.lasting, self.waiting, self.noted
        self.exported = {}
        self.note_anew()
        self.small.begin_step(step)

    def note_anew(self):
        """Has modules noted that are met from now on."""
        self.ordinals, self.lasting, self.waiting, self.noted = {}, {}, [], set()

    def begin_like_last(self):
        """Has a step that begins go by what was noted in the one before: where that is not true any more, some tensors are not looked at."""
        self.ordinals, self.lasting, self.waiting, self.noted = self.last

    def note(self, tensor):
        """Excludes a tensor's storage from being moved. Returns its ordinal."""
        storage = self.storage(tensor)
        if storage is None:
            return 0
        if storage._cdata not in self.known:
            self.known[storage._cdata] = self.weak(storage)
        return self.ordinals.setdefault(storage._cdata, len(self.ordinals) + 1)

    def note_lasting(self, tensors):
        """Does so for parameters or buffers, and notes in which storage each is. What one consists of does not show when it is written to, so that nothing is recomputed of it."""
        known, ordinals, ref = self.known, self.ordinals, weakref.ref
        for t in tensors:
            if t is None:
                continue
            if type(t) not in self.types and self.consists_of_others(t):
                for _, part in consists(t)[0]:
                    self.note(part)
                continue
            try:
                key = t.untyped_storage()._cdata
            except (RuntimeError, ValueError, AttributeError):
                continue  # it has none, or not yet, or is no tensor
            if key in known and key not in ordinals:  # as in most steps: it is known to be here
                ordinals[key] = ordinal = len(ordinals) + 1
                self.lasting[ordinal] = [ref(t)]
                continue
            ordinal = self.note(t)
            if ordinal:
                others = self.lasting.setdefault(ordinal, [])
                if not any(weak() is t for weak in others):
                    others.append(ref(t))

    def note_storages(self, module):
        """Notes the storages of a module's parameters and buffers, once in each step."""
        if id(module) in self.noted:
            return
        self.noted.add(id(module))
        self.models.add(module)
        modules = parts(module)
        self.note_lasting([t for m in modules for tensors in (m._parameters, m._buffers) for t in tensors.values()])
        self.waiting.extend(gathered(modules))
        self.note_gathered()

    def note_gathered(self):
        """Notes what FSDP gathers parameters into: it frees that memory and takes it again by itself. There is none until a parameter
        is gathered for the first time."""
        waiting, self.waiting = self.waiting, []
        for parameter in waiting:
            ordinals = [self.note(t) for t in targets(parameter)]
            for ordinal in ordinals:
                self.lasting.pop(ordinal, None)
            if not ordinals:
                self.waiting.append(parameter)

    def kept(self, storage):
        """Returns whether a storage is never moved."""
        if storage._cdata not in self.known and self.waiting:
            self.note_gathered()
        return storage._cdata in self.known

    def parameters(self, ordinal):
        """Returns the parameters and buffers in a storage."""
        return [t for t in [weak() for weak in self.lasting[ordinal]] if t is not None]

    def parameter(self, key):
        """Returns the ordinal of a storage of parameters, 0 for others."""
        ordinal = self.ordinals.get(key, 0)
        return ordinal if ordinal in self.lasting else 0

    def note_used(self, keys):
        """Notes the parameters and buffers in storages that an operator was given."""
        for ordinal in filter(None, map(self.parameter, keys)):
            self.used.update(map(id, self.parameters(ordinal)))

    # For recordings.

    def same(self, a, b):
        """Returns whether two tensors hold the same bytes, in the same order. For what is not dense it says no."""
        other = self.other(a, b)
        return other is not None and not self.read([other])[0]

    def other(self, a, b):
        """Returns a flag on the device, whether two tensors hold other bytes, None where these are in another order, or not dense."""
        if a.is_contiguous() and b.is_contiguous():
            return self.other_line(a.flatten(), b.flatten())
        return self.other_line(self.line(a), self.line(b)) if (a.size(), a.stride()) == (b.size(), b.stride()) and dense(a) else None

    def other_line(self, a, b):
        """Does so for two lines. PyTorch takes a byte for each number that it compares: words are fewer."""
        a, b = a.view(self.torch.uint8), b.view(self.torch.uint8)
        if a.numel() != b.numel():
            return None
        if not (a.numel() | a.storage_offset() | b.storage_offset() | self.address(a) | self.address(b)) % 4:
            a, b = a.view(self.torch.int32), b.view(self.torch.int32)
        return (a != b).any()

    def sums(self, tensor):
        """Returns sums of the words of a tensor's storage, None where there is no room for them."""
        storage = tensor.untyped_storage()
        words, rest = divmod(storage.nbytes(), WORD)
        if storage.data_ptr() % WORD:
            return None
        take = lambda dtype, at, n: self.torch.empty(0, dtype=dtype, device=self.place).set_(storage, at, (n,), (1,))
        rows, more = divmod(words, SUMS)
        try:
            with self.trial:
                line = take(self.torch.int64, 0, words)
                sums = line.as_strided((rows, SUMS), (SUMS, 1), 0).sum(0)  # PyTorch makes no copy of words of this type
                if more:
                    sums[:more].add_(line[rows * SUMS :])
                if rest:
                    sums[:rest].add_(take(self.torch.uint8, WORD * words, rest))
                return sums
        except RuntimeError:
            return None

    def fetched(self, sums):
        """Returns sums on the host, each None where there is no room to fetch them."""
        try:
            with self.trial:
                rows = self.torch.stack(sums).cpu() if sums else ()
        except RuntimeError:
            return [None] * len(sums)
        return [rows[i : i + 1] for i in range(len(sums))]

    def read(self, flags):
        """Returns what flags on the device are."""
        return self.torch.stack(flags).tolist()

    def alike(self, a, b, near):
        """Returns whether the storages of two tensors hold the same bytes, or numbers of a type that are as near as a library's may be."""
        if self.size(a) != self.size(b):
            return False
        found = pieces(*(self.rows(x, near or self.torch.uint8, 1).flatten() for x in (a, b)))
        if near is not None:
            return all(self.read(close(self.torch, found)))
        return not any(self.read([self.other_line(x, y) for x, y in found]))

    def line(self, tensor):
        """Returns the bytes of a dense tensor, in their order."""
        return tensor.as_strided((tensor.numel(),), (1,))

    def fills(self, tensor):
        """Returns whether a tensor is all of its storage."""
        return self.size(tensor) == tensor.numel() * tensor.element_size() and dense(tensor)

    def plainly(self):
        """Returns a context in which operators are neither recorded for a backward pass nor cast."""
        return Plainly(self.torch) if self.torch.is_grad_enabled() or self.casts() else AS_IT_IS

    def mode(self, run, inside=False):
        """Returns a mode in which run is given each operator that is called."""
        return mode(self.torch, run, inside)

    @staticmethod
    def innermost_mode():
        """Returns the mode that operators are given to first, None for none."""
        from torch.utils import _python_dispatch

        return _python_dispatch._get_current_dispatch_mode()

    def deterministic(self):
        """Returns whether the program wants the same bits each time."""
        return self.torch.are_deterministic_algorithms_enabled() or self.torch.backends.cudnn.deterministic

    def capturing(self):
        """Returns whether a CUDA graph is being captured."""
        return self.torch.cuda.is_current_stream_capturing()

    def name(self):
        return self.torch.cuda.get_device_name(self.device)

    def capacity(self):
        return self.torch.cuda.get_device_properties(self.device).total_memory

    def mark(self):
        address = self.stream()
        if address not in self.marked:
            self.marked = {address: self.torch.cuda.current_stream(self.device)}
        event = self.torch.cuda.Event(enable_timing=True)
        event.record(self.marked[address])
        return event

    @staticmethod
    def reach(mark):
        """Waits until the device has come to a mark."""
        mark.synchronize()

    def passed(self, mark):
        """Returns whether the device has come to a mark. A graph that is captured is not to know."""
        return not self.capturing() and mark.query()

    def fill(self, mark, nanoseconds):
        """Gives the device something to do for about so long, if it has come to a mark, None for any. Returns whether it has."""
        if self.capturing() if mark is None else not self.passed(mark):
            return False
        sleep = getattr(self.torch.cuda, "_sleep", None)
        if sleep is not None and self.torch.cuda.current_device() == self.device:
            sleep(int(nanoseconds * self.CYCLES))
        return True

    @staticmethod
    def elapsed(begin, end):
        """Returns the nanoseconds between two marks that have passed."""
        return max(0, int(begin.elapsed_time(end) * 1e6))

    def fetch(self, flag):
        """Begins to copy a flag to the host."""
        return Fetched(self, flag)

    def allocated(self):
        """Returns the bytes that are in use."""
        return self.torch.cuda.memory_stats_as_nested_dict(self.device)["allocated_bytes"]["all"]["current"]

    def synchronize(self):
        self.torch.cuda.synchronize(self.device)


def dense(tensor):
    """Returns whether a tensor has no gaps, and no element twice: its dimensions may be in any order, as transposed ones are."""
    if tensor.is_contiguous():
        return True
    expected = 1
    for stride, size in sorted(zip(tensor.stride(), tensor.size())):
        if size != 1:
            if stride != expected:
                return False
            expected *= size
    return True


def mode(torch, run, inside=False):
    """Returns a mode in which run is given each operator that is called, but for what torch.compile traces. What it made runs on. Of a
    tensor that consists of others, as DTensor, it is given the operators on those if it is to look inside."""
    from torch.utils._python_dispatch import TorchDispatchMode

    tracing = tracer(torch)

    class Mode(TorchDispatchMode):
        supports_higher_order_operators = True

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            if inside and any(hasattr(t, "__tensor_flatten__") for t in types):
                return NotImplemented
            if tracing() is not None:
                return function(*args, **(kwargs or {}))
            return run(function, args, kwargs or {})

    # In any other mode PyTorch leaves compiled code, for good. Older versions ask for the latter.
    for name in "ignore_compile_internals", "is_infra_mode":
        if hasattr(TorchDispatchMode, name):
            setattr(Mode, name, classmethod(lambda cls: True))
            break
    return Mode()


class Trial(threading.local):
    """A context in which this thread requests what it can do without."""

    depth = 0

    def __enter__(self):
        self.depth += 1

    def __exit__(self, *reason):
        self.depth -= 1


class Fetched(object):
    def __init__(self, memory, flag):
        self.host = memory.torch.empty((), dtype=flag.dtype, pin_memory=True)
        self.host.copy_(flag, non_blocking=True)
        self.done = memory.mark()

    def come(self):
        return self.done.query()

    def value(self):
        self.done.synchronize()
        return bool(self.host.item())


SUMS = 61  # of the words of a storage: each so many-th one; a prime, so that words in another order have others
WORD = 8  # bytes
COMPOSED = frozenset(("DTensor", "NestedTensor"))
AS_IT_IS = contextlib.nullcontext()


class Plainly(object):
    def __init__(self, torch):
        self.contexts = (torch.no_grad(), torch.autocast("cuda", enabled=False))

    def __enter__(self):
        for c in self.contexts:
            c.__enter__()

    def __exit__(self, *reason):
        for c in reversed(self.contexts):
            c.__exit__(*reason)


def casts(torch):
    """Returns the function that says whether autocast is in effect."""
    try:
        torch.is_autocast_enabled("cuda")
    except TypeError:  # before 2.4
        return torch.is_autocast_enabled
    return lambda: torch.is_autocast_enabled("cuda")


def tracer(torch):
    """Returns the function that returns what torch.compile traces in this thread, or None."""
    context = getattr(getattr(torch, "_guards", None), "TracingContext", None)
    return getattr(context, "try_get", None) or getattr(context, "get", lambda: None)


def wrapped(torch):
    """Returns the function that says whether a tensor is one of torch.func's wrappers."""
    functions = getattr(torch._C, "_functorch", None)
    one = getattr(functions, "is_functorch_wrapped_tensor", None)  # since 2.1
    if one is not None:
        return one
    all = [f for f in (getattr(functions, name, None) for name in ("is_batchedtensor", "is_gradtrackingtensor", "is_functionaltensor")) if f]
    return lambda tensor: any(f(tensor) for f in all)
