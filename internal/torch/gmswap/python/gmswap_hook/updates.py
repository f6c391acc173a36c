"""Updates the parameters of an optimizer as soon as their gradients are complete."""

import weakref

from . import say

# The classes of torch.optim that update each parameter by itself.
SEPARATE = ("SGD", "Adam", "AdamW", "Adamax", "NAdam", "RAdam", "Adagrad", "Adadelta", "RMSprop", "ASGD", "Rprop", "Adafactor")
STEPS = 2  # that are watched
SEVERAL = "several backward passes come before a step()"


class Updates(object):
    """The updates of an optimizer. Nothing is changed in the steps that are watched. If nothing in them was in the way of early updates,
    parameters are updated early from then on. What is in the way later ends the program: what was updated cannot be had back."""

    def __init__(self, gradients, optimizer):
        self.handles = []
        self.gradients, self.optimizer = gradients, weakref.ref(optimizer, lambda _: self.close())
        self.name = type(optimizer).__name__
        self.reasons = []  # why there are no early updates
        self.steps = 1  # that have ended; after the first one this was made
        self.watched = self.early = 0  # of these
        self.seen = None  # ids of parameters that had gradients in all steps that were watched
        self.fired = {}  # bytes of the gradients that became complete in this step, by id of the parameter
        self.ready = None  # ids of parameters that are updated early
        self.places = None  # groups, by id of the parameter, of a step in which there are gradients
        self.settings = self.stream = None
        self.most = self.sum = 0  # bytes of gradients that were there at a time, and of all those of a step
        self.live = {}  # gradients that are there
        self.hooked = set()  # ids of the parameters that are watched; step() updates others, which are frozen or came later
        try:
            self.watch(optimizer, list(each(optimizer)))
        except Exception as e:
            self.reasons.append(say.reason(e))

    def watch(self, optimizer, parameters):
        self.reasons += filter(None, (unfit(self.gradients, optimizer, parameters),))
        for p in parameters:
            if p.requires_grad and not self.reasons:
                self.handles.append(p.register_post_accumulate_grad_hook(self.complete))
                self.hooked.add(id(p))

    def differs(self, why):
        """Takes down what is in the way of early updates."""
        if self.ready is None:
            self.reasons.append(why)
        else:
            raise RuntimeError("gmswap: %s: %s has changed parameters early, and cannot undo that; leave out --early-updates" % (
                why, self.name))

    def decline(self):
        """Leaves the optimizer alone."""
        say.once("no early updates by %s: %s" % (self.name, min(self.reasons, key=lambda why: why != SEVERAL)))
        self.remove()

    def remove(self):
        for handle in self.handles:
            handle.remove()
        self.gradients.release(self)

    def close(self):
        """Called when the optimizer is gone."""
        self.remove()
        self.gradients.account(self)

    # A step.

    def complete(self, p):
        """Called when the gradient of a parameter is complete."""
        optimizer = self.optimizer()
        if optimizer is None:
            return
        if not self.fired:
            self.open(optimizer)
        gradient = self.gradients.get(p)
        why = self.amiss(p, gradient)
        if why:
            self.differs(why)
            self.fired.setdefault(id(p), 0)
        else:
            self.count(p, gradient)
        del gradient
        self.gradients.complete(p, self)
        if self.ready is not None and id(p) in self.ready and id(p) in self.places:
            self.update(optimizer, p)

    def open(self, optimizer):
        self.places = {id(p): group for group in optimizer.param_groups for p in group["params"]}
        self.settings = settings(optimizer)
        self.stream = None
        self.live = {}

    def amiss(self, p, gradient):
        """Returns what is wrong with a gradient, "" for nothing."""
        stream = self.gradients.stream(p)
        self.stream = stream if self.stream is None else self.stream
        for wrong, why in (
            (id(p) in self.fired, SEVERAL),
            (self.gradients.owed(p), "gradients are kept from step to step, or set to zero instead of None"),
            (gradient.layout is not self.gradients.torch.strided or type(gradient) is not self.gradients.torch.Tensor,
             "gradients are sparse, or of a type of their own"),
            (gradient.requires_grad, "gradients have gradients (create_graph)"),
            (len(p._post_accumulate_grad_hooks) != 1, "parameters have post-accumulate-grad hooks"),
            (not self.gradients.guarded, "a backward pass is not begun by torch.autograd.backward"),
            (stream != self.stream, "gradients come on several streams"),
        ):
            if wrong:
                return why
        return ""

    def count(self, p, gradient):
        storage = gradient.untyped_storage()
        self.fired[id(p)] = storage.nbytes()
        self.live = {key: x for key, x in self.live.items() if not x[0].expired()}
        self.live[storage._cdata] = self.gradients.weak(storage), storage.nbytes()
        if self.ready is not None:
            self.most = max(self.most, sum(nbytes for _, nbytes in self.live.values()))

    def update(self, optimizer, p):
        """Has the optimizer's own step change a parameter, and drops the gradient."""
        group, groups = self.places[id(p)], optimizer.param_groups
        parameters = group["params"]
        optimizer.param_groups, group["params"] = [group], [p]
        try:
            with self.gradients.unguarded():
                type(optimizer).step(optimizer)
        finally:
            optimizer.param_groups, group["params"] = groups, parameters
        self.gradients.set(p, None)

    def begin_step(self, optimizer, args, kwargs):
        """Called when the program calls step()."""
        if args[1:] or kwargs:
            self.differs("step() has a closure")
        if self.fired and settings(optimizer) != self.settings:
            self.differs("hyper-parameters or hooks change between the backward pass and step()")
        if getattr(optimizer, "grad_scale", None) is not None or getattr(optimizer, "found_inf", None) is not None:
            self.differs("a GradScaler has step() scale gradients")
        for p in each(optimizer):
            if id(p) in self.fired:
                if self.stream != self.gradients.stream(p):
                    self.differs("gradients come on another stream than that of step()")
            elif id(p) not in self.hooked:
                continue
            elif self.gradients.owed(p):
                self.differs("gradients are kept from step to step")
            elif self.gradients.get(p) is not None:
                self.differs("a gradient does not come from the backward pass alone")

    def end_step(self):
        """Called when a step() that the program called has ended."""
        self.steps += 1
        if self.fired and self.ready is not None:
            self.early += 1
            self.sum = max(self.sum, sum(self.fired.values()))
        elif self.fired:
            self.watched += 1
            self.seen = set(self.fired) if self.watched == 1 else self.seen & set(self.fired)
            if self.watched == STEPS and not self.reasons:
                self.ready = self.seen
        self.fired, self.places, self.live = {}, None, {}

    def account(self):
        early = "%d of %d steps of %s with early updates: " % (self.early, self.steps, self.name)
        if self.early:
            say.once(early + "at most %d bytes of gradients at a time, of %d" % (self.most, self.sum))
        else:
            say.once(early + "the first %d are watched" % (1 + STEPS))


