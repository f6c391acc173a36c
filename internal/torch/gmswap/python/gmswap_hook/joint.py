"""The forward and backward pass of a graph that torch.compile makes, as a problem for the planner of what it saves.

Memory is what Inductor allocates: what it computes where it is read has none. An estimate, as what it fuses is known only later.
"""

import operator
import types

from torch.fx.node import map_arg
from torch.utils.flop_counter import flop_registry

from .again import Again, argument

# What an H200 does in a nanosecond: operators are compared by their times, of which only the ratios count.
FLOPS = {1: 800000, 2: 500000, 4: 50000}  # by the bytes of an element
BYTES = 3000
SHARED = 4  # from so many tensors at most is computed again what is read more than once (Inductor's realize_reads_threshold)
LOSS, SINGLE = 3, 4  # tensors as large as what the forward pass returns are taken on the way to its gradients, and the bytes of an element of these
# Whether operators without groups take as much as all that they read, and as all that they make, on the way, for other layouts and workspaces.
TAKEN = {"convolution": (True, False), "convolution_backward": (True, True)}


class Op(object):
    """An operator, with the values that it reads and makes."""

    def __init__(self, ns, reads, makes, forward, able, fused):
        self.reads, self.makes, self.forward = reads, makes, forward
        self.fields = {"ns": ns, "reads": reads, "makes": makes, "able": able and forward, "fused": fused}


