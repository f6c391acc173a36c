"""What torch.compile saves of a graph for its backward pass, and what it recomputes: less is saved where there is no room for it."""

import atexit
import functools
import json
import os
import sys

from . import say
from .again import Again
from .library import Library
from .settings import Settings
from .start import leave_mark

MODULE = "torch._functorch.partitioners"
MIB, GIB = float(1 << 20), float(1 << 30)


def watch(partitioners, environ):
    """Wraps choose_saved_values_set of AOTAutograd's module, if it is as expected."""
    real = getattr(partitioners, "choose_saved_values_set", None)
    if real is None or not hasattr(partitioners, "_size_of"):
        return  # before 2.4 nothing says how much is to be saved
    settings = Settings(environ)
    if settings.dry or settings.all:
        return
    partition = Partition(sys.modules["torch"], partitioners, settings.device, settings.folder, environ.get("GM_LIB"))

    @functools.wraps(real)
    def choose_saved_values_set(joint_graph, node_info, memory_budget=1):
        return partition.choose(functools.partial(real, joint_graph, node_info), joint_graph, node_info, memory_budget)

    partitioners.choose_saved_values_set = choose_saved_values_set
    # What is kept of graphs that were compiled does not say for which limit.
    partitioners.config.enable_autograd_cache = False


