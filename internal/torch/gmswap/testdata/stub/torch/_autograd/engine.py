"""Nodes of the graph, what they save, and the backward pass, which runs in a thread of its own as that of a GPU does."""

import collections
import heapq
import itertools
import math
import queue
import threading

from .. import cuda
from . import hooks

local = threading.local()
_numbers = itertools.count()
_tasks = itertools.count()


def grad_enabled():
    return getattr(local, "grad", True)


def set_grad_enabled(on):
    local.grad = on


def task():
    """Returns the number of the backward pass that this thread is in, -1 for none."""
    return getattr(local, "task", -1)


class Saved(object):
    """A tensor that a node needs."""

    def __init__(self, tensor, output):
        self.output, self.number = output, tensor.grad_fn.number if tensor.grad_fn else -1
        self.version, self.unpack, self.packed = tensor._version, None, None
        if hooks.stack():
            pack, self.unpack = hooks.stack()[-1]
            before = grad_enabled()
            set_grad_enabled(False)
            try:
                self.packed = pack(tensor)
            finally:
                set_grad_enabled(before)
        else:
            self.packed = tensor.detach()
        assert tensor._version == self.version, "a pack hook wrote to its argument"

    def get(self):
        if self.unpack is not None:
            return self.unpack(self.packed)
        if self.packed._version != self.version:
            raise RuntimeError("one of the variables needed for gradient computation has been modified by an inplace operation")
        return self.packed


class Shape(object):
    """What is known of an argument without it."""

    def __init__(self, tensor):
        self._size, self.dtype, self.device = tensor.size(), tensor.dtype, tensor.device

    def size(self):
        return self._size

    def numel(self):
        return math.prod(self._size)


class Node(object):
    def __init__(self, gradient, inputs):
        self.number, self.gradient, self.saved = next(_numbers), gradient, []
        self.inputs = [(t.grad_fn, t if t.grad_fn is None and t.requires_grad else None) for t in inputs]
        self.shapes = [Shape(t) for t in inputs]
        self.stream = cuda.current_stream()

    def save(self, tensor, output=False):
        self.saved.append(Saved(tensor, output))

    def run(self, gradient):
        with cuda.stream(self.stream):
            if any(s is None for s in self.saved):
                raise RuntimeError("Trying to backward through the graph a second time")
            return backward(self)(gradient, [s.get() for s in self.saved])


def backward(node):
    from .._ops import Backward

    return Backward(node)


def edges_to_leaves(root):
    """Returns how many gradients will come to each leaf."""
    counts, left, seen = collections.Counter(), [root], {root}
    while left:
        for node, leaf in left.pop().inputs:
            if leaf is not None:
                counts[leaf] += 1
            elif node is not None and node not in seen:
                seen.add(node)
                left.append(node)
    return counts


def accumulate(leaf, gradient):
    leaf._grad = gradient if leaf._grad is None else leaf._grad + gradient
    for hook in list((leaf._post_accumulate_grad_hooks or {}).values()):
        hook(leaf)


def handed(gradient, before, after):
    """Has a stream wait for another one, whose gradient it uses."""
    if before.cuda_stream != after.cuda_stream and gradient.is_cuda and before.device_index == after.device_index:
        after.wait_stream(before)
        gradient.record_stream(after)


def run(root, gradient, retain_graph, home):
    """Runs a graph backward. Gradients of leaves are added up in the program's stream, home, for which it is that other streams are waited for."""
    streams = {}
    handed(gradient, home, root.stream)
    waiting, heap, seen = {root: gradient}, [(-root.number, root)], {root}
    pending, edges = {}, edges_to_leaves(root)
    while heap:
        _, node = heapq.heappop(heap)
        streams[node.stream.device_index, node.stream.cuda_stream] = node.stream
        gradients = node.run(waiting.pop(node))
        if not retain_graph:
            node.saved = [None] * len(node.saved)
        for (edge, leaf), g in zip(node.inputs, gradients):
            if leaf is not None:
                handed(g, node.stream, home)
                with cuda.stream(home if g.is_cuda and g.device.index == home.device_index else node.stream):
                    pending[leaf] = pending[leaf] + g if leaf in pending else g
                    edges[leaf] -= 1
                    if edges[leaf] == 0:
                        accumulate(leaf, pending.pop(leaf))
            elif edge is not None:
                handed(g, node.stream, edge.stream)
                with cuda.stream(edge.stream):
                    waiting[edge] = waiting[edge] + g if edge in waiting else g
                if edge not in seen:
                    seen.add(edge)
                    heapq.heappush(heap, (-edge.number, edge))
    return streams.values()


def follow(streams):
    """Has the program's stream wait for those in which gradients were made."""
    for s in streams:
        current = cuda.current_stream(s.device_index)
        if s.cuda_stream != current.cuda_stream:
            current.wait_stream(s)


class Worker(threading.Thread):
    """The thread of backward passes."""

    def __init__(self):
        super(Worker, self).__init__(daemon=True)
        self.work = queue.Queue()

    def run(self):
        from ..utils import _python_dispatch

        while True:
            call, state, modes, answer = self.work.get()
            local.task, local.grad, hooks.local.stack, hooks.local.disabled = next(_tasks), False, state, None
            _python_dispatch.local.modes = modes
            try:
                answer.put((call(), None))
            except BaseException as e:
                answer.put((None, e))
            local.task, hooks.local.stack, _python_dispatch.local.modes = -1, [], []
            del call, state, modes, answer


_worker = None


def in_thread(call):
    from ..utils import _python_dispatch

    global _worker
    if task() != -1:
        return call()  # within a backward pass
    if _worker is None or not _worker.is_alive():
        _worker = Worker()
        _worker.start()
    answer = queue.Queue()
    _worker.work.put((call, list(hooks.stack()), list(_python_dispatch.modes()), answer))
    result, error = answer.get()
    try:
        if error is not None:
            raise error
        return result
    finally:
        del error  # and with it the graph, which its traceback knows
