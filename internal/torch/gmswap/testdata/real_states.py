"""Trains small models whose optimizers' states wait on the host between updates, and compares with plain PyTorch to the bit."""

import copy
import gc
import io
import random
import types

import torch
from torch import nn

from gmswap_hook import gradients, loading, stepping
from cpu import Lanes, Memory

torch.set_num_threads(1)
torch.use_deterministic_algorithms(True)

EARLY = {"fused": True}, {"foreach": True}, {"groups": True}
SMALLEST, CHUNK = 1 << 10, 1 << 14  # bytes: of tensors that are moved, and of chunks
STEPS = 100


class Device(Memory):
    """Counts the bytes of states that are there."""

    def here(self, tensor):
        return self.plain(tensor)


class Runtime(object):
    def __init__(self, **lanes):
        self.memory, self.lanes = Device(), Lanes(**lanes)
        self.settings = types.SimpleNamespace(smallest=SMALLEST, window=CHUNK)
        self.relief = types.SimpleNamespace(room=lambda: self.room())
        self.renewals, self.fits = 0, False
        self.room = lambda: 1 << 40

    def idle(self):
        return self.fits

    def renew(self):
        self.renewals += 1


hook = stepping.Stepping(torch)  # of all optimizers; it does nothing without a store


def stored(**lanes):
    """Begins to move states from now on."""
    hook.store = stepping.Store(Runtime(**lanes), hook)
    return hook.store


def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.LayerNorm(64), *[nn.Linear(64, 64) for _ in range(6)], nn.GELU(), nn.Linear(64, 4))


class Program(object):
    clip = scaler = scheduler = None
    accumulate, set_to_none, closure = 1, True, False

    def __init__(self, optimizer, groups=False, **options):
        self.model = model()
        parameters = list(self.model.parameters())
        if groups:
            parameters = [{"params": parameters[::2], "lr": 0.003}, {"params": parameters[1::2], "weight_decay": 0.1}]
        self.optimizer = getattr(torch.optim, optimizer)(parameters, **options)
        self.out = []
        self.steps = 0

    def backward(self, i):
        self.optimizer.zero_grad(set_to_none=self.set_to_none)
        for part in range(self.accumulate):
            torch.manual_seed(100 * i + part)
            loss = self.model(torch.randn(8, 16)).pow(2).mean()
            (self.scaler.scale(loss) if self.scaler else loss).backward()
        return loss

    def step(self, i):
        self.steps += 1
        if self.closure:
            self.out.append(self.optimizer.step(lambda: self.backward(i)).item())
            return
        loss = self.backward(i)
        if self.scaler and i % 7 == 3:
            next(self.model.parameters()).grad[0, 0] = float("inf")
        if self.scaler and self.clip:
            self.scaler.unscale_(self.optimizer)
        if self.clip:
            nn.utils.clip_grad_norm_(self.model.parameters(), self.clip)
        if self.scaler:
            self.scaler.step(self.optimizer)
            self.scaler.update()
        else:
            self.optimizer.step()
        if self.scheduler:
            self.scheduler.step()
        self.out.append(loss.item())

    def results(self):
        yield torch.tensor(self.out)
        yield from self.model.parameters()
        for p in self.model.parameters():
            state = self.optimizer.state[p]
            yield from (torch.as_tensor(state[key]) for key in sorted(state) if state[key] is not None)


def same(a, b):
    a, b = list(a.results()), list(b.results())
    return len(a) == len(b) and all(torch.equal(x, y) for x, y in zip(a, b))


def tensors(state):
    """Returns the tensors of a state that are large enough, wherever they are."""
    return [t for t in dict.values(state) if isinstance(t, torch.Tensor) and t.numel() * t.element_size() >= SMALLEST]


def all_of(state):
    return sum(t.numel() * t.element_size() for t in tensors(state))


def there(optimizer):
    """Returns the bytes of states that are on the device, and of all."""
    states = optimizer.state.values()
    return sum(t.untyped_storage().nbytes() for state in states for t in tensors(state)), sum(map(all_of, states))


def watch(store, program, rng):
    """Has updates need memory that is not there: the states are asked to go, at some moments. Returns the most bytes that were there in an update."""
    most, real = [0], stepping.Steps.update

    def update(steps, optimizer, chunk, run):
        def watched():
            if rng.random() < 0.3:
                with store.memory:
                    store.make_room(1 << 40)
            run()
            if steps.moves and program.steps > 3:
                most[0] = max(most[0], there(optimizer)[0])

        real(steps, optimizer, chunk, watched)

    stepping.Steps.update = update
    return most, lambda: setattr(stepping.Steps, "update", real)


