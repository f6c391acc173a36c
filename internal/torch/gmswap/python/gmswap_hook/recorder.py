"""Records all that a step of a program does, and moves nothing."""

import json
import threading
import weakref

from . import say
from .complete import Complete, Names
from .hooks import partly_compiled
from .ledger import Ledger
from .measure import Gauge
from .places import Places
from .watched import process

ROOM = 1 << 61  # bytes that a request may allow at most: the planner is to write the graph, and its schedule is not followed


class Recorder(object):
    """Stands where a Runtime does. A step lasts from the first model that runs after an update of the parameters to the next such one. The
    step that is recorded comes after steps that do what is done but once, and that show what memory there is."""

    moves = False
    WARM_UP = 2

    def __init__(self, memory, settings, library):
        self.memory, self.settings, self.library = memory, settings, library
        self.places = Places(memory.torch)
        self.ledger = Ledger(memory, self.places, Gauge(memory))
        self.thread = threading.current_thread()
        self.models, self.optimizers = weakref.WeakSet(), weakref.WeakSet()
        self.name, self.steps, self.done = "", 0, False
        self.handle = self.watch_optimizers()

    def watch_optimizers(self):
        try:
            from torch.optim.optimizer import register_optimizer_step_pre_hook
        except ImportError:
            return None  # there is none before 2.0
        return register_optimizer_step_pre_hook(self.optimizer)

    def optimizer(self, optimizer, args, kwargs):
        """Called before each step of an optimizer."""
        if threading.current_thread() is self.thread:
            self.optimizers.add(optimizer)
            self.ledger.update()

    # What hooks call.

    def begin(self, module, given, known):
        if self.done or threading.current_thread() is not self.thread or self.memory.capturing():
            return False
        try:
            self.advance()
            if not self.done:
                self.know(module)
        except Exception as e:
            self.end(say.reason(e))
        return not self.done

    def know(self, module):
        if module not in self.models:
            self.models.add(module)
            self.name = self.name or type(module).__name__
            self.places.know(module)
        self.memory.note_storages(module)

    def guessing(self):
        return False

    def watching(self):
        return not self.done

    def recorded(self):
        return self.steps > 0

    def parting(self):
        return False

    def spent(self):
        return False  # what a backward pass runs is a part of its step

    def finished(self):
        return self.done

    def entered(self, module, args, frame):
        self.places.enter(module)

    def left(self, module):
        self.places.leave()

    # Steps.

    def advance(self):
        """Begins a step, if one is to begin."""
        if self.ledger.mode is None:
            if self.memory.innermost_mode() is not None:
                self.end("the program looks at operators by itself (a TorchDispatchMode)")
                return
            self.ledger.open()
        elif not self.ledger.updated() and self.ledger.wrong is None:
            return
        else:
            self.steps += 1
            if self.ledger.wrong is not None or self.steps > self.WARM_UP:
                self.end(say.reason(self.ledger.wrong) if self.ledger.wrong else "")
                return
        self.memory.begin_step()
        self.places.begin()
        self.ledger.begin()

    def end(self, why=""):
        """Ends the recording, and writes the graph unless there is a reason why not."""
        self.done = True
        self.leave()
        try:
            if not why:
                self.write()
        except Exception as e:
            why = say.reason(e)
        if why:
            say.line("no graph: %s" % why)
        self.ledger.live.clear()

    def leave(self):
        """Takes the program's operators no more. A mode below others stays, and does nothing."""
        if self.handle is not None:
            self.handle.remove()
        if self.ledger.mode is not None and self.memory.innermost_mode() is self.ledger.mode:
            self.ledger.close()
        self.ledger.over = True

    def write(self):
        graph = Complete(self.ledger, Names(self.memory, self.models, self.optimizers)).graph()
        if any(map(partly_compiled, self.models)):
            graph["complete"] = False
            say.line("the graph is not complete: what torch.compile made takes memory by itself")
        graph.update(name=self.name, device=self.memory.name(), process=process(self.memory))
        request = {"graph": graph, "device": ROOM, "host": 0, "policy": "none", "gpus": 1, "record": self.settings.record}
        self.library.plan(json.dumps(request).encode())
