"""Which nodes of a graph that torch.compile makes can run once more in its backward pass, with the same result."""

VIEWS = "_unsafe_view", "reshape", "detach", "alias", "lift_fresh"


def draws(torch, node):
    """Returns whether a node draws random numbers. Attention says so even if it drops nothing."""
    if torch.Tag.nondeterministic_seeded not in getattr(node.target, "tags", ()):
        return False
    share = argument(node, "dropout_p")
    return share is None or share != 0


def argument(node, name):
    """Returns an argument of a node by its name, None if it has none."""
    for i, a in enumerate(node.target._schema.arguments):
        if a.name == name:
            return node.kwargs.get(name, node.args[i] if i < len(node.args) else a.default_value)
    return None


class Again(object):
    def __init__(self, torch, partitioners, graph):
        self.torch, self.kinds = torch, partitioners.get_default_op_list()
        self.changed = set(self.changed_in(graph)) | set(self.changed_outside(graph))

    def changed_in(self, graph):
        """Yields the inputs that operators of the graph change: the backward pass would read what they are then."""
        for node in graph.nodes:
            schema = getattr(node.target, "_schema", None)
            if node.op != "call_function" or schema is None or not schema.is_mutable:
                continue
            for i, a in enumerate(schema.arguments):
                if a.alias_info is not None and a.alias_info.is_write:
                    given = node.kwargs.get(a.name, node.args[i] if i < len(node.args) else None)
                    for x in given if isinstance(given, (list, tuple)) else (given,):
                        yield self.root(x)

    def changed_outside(self, graph):
        """Yields the inputs that are changed when the forward pass has run, as far as the graph says it. Autograd sees these changes by itself."""
        told = [d for node in graph.nodes if node.op == "output" for d in node.meta.get("desc") or ()]
        changed = [d.mutated_input for d in told if hasattr(d, "mutated_input")]
        return [node for node in graph.nodes if node.op == "placeholder" and node.meta.get("desc") in changed] if changed else []

    def root(self, node):
        """Returns what a node is a view of."""
        while getattr(node, "op", "") == "call_function" and self.is_view(node):
            node = node.all_input_nodes[0]
        return node

    def is_view(self, node):
        target = node.target
        if self.kinds.is_view(node) or getattr(target, "is_view", False) is True:
            return True
        return getattr(target, "namespace", "") in ("aten", "prims") and self.name(node) in VIEWS

    def name(self, node):
        return str(getattr(node.target, "overloadpacket", node.target)).split(".")[-1]

    def differs(self, node):
        """Returns whether a node would give another result, or change what others read."""
        if self.changed.intersection(map(self.root, node.all_input_nodes)):
            return True
        schema = getattr(node.target, "_schema", None)
        if schema is None:
            return False
        return schema.is_mutable or draws(self.torch, node) or self.counts(node)

    def counts(self, node):
        """Returns whether a node changes running statistics, which its schema does not say."""
        pure = self.name(node).endswith(("functional", "no_training", "backward"))
        return not pure and argument(node, "running_mean") is not None

    def acts(self, node):
        """Returns whether a node is an operator that must run as often as PyTorch has it run, as nobody knows that it could run once more."""
        return isinstance(node.target, self.torch._ops.OpOverload) and not self.able(node)

    def able(self, node):
        """Returns whether a node can run once more: one of PyTorch's own operators that is not to be saved."""
        target = node.target
        if not isinstance(target, self.torch._ops.OpOverload) or target.namespace not in ("aten", "prims"):
            return False
        return getattr(node.meta.get("recompute"), "name", "") != "MUST_SAVE" and not self.differs(node)