def close(store):
    """Checks that all has been let go of."""
    gc.collect()
    assert store.lanes.held() == 0, "%d bytes of the host are left" % store.lanes.held()
    assert not store.memory.lost


def variants():
    for how in {"foreach": False}, {"foreach": True}, {"fused": True}, {}:
        yield "SGD", dict(how, lr=0.01, momentum=0.9)
        for optimizer in "Adam", "AdamW":
            yield optimizer, how
            yield optimizer, dict(how, amsgrad=True, weight_decay=0.01)
        yield "Adagrad", how
    for optimizer in "Adamax", "NAdam", "RAdam", "Adadelta", "RMSprop", "ASGD", "Rprop":
        for foreach in False, True:
            yield optimizer, {"foreach": foreach}
    yield "RMSprop", {"momentum": 0.9, "centered": True}
    yield "Adafactor", {}
    yield "AdamW", {"groups": True}
    yield "AdamW", {"lr": torch.tensor(0.001), "foreach": False}


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
        hook.store = None
    return program, store, most[0]


def supported(make):
    """Returns whether this PyTorch has such an optimizer, for the CPU."""
    try:
        make().step(0)
    except (AttributeError, RuntimeError, TypeError, ValueError):
        return False
    return True


def check(name, make, steps=STEPS, moved=True, few=True):
    hook.store = None
    if not supported(make):
        return
    plain = make()
    for i in range(steps):
        plain.step(i)
    program, store, most = trained(make, steps)
    here, all = there(program.optimizer)
    if moved and all:
        assert here == 0, "%s: %d bytes of states stay on the device" % (name, here)
        largest = max(all_of(state) for state in program.optimizer.state.values())
        few = 3 * max(CHUNK, largest) if few else all
        assert 0 < most <= few <= all, "%s: %d bytes of %d are there in an update" % (name, most, all)
        assert store.runtime.renewals == 1
    assert same(plain, program), "%s differs" % name
    del program
    close(store)


# What programs do beside.


def scaled(program):
    program.scaler = torch.amp.GradScaler("cpu", init_scale=64.0, growth_interval=5)


def scheduled(program):
    program.scheduler = torch.optim.lr_scheduler.OneCycleLR(program.optimizer, 0.01, total_steps=STEPS + 1)


def clipped(program):
    program.clip = 0.1


def accumulated(program):
    program.accumulate = 3


def closed(program):
    program.closure = True


def zeroed(program):
    program.set_to_none = False


def hooked(program):
    """Counts the steps by hooks, of which a step() calls each once."""
    program.optimizer.register_step_pre_hook(lambda *args: program.out.append(-1.0))
    program.optimizer.register_step_post_hook(lambda *args: program.out.append(-2.0))


def frozen(program):
    """Has parameters without gradients, for some of the time."""
    real = program.step

    def step(i):
        for p in list(program.model.parameters())[4:8]:
            p.requires_grad_(i % 20 >= 5)
        real(i)

    program.step = step


def added(program):
    """Has parameters that come later."""
    real = program.step
    layer = program.model[3]
    for group in program.optimizer.param_groups:
        group["params"] = [p for p in group["params"] if p is not layer.weight]

    def step(i):
        if i == 5:
            program.optimizer.add_param_group({"params": [layer.weight], "lr": 0.01})
        real(i)

    program.step = step


def looking(look):
    """Looks at the states after some steps."""

    def prepare(program):
        real = program.step

        def step(i):
            real(i)
            if i % 9 == 4:
                look(program)

        program.step = step

    return prepare


def read(program):
    state = program.optimizer.state[program.model[3].weight]
    program.out += [state[key].float().abs().sum().item() for key in sorted(state)]
    program.out += [value.float().abs().sum().item() for _, value in sorted(dict(state).items())]
    program.out.append(sum(value.float().sum().item() for value in {**state}.values()))


def changed(program):
    """Changes states in place, and puts others in their place."""
    for n, state in enumerate(list(program.optimizer.state.values())):
        if n % 3 == 0:
            state["exp_avg"].mul_(0.5)
        if n % 3 == 1:
            state["exp_avg"] = state["exp_avg_sq"] * 0.25


