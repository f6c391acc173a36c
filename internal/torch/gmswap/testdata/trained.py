"""A program that trains a small model, and what programs do beside that with optimizers and their states."""

import copy
import io

import torch
from torch import nn

STEPS = 100


def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.LayerNorm(64), *[nn.Linear(64, 64) for _ in range(6)], nn.GELU(), nn.Linear(64, 4))


class Program(object):
    clip = scaler = scheduler = None
    accumulate, set_to_none, closure = 1, True, False
    prepared = staticmethod(lambda model: model)

    def __init__(self, optimizer, groups=False, **options):
        self.model = self.prepared(model())
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
