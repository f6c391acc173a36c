"""Which parameters wait on the host, where there is no room for all. Each is on the device while a module that it belongs to runs; whatever else uses it reads the
memory of the host in place."""

import collections
import weakref

from . import say
from .fitting import fitting
from .hooks import partly_compiled
from .modules import parts
from .stands import Stands, Weight
from .watch import Watch, compiling


class Sent(object):
    """Parameters that were sent to the host last, as their Weights, and what lacked before, in which kind of step: it shows in the next one of that kind whether it was a
    help."""

    def __init__(self, weights, lacked, kind):
        self.weights, self.lacked, self.kind = weights, lacked, kind
        self.others = 0  # steps of other kinds since, in which something lacked


class Weights(object):
    """Has parameters wait where requests had memory of the host: first those that no operator uses, then others. Called with memory, between two operators."""

    SMALLEST = 1 << 20  # bytes of one that waits
    APART = 4  # steps between two times that more wait
    LATER = 4  # steps in which something lacked before those wait that operators use: gradients that leave may do
    CALM = 16  # steps in a row in which nothing lacked, after which those are counted anew
    REST = 64  # steps after which it is tried again that more wait, where that was no help, and twice as many each time
    SURE = 2  # steps in a row in which nothing lacked before they come home
    PAST = 64  # steps that there would be room for, too
    OTHERS = 8  # steps of other kinds in which something lacks, after which any kind shows whether it was a help

    def __init__(self, home):
        self.home, self.memory = home, home.memory
        torch = self.memory.torch
        self.compiling, self.stands = compiling(torch), Stands(self)
        kinds = lambda *names: tuple(getattr(torch.nn, name) for name in names if hasattr(torch.nn, name))
        self.sparse = kinds("Embedding", "EmbeddingBag")  # modules that read a few rows of a parameter
        self.whole = kinds("TransformerEncoderLayer", "MultiheadAttention")  # those that PyTorch runs another way where a module in them has hooks
        self.waiting = {}  # Weights, by the ids of their parameters
        self.modules = weakref.WeakKeyDictionary()  # those of modules, and what ends the hooks
        self.barred = {}  # weak references to parameters that do not wait any more, by their ids
        self.nbytes = 0  # of those that wait
        self.looked, self.there = -1, 0  # the step in which it was looked for others there last, and the bytes that were used there then
        self.next = 0  # the step before which no more wait
        self.sent = None  # those that were sent last, until it shows whether that was a help
        self.rest = self.REST
        self.rested = self.strained = 0  # steps in a row in which nothing lacked, and those in which something did
        self.needs = collections.deque(maxlen=self.PAST)  # bytes that the last steps would have needed with nothing moved but parameters that wait now

    def __contains__(self, parameter):
        return id(parameter) in self.waiting

    def begin_step(self, lacked, short, kind=()):
        """Called between two steps, with the bytes of requests that had memory of the host in the last one, how many of them did at a time beside what was
        put there, and what kind of step it was."""
        for weight in list(self.waiting.values()):
            self.stands.put_back(weight)
            if weight.parameter() is None:
                self.forget(weight)
        self.stands.begin_step()
        self.tidy()
        relief, runtime = self.home.relief, self.home.relief.runtime
        if relief.weighed:
            self.needs.append(relief.most)
        if lacked < self.SMALLEST:
            self.rested += 1
            calm = self.rested >= self.CALM
            self.strained = 0 if calm else self.strained
            self.sent = None if calm or self.sent is not None and self.sent.kind == kind else self.sent
            if self.waiting and self.rested >= self.SURE and relief.weighed:
                self.come_home()
            return
        self.rested, self.strained = 0, self.strained + 1
        if runtime.steps < self.next or not self.home.sends():
            return
        sent = self.sent
        if sent is not None and sent.kind != kind and sent.others < self.OTHERS:
            sent.others += 1
            return
        self.sent = None
        if sent is not None and 8 * lacked > 7 * sent.lacked:  # it was no help
            self.next, self.rest = runtime.steps + self.rest, 2 * self.rest
            return self.bring(sent.weights)
        later = self.strained >= self.LATER and runtime.recording is None
        weights = self.lodge(short, used=False) or later and self.lodge(short, used=True)
        if weights:
            self.next, self.sent = runtime.steps + self.APART, Sent(weights, lacked, kind)
            runtime.renew()

    def lodge(self, nbytes, used):
        """Has parameters of so many bytes wait, if there are as many, of those that are used or not. Returns their Weights."""
        if not self.memory.ran:
            return []
        owners, memory = self.owners(), self.memory
        suits = self.served if used else self.unused
        sized = [(memory.size(p), p) for p, modules in owners.values() if suits(p, modules) and self.may(p) and not memory.lies_on_host(p)]
        chosen = fitting(sized, nbytes)
        self.home.move(chosen, host=True)
        weights = [self.wait(*owners[id(p)]) for p in chosen if self.memory.lies_on_host(p)]
        self.need(-sum(weight.nbytes for weight in weights))
        return weights

    def need(self, more):
        """Notes that steps need so many bytes more than the last ones did."""
        for i, need in enumerate(self.needs):
            self.needs[i] = need + more

    def unused(self, p, modules):
        """Returns whether nothing uses a parameter, as far as was seen: no operator of a recorded step was given it, and it is learned and has no gradient."""
        return p.requires_grad and id(p) not in self.memory.used and not any(id(m) in self.memory.ran for m in modules)

    def served(self, p, modules):
        """Returns whether a parameter is used by modules that it belongs to, so that it is on the device then."""
        return any(id(m) in self.memory.ran and not isinstance(m, self.sparse) for m in modules)

    def adopt(self):
        """Has those wait that found no room on the device. Called when a model begins to run; it looks once in a step."""
        relief = self.home.relief
        if not relief.borrows or relief.runtime.step.number == self.looked:
            return
        self.looked, there = relief.runtime.step.number, relief.runtime.lanes.stats().borrowed_bytes
        if there == self.there or not self.home.sends():
            return
        self.there = there
        found = [(p, modules) for p, modules in self.owners().values() if self.may(p) and self.memory.lies_on_host(p)]
        if found:
            for p, modules in found:
                self.wait(p, modules)
            relief.runtime.renew()

    def wait(self, p, modules):
        """Has a parameter be on the device while modules run. Returns its Weight."""
        say.once("parameters wait on the host where memory is short")
        self.waiting[id(p)] = weight = Weight(p, self.memory.size(p))
        self.nbytes += weight.nbytes
        for module in modules:
            self.watch(module, weight)
        return weight

    def come_home(self):
        """Has parameters wait no more, as many as the last steps would have had room for with nothing moved."""
        coming, nbytes, relief = [], 0, self.home.relief
        larger = max(self.needs) - relief.most
        for weight in self.waiting.values():
            if relief.spacious(larger + nbytes + weight.nbytes):
                coming.append(weight)
                nbytes += weight.nbytes
        self.bring(coming)

    def bring(self, weights):
        """Has parameters wait no more, as far as there is room between steps."""
        room, coming = self.home.relief.room(), []
        for weight in weights:
            p = weight.parameter()
            if p is not None and id(p) in self.waiting and weight.nbytes <= room and self.stands.alone(p):
                coming.append(p)
                room -= weight.nbytes
        if not coming or not self.home.movable():
            return
        self.home.move(coming)
        for weight in weights:
            if not weight.is_there(self.memory):
                self.forget(weight)
                self.barred.pop(id(weight.parameter()), None)
        self.home.relief.runtime.renew()

    def owners(self):
        """Returns parameters and the modules that they belong to, by their ids, but for those of models, which run through the whole forward pass."""
        found = {}
        for model in list(self.memory.models):
            modules = [] if partly_compiled(model) else parts(model)
            bare = {id(model)}.union(id(m) for whole in modules if isinstance(whole, self.whole) for m in parts(whole))
            for module in modules:
                for p in module._parameters.values() if id(module) not in bare else ():
                    if p is not None:
                        found.setdefault(id(p), (p, []))[1].append(module)
        return found

    def may(self, p):
        """Returns whether a parameter may wait."""
        memory = self.memory
        barred = self.barred.get(id(p))
        return (memory.movable(p) and id(p) not in self.waiting and (barred is None or barred() is not p) and memory.size(p) > self.SMALLEST and p.is_leaf
                and not p.is_inference() and memory.sole(p) and not memory.addressed(p) and memory.fills(p))

    def watch(self, module, weight):
        """Has a parameter be on the device while a module runs, unless that reads a few rows of it."""
        if isinstance(module, self.sparse):
            return
        if module not in self.modules:
            try:
                handles = [module.register_forward_pre_hook(Watch(self.stands.enter, self.compiling))]
            except RuntimeError:  # a ScriptModule takes none
                return
            leave = Watch(self.stands.leave, self.compiling)
            try:
                handles.append(module.register_forward_hook(leave, prepend=True, always_call=True))
            except TypeError:  # PyTorch 2.0
                handles.append(module.register_forward_hook(leave, prepend=True))
            self.modules[module] = [], handles
        self.modules[module][0].append(weight)
        self.stands.watch()

    def expose(self, tensor):
        """Notes that the program is given what shares a parameter's memory and shows no versions of that, or sets it."""
        weight = self.waiting.get(id(tensor))
        if weight is not None and weight.parameter() is tensor:
            weight.exposures += 1

    def of(self, module):
        """Returns the Weights of a module's parameters that wait."""
        return list(self.modules.get(module, ((),))[0])

    def forget(self, weight):
        """Has a parameter wait no more."""
        p, key = weight.parameter(), next((key for key, w in self.waiting.items() if w is weight), None)
        if key is None:
            return
        del self.waiting[key]
        self.nbytes -= weight.nbytes
        self.stands.forget(weight)
        if p is not None:
            self.need(weight.nbytes)
            self.barred[key] = weight.parameter
        for weights, _ in self.modules.values():
            if weight in weights:
                weights.remove(weight)

    def tidy(self):
        """Takes hooks off modules of which no parameters wait any more."""
        for module, (weights, handles) in list(self.modules.items()):
            if not weights:
                del self.modules[module]
                for handle in handles:
                    handle.remove()