def held(program):
    """Holds states over some steps, and sees them change."""
    holds = program.__dict__.setdefault("holds", [])
    program.out += [t.abs().sum().item() for t in holds]
    holds[:] = [state["exp_avg"] for state in list(program.optimizer.state.values())[::4]]
    holds.append(program.optimizer.state[program.model[5].weight]["exp_avg_sq"].view(-1)[7:])


def owned(program):
    """Holds the dictionary of a state that it has made itself, and changes it."""
    state, p = program.optimizer.state, program.model[3].weight
    if not hasattr(program, "mine"):
        program.mine = state[p] = dict(state[p])
    program.mine["exp_avg"] = program.mine["exp_avg"] * 0.5


def saved(program):
    file = io.BytesIO()
    torch.save(program.optimizer.state_dict(), file)
    file.seek(0)
    loaded = torch.load(file)
    assert all(isinstance(state, dict) and type(state).__module__ in ("builtins", "collections") for state in loaded["state"].values())
    program.optimizer.load_state_dict(loaded)


def copied(program):
    before = copy.deepcopy(program.optimizer.state_dict())
    program.step(1000)
    program.optimizer.load_state_dict(before)


def passed_on(program):
    """Goes on with another optimizer."""
    old, program.optimizer = program.optimizer, torch.optim.AdamW(program.model.parameters())
    program.optimizer.load_state_dict(old.state_dict())


def again(program):
    program.optimizer.load_state_dict(program.optimizer.state_dict())


def dropped(program):
    program.optimizer.state.clear()


def prepared(how, optimizer="AdamW", **options):
    def make():
        program = Program(optimizer, **options)
        how(program)
        return program

    return make


def others():
    for how in scheduled, clipped, accumulated, closed, zeroed, hooked, frozen, added:
        yield how.__name__, prepared(how)
    for fused in False, True:
        yield "scaled", prepared(scaled, fused=fused)
        yield "scaled and clipped", prepared(lambda p: (scaled(p), clipped(p)), fused=fused)


def kept():
    """Has room for some of the states after ten steps, and a little less after twenty."""
    store = stored()
    program = Program("AdamW")
    run, stay = store.runtime, []
    run.room = lambda: 7 * CHUNK - there(program.optimizer)[0]
    for i in range(STEPS):
        run.fits = i >= 10
        moved = store.lanes.moved
        program.step(i)
        if i == 0:
            with store.memory:
                store.make_room(1 << 40)
        if i == 20:
            with store.memory:
                assert CHUNK <= store.spare(CHUNK) < 2 * CHUNK
        stay.append((there(program.optimizer)[0], store.lanes.moved - moved))
    hook.store = None
    plain = Program("AdamW")
    for i in range(STEPS):
        plain.step(i)
    most = there(program.optimizer)[1]
    assert stay[9] == (0, most), stay[9]
    assert 3 * CHUNK < stay[19][0] <= 4 * CHUNK and sum(stay[19]) == most, stay[19]
    assert CHUNK < stay[-1][0] <= 3 * CHUNK and sum(stay[-1]) == most, stay[-1]
    assert same(plain, program)
    del program
    close(store)


def loaded():
    """Loads states from the host, from now on in all programs; before the first step and later, and reads them before they are used."""
    loading.Loading.elsewhere = lambda self, param, value: param.requires_grad
    loading.Loading(torch, SMALLEST)

    def resumed(look):
        def prepare(program):
            other = Program("AdamW")
            other.step(0)
            program.optimizer.load_state_dict(other.optimizer.state_dict())
            first = program.optimizer.state[program.model[3].weight]
            assert hook.store is None or dict.get(first, "exp_avg").untyped_storage().nbytes() == 0, "states are not left on the host"
            look(program)

        return prepare

    check("resumed", prepared(resumed(lambda program: None)))
    check("resumed and read", prepared(resumed(read)))
    check("resumed and saved", prepared(resumed(saved)))
    for look in saved, copied, again:
        check("loaded, " + look.__name__, prepared(looking(look)), few=False)


class Own(torch.optim.Optimizer):
    """AdamW with moments of another type, in loops."""

    def __init__(self, parameters, lr=0.001):
        super().__init__(parameters, dict(lr=lr))

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    self.update(group, p, self.state[p])

    def update(self, group, p, state):
        if not state:
            state.update(step=0, first=torch.zeros_like(p, dtype=torch.float64), second=torch.zeros_like(p, dtype=torch.float64))
        state["step"] += 1
        g = p.grad.double()
        state["first"].lerp_(g, 0.1)
        state["second"].mul_(0.999).addcmul_(g, g, value=0.001)
        bias = 1 - 0.9 ** state["step"]
        p.mul_(1 - 0.01 * group["lr"])
        p.add_((state["first"] / (state["second"].sqrt() + 1e-8)).to(p.dtype), alpha=-group["lr"] / bias)


