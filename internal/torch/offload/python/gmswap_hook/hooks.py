"""Sees what a program's models save for the backward pass, and where they begin and end."""

import threading


class Hooks(object):
    """Calls a runtime from PyTorch's hooks: begin and end of an outermost module's forward pass, pack and unpack of tensors."""

    def __init__(self, torch, runtime):
        self.torch, self.runtime = torch, runtime
        self.local = threading.local()
        module = torch.nn.modules.module
        self.handles = [
            module.register_module_forward_pre_hook(self.enter),
            module.register_module_forward_hook(self.leave, always_call=True),
        ]
        self.push = torch._C._autograd._push_saved_tensors_default_hooks
        self.pop = torch._C._autograd._pop_saved_tensors_default_hooks

    def remove(self):
        for handle in self.handles:
            handle.remove()

    def enter(self, module, args):
        local = self.local
        depth = getattr(local, "depth", 0)
        if depth == 0:
            if not self.torch.is_grad_enabled() or self.torch._C._current_graph_task_id() != -1:
                local.outside = module  # an evaluation, or computed again by a backward pass
                local.depth = 1
                return
            local.outside = None
            local.pushed = self.runtime.begin(module)
            if local.pushed:
                self.push(self.runtime.pack, self.runtime.unpack)
        local.depth = depth + 1
        if local.outside is None:
            self.runtime.entered(module)

    def leave(self, module, args, output):
        local = self.local
        local.depth = depth = max(0, getattr(local, "depth", 1) - 1)
        if getattr(local, "outside", None) is None:
            self.runtime.left(module)
        if depth == 0:
            if local.outside is None and local.pushed:
                self.pop()
                local.pushed = False
            local.outside = None
