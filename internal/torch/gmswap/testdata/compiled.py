"""Has Inductor's stand-in order random graphs: python compiled.py GRAPHS. The least peak of each is found by trying all sets that can have run."""

import random
import sys
from types import SimpleNamespace

import torch  # noqa: F401
from torch._inductor import memory


class Buffer(object):
    def __init__(self, name, node, taken, freed):
        self.name, self.defining_op, self.sizes = name, node, (taken, freed)

    def get_name(self):
        return self.name


class Node(object):
    """Draws is a node that draws random numbers; talks, one that takes part in a collective."""

    def __init__(self, name, reads, how=""):
        self.name, self.read_writes, self.buffers = name, SimpleNamespace(reads=[SimpleNamespace(name=r) for r in reads]), []
        tags = [SimpleNamespace(name="nondeterministic_seeded")] if how == "draws" else []
        self.node = SimpleNamespace(op_overload=SimpleNamespace(tags=tags, namespace="_c10d_functional" if how == "talks" else "aten"))
        self.acts = bool(how)

    def get_name(self):
        return self.name

    def get_outputs(self):
        return self.buffers

    def get_nodes(self):
        return [self]

    def make(self, name, taken, freed):
        self.buffers.append(Buffer(name, self, taken, freed))


class Graph(object):
    def __init__(self, rng):
        self.inputs = {"input%d" % i: rng.randrange(1, 30) for i in range(2)}
        self.nodes, names = [], list(self.inputs)
        for i in range(5):
            node = Node("op%d" % i, rng.sample(names, rng.randrange(1, 3)), rng.choice(("", "", "", "draws", "talks")))
            self.nodes.append(node)
            if rng.random() < 0.7:
                node.make("buf%d" % i, *[rng.randrange(0, 30)] * 2)
                names.append("buf%d" % i)
                continue
            sizes = [rng.randrange(0, 30) for _ in range(2)]
            node.make("all%d" % i, sum(sizes) + rng.choice((0, 0, 40)), 0)
            for j, size in enumerate(sizes):
                part = Node("op%d.%d" % (i, j), ["all%d" % i])
                part.make("buf%d.%d" % (i, j), 0, size)
                self.nodes.append(part)
                names.append("buf%d.%d" % (i, j))
        read = {dep.name for node in self.nodes for dep in node.read_writes.reads}
        self.inputs = {n: size for n, size in self.inputs.items() if n in read}
        self.outputs = {n for n in names if n not in read or rng.random() < 0.2}
        self.buffers = {b.name: b for node in self.nodes for b in node.buffers}
        self.known = {}  # the least peak of what is left, by what has run

    def order(self):
        return memory.reorder_for_peak_memory(self.nodes, self.buffers, {}, self.inputs, graph_outputs=self.outputs)

    def ready(self, node, done):
        waits = [self.buffers[d.name].defining_op for d in node.read_writes.reads if d.name in self.buffers]
        waits += [n for n in self.nodes[:self.nodes.index(node)] if n.acts and node.acts]
        return all(w in done for w in waits)

    def load(self, done, node):
        """Returns the bytes in memory while a node runs behind others."""
        size = 0
        for b in self.buffers.values():
            if b.defining_op in done or b.defining_op is node:
                size += b.sizes[0] - (b.sizes[1] if b.defining_op in done and self.over(b.name, done) else 0)
        return size + sum(n for name, n in self.inputs.items() if not self.over(name, done))

    def over(self, name, done):
        return name not in self.outputs and all(n in done for n in self.nodes if name in [d.name for d in n.read_writes.reads])

    def peak(self, nodes):
        return max(self.load(nodes[:i], node) for i, node in enumerate(nodes))

    def least(self, done=frozenset()):
        """Returns the least peak of all orders in which the rest can run."""
        if done not in self.known:
            ready = [n for n in self.nodes if n not in done and self.ready(n, done)]
            self.known[done] = min((max(self.load(done, n), self.least(done | {n})) for n in ready), default=0)
        return self.known[done]


def main(graphs):
    """Prints of how many graphs the order has the least peak, or stays where that is less by under 1 %, is another one, and breaks a rule."""
    least = moved = wrong = 0
    for seed in range(graphs):
        graph = Graph(random.Random(seed))
        made = graph.order()
        wrong += sorted(map(id, made)) != sorted(map(id, graph.nodes)) or not all(graph.ready(n, made[:i]) for i, n in enumerate(made))
        least += graph.peak(made) == graph.least() or made == graph.nodes and graph.peak(made) * 0.99 <= graph.least()
        moved += graph.peak(made) < graph.peak(graph.nodes)
        wrong += made != graph.nodes and graph.peak(made) >= graph.peak(graph.nodes)
    print("%d least, %d moved, %d wrong" % (least, moved, wrong))


main(int(sys.argv[1]))
