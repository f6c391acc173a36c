"""Sees what a program's models save for the backward pass, and where they begin and end."""

import threading
import weakref


class Hooks(object):
    """Calls a runtime from PyTorch's hooks: begin and end of an outermost module's forward pass, pack and unpack of tensors.

    While a step is recorded all modules are watched, later only those that were outermost: a hook on all costs each of them time.
    """

    def __init__(self, torch, runtime):
        self.torch, self.runtime = torch, runtime
        self.local = threading.local()
        self.push = torch._C._autograd._push_saved_tensors_default_hooks
        self.pop = torch._C._autograd._pop_saved_tensors_default_hooks
        self.roots = weakref.WeakSet()
        self.handles, self.everywhere = [], False
        self.watch_all()

    def watch_all(self):
        self.remove()
        module = self.torch.nn.modules.module
        self.handles = [module.register_module_forward_pre_hook(self.enter), module.register_module_forward_hook(self.leave, always_call=True)]
        self.everywhere = True

    def watch_roots(self):
        self.remove()
        for root in self.roots:
            self.handles.append(root.register_forward_pre_hook(self.enter, prepend=True))
            self.handles.append(root.register_forward_hook(self.leave, always_call=True))
        self.everywhere = False

    def remove(self):
        for handle in self.handles:
            handle.remove()
        self.handles = []

    def enter(self, module, args):
        local = self.local
        depth = getattr(local, "depth", 0)
        local.depth = depth + 1
        if depth == 0:
            local.inside = local.pushed = False
            if not self.torch.is_grad_enabled() or self.torch._C._current_graph_task_id() != -1:
                return  # an evaluation, or computed again by a backward pass
            local.inside = True
            local.pushed = self.runtime.begin(module)
            if local.pushed:
                self.push(self.runtime.pack, self.runtime.unpack)
        if local.inside:
            self.runtime.entered(module)

    def leave(self, module, args, output):
        local = self.local
        local.depth = depth = max(0, getattr(local, "depth", 1) - 1)
        if not getattr(local, "inside", False):
            return
        self.runtime.left(module)
        if depth > 0:
            return
        local.inside = False
        if local.pushed:
            self.pop()
            local.pushed = False
        self.roots.add(module)
        self.adjust()

    def adjust(self):
        """Watches what the runtime has use for from now on."""
        if self.runtime.finished():
            self.remove()
        elif self.runtime.watching() != self.everywhere:
            self.watch_all() if self.runtime.watching() else self.watch_roots()