class Partition(object):
    """Knows what room there is for a graph: under a limit, or on the whole device where that is 0."""

    TRIES = 6
    STATES = 2  # of an optimizer, for each parameter, as long as there are none
    GROWS = 2  # by which graphs for all sizes may be run with larger ones than they were compiled with
    MARGIN = 16  # the part of the room that is left where a part of the memory is guessed
    LOST = 32  # the part of the limit that the allocator may lose between tensors: it takes whole pages of 2 MiB
    PLACE = "cuda"  # the type of the device that the limit is of

    def __init__(self, torch, partitioners, limit, folder="", library=None):
        self.torch, self.partitioners, self.limit, self.folder, self.library = torch, partitioners, limit, folder, library
        self.size = partitioners._size_of
        self.graphs = []  # of those that recompute more: the bytes that they save, and that they would have saved
        self.reason = ""  # why the planner did not choose
        self.pid = os.getpid()
        atexit.register(self.end)
        self.stepped = False  # an optimizer has made its states
        try:
            from torch.optim.optimizer import register_optimizer_step_post_hook
        except ImportError:
            return  # before 2.0
        register_optimizer_step_post_hook(self.note_step)

    def note_step(self, optimizer, args, kwargs):
        self.stepped = True

    def choose(self, real, graph, info, budget):
        """Returns the values to save. real chooses them, by the share of what it saves at most."""
        values = real(budget)
        try:
            room = self.room(info)
            if room is None:
                return values
            leave_mark(self.folder)
            try:
                return self.planned(graph, info, values, room)
            except Exception as e:
                self.reason = "%s: %s" % (type(e).__name__, say.reason(e))
            return self.fewer(real, graph, info, values, budget, room)
        except Exception as e:
            say.once("compiled: what is saved is PyTorch's choice: %s: %s" % (type(e).__name__, say.reason(e)))
            return values

    def planned(self, graph, info, values, room):
        """Returns the planner's choice, which takes the least time of those that there is room for."""
        from .joint import Joint

        grows = self.grows(info)
        joint = Joint(self.torch, self.partitioners, graph, info, values)
        limit = max(0, room - (room // self.MARGIN if joint.guessed else 0)) // grows
        if sum(joint.values) <= limit:
            return values
        answer = json.loads(self.ask(json.dumps(joint.request(limit)).encode()))
        if answer["peak"] > limit:
            say.once("compiled: a graph takes %.0f MiB by estimate, however little it saves, and there is room for %.0f"
                     % (answer["peak"] / MIB, limit / MIB))
        if answer["peak"] >= answer["before"]:
            return values
        chosen = joint.nodes(answer["saved"])
        self.graphs.append((self.saved(chosen, info) // grows, self.saved(values, info) // grows))
        return chosen

    def ask(self, request):
        return Library(self.library).partition(request)

    def fewer(self, real, graph, info, values, budget, room):
        """Returns values that take no more than there is room for beside the largest tensors, or the fewest that are found."""
        plain = saved = self.saved(values, info)
        share, room = budget, max(0, room - 2 * self.largest(graph) * self.grows(info))
        again = Again(self.torch, self.partitioners, graph)
        if saved > room:
            say.once("compiled: what is saved is chosen by its size alone: " + self.reason)
        for _ in range(self.TRIES):
            if saved <= room:
                break
            share *= min(0.8, max(0.1, room / float(saved)))
            others = real(share)
            if self.saved(others, info) < saved and not self.differs(again, graph, info, values, others):
                values, saved = others, self.saved(others, info)
        if saved < plain:
            grows = self.grows(info)
            self.graphs.append((saved // grows, plain // grows))
        return values

    def differs(self, again, graph, info, plain, values):
        """Returns whether the backward pass would recompute something to another result if these values are saved, and not PyTorch's."""
        plain, told = set(plain), self.partitioners.must_recompute
        before, (seen, run) = self.ran(graph, info, plain)[1], self.ran(graph, info, set(values))
        if any(node in again.changed and node not in plain for node in seen):
            return True
        # What the program itself has recomputed PyTorch replays, if it recomputes it anyway.
        return any(again.differs(node) for node in run if not told(node)) or any(again.acts(node) for node in run ^ before if told(node))

    @staticmethod
    def ran(graph, info, kept):
        """Returns the nodes that the backward pass needs if some are kept, and those of the forward pass that it runs."""
        seen, run = set(), set()
        pending = [node for node in graph.nodes if node in info.required_bw_nodes and node.op != "output"]
        while pending:
            node = pending.pop()
            if node in seen:
                continue
            seen.add(node)
            if node not in kept:
                if info.is_required_fw(node):
                    run.add(node)
                pending += node.all_input_nodes
        return seen, run

    def end(self):
        """Says at the end of the process what was changed."""
        if os.getpid() == self.pid and self.graphs:
            saved, plain = (sum(sizes) / GIB for sizes in zip(*self.graphs))
            say.line("compiled: %d graphs save %.2f GiB of %.2f for the backward pass, and recompute the rest" % (len(self.graphs), saved, plain))

    def saved(self, values, info):
        """Returns the bytes that values take which are not there anyway."""
        given = set(info.inputs)
        return sum(self.size(v) for v in values if v not in given) * self.grows(info)

    def grows(self, info):
        """Returns by how much a graph may be run with larger tensors."""
        varies = any(isinstance(n, self.torch.SymInt) for node in info.inputs for n in getattr(node.meta.get("val"), "shape", ()))
        return self.GROWS if varies else 1

    def room(self, info):
        """Returns the bytes that are left for a graph, None for one that is not of the device."""
        if not any(self.on_device(node) for node in info.inputs):
            return None
        limit, used = self.memory()
        parameters = sum(self.size(node) for node in getattr(info, "static_lifetime_input_nodes", ()))
        return limit - limit // self.LOST - self.timing() - used - (0 if self.stepped else self.STATES * parameters)

    def largest(self, graph):
        return max((self.size(node) for node in graph.nodes if node.op == "call_function" and self.on_device(node)), default=0)

    def memory(self):
        """Returns the limit, and the bytes that are in use."""
        device = self.torch.cuda.current_device()
        return self.limit or self.torch.cuda.get_device_properties(device).total_memory, self.torch.cuda.memory_allocated(device)

    def timing(self):
        """Returns the bytes that are taken while kernels are timed when they first run: as many as the cache has."""
        return getattr(self.torch.cuda.get_device_properties(self.torch.cuda.current_device()), "L2_cache_size", 0)

    def on_device(self, node):
        value = node.meta.get("val")
        return isinstance(value, self.torch.Tensor) and value.device.type == self.PLACE
