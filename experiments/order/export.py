"""Writes the complete graph of one training step of a model, from its shapes: nothing is computed, and no memory is taken for tensors.

Usage: gmswap record --all -o GRAPH -- python3 export.py MODEL [--batch N] [--optimizer sgd|adam] [--attention math] [--keep]
                                                     [--over] [--row FILE]

The operators are those that PyTorch runs on the CPU, by gmswap's own recorder. Their durations are a roofline: the greater of FLOPs by RATE
and of bytes that are read and written by BANDWIDTH. What an operator takes within itself is not known and counts nothing.

Without --keep the program holds nothing longer than it needs it: each parameter has an optimizer and drops its gradient behind its update,
as where updates run in the backward pass, and the batch is dropped behind the forward pass. With it one optimizer has all parameters, and
the gradients and the batch stay until the next step. With --over, element-wise operators may write over arguments of the same size, as
compiled code does: the graph says so, and PyTorch's operators do not. --row appends the numbers to a table.

Before anything is written, the graph's peak is compared with that of storages that tell by themselves when they go, in a step of its own.
"""

import argparse
import contextlib
import csv
import json
import os
import sys
import weakref

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

import gmswap_hook.memory
import models
from gmswap_hook import complete, effects, ledger, library, places, recorder

RATE, BANDWIDTH = 67e12, 4.8e12  # FLOP/s of float32 outside of tensor cores and bytes/s: an H200's data sheet
DEVICE = "roofline of 67 TFLOP/s and 4.8 TB/s"


class Memory(gmswap_hook.memory.Memory):
    """Fake tensors of the CPU stand for those of a device, but for the counts of steps that optimizers keep on the host."""

    def __init__(self):
        super().__init__(torch, 0)
        self.place, self.counts = torch.device("cuda", 0), set()

    def plain(self, x):
        return isinstance(x, torch.Tensor) and x.layout == torch.strided

    def here(self, x):
        return self.plain(x) and x.untyped_storage()._cdata not in self.counts

    def name(self):
        return DEVICE

    def capacity(self):
        return 0


class Roofline(object):
    def begin(self):
        pass

    def end(self, begin, function, args, kwargs, result):
        tensors = effects.tensors(torch, (args, kwargs)) + effects.tensors(torch, result)
        moved = sum({t.untyped_storage()._cdata: t.numel() * t.element_size() for t in tensors}.values())
        count = flop_registry.get(getattr(function, "overloadpacket", None))
        flops = count(*args, **kwargs, out_val=result) if count else 0
        return int(max(flops / RATE, moved / BANDWIDTH) * 1e9)

    def results(self, measured):
        return [(ns, None) for ns in measured]


class Book(ledger.Ledger):
    """Notes what element-wise operators make and what they could write that over."""

    def begin(self):
        super().begin()
        self.onto = []  # pairs of storages

    def note(self, call, arguments, given, results, measured):
        super().note(call, arguments, given, results, measured)
        if call.tagged("pointwise") and not effects.mutable(call.function):
            made = self.storages(results, ledger.BEFORE)
            self.onto += [(m, s) for m in made for s in given if s is not m and (s.nbytes, s.dtype) == (m.nbytes, m.dtype)]


class Alive(TorchDispatchMode):
    """Counts operators, views among them, and the bytes of storages that are alive: each tells by itself when it goes."""

    def __init__(self, memory):
        super().__init__()
        self.memory, self.known, self.bytes, self.peak, self.calls = memory, set(), 0, 0, 0

    def add(self, tensor):
        if self.memory.here(tensor):
            storage = tensor.untyped_storage()
            key, nbytes = storage._cdata, storage.nbytes()
            if key not in self.known:
                self.known.add(key)
                self.bytes += nbytes
                weakref.finalize(storage, self.gone, key, nbytes)

    def gone(self, key, nbytes):
        self.known.remove(key)
        self.bytes -= nbytes

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        for t in effects.tensors(torch, (args, kwargs, result)):
            self.add(t)
        self.peak = max(self.peak, self.bytes)
        self.calls += effects.namespace(function) == "aten"
        return result


class Program(object):
    """Trains a model."""

    def __init__(self, arguments):
        self.model, self.loss = models.make(arguments.model)
        self.model.train()
        parameters = list(self.model.parameters())
        groups = [parameters] if arguments.keep else [[p] for p in parameters]
        make = {"sgd": lambda g: torch.optim.SGD(g, lr=0.1, foreach=False), "adam": lambda g: torch.optim.Adam(g, foreach=False)}
        self.optimizers = [make[arguments.optimizer](g) for g in groups]
        self.load, self.keep = lambda: models.load(arguments.model, arguments.batch), arguments.keep
        self.batch = self.load()

    def step(self):
        if self.keep:
            self.optimizers[0].zero_grad()
        self.forward(*self.batch if self.keep else self.take()).backward()
        for optimizer in self.optimizers:
            optimizer.step()
            if not self.keep:
                optimizer.zero_grad()

    def forward(self, inputs, labels):
        return self.loss(self.model(inputs), labels)

    def take(self):
        batch, self.batch = self.batch, None
        return batch

    def next(self):
        """Loads what the next step works on."""
        self.batch = self.batch or self.load()

    def counts(self):
        """Returns the addresses of what optimizers keep on the host."""
        states = (state for o in self.optimizers for state in o.state.values())
        return {state["step"].untyped_storage()._cdata for state in states if "step" in state}


