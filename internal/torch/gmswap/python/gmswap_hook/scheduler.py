"""The nodes of Inductor's scheduler as a problem for the planner of orders.

Memory is what Inductor's own estimate counts: buffers that nodes allocate, until the last node that waits for them, and inputs that can be freed.
"""

import itertools


class Problem(object):
    """Node i of an order is operator i + 1. Before all of them an operator begins with the inputs, and behind them one ends with the outputs."""

    def __init__(self, nodes, outputs):
        self.nodes, self.outputs = nodes, outputs
        self.number = {node: i for i, node in enumerate(nodes, 1)}
        self.end = len(nodes) + 1
        self.before = {pair for i in self.number.values() for pair in ((0, i), (i, self.end))}
        self.tensors = []  # bytes, and the operators that touch them
        self.inputs = {}  # those that can be freed, by name
        for node in nodes:
            self.wait(node)
        self.keep_order()
        self.allocate()

    def wait(self, node):
        """Notes the nodes that a node waits for, and those that wait for it."""
        here = self.number[node]
        pairs = [(self.number[p], here) for p in node.mpi_node.pred_nodes if p is not node]
        pairs += [(here, self.number[s]) for s in node.mpi_node.succ_nodes if s is not node]
        for buffer in node.get_outputs():
            followers = getattr(buffer.mpi_buffer, "succ_nodes_for_ordering", ())
            pairs += [(here, self.number[s]) for s in followers if s is not node]
        if any(first > second for first, second in pairs):
            raise ValueError("%s runs before a node that it waits for" % node.get_name())
        self.before.update(pairs)

    def keep_order(self):
        """Keeps nodes in order that do more than their buffers tell: they draw random numbers, or take part in collectives."""
        last = None
        for node in self.nodes:
            if any(acts(part) for part in node.get_nodes()):
                if last is not None:
                    self.before.add((last, self.number[node]))
                last = self.number[node]

    def allocate(self):
        """Notes the tensors. A buffer with several outputs allocates what these free."""
        made = {b.get_name(): b for node in self.nodes for b in node.get_outputs()}
        lacking = {}  # bytes that a buffer allocates and none of its outputs is known to free
        for node in self.nodes:
            for b in node.get_outputs():
                if b.mpi_buffer.size_alloc and not b.mpi_buffer.size_free:
                    lacking[b.get_name()] = [b.mpi_buffer.size_alloc, self.number[node]]
            for b in node.mpi_node.pred_buffers:
                if b.get_name() not in made:
                    self.inputs[b.get_name()] = b
        for node in self.nodes:
            for b in node.get_outputs():
                taken, freed = b.mpi_buffer.size_alloc, b.mpi_buffer.size_free
                if taken == freed:
                    self.tensor(freed, b, {self.number[node]})
                elif not taken:
                    whole = lacking[parent(b, made, lacking)]
                    whole[0] -= freed
                    self.tensor(freed, b, {whole[1], self.number[node]})
                elif freed:
                    raise ValueError("%s takes %d bytes and frees %d" % (b.get_name(), taken, freed))
        for size, number in lacking.values():
            if size < 0:
                raise ValueError("outputs free more than was allocated")
            self.add(size, {number, self.end})
        for b in self.inputs.values():
            self.tensor(b.mpi_buffer.size_free, b, {0})

    def tensor(self, size, buffer, operators):
        operators.update(self.number[node] for node in buffer.mpi_buffer.succ_nodes)
        if buffer.get_name() in self.outputs:
            operators.add(self.end)
        self.add(size, operators)

    def add(self, size, operators):
        if size:
            self.tensors.append((int(size), sorted(operators)))

    def request(self, limit):
        return {"ops": self.end + 1, "before": sorted(self.before), "limit_ns": int(limit * 1e9),
                "tensors": [{"bytes": size, "ops": operators} for size, operators in self.tensors]}

    def peak(self, order):
        """Returns the most bytes in memory at once in an order of the operators."""
        place = {operator: i for i, operator in enumerate(order)}
        change = [0] * (len(order) + 1)
        for size, operators in self.tensors:
            places = [place[o] for o in operators]
            change[min(places)] += size
            change[max(places) + 1] -= size
        return max(itertools.accumulate(change))


def parent(buffer, made, lacking):
    """Returns the name of the buffer that allocates what a buffer frees."""
    name = buffer.get_name()
    while name not in lacking:
        name = next(d.name for d in made[name].defining_op.read_writes.reads if d.name in made and not made[d.name].mpi_buffer.size_free)
    return name


def acts(node):
    operator = getattr(getattr(node, "node", None), "op_overload", None)
    tags = [getattr(tag, "name", "") for tag in getattr(operator, "tags", ())]
    return "nondeterministic_seeded" in tags or "c10d" in str(getattr(operator, "namespace", ""))
