"""A store of states that wait on the host, without a device, and programs that train with it."""

import gc
import random
import types

import torch

from gmswap_hook import stepping, steps as hooked_steps
from gmswap_hook.states import part
from cpu import Lanes, Memory
from trained import STEPS

SMALLEST, CHUNK = 1 << 10, 1 << 14  # bytes: of tensors that are moved, and of chunks


class Runtime(object):
    def __init__(self, **lanes):
        self.memory, self.lanes = Memory(), Lanes(**lanes)
        self.settings = types.SimpleNamespace(smallest=SMALLEST, window=CHUNK)
        self.relief = types.SimpleNamespace(room=lambda: self.room())
        self.renewals, self.fits, self.step, self.steps = 0, False, None, 0
        self.room = lambda: 1 << 40

    def idle(self):
        return self.fits

    def renew(self):
        self.renewals += 1


hook = stepping.Stepping(torch)  # of all optimizers; it does nothing without a store


def stored(**lanes):
    """Begins to move states from now on."""
    hook.stores[0] = store = stepping.Store(Runtime(**lanes), hook)
    return store


def same(a, b):
    a, b = list(a.results()), list(b.results())
    return len(a) == len(b) and all(torch.equal(x, y) for x, y in zip(a, b))


def size(tensor):
    """Returns the bytes of what this rank has of a tensor."""
    return part(tensor).numel() * tensor.element_size()


def tensors(state):
    """Returns the tensors of a state that are large enough, wherever they are."""
    return [t for t in dict.values(state) if isinstance(t, torch.Tensor) and size(t) >= SMALLEST]


def all_of(state):
    return sum(map(size, tensors(state)))


def there(optimizer):
    """Returns the bytes of states that are on the device, and of all."""
    states = optimizer.state.values()
    return sum(part(t).untyped_storage().nbytes() for state in states for t in tensors(state)), sum(map(all_of, states))


def watch(store, program, rng):
    """Has updates need memory that is not there: the states are asked to go, at some moments. Returns the most bytes that were there in an update."""
    most, real = [0], hooked_steps.Steps.update

    def update(steps, optimizer, chunk, run):
        def watched():
            if rng.random() < 0.3:
                with store.memory:
                    store.make_room(1 << 40)
            counts(store)
            run()
            counts(store)
            if steps.moves and program.steps > 3:
                most[0] = max(most[0], there(optimizer)[0])

        real(steps, optimizer, chunk, watched)

    hooked_steps.Steps.update = update
    return most, lambda: setattr(stepping.Steps, "update", real)


def counts(store):
    """Checks that the bytes that can be spared are those that are there."""
    found = store.spared()
    for steps in store.optimizers.values():
        steps.seen = None, 0
    assert store.spared() == found, (store.spared(), found)
    return found


def close(store):
    """Checks that all has been let go of."""
    gc.collect()
    assert store.lanes.held() == 0, "%d bytes of the host are left" % store.lanes.held()
    assert not store.memory.lost


def trained(make, steps=STEPS, **lanes):
    """Trains with states that are moved, and returns the program, the store and the most bytes of states in an update."""
    store = stored(**lanes)
    store.runtime.room = lambda: CHUNK
    program = make()
    most, undo = watch(store, program, random.Random(1))
    try:
        for i in range(steps):
            program.step(i)
    finally:
        undo()
        hook.stores = {}
    return program, store, most[0]


def supported(make):
    """Returns whether this PyTorch has such an optimizer, for the CPU."""
    try:
        make().step(0)
    except (AttributeError, RuntimeError, TypeError, ValueError):
        return False
    return True