def each(optimizer):
    for group in optimizer.param_groups:
        yield from group["params"]


def settings(optimizer):
    """Returns what decides how an optimizer updates, but for its state."""
    values = [{k: version(v) for k, v in group.items() if k != "params"} for group in optimizer.param_groups]
    return values, hooked(optimizer)


def version(value):
    """Returns what is equal as long as a value stays: that of a tensor is not looked at, as a GPU would be waited for."""
    if isinstance(value, (list, tuple)):
        return [version(v) for v in value]
    return (id(value), value._version) if hasattr(value, "_version") else value


def hooked(optimizer):
    """Returns whether something of the program's has a part in step()."""
    step = vars(optimizer).get("step")
    replaced = step is not None and not any(hasattr(step, name) for name in ("_wrapped_by_lr_sched", "_with_counter"))
    return replaced or bool(optimizer._optimizer_step_pre_hooks or optimizer._optimizer_step_post_hooks)


def known(torch, optimizer):
    """Returns whether an optimizer is one of those that update each parameter by itself."""
    return type(optimizer) in [getattr(torch.optim, name, None) for name in SEPARATE]


def unfit(gradients, optimizer, parameters):
    """Returns why an optimizer cannot update early, "" if it may be able to."""
    torch = gradients.torch
    plain = (torch.Tensor, torch.nn.Parameter)
    if not known(torch, optimizer) and not gradients.apart(optimizer):
        return "it is none of torch.optim's that update each parameter by itself"
    for wrong, why in (
        (lambda: gradients.compiled, "torch.compile is used"),
        (lambda: gradients.averaged(parameters), "DistributedDataParallel sums up gradients of many parameters together"),
        (lambda: hooked(optimizer), "its step() has hooks, or is replaced"),
        (lambda: gradients.strangers(), "there are hooks on the steps of all optimizers"),
        (lambda: any(group.get("differentiable") for group in optimizer.param_groups), "it is differentiable"),
        (lambda: any(type(p) not in plain or p.layout is not torch.strided for p in parameters),
         "parameters are sparse, or of a type of their own"),
        (lambda: len({p.device for p in parameters}) > 1, "parameters are on several devices"),
        (lambda: not all(map(dense, parameters)), "parameters have gaps between their elements"),
        (lambda: not all(p.is_floating_point() for p in parameters), "parameters are no real numbers"),
        (lambda: any(p._post_accumulate_grad_hooks for p in parameters), "parameters have post-accumulate-grad hooks"),
    ):
        if wrong():  # in turn: what is sparse has no strides to look at
            return why
    return ""


def dense(p):
    """Returns whether a tensor's elements are all of a stretch of memory. A gradient has its strides then."""
    expected = 1
    for step, n in sorted((step, n) for step, n in zip(p.stride(), p.shape) if n != 1):
        if step != expected:
            return False
        expected *= n
    return True