def record(program, memory):
    """Returns the ledger of a step, and the most bytes that were alive in the step before, which does the same."""
    where = places.Places(torch)
    where.know(program.model)
    for m in program.model.modules():
        m.register_forward_pre_hook(lambda m, args: where.enter(m))
        m.register_forward_hook(lambda m, args, out: where.leave())
    book = Book(memory, where, Roofline())
    for o in program.optimizers:
        o.register_step_pre_hook(lambda *_: book.update())
    program.step()  # makes the optimizer's state
    program.next()
    memory.counts = program.counts()
    memory.note_storages(program.model)
    alive = Alive(memory)
    for t in lasting(program):
        alive.add(t)
    with alive:
        program.step()
    program.next()
    book.storages(lasting(program), ledger.BEFORE)
    where.begin()
    book.begin()
    book.open()
    program.step()
    book.close()
    return book, alive


def lasting(program):
    """Returns what is there before a step."""
    yield from program.batch
    for p in program.model.parameters():
        yield p
        if p.grad is not None:
            yield p.grad
    yield from program.model.buffers()
    for o in program.optimizers:
        for state in o.state.values():
            yield from (t for t in state.values() if isinstance(t, torch.Tensor))


def graph(program, memory, book, over):
    """Returns the graph of the step that a book has."""
    made = complete.Complete(book, complete.Names(memory, [program.model], program.optimizers))
    described = made.graph()
    for new, old in book.onto if over else ():
        if id(old) in made.number:  # it does not last
            described["tensors"][made.number[id(new)]].setdefault("over", []).append(made.number[id(old)])
    return described


def peak(described):
    """Returns the most bytes in use of a graph."""
    change = [0] * (len(described["ops"]) + 1)
    for t in described["tensors"]:
        change[t["made"]] += t["bytes"]
        change[t["uses"][-1] + 1] -= t["bytes"]
    live = most = 0
    for op, delta in zip(described["ops"], change):
        live += delta
        most = max(most, live + op["base"])
    return most


def parse():
    p = argparse.ArgumentParser(usage=__doc__)
    p.add_argument("model", choices=models.NAMES)
    p.add_argument("--batch", type=int, default=1)
    p.add_argument("--optimizer", choices=("sgd", "adam"), default="adam")
    p.add_argument("--attention", choices=("math", "fused"), default="fused", help="how scaled_dot_product_attention is computed")
    p.add_argument("--keep", action="store_true", help="keep the gradients until the next step")
    p.add_argument("--over", action="store_true", help="element-wise operators may write over their arguments")
    p.add_argument("--row", metavar="FILE", help="append the numbers to this table")
    return p.parse_args()


def attention(kind):
    if kind == "fused":
        return contextlib.nullcontext()
    from torch.nn.attention import SDPBackend, sdpa_kernel

    return sdpa_kernel(SDPBackend.MATH)


def write(described, arguments):
    """Has gmswap's planner write the graph, in a run of gmswap record."""
    versions = "%s, PyTorch %s" % (models.source(arguments.model), torch.__version__)
    name = "%s, batch %d, %s" % (arguments.model, arguments.batch, arguments.optimizer)
    command = {"command": "%s (%s)" % (" ".join(sys.argv), versions)}
    described.update(name=name, device=DEVICE, shapes=True, process=command)
    file = os.environ["GMSWAP_RECORD"].replace("%p", str(os.getpid()))
    request = {"graph": described, "device": recorder.ROOM, "policy": "none", "gpus": 1, "record": file}
    library.Library(os.environ["GM_LIB"]).plan(json.dumps(request).encode())


def row(arguments, program, described, alive):
    """Returns what the table has: bytes, with the optimizer's states among them, and alone."""
    states = {t.untyped_storage()._cdata: t.untyped_storage().nbytes() for o in program.optimizers for state in o.state.values()
              for key, t in state.items() if key != "step" and isinstance(t, torch.Tensor)}
    return {"model": arguments.model, "batch": arguments.batch, "optimizer": arguments.optimizer, "attention": arguments.attention,
            "keep": int(arguments.keep), "over": int(arguments.over), "operators": len(described["ops"]) - 1, "with_views": alive.calls,
            "peak_bytes": alive.peak, "state_bytes": sum(states.values())}


def append(file, row):
    new = not os.path.exists(file)
    with open(file, "a", newline="") as f:
        w = csv.DictWriter(f, row)
        if new:
            w.writeheader()
        w.writerow(row)


def main():
    arguments = parse()
    with FakeTensorMode(), attention(arguments.attention):
        memory = Memory()
        program = Program(arguments)
        book, alive = record(program, memory)
        described = graph(program, memory, book, arguments.over)
        found = row(arguments, program, described, alive)
    if book.wrong is not None or peak(described) != alive.peak:
        sys.exit("the graph's peak is %d bytes, %d were alive; %s" % (peak(described), alive.peak, book.wrong or ""))
    write(described, arguments)
    if arguments.row:
        append(arguments.row, found)


if __name__ == "__main__":
    main()
