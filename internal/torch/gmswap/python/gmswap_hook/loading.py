"""States that load_state_dict takes from the host, as of a file: they stay there until their first update."""

import functools

from .settings import MIB
from .states import AWAY, HERE, States


class Loaded(object):
    """A tensor of a state without memory, in the place of one of the host."""

    __slots__ = ("tensor", "source", "nbytes", "where", "needed")

    def __init__(self, tensor, source):
        self.tensor, self.source, self.nbytes = tensor, source, tensor.untyped_storage().nbytes()
        tensor.untyped_storage().resize_(0)
        self.where, self.needed = AWAY, False

    @property
    def lasts(self):
        return self.where is AWAY

    def holds(self, value):
        return value is self.tensor

    def load(self, stream):
        pass  # it is not pinned

    def arrive(self, stream):
        self.fetch()

    def fetch(self):
        if self.where is AWAY:
            self.tensor.untyped_storage().resize_(self.nbytes)
            self.where = HERE
            self.tensor.copy_(self.source)
            self.source = None

    def leave(self):
        return False

    def left(self):
        return 0

    def copied(self):
        return self.tensor if self.where is HERE else self.source.clone()


class Loading(object):
    """Stands between a program and load_state_dict of its optimizers."""

    def __init__(self, torch, smallest=MIB):
        self.torch, self.smallest = torch, smallest
        self.waiting = {}  # Loaded, by id of the tensor, until load_state_dict has ended
        optimizer = torch.optim.Optimizer
        real = getattr(optimizer, "_process_value_according_to_param_policy", None)
        if real is None:
            return  # before PyTorch 2.1
        optimizer._process_value_according_to_param_policy = staticmethod(self.processing(real))
        optimizer.load_state_dict = self.loading(optimizer.load_state_dict)

    def processing(self, real):
        @functools.wraps(real)
        def process(param, value, *args, **kwargs):
            if not self.stays(param, value):
                return real(param, value, *args, **kwargs)
            source = value.to(param.dtype if param.is_floating_point() else value.dtype, copy=True)
            loaded = Loaded(self.torch.empty_like(source, device=param.device), source)
            self.waiting[id(loaded.tensor)] = loaded
            return loaded.tensor

        return process

    def stays(self, param, value):
        """Returns whether a state is large, and on the host while its parameter is not."""
        plain = type(value) is self.torch.Tensor and value.layout is self.torch.strided and value.is_contiguous()
        return plain and not value.requires_grad and self.elsewhere(param, value) and value.numel() * value.element_size() >= self.smallest

    def elsewhere(self, param, value):
        return value.device.type == "cpu" and param.is_cuda

    def loading(self, real):
        @functools.wraps(real)
        def load_state_dict(optimizer, *args, **kwargs):
            try:
                result = real(optimizer, *args, **kwargs)
                for p, state in list(optimizer.state.items()):
                    found = {key: self.waiting.get(id(value)) for key, value in dict.items(state)} if type(state) is dict else {}
                    if any(found.values()):
                        optimizer.state[p] = States(state)
                        optimizer.state[p].places = {key: x for key, x in found.items() if x is not None}
                return result
            finally:
                self.waiting.clear()

        return load_state_dict
