"""What an optimizer keeps of each parameter. Its tensors go to the host and come back; away they are the same objects, without memory."""

import collections
import copy
import os
import sys

from . import say
from .library import Failure

HERE, LEAVING, AWAY, COMING = "here", "leaving", "away", "coming"


class Place(object):
    """Where a tensor of a state is. Its ticket holds room on the host also while the tensor is on the device."""

    __slots__ = ("memory", "lanes", "tensor", "nbytes", "where", "ticket", "home", "needed", "__weakref__")

    lasts = True  # for as long as the tensor

    def __init__(self, memory, lanes, tensor):
        self.memory, self.lanes, self.tensor = memory, lanes, tensor
        self.nbytes = memory.size(tensor)
        self.ticket = 0
        self.set_where(HERE)
        self.home = memory.stream()  # that has used it last
        self.needed = False  # by an update that is under way

    @property
    def value(self):
        """Is what the program finds in the state."""
        return self.tensor

    def holds(self, value):
        """Returns whether it is the place of what a state has."""
        return value is self.tensor

    def storage(self):
        return self.tensor.untyped_storage()

    def set_where(self, where):
        self.where = where
        self.memory.shifts += 1

    # With memory.

    def load(self, stream):
        """Begins the copy back, into memory that is taken in the order of the stream, the current one."""
        if self.where is not AWAY:
            return
        self.storage().resize_(self.nbytes)
        try:
            self.lanes.back(self.ticket, self.memory.address(self.tensor), stream)
        except Failure:
            self.storage().resize_(0)
            raise
        self.home = stream
        self.set_where(COMING)

    def arrive(self, stream):
        """Has the stream, the current one, see the contents. It may change them from then on."""
        self.load(stream)
        self.finish()
        if stream != self.home:
            self.memory.follow(self.home)
            self.memory.used_by(self.tensor, stream)
            self.home = stream

    def finish(self):
        """Has the stream wait for the copy that is under way."""
        if self.where is LEAVING:
            self.lanes.left(self.ticket, self.home)
        elif self.where is COMING:
            self.lanes.ready(self.ticket, self.home)
        if self.where is not HERE:
            self.set_where(HERE)

    def leave(self):
        """Begins the copy to the host. Returns whether it could."""
        if self.where is HERE and self.alone() and not self.memory.lies_on_host(self.tensor):
            self.drop()
            self.ticket = self.lanes.out(self.memory.address(self.tensor), self.nbytes, self.home)
            self.set_where(LEAVING if self.ticket else HERE)
        return self.where is LEAVING

    def left(self):
        """Frees the memory behind the copy to the host, for which the stream waits, or the copy back that nobody has seen. Returns its bytes."""
        if self.where not in (LEAVING, COMING):
            return 0
        try:
            self.finish()
        except Failure as e:
            say.once("the state of an optimizer stays on the device: %s" % say.reason(e))
            return 0
        if not self.alone():
            return 0
        self.storage().resize_(0)
        self.set_where(AWAY)
        return self.nbytes

    def alone(self):
        """Returns whether nobody but the optimizer holds the tensor."""
        return holders(self) <= ALONE and self.memory.sole(self.tensor) and uses(self.tensor) <= 1

    def fetch(self):
        with self.memory:
            self.arrive(self.memory.stream())

    def copied(self):
        """Returns a copy on the host, and leaves the tensor where it is."""
        with self.memory:
            if self.where is not AWAY:
                return self.value
            self.load(self.memory.stream())
            self.lanes.ready(self.ticket, self.home)  # and the copy on the host is as good as before
            try:
                return self.value.to("cpu", copy=True)
            finally:
                self.left()

    def drop(self):
        if self.ticket:
            ticket, self.ticket = self.ticket, 0
            self.lanes.drop(ticket)

    def __del__(self):
        """Ends the place. Python calls this at any moment, in any thread; memory that is still copied into must not be used again before."""
        if self.ticket and os.getpid() == self.memory.pid:
            try:
                self.finish()
                self.drop()
            except Failure as e:
                say.once("memory of the device is lost: %s" % say.reason(e))
                self.memory.lost.append(self.tensor)


class PartPlace(Place):
    """Where this rank's part is of a tensor that ranks share."""

    __slots__ = ("whole",)

    def __init__(self, memory, lanes, whole):
        super(PartPlace, self).__init__(memory, lanes, part(whole))
        self.whole = whole

    @property
    def value(self):
        return self.whole

    def holds(self, value):
        return value is self.whole and part(value) is self.tensor

    def alone(self):
        return sys.getrefcount(self.whole) <= ALONE and uses(self.whole) <= 1 and super(PartPlace, self).alone()


