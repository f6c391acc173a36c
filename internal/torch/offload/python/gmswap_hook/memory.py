"""PyTorch's storages on one device."""


class Memory(object):
    def __init__(self, torch, device):
        from torch.multiprocessing.reductions import StorageWeakRef

        self.torch, self.device = torch, device
        self.place = torch.device("cuda", device)
        self.weak = StorageWeakRef
        self.types, self.strided = (torch.Tensor, torch.nn.Parameter), torch.strided
        self.wrapped = torch._C._functorch.is_functorch_wrapped_tensor
        self.known = set()  # addresses of the storages of parameters and buffers
        self.entries = {}  # by their storage's address, those that autograd has not let go of

    @staticmethod
    def expired(weak):
        return weak.expired()

    @staticmethod
    def address(tensor):
        return tensor.untyped_storage().data_ptr()

    def take(self, nbytes):
        return self.torch.empty(nbytes, dtype=self.torch.uint8, device=self.place)

    def view(self, holder, saved):
        """Returns a tensor as it was saved, in the storage of another."""
        empty = self.torch.empty(0, dtype=saved.dtype, device=self.place)
        return empty.set_(holder.untyped_storage(), saved.offset, saved.size, saved.stride)

    def rows(self, holder, dtype, rows):
        """Returns all of a tensor's storage as so many rows."""
        storage = holder.untyped_storage()
        row = storage.nbytes() // rows // dtype.itemsize
        return self.torch.empty(0, dtype=dtype, device=self.place).set_(storage, 0, (rows, row), (row, 1))

    def also_used(self, tensor):
        """Says that the current stream uses a tensor that was taken in the order of another."""
        tensor.record_stream(self.torch.cuda.current_stream(self.device))

    def forget(self, entry):
        if self.entries.get(entry.key) is entry:
            del self.entries[entry.key]

    def stream(self):
        """Returns the current stream's address, None for the legacy default stream."""
        return self.torch._C._cuda_getCurrentRawStream(self.device)

    def movable(self, tensor):
        """Says whether a saved tensor may be moved: one of this device, of a plain type."""
        return (type(tensor) in self.types and tensor.is_cuda and tensor.device.index == self.device and tensor.layout == self.strided
                and not self.wrapped(tensor))

    def plain(self, x):
        return isinstance(x, self.torch.Tensor) and x.is_cuda and x.layout == self.torch.strided

    def same(self, a, b):
        """Says whether two tensors hold the same bytes. For what is not contiguous it says no."""
        if not a.is_contiguous() or not b.is_contiguous():
            return False
        return self.torch.equal(a.flatten().view(self.torch.uint8), b.flatten().view(self.torch.uint8))

    def lasting(self, tensor):
        return tensor.untyped_storage()._cdata in self.known

    def note_storages(self, module):
        """Notes the storages of a module's parameters and buffers, which are never moved."""
        for tensors in (module.parameters(), module.buffers()):
            for t in tensors:
                if self.plain(t):
                    self.known.add(t.untyped_storage()._cdata)

    def plainly(self):
        """Returns a context in which operators do just what they are asked to."""
        return Plainly(self.torch)

    def mode(self, run):
        from torch.utils._python_dispatch import TorchDispatchMode

        class Mode(TorchDispatchMode):
            def __torch_dispatch__(self, function, types, args=(), kwargs=None):
                return run(function, args, kwargs or {})

        return Mode()

    def capturing(self):
        """Says whether a CUDA graph is being captured."""
        return self.torch.cuda.is_current_stream_capturing()

    def name(self):
        return self.torch.cuda.get_device_name(self.device)

    def capacity(self):
        return self.torch.cuda.get_device_properties(self.device).total_memory

    # For recordings.

    def mark(self):
        event = self.torch.cuda.Event(enable_timing=True)
        event.record(self.torch.cuda.current_stream(self.device))
        return event

    @staticmethod
    def elapsed(begin, end):
        """Returns the nanoseconds between two marks that have passed."""
        return max(0, int(begin.elapsed_time(end) * 1e6))

    def peak(self):
        return self.torch.cuda.max_memory_allocated(self.device)

    def reset_peak(self):
        self.torch.cuda.reset_peak_memory_stats(self.device)

    def synchronize(self):
        self.torch.cuda.synchronize(self.device)


class Plainly(object):
    def __init__(self, torch):
        self.contexts = (torch.no_grad(), torch.autocast("cuda", enabled=False))

    def __enter__(self):
        for c in self.contexts:
            c.__enter__()

    def __exit__(self, *reason):
        for c in reversed(self.contexts):
            c.__exit__(*reason)
