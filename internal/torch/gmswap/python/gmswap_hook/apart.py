"""Whether an optimizer that is none of torch.optim's updates each parameter by itself: what its operators read and write says so."""

import copy

from .effects import Call
from .operators import flat, tensors_in
from .updates import each, version


class Together(RuntimeError):
    """Raised within an update that is not one of each parameter by itself."""


class Apart(object):
    """Watches updates of some parameters. Each operator may have to do with one of them, with its gradient, its state and what was made of these, but
    for those on lists, which have to do with one in each place."""

    def __init__(self, torch, memory, gradient):
        self.torch, self.gradient = torch, gradient
        self.mode = memory.mode(self.run)
        self.owners = {}  # numbers of parameters, by address of a storage
        self.counts = set()  # of these, states of one number, as that of steps
        self.trusted = False  # the first update was watched to its end

    def update(self, optimizer, act):
        """Acts, and returns what that returns."""
        self.owners, self.counts = {}, set()
        for i, p in enumerate(each(optimizer)):
            for t in (p, self.gradient(p), *dict.values(optimizer.state.get(p, {}))):
                if isinstance(t, self.torch.Tensor):
                    self.own(t, i)
                    if t is not p and t.dim() == 0:
                        self.counts.add(t.untyped_storage()._cdata)
        before = settings(optimizer)
        with self.mode:
            result = act()
        if settings(optimizer) != before:
            raise Together("it changes more than parameters and their states")
        return result

    def run(self, function, args, kwargs):
        call = Call(self.torch, function, args, kwargs)
        if call.random():
            raise Together("it draws random numbers")
        if not self.lists(call, args, kwargs):
            owner = self.owner(function, tensors_in((args, kwargs)))
            if owner is not None and call.answers() and not all(t.untyped_storage()._cdata in self.counts for t in tensors_in(args)):
                raise Together("it looks at numbers of a parameter (%s)" % function)
        result = function(*args, **kwargs)
        if not self.lists(call, args, kwargs, result):
            for t in (*tensors_in(result), *call.written(list(tensors_in((args, kwargs))))):
                self.own(t, owner)
        return result

    def lists(self, call, args, kwargs, result=None):
        """Notes what an operator on lists does, and returns whether it is one."""
        if not call.packet.startswith(("_foreach_", "_fused_")):
            return False
        given = [x for x in (*args, *kwargs.values(), result) if isinstance(x, (list, tuple)) and any(isinstance(t, self.torch.Tensor) for t in flat(x))]
        if len({len(x) for x in given}) != 1:
            return False
        if self.owner(call.function, (t for t in (*args, *kwargs.values()) if isinstance(t, self.torch.Tensor))) is not None:
            raise Together("%s has to do with all parameters" % call.function)
        for places in zip(*given):
            owner = self.owner(call.function, places)
            for t in places:
                self.own(t, owner)
        return True

    def owner(self, function, tensors):
        owners = {self.owners.get(t.untyped_storage()._cdata) for t in tensors} - {None}
        if len(owners) > 1:
            raise Together("%s has to do with several parameters" % function)
        return owners.pop() if owners else None

    def own(self, t, owner):
        self.owners[t.untyped_storage()._cdata] = owner


class Undo(object):
    """What some parameters, their gradients and states, and an optimizer were."""

    def __init__(self, torch, gradient, optimizer, chunk):
        self.torch, self.optimizer = torch, optimizer
        parameters = [p for _, parameters in chunk for p in parameters]
        self.tensors = [(t, t.detach().clone()) for p in parameters for t in (p, gradient(p))]
        self.states = [(p, self.copied(optimizer.state.get(p))) for p in parameters]
        self.groups = [(group, dict(group)) for group in optimizer.param_groups]
        self.attributes = dict(vars(optimizer))
        self.draws = torch.get_rng_state(), torch.cuda.get_rng_state() if torch.cuda.is_initialized() else None

    def copied(self, state):
        return state and {key: value.clone() if isinstance(value, self.torch.Tensor) else copy.copy(value) for key, value in state.items()}

    def undo(self):
        vars(self.optimizer).clear()
        vars(self.optimizer).update(self.attributes)
        for group, before in self.groups:
            group.clear()
            group.update(before)
        with self.torch.no_grad():
            for t, value in self.tensors:
                t.copy_(value)
        for p, state in self.states:
            self.optimizer.state.pop(p, None)
            if state is not None:
                self.optimizer.state[p] = state
        self.torch.set_rng_state(self.draws[0])
        if self.draws[1] is not None:
            self.torch.cuda.set_rng_state(self.draws[1])


def settings(optimizer):
    """Returns what is equal as long as nothing of an optimizer changes but its states."""
    values = [{k: version(v) for k, v in group.items() if k != "params"} for group in optimizer.param_groups]
    return values, {k: version(v) for k, v in vars(optimizer).items() if k not in ("state", "param_groups")}