def shared(tensor):
    """Returns whether ranks share a tensor, of which each has a part that is a tensor itself."""
    return type(tensor).__name__ == "DTensor" and type(tensor).__module__.startswith("torch.")


def part(tensor):
    """Returns this rank's part of a tensor, the whole of one that ranks do not share."""
    return tensor._local_tensor if shared(tensor) else tensor


def meets(p, gradient, state):
    """Returns whether ranks meet in the update of a parameter: they share it, and its gradient or a state lies otherwise, as one that is still to be summed up."""
    if not shared(p):
        return False
    lies = lambda t: (t.device_mesh, t.placements) if shared(t) else None
    return lies(gradient) != lies(p) or any(lies(t) != lies(p) for t in dict.values(state) if shared(t))


def holders(place):
    return sys.getrefcount(place.tensor)


def uses(tensor):
    """Returns how many hold a tensor, what is no object of Python's included, as far as this PyTorch tells."""
    count = getattr(tensor, "_use_count", None)
    return 1 if count is None else count()


class Sample(object):
    def __init__(self):
        self.tensor = object()
        self.states = {0: self.tensor}


ALONE = holders(Sample())  # what holds a tensor that is in a Place and in its States


class States(dict):
    """The state of a parameter, in the place of the dictionary that the optimizer made. Who reads a tensor gets it back on the device, where
    it stays until the next step(). Copies of the whole, and files, have tensors of the host instead of those that are there; copies of what ranks share are on the device."""

    __slots__ = ("places", "changed")

    def __init__(self, state):
        super(States, self).__init__(state)
        self.places = {}
        self.changed = False  # the program has put something else in the place of what had one

    def adopt(self, place):
        """Makes places by place(tensor), None for what is not moved, of all tensors that have none, and forgets those of tensors that are gone."""
        for key, value in dict.items(self):
            known = self.places.get(key)
            if known is None or not known.holds(value) or not known.lasts:
                self.places[key] = place(value)
        self.places = {key: x for key, x in self.places.items() if x is not None and x.holds(dict.get(self, key))}
        self.changed = False

    def seen(self, key, value):
        place = self.places.get(key)
        if place is not None and place.where is not HERE and place.holds(value):
            place.fetch()
        return value

    def fetch(self):
        for key, value in dict.items(self):
            self.seen(key, value)
        return self

    def __getitem__(self, key):
        return self.seen(key, dict.__getitem__(self, key))

    def get(self, key, default=None):
        return self.seen(key, dict.get(self, key, default))

    def __iter__(self):
        return dict.__iter__(self)  # otherwise dict(states) would read past __getitem__

    def host(self):
        """Returns a dictionary with copies on the host of what is there."""
        state = {}
        for key in dict.keys(self):  # what holds a tensor as well would keep it on the device
            place = self.places.get(key)
            state[key] = place.copied() if place is not None and place.holds(dict.get(self, key)) else dict.get(self, key)
        return state

    def __reduce_ex__(self, protocol):
        return collections.OrderedDict, (), None, None, iter(self.host().items())  # torch.load takes it, but no dict that is made by a call

    def __deepcopy__(self, memo):
        for key, place in self.places.items():
            if isinstance(place, PartPlace):  # ranks may put together what was copied, where their devices are
                self.seen(key, dict.get(self, key))
        return copy.deepcopy(self.host(), memo)

    def copy(self):
        return dict(self.fetch())

    __copy__ = copy


def reading(name):
    real = getattr(dict, name)

    def read(self, *args):
        return real(self.fetch(), *args)

    read.__name__ = name
    return read


def changing(name):
    real = getattr(States, name)

    def change(self, *args, **kwargs):
        try:
            return real(self, *args, **kwargs)
        finally:
            left = {key: x for key, x in self.places.items() if x.holds(dict.get(self, key))}
            self.places, self.changed = left, self.changed or len(left) < len(self.places)

    change.__name__ = name
    return change


for name in "items", "values", "pop", "popitem", "setdefault", "__eq__", "__ne__", "__or__", "__ror__", "__repr__":
    setattr(States, name, reading(name))
for name in "__setitem__", "__delitem__", "pop", "popitem", "update", "clear", "__ior__":  # what a place holds would stay
    if hasattr(dict, name):
        setattr(States, name, changing(name))
States.__hash__ = None