class Joint(object):
    """A value is what has memory of its own: the nodes behind it are views of it, or computed from it where they are read."""

    def __init__(self, torch, partitioners, graph, info, saved):
        self.torch, self.graph, self.info, self.saved = torch, graph, info, set(saved)
        self.size, self.told = partitioners._size_of, partitioners.must_recompute
        self.again = Again(torch, partitioners, graph)
        self.kinds = self.again.kinds
        self.late = self.behind(partitioners, graph)
        self.replayed = self.needed(self.saved.__contains__)[1]  # what PyTorch would have the backward pass run
        self.ops = []
        self.values = []  # bytes of each
        self.guessed = False  # what libraries take on the way is counted, by guess
        self.barred = set()  # those that the program has recomputed itself: PyTorch never saves them
        self.inlined = set()  # those that the forward pass computes where it reads them, and the backward pass does not
        self.holders = []  # the node of each, None for a part of a tuple that no node takes out
        self.sources = {}  # of a node: the values that it is read from
        self.loads = {}  # of a node: how Inductor counts what it is read from, parameters and inputs among that
        self.tuples = {}  # of a node that makes several values: these, by their places
        self.outputs = set()
        tangents = []
        for node in graph.nodes:
            self.loads[node] = frozenset([node])
            self.sources[node] = self.add(node)
            if node.op == "placeholder":
                tangents += self.sources[node]
        self.lose(tuple(tangents))
        self.barred.difference_update(v for node in self.saved for v in self.sources.get(node, ()))

    def behind(self, partitioners, graph):
        """Returns the nodes that only the backward pass can compute: they depend on its gradients."""
        late, told = set(), getattr(partitioners, "_must_be_in_backward", None)
        for node in graph.nodes:
            if node.op == "output":
                continue
            given = node.op == "placeholder" and node not in self.info.inputs
            if given or late.intersection(node.all_input_nodes) or told is not None and told(node):
                late.add(node)
        return late

    def is_forward(self, node):
        """Returns whether a node can be saved: the forward pass computes it, or can."""
        return self.info.is_required_fw(node) or node not in self.late

    def lose(self, tangents):
        """Notes what runs between both passes: the loss, in single precision, unless the forward pass returns one."""
        counts = [self.elements(self.holders[v]) for v in tangents]
        self.values.append(LOSS * SINGLE * sum(counts) if 1 not in counts else 0)
        self.holders.append(None)
        last = max((i for i, op in enumerate(self.ops) if not op.forward and set(op.makes) & set(tangents)), default=-1)
        self.ops.insert(last + 1, Op(0, tangents, (len(self.values) - 1,), False, False, False))

    def request(self, limit):
        """Returns the problem, with what PyTorch saves, as a JSON object."""
        ops = sorted(self.ops, key=lambda op: not op.forward)
        forward = [op for op in ops if op.forward]
        made = {v for op in forward for v in op.makes}
        saved = {v for node in self.saved for v in self.sources.get(node, ()) if v in made}
        how = {"kept": self.outputs, "inlined": self.inlined, "barred": self.barred}
        values = [dict({name: v in those for name, those in how.items()}, bytes=n) for v, n in enumerate(self.values)]
        return {"ops": [op.fields for op in ops], "values": values, "forward": len(forward), "saved": sorted(saved), "limit": max(0, int(limit))}

    def nodes(self, values):
        """Returns the nodes to save for values to be saved, with the inputs that the backward pass needs."""
        holders = {self.holders[v] for v in values}
        found, run = self.needed(lambda node: node in holders or isinstance(node.meta.get("val"), self.torch.SymInt))
        for node in run:
            if not self.is_free(node) and not self.able(node):
                raise ValueError("%s cannot be recomputed" % node)
        # PyTorch has random numbers and collectives once more that the program has recomputed, and expects them in the backward pass.
        if not run.issuperset(node for node in self.replayed if self.told(node) and self.again.acts(node)):
            raise ValueError("what the program has recomputed is not needed")
        for node in found.intersection(self.again.changed).difference(self.saved):
            if node.op == "placeholder":
                raise ValueError("%s is changed" % node)
        return [node for node in self.graph.nodes if node in found]

    def needed(self, is_saved):
        """Returns the nodes that the backward pass needs from the forward pass, and those of the forward pass that it runs itself."""
        found, run, seen = set(), set(), set()
        pending = [n for n in self.graph.nodes if n in self.late]
        pending += [n for out in self.graph.nodes if out.op == "output" for n in out.all_input_nodes if n in self.info.required_bw_nodes]
        while pending:
            node = pending.pop()
            if node in seen:
                continue
            seen.add(node)
            if node.op == "placeholder":
                if node in self.info.inputs:
                    found.add(node)
            elif node.op == "get_attr":
                pass  # both passes have it
            elif self.is_forward(node) and is_saved(node):
                found.add(node)
            else:
                if self.is_forward(node):
                    run.add(node)
                pending += node.all_input_nodes
        return found, run

    def able(self, node):
        """Returns whether a node can run once more with the same result. Where the program has it recomputed, and PyTorch does so, PyTorch sees to that."""
        return self.told(node) and node in self.replayed or self.again.able(node)

    def is_free(self, node):
        """Returns whether a node only takes something out of another one, or is a number."""
        numbers = self.torch.SymInt, self.torch.SymFloat, self.torch.SymBool, int, float, bool
        return node.target is operator.getitem or self.again.is_view(node) or isinstance(node.meta.get("val"), numbers)

    def add(self, node):
        """Notes a node, and returns the values that it is read from."""
        if node.op == "output":
            self.outputs.update(v for n in node.all_input_nodes for v in self.sources[n])
        if node.op == "placeholder" and "tangents" in str(node.target) and self.is_tensor(node):
            return self.make(node, ())
        if node.op != "call_function" or not isinstance(node.meta.get("val"), (self.torch.Tensor, tuple, list, dict)):
            return ()
        reads = tuple({v: None for n in node.all_input_nodes for v in self.sources[n]})
        if node.target is operator.getitem and node.args[0] in self.tuples:
            return self.part(node)
        if node.target is operator.getitem or self.again.is_view(node) or self.again.name(node) == "copy_":
            self.loads[node] = self.loads[node.all_input_nodes[0]]
            return self.sources[node.all_input_nodes[0]]
        loads = frozenset().union(*(self.loads[n] for n in node.all_input_nodes))
        users = self.users(node)
        if self.is_inlined(node, users, loads):
            self.loads[node] = loads
            return reads
        made = self.make(node, reads)
        if self.is_forward(node) and self.is_inlined(node, [u for u in users if u not in self.late], loads):
            self.inlined.update(made)
        return made

    def make(self, node, reads):
        """Notes an operator, and returns the values that it makes."""
        value = node.meta["val"]
        parts = {None: value}
        if not self.is_tensor(node):
            parts = value if isinstance(value, dict) else dict(enumerate(value))
        makes = {i: len(self.values) + n for n, i in enumerate(i for i, part in parts.items() if isinstance(part, self.torch.Tensor))}
        for i in makes:
            self.values.append(self.size(types.SimpleNamespace(meta={"val": parts[i]})))
            self.holders.append(node if i is None else None)
        if None not in parts:
            self.tuples[node] = makes
        made = tuple(makes.values())
        if self.again.name(node) in TAKEN and argument(node, "groups") == 1:
            read, written = TAKEN[self.again.name(node)]
            given = sum(self.size(n) for n in node.all_input_nodes if self.is_tensor(n))
            self.values.append(read * given + written * sum(self.values[v] for v in made))
            self.holders.append(None)
            made += (len(self.values) - 1,)
            self.guessed = True
        self.ops.append(Op(self.time(node, reads, made), reads, made, self.is_forward(node), self.able(node), self.kinds.is_fusible(node)))
        if self.told(node) and self.able(node):
            self.barred.update(made)
        return tuple(makes.values())

    def part(self, node):
        """Returns the value that a node takes out of a tuple."""
        value = self.tuples[node.args[0]].get(node.args[1])
        if value is None:
            return ()
        self.holders[value] = self.holders[value] or node
        return (value,)

    def is_tensor(self, node):
        return isinstance(node.meta.get("val"), self.torch.Tensor)

    def is_inlined(self, node, users, loads):
        """Returns whether Inductor computes a node where it is read. What PyTorch saves has memory, as has what cannot be recomputed."""
        if not self.is_tensor(node) or not self.kinds.is_fusible(node) or node in self.saved or self.again.name(node) == "cat" or not self.able(node):
            return False
        if any(self.is_tensor(n) and self.elements(n) > self.elements(node) for n in node.all_input_nodes) and self.again.name(node) not in ("index", "gather"):
            return False  # it sums up
        return all(u.op != "output" and self.kinds.is_fusible(u) for u in users) and (len(users) < 2 or len(loads) <= SHARED)

    def users(self, node):
        """Returns the nodes that read a node or a view of it."""
        found, pending = {}, [node]
        while pending:
            for u in pending.pop().users:
                if u.op != "output" and self.again.is_view(u):
                    pending.append(u)
                else:
                    found[u] = None
        return list(found)

    def elements(self, node):
        return self.size(node) // node.meta["val"].dtype.itemsize

    def time(self, node, reads, makes):
        """Returns about how many nanoseconds an operator takes, which is more than none."""
        moved = sum(self.values[v] for v in reads + makes)
        count, flops = flop_registry.get(getattr(node.target, "overloadpacket", None)), 0
        if count is not None:
            args, kwargs = map_arg((node.args, node.kwargs), lambda n: self.shape(n.meta.get("val")))
            try:
                flops = int(count(*args, **kwargs, out_val=self.shape(node.meta["val"])))
            except Exception:
                pass  # some count what tensors hold, and not their shapes
        width = next((self.values[v] // max(1, self.elements(self.holders[v])) for v in makes if self.holders[v] is not None), 2)
        return max(moved // BYTES, flops // FLOPS.get(width, FLOPS[4])) + 1

    def shape(self, value):
        """Returns the shapes of what operators take, as those for which they are compiled now."""
        if isinstance(value, self.torch.Tensor):
            return self.torch.Size(self.shape(n) for n in value.shape)
        if isinstance(value, (tuple, list)):
            return type(value)(self.shape(v) for v in value)
        return value if not isinstance(value, self.torch.SymInt) else getattr(value.node, "hint", None) or 4096