class Lists(Own):
    """The same by operators on lists."""

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            ps = [p for p in group["params"] if p.grad is not None]
            for p in ps:
                self.state[p] or self.state[p].update(first=torch.zeros_like(p), second=torch.zeros_like(p))
            first, second = ([self.state[p][key] for p in ps] for key in ("first", "second"))
            torch._foreach_lerp_(first, [p.grad for p in ps], 0.1)
            torch._foreach_mul_(second, 0.999)
            torch._foreach_addcmul_(second, [p.grad for p in ps], [p.grad for p in ps], value=0.001)
            norm = torch._foreach_sqrt(second)
            torch._foreach_add_(norm, 1e-8)
            torch._foreach_addcdiv_(ps, first, norm, value=-group["lr"])


class Twice(Lists):
    """Has its step() call that of its base."""

    def step(self, closure=None):
        super().step()


class Normed(Own):
    """Scales updates by the norm of all gradients."""

    def step(self, closure=None):
        norm = torch.stack([p.grad.norm() for group in self.param_groups for p in group["params"]]).norm()
        for group in self.param_groups:
            for p in group["params"]:
                p.grad.div_(norm)
        super().step()


class Measured(Own):
    """Looks at a number of each parameter."""

    def update(self, group, p, state):
        if p.grad.norm().item() > 0:
            super().update(group, p, state)


class Counting(Own):
    def step(self, closure=None):
        self.param_groups[0]["lr"] *= 0.99
        super().step()


class Drawing(Own):
    def update(self, group, p, state):
        p.grad.add_(torch.randn_like(p), alpha=0.01)
        super().update(group, p, state)


def foreign():
    """Trains with optimizers that nobody knows, in memory for a part of their states."""
    for kind, moved in (Own, True), (Lists, True), (Twice, True), (Normed, False), (Measured, False), (Counting, False), (Drawing, False):
        setattr(torch.optim, kind.__name__, kind)
        plain, store = Program(kind.__name__), stored()
        program, hook.store = Program(kind.__name__), None
        store.runtime.room = lambda: CHUNK
        for i in range(STEPS):
            plain.step(i)
            hook.store = store
            program.step(i)
            if i == 2:
                with store.memory:
                    store.make_room(1 << 40)
            hook.store = None
        steps = store.optimizers[program.optimizer]
        here, all = there(program.optimizer)
        assert (here == 0 < all) == moved == (not steps.why), "%s: %d bytes of %d stay: %s" % (kind.__name__, here, all, steps.why)
        assert same(plain, program), "%s differs" % kind.__name__
        del program, steps
        close(store)


def early():
    """Updates parameters in the backward pass, from now on in all programs. States come in the order of the backward pass before."""
    plain = [Program("AdamW", **how) for how in EARLY]
    for program in plain:
        for i in range(STEPS):
            program.step(i)
    own = Program("Own")
    for i in range(STEPS):
        own.step(i)
    watch = gradients.Gradients(torch)
    watch.apart, hook.unguarded, hook.early = hook.apart, watch.unguarded, lambda: watch.local.ours
    for how, program in zip(EARLY, plain):
        early_as(how, program, lambda: Program("AdamW", **how))
    early_as("of others", own, lambda: Program("Own"))


def early_as(how, plain, make):
    program, store, most = trained(make)
    steps = store.optimizers[program.optimizer]
    assert steps.count == STEPS and len(steps.turns.before) == len(list(program.model.parameters()))
    here, all = there(program.optimizer)
    assert here == 0 < most < all, "early %s: %d bytes of %d stay, %d were there in an update" % (how, here, all, most)
    assert same(plain, program), "early %s differs" % how
    del program, steps
    close(store)


def main():
    for optimizer, options in variants():
        check("%s %s" % (optimizer, options), lambda: Program(optimizer, **options), 30)
    for name, make in others():
        check(name, make)
    for look in read, changed, saved, copied, again:
        check(look.__name__, prepared(looking(look)), few=False)
    for look in passed_on, dropped, held, owned:  # some stay, or are still to be made
        check(look.__name__, prepared(looking(look)), moved=False)
    kept()
    loaded()
    foreign()
    early()
    print("ok")


main()
