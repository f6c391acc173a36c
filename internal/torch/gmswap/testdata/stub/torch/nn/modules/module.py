"""Modules and their hooks, as PyTorch calls them."""

import collections
import itertools
import weakref

from ..._tensor import Tensor

_ids = itertools.count()
_global_forward_pre_hooks = collections.OrderedDict()
_global_forward_hooks = collections.OrderedDict()
_global_always = set()


class Parameter(Tensor):
    def __init__(self, tensor):
        super(Parameter, self).__init__(tensor._storage, tensor.dtype, tensor._size, tensor._stride, tensor._offset, tensor._counter)
        self.requires_grad = True


class RemovableHandle(object):
    def __init__(self, hooks, always=None):
        self.hooks, self.always, self.id = weakref.ref(hooks) if hasattr(hooks, "__weakref__") else lambda: hooks, always, next(_ids)

    def remove(self):
        hooks = self.hooks()
        if hooks is not None:
            hooks.pop(self.id, None)
        if self.always is not None:
            self.always.discard(self.id)


def register(hooks, hook, prepend=False, always=None, always_call=False):
    handle = RemovableHandle(hooks, always)
    hooks[handle.id] = hook
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    if always_call:
        always.add(handle.id)
    return handle


def register_module_forward_pre_hook(hook):
    return register(_global_forward_pre_hooks, hook)


def register_module_forward_hook(hook, always_call=False):
    return register(_global_forward_hooks, hook, always=_global_always, always_call=always_call)


def forget_always_call():
    global register_module_forward_hook
    register_module_forward_hook = lambda hook: register(_global_forward_hooks, hook)  # noqa: E731
    Module.register_forward_hook = lambda self, hook, prepend=False: register(self._forward_hooks, hook, prepend)


class Module(object):
    def __init__(self):
        self._forward_pre_hooks, self._forward_hooks = collections.OrderedDict(), collections.OrderedDict()
        self._always = set()

    def register_forward_pre_hook(self, hook, prepend=False):
        return register(self._forward_pre_hooks, hook, prepend)

    def register_forward_hook(self, hook, prepend=False, always_call=False):
        return register(self._forward_hooks, hook, prepend, self._always, always_call)

    def __call__(self, *args, **kwargs):
        called, result = set(), None
        try:
            for hook in (*_global_forward_pre_hooks.values(), *self._forward_pre_hooks.values()):
                assert hook(self, args) is None
            result = self.forward(*args, **kwargs)
            for id, hook in (*_global_forward_hooks.items(), *self._forward_hooks.items()):
                called.add(id)
                assert hook(self, args, result) is None
            return result
        except Exception:
            for id, hook in _global_forward_hooks.items():
                if id in _global_always and id not in called:
                    hook(self, args, result)
            for id, hook in self._forward_hooks.items():
                if id in self._always and id not in called:
                    hook(self, args, result)
            raise

    def zero_grad(self, set_to_none=True):
        assert set_to_none
        for p in self.parameters():
            p.grad = None

    def members(self):
        for name, value in vars(self).items():
            if isinstance(value, (list, tuple)):
                for i, v in enumerate(value):
                    yield "%s.%d" % (name, i), v
            else:
                yield name, value

    def own(self, wanted):
        return {name: value for name, value in self.members() if wanted(value)}

    _modules = property(lambda self: self.own(lambda value: isinstance(value, Module)))
    _parameters = property(lambda self: self.own(lambda value: isinstance(value, Parameter)))
    _buffers = property(lambda self: self.own(lambda value: type(value) is Tensor))

    def named_modules(self, prefix=""):
        yield prefix, self
        for name, value in self.members():
            if isinstance(value, Module):
                yield from value.named_modules(prefix + "." + name if prefix else name)

    def modules(self):
        return (m for _, m in self.named_modules())

    def children(self):
        return (value for _, value in self.members() if isinstance(value, Module))

    def parameters(self, recurse=True):
        for m in self.modules() if recurse else (self,):
            for _, value in m.members():
                if isinstance(value, Parameter):
                    yield value

    def buffers(self):
        return (b for _, b in self.named_buffers())

    def named_parameters(self):
        return self.named(lambda value: isinstance(value, Parameter))

    def named_buffers(self):
        return self.named(lambda value: type(value) is Tensor)

    def named(self, wanted):
        for prefix, m in self.named_modules():
            for name, value in m.members():
                if wanted(value):
                    yield prefix + "." + name if prefix else name, value
