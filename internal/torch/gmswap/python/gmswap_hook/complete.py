"""The complete graph of a step that a ledger has: all memory that the step takes is a tensor of it."""

from .places import Layers
from .ledger import UPDATE


class Names(object):
    """What memory that lasts is called, and the parameters that it belongs to."""

    def __init__(self, memory, models, optimizers):
        self.memory = memory
        self.names, self.owners = {}, {}  # by address
        paths = {}
        for model in models:
            for path, p in model.named_parameters():
                paths[id(p)] = path
                self.add(p, "parameter " + path, path)
                self.add(getattr(p, "grad", None), "gradient " + path, path)
            for path, b in model.named_buffers():
                self.add(b, "buffer " + path, "")
        for optimizer in optimizers:
            for p, state in optimizer.state.items():
                for key, value in state.items():
                    path = paths.get(id(p), "")
                    self.add(value, ("state %s %s" % (key, path)).strip(), path)

    def add(self, tensor, name, path):
        key = self.memory.key(getattr(tensor, "_local_tensor", tensor))  # of a DTensor
        if key:
            self.names.setdefault(key, name)
            self.owners.setdefault(key, path)


class Complete(object):
    """Makes the graph. Its first operator stands for what there is before the step and not behind it."""

    def __init__(self, ledger, names):
        ledger.settle()
        self.ledger, self.names, self.ops = ledger, names, ledger.ops
        self.tensors = [s for s in ledger.dead + list(ledger.live.values()) if s.nbytes and not s.lasts() and s.made < len(self.ops)]
        self.tensors.sort(key=lambda s: s.made)
        self.number = {id(s): i for i, s in enumerate(self.tensors)}
        self.unnamed = {}
        self.measured = [(0, None)] + ledger.gauge.results([op.measured for op in self.ops])  # nanoseconds, and bytes in use or None

    def graph(self):
        paths, bases, layers = self.paths(), self.bases(), Layers()
        ops = [{"name": "begin", "layer": -1, "base": bases[0]}]
        for op, path, base, (ns, _) in zip(self.ops, paths, bases[1:], self.measured[1:]):
            reads, changes = self.states(op)
            ops.append({"name": ("%s %s" % (path, op.name)).strip(), "type": op.type, "layer": layers.number(path), "phase": op.phase, "ns": ns,
                        "base": base, "reads": reads, "changes": changes})
        return {"complete": True, "ops": ops, "tensors": [self.tensor(s, ops) for s in self.tensors]}

    def paths(self):
        """Returns the paths of the operators: in the update those of the parameters."""
        paths, path = [], ""
        for op in self.ops:
            if op.phase == UPDATE:
                path = next(filter(None, (self.names.owners.get(s.key) for s in op.given if s.lasts())), path)
            paths.append(path if op.phase == UPDATE else op.place)
        return paths

    def states(self, op):
        """Returns the names of the states that an operator reads and those that it changes."""
        changes = op.changes | {self.name(s) for s in op.changed if s.lasts() and s.nbytes}
        reads = op.reads | {self.name(s) for s in op.given if s.lasts() and s.nbytes}
        return sorted(reads - changes), sorted(changes)

    def name(self, s):
        name = self.names.names.get(s.key)
        return name or self.unnamed.setdefault(s.key, "memory %d" % len(self.unnamed))

    def tensor(self, s, ops):
        uses = [at + 1 for at in s.uses] or [s.made + 1]
        if uses[-1] < self.last(s) + 1:
            uses.append(self.last(s) + 1)
        made = ops[s.made + 1]
        name = self.names.names.get(s.key, made["name"]) if s.died is None else made["name"]
        return {"name": "%s#%d" % (name, self.number[id(s)]), "dtype": s.dtype, "shape": s.shape, "bytes": s.nbytes, "made": s.made + 1,
                "uses": uses, "changed": [at + 1 for at in s.changes], "layer": made["layer"]}

    def last(self, s):
        """Returns the last operator in whose time a tensor is there."""
        return max(s.uses[-1:] + [s.made, len(self.ops) - 1 if s.died is None else s.died])

    def bases(self):
        """Returns the bytes beside the tensors: what lasts, or where that was measured all that was in use."""
        lasting = sum(s.nbytes for s in self.ledger.live.values() if s.lasts())
        change = [0] * (len(self.ops) + 2)
        for s in self.tensors:
            change[s.made + 1] += s.nbytes
            change[self.last(s) + 2] -= s.nbytes
        bases, live = [], 0
        for (_, peak), delta in zip(self.measured, change):
            live += delta
            bases.append(lasting if peak is None else max(0, peak - live))
        return bases
