"""The steps of a program: the first are recorded, the others follow a schedule."""

import collections

from . import say
from .alone import Outlook
from .demand import Demand
from .entry import Entry, Parts, Saved, detached, layout, parameter, stayed, stays, untied
from .family import Remaking
from .follow import Follower
from .garbage import Garbage
from .graph import Recording
from .inputs import Inputs
from .known import Known
from .live import Costs
from .measure import Clocks, Scale
from .model import Unsolved
from .needs import dimensions
from .nested import Owner
from .parting import Parting
from .reactive import Reactive
from .second import Second
from .selection import Mark
from .stands import Copied
from .step import NOTHING, Step
from .unseen import Touched
from .watch import by_name
from .watched import Watched


class Runtime(object):
    """Moves the tensors of one device: those of models that one thread of the program runs forward. Any may run them backward."""

    moves = True
    WARM_UP = 1  # steps that are not recorded: they do what is done but once
    TIMED = 2  # so many steps follow the schedule before steps are timed
    RECHECK = 16  # and so many before they are timed again, and then four times as many each time
    DEVIATIONS = 3  # steps that differ before a new schedule is made
    RENEWALS = 3  # times that steps are recorded anew, as others have little in common with those that were
    PATIENCE = 0.1  # seconds that a first schedule is waited for; later ones are taken when they are there
    CROWDED = 4  # steps in a row in which requests found no room, or took long to have it mapped, though they followed a schedule, before others are made
    STRAYED = 4  # steps, of which half differ from the schedule before it is not followed for a while
    GUESSES = 3  # that what is saved between steps is of a model that is not watched, until one is found
    RETRY = 8  # one step of so many follows it nevertheless, as far as it does

    def __init__(self, memory, lanes, settings, planner, report):
        self.memory, self.lanes, self.settings, self.planner, self.report = memory, lanes, settings, planner, report
        self.smallest = settings.smallest
        self.owner, self.step = Owner(memory.torch), None
        self.steps = 0  # that have ended
        self.recording = self.schedule = None
        self.planning = self.arrived = None  # a schedule that is being made, and what is called with it
        self.deviated = 0  # steps in a row that went another way than the schedule, the same
        self.before, self.strayed = (), None  # the sizes of the last step that had a backward pass, and of what the last such step saved
        self.crowded = self.more = 0  # steps in a row that followed a schedule and had too little room, and the parts of the memory that each of them lacked
        self.strange = 0  # steps in a row that have little in common with those that are remembered
        self.renewals = self.RENEWALS  # that are left
        self.fitted = collections.deque(maxlen=self.STRAYED)  # of the last steps, whether they saved what the schedule is for
        self.costs, self.patience = Costs(), self.DEVIATIONS
        self.clocks = Clocks()  # of steps that followed a schedule
        self.refined = False  # the schedule was made with their times
        self.clock_from, self.pause = self.TIMED, self.RECHECK  # steps that follow the schedule before some are timed, and until others are
        self.declined = self.given_up = self.renewed = False  # nothing has to be moved, no schedule can be made, or what there is for one is of no use
        self.relief = None  # what makes room when a request finds none
        self.rest = self.wake = lambda: None  # have nothing packed until the model ends that is running, and all packed again; set by Hooks
        self.outlook, self.known = Outlook(self), Known(self)
        self.garbage, self.second, self.touched, self.inputs = Garbage(), Second(memory, lanes, settings.smallest), Touched(self), Inputs()
        self.guessed, self.guesses = False, self.GUESSES  # that what was saved between steps is of a model that is not watched, and such guesses that are left

    # Called by Hooks.

    def begin(self, module, given, known):
        """Begins a step, unless the last one has not reached its backward pass. Returns whether what is saved is to be packed. A step that is recorded, or
        follows a schedule, is one of modules that were run before: others may be there but once."""
        if self.declined or not self.owner.here() or self.memory.capturing():
            return False
        with self.memory:
            self.memory.samples.answer()
            if not known and next(module.parameters(), None) is not None:
                self.guesses = self.GUESSES
            step = self.step
            if step is None or step.backward or not any(e.users for e in step.entries) and not self.outlook.goes_on(step, module):
                self.guessed = False
                self.next_step(given) if known else self.meet(given)
            self.step.called(module)
            self.outlook.called(self.step)
            self.memory.note_storages(module)
            if self.relief is not None:
                self.relief.lodging.home.weights.adopt()
            if self.step.spare is not None:
                self.step.spare.note()
        return not self.declined and (known or self.step.stranger or self.recording is None and self.schedule is None)

    def lend(self, module):
        """Has another thread, which the runtime's own one waits for, go on with the step that has begun. Returns whether what is saved is to be packed."""
        with self.memory:
            if self.declined or self.step is None or self.step.backward:
                return False
            self.memory.note_storages(module)
        return True

    def spent(self):
        """Returns whether nothing is left of what the step has saved."""
        with self.memory:
            return self.step is None or not any(e.users for e in self.step.entries)

    def watching(self):
        """Returns whether models are looked for."""
        return self.guessed or self.schedule is None and not self.given_up

    def guessing(self):
        """Returns whether a model is looked for that may have saved what was saved last."""
        return self.guessed

    def mistaken(self):
        """Ends guesses of that: it was none."""
        self.guessed, self.guesses = False, 0

    def recorded(self):
        """Returns whether the step that has begun is recorded, or passed over by a recording that goes on."""
        return self.recording is not None and not self.step.stranger

    def parting(self):
        """Returns whether operators are seen in a part of the step that has begun."""
        return self.step is not None and self.step.parting is not None and self.step.parting.live.looks

    def finished(self):
        """Returns whether nothing will be moved."""
        return self.declined

    def entered(self, module, args, frame):
        if self.recorded() and type(self.step.conduct) is Watched:
            self.recording.enter(module, lambda: (args, by_name(frame)), self.step)
        step = self.step
        if step is not None:
            step.depth += 1
            if step.parting is not None:
                step.parting.live.enter()

    def left(self, module):
        step = self.step
        if step is not None:
            step.depth = max(0, step.depth - 1)
            if step.parting is not None:
                step.parting.live.leave()
        if self.recorded() and type(self.step.conduct) is Watched:
            self.recording.leave(module)

    def pack(self, tensor):
        """Returns what autograd is to keep instead of a tensor. It is called for each one that is saved, so parameters, and what is small, take a short way."""
        memory, step = self.memory, self.step
        if type(tensor) not in memory.types:
            return self.pack_other(tensor)
        kept = self.outlook.pack(step, tensor) if step.alone else None
        if kept is not None:
            return kept
        try:
            storage = tensor.untyped_storage()
            key = storage._cdata
        except (RuntimeError, ValueError):
            return stays(untied(tensor))  # it has none
        ordinal = memory.ordinals.get(key)
        if ordinal is None:
            stand = memory.stands.get(key)
            if stand is not None and not stand.packs:
                return stand.pack(self, tensor)
            step.packs += 1
            if memory.small.looks:
                tensor = memory.small.note(step, key, tensor, self.smallest)
            if step.awaits is not None and step.packs not in step.awaits and not step.astray and not memory.waiting and key not in memory.known:
                step.awaited = NOTHING  # as of most in a step of which little is looked at
                return stays(tensor.detach() if tensor.requires_grad and not tensor.is_leaf else tensor)
            passed = step.selected and not step.expects()
            if passed and not memory.waiting and key not in memory.known:
                return self.pass_by(tensor, step)
            if not memory.movable(tensor):
                return stays(untied(tensor))
            if key not in memory.known and not (memory.waiting and memory.kept(storage)):
                if passed:
                    return self.pass_by(tensor, step)
                # The memory of what is saved on another stream may be freed in that one's order, in which no copy is waited for.
                stream, nbytes = memory.stream(), storage.nbytes()
                step.strays = step.strays or stream != step.stream
                moves = step.awaited[0] is not None or step.moves(nbytes, self.smallest)
                if moves and stream == step.stream:
                    with memory:
                        return self.pack_storage(tensor, key, nbytes, stream)
                return stays(untied(tensor))
            ordinal = memory.ordinals.get(key)  # FSDP may have just gathered it
        step.trail, step.course = hash((step.trail, ordinal)), hash((step.course, ordinal, step.packs))
        return (tensor, tensor._version) if tensor.is_leaf else stays(untied(tensor))

    def pack_other(self, tensor):
        """Packs a tensor of no plain type."""
        if self.memory.consists_of_others(tensor) and not parameter(tensor):
            return Parts(detached(tensor), self.pack)
        return detached(tensor) if tensor.requires_grad else tensor

    def pack_between(self, tensor):
        """Packs a tensor that no model saves, but the program between the models of a step."""
        step = self.step
        if step is None or step.conduct is None or self.memory.capturing() or parameter(tensor) or parameter(tensor._base):
            return self.leave_alone(tensor)
        if step.backward:
            small = not self.memory.movable(tensor) or tensor.untyped_storage().nbytes() < self.smallest
            if small or not self.guesses or any(e.users for e in step.entries):
                return self.leave_alone(tensor)
            with self.memory:
                self.guessed, self.guesses = True, self.guesses - 1
                self.meet()
        return self.pack(tensor)

    def pack_backward(self, tensor):
        """Packs a tensor that a backward pass saves for another one."""
        return self.step is not None and self.second.pack(tensor, self.step) or self.leave_alone(tensor)

    def meet(self, given=()):
        """Begins a step of a model that was not there before: it is on demand. A step in which it saves nothing is restarted."""
        self.next_step(given, self.unplanned)
        self.step.stranger = True

    def leave_alone(self, tensor):
        """Packs a tensor that stays where it is."""
        return stays(untied(tensor)) if type(tensor) in self.memory.types else tensor

    def pack_storage(self, tensor, key, nbytes, stream):
        """Packs a tensor of a storage that is moved."""
        memory, step = self.memory, self.step
        entry = memory.entries.get(key)
        new = entry is None or not entry.stands_for(tensor, nbytes) or (entry.touched or key in memory.exported) and not entry.renew(tensor)
        if step.pace is not None and (new or entry.step == step.number):
            step.pace.arrive()
        if new:
            if step.awaited[0] is not None:
                step.pass_over()
            entry = memory.entries[key] = Entry(memory, self.lanes, step, tensor.detach(), key, nbytes)
            step.entries.append(entry)
            step.looked = step.call
            if step.parting is not None:
                step.parting.live.saved(entry)
        saved = Saved(entry, None if new else layout(tensor))
        if entry.step == step.number:
            if step.lodging is not None and step.lodging.lacks:
                step.lodging.pack()
            step.conduct.pack(entry, new, stream)
            step.saves += 1
        return saved

    def pass_by(self, tensor, step):
        """Packs a tensor that stays where it is, and at whose points a schedule may do something."""
        _, saved, used, _ = step.awaited
        if saved is not None:
            self.pass_point(step.number, saved)
        return stays(untied(tensor)) if used is None else Mark(untied(tensor), step.number, used)

    def unpack_mark(self, mark):
        self.pass_point(mark.step, mark.at, backward=True)
        return stayed((mark.tensor, mark.version))

    def pass_point(self, number, at, backward=False):
        """Does what a schedule does at a point of a tensor that stays where it is, if its step still follows that."""
        with self.memory:
            step = self.step
            if step.selected and step.number == number and step.conduct is not None:
                if backward and not step.backward:
                    step.turn_back()
                step.conduct.pass_point(at, self.memory.stream())

    def unpack(self, saved):
        kind = type(saved)
        if kind is tuple:
            return stayed(saved)
        if kind is Mark:
            return self.unpack_mark(saved)
        if kind in (Parts, Copied):
            return saved.unpack(self.unpack)
        if kind is not Saved:
            return saved
        entry = saved.entry
        with self.memory:
            entry.needed += 1
            try:
                step, stream = self.step, self.memory.stream()
                if entry.step == step.number:
                    step.unpack(entry, stream)
                return entry.tensor(saved, stream)
            finally:
                entry.needed -= 1

    # Steps.

    def next_step(self, given, conductor=None):
        """Begins a step with the inputs of a model. A step in which nothing was saved so far is restarted."""
        last, dims = self.step, dimensions(given, self.memory.torch.Tensor)
        if last is not None and last.entries:
            self.inputs.saw(last.dims if last.backward else ())
            self.end_step(last)
            self.steps += 1
            if self.relief is not None:
                if self.relief.tight():
                    self.planner.note_held(self.memory.entries.values())
                self.relief.layout.begin_step(self.schedule, self.refined and self.planning is None)
                self.relief.lodging.begin_step(dims)
        elif last is not None and self.relief is not None:
            self.relief.lodging.begin_instead(last.dims, dims)
        self.take_schedule(0)
        step = self.step = Step(self.steps, self.memory.small.arguments)
        step.stream = self.memory.stream()
        step.dims = dims
        self.memory.begin_step(step)
        self.garbage.begin_step(step.number)
        if self.relief is not None:
            self.relief.begin_step(step)
        step.conduct = (conductor or self.conductor)(step)
        self.report.step(step)

    def conductor(self, step):
        """Returns what conducts a step."""
        if self.schedule is not None and self.deviated < self.patience:
            if self.schedule.empty():
                return self.outlook.leave(step) if self.outlook.leaves_alone(step) else self.unplanned(step)
            if self.outlook.strange(step):
                return self.unplanned(step)
            if 2 * self.fitted.count(False) >= self.STRAYED and self.known.parts() and step.number % self.RETRY:
                step.members = self.schedule.members
                return self.unplanned(step)
            instrument = self.instrument()
            if self.outlook.leaves_alone(step, instrument):
                return self.outlook.leave(step)
            return self.schedule.follower(step, self.unplanned, self.relief, instrument)
        if step.number < self.WARM_UP or self.given_up or self.planning is not None:
            return self.unplanned(step)
        self.recording = self.recording or Recording(self.memory, self.settings, self.costs, self.relief, self.before, self.schedule, self.inputs)
        if self.relief is not None and self.relief.exceeds(self.relief.limit):  # it may be the first that lacks memory
            step.parting = Parting(step, self.known.live(), self.relief)
        return self.recording.next(step) or self.unplanned(step)

    def unplanned(self, step):
        """Returns what conducts a step, or the rest of it, without a schedule."""
        if self.relief is None:
            return Reactive(step, self.settings.window)
        live = self.known.of(step)
        if live is not None:
            step.parting = Parting(step, live, self.relief)
        return Demand(step, self.relief)

    def instrument(self):
        """Returns what measures a step that follows the schedule, for a better one: some of the first are timed, and one that begins with
        more memory in use than the step that was recorded is weighed."""
        if self.planning is not None and self.arrived != self.follow_extended:
            return None
        if self.memory.allocated() > self.planner.start + self.settings.slack:
            return Scale(self.memory)
        if self.schedule.followed >= self.clock_from:
            return self.clocks.next(self.memory)
        return None

    def end_step(self, step):
        step.ended = step.way()
        conduct, step.conduct = step.conduct, None
        conduct.end()
        if step.parting is not None:
            self.end_parting(step.parting)
        elif isinstance(conduct, Remaking):
            self.note(step, conduct.recalled.strange())
        step.parting = step.spare = None
        self.memory.samples.ask(step.number)
        if self.renewed or self.second.begins(self.relief is not None and self.relief.asked > 0):
            self.start_over()
            return
        if self.recording is not None:
            self.end_recorded(self.recording)
        self.outlook.ended(step)
        if not step.backward:
            return  # an evaluation
        if not step.whole:
            self.deviated = 0
            self.followed(conduct)
            return self.leave_more()
        self.before = [e.nbytes for e in step.entries]
        if self.given_up and self.known.settles(step):
            self.start_over()
        self.outlook.saw(step, self.before, self.schedule)
        if self.schedule is not None and self.recording is None and self.differs(step, conduct):
            self.extend(step) or self.deviate(step)
        elif self.followed(conduct):
            self.deviated = 0
            if conduct.instrument is not None:
                self.refine(conduct.instrument)
            self.leave_more()

    def followed(self, conduct):
        """Returns whether a step has followed a schedule to its end, and notes that."""
        if not isinstance(conduct, Follower) or not conduct.finished():
            return False
        self.schedule.followed += 1
        more = conduct.crowded() if self.planning is None else 0
        self.crowded, self.more = self.crowded + 1 if more else 0, min(more, self.more) if self.crowded else more
        if self.schedule.wanted:
            self.complete()
        return True

    def note(self, step, strange):
        """Notes whether a step has little in common with those that are remembered. After some such others are recorded."""
        if not step.backward:
            return
        self.strange = self.strange + 1 if strange else 0
        if self.strange >= self.DEVIATIONS:
            self.planner.remembered, self.strange = None, 0
            if self.renewals > 0 and not self.given_up:
                self.renewed, self.renewals = True, self.renewals - 1

    def end_parting(self, parting):
        """Learns from what chose what leaves in a step."""
        if parting.live.times:
            self.costs.learn(parting.live)
        self.costs.reruns.clear()  # one that is made for a single call would be held
        strange = parting.live.strange()
        self.note(parting.step, strange)
        if parting.parted and not strange:
            self.costs.shares.append(parting.remade / float(parting.parted))

    def differs(self, step, conduct):
        """Returns whether another schedule would be better for a step that has ended."""
        if self.schedule.empty():
            return self.relief is not None and self.relief.strained()
        self.fitted.append(self.schedule.foresees(self.before, step.dims))
        return step.deviation != "" or isinstance(conduct, (Demand, Reactive)) and not self.fitted[-1]

    def extend(self, step):
        """Has schedules made for larger steps, or for more kinds of steps, if the last one is like those that were recorded but for its size. Returns whether
        it is."""
        if not self.schedule.extends(self.before, step.dims):
            return self.turn(step)
        self.complete()
        return True

    def turn(self, step):
        other = self.planner.other
        strayed = 2 * self.fitted.count(False) >= self.STRAYED
        if other is None or not strayed or step.differs or self.planning is not None or not other.extends(self.before, step.dims):
            return False
        self.planning, self.arrived = self.planner.turn(), self.follow_turned
        return True

    def complete(self):
        """Has a schedule made that is missing, unless one is being made: the others after that."""
        if self.planning is None and self.schedule.lacks():
            self.planning, self.arrived = self.planner.extend(), self.follow_extended

    def deviate(self, step):
        """Counts steps that differ from the schedule and are alike, or may all have schedules: one schedule is of no use for steps that all differ."""
        if self.strayed is None and step.deviation:
            say.line("step %d differs from the recorded one: %s" % (step.number, step.deviation))
        self.deviated = self.deviated + 1 if self.before == self.strayed or self.known.resized() else 1
        self.strayed = self.before

    def idle(self):
        """Returns whether steps fit without anything being moved, or save nothing that could be."""
        unused = not self.steps and (self.step is None or not self.step.entries)
        return unused or (self.given_up or self.schedule is not None and self.schedule.empty()) and self.relief.spacious()

    def renew(self):
        """Has a schedule made anew, of the steps that follow this one: there is more memory for them. Called at any time, with memory."""
        self.renewed = True

    def start_over(self):
        self.renewed, self.given_up, self.refined, self.deviated, self.patience = False, False, False, 0, self.DEVIATIONS
        self.recording = self.schedule = self.planning = self.strayed = None
        self.time_from(self.TIMED)
        self.fitted.clear()

    def end_recorded(self, recording):
        if recording.timed is not None:
            self.recording = None
            self.plan(recording)
        elif recording.failed >= recording.ATTEMPTS:
            self.recording = None
            if self.schedule is None:
                self.given_up = self.known.unlike = True
                say.once("no schedule: no two steps are alike; tensors are moved as they come")
            self.keep()

    def keep(self):
        """Keeps the schedule, and waits longer before the next check of it."""
        self.deviated, self.patience = 0, 4 * self.patience

    def plan(self, recording):
        """Has a schedule made of what was recorded. The old one stays if it is for the same steps with larger tensors."""
        old, self.deviated = self.schedule, 0
        if old is not None and all(map(old.covers, recording.steps())):
            self.keep()
            return
        self.schedule = None
        try:
            self.planning, self.arrived = self.planner.plan(recording, self.known.largest(len(recording.timed.sizes))), self.follow
        except Unsolved:
            return self.start_over()
        except Exception as e:
            self.no_schedule(say.reason(e))
            return
        self.take_schedule(None if self.settings.dry or self.settings.record else self.PATIENCE)

    def take_schedule(self, seconds):
        """Takes the schedule that is being made, if it is there within so many seconds."""
        if self.planning is not None and self.planning.come(seconds):
            planning, self.planning = self.planning, None
            self.arrived(planning)

    def follow(self, planning):
        """Begins to follow a schedule."""
        if planning.failed:
            self.no_schedule(planning.failed)
            return
        self.schedule = planning.schedule
        self.report.planned(self.schedule)
        self.refined, self.strayed, self.pause, self.crowded = False, None, self.RECHECK, 0
        self.time_from(self.TIMED)
        self.fitted.clear()
        if self.relief is not None and self.planner.family is None:
            self.relief.foresight.learn(self.schedule.sizes, self.schedule.plain_peak - self.planner.start)
        self.declined = self.settings.dry or self.schedule.empty() and self.relief is None
        self.outlook.planned(self.schedule)
        self.complete()

    def no_schedule(self, why):
        say.line("no schedule: %s; tensors are moved as they come" % why)
        self.given_up = True
        self.planner.give_up(self.memory)

    def time_from(self, followed):
        """Has steps timed after so many that followed the schedule."""
        self.clocks, self.clock_from = Clocks(), followed

    def time_later(self):
        self.time_from(self.schedule.followed + self.pause)
        self.pause *= 4

    def refine(self, instrument):
        """Takes what was measured in a step, and has schedules made with that when it tells something new."""
        if isinstance(instrument, Scale):
            self.planner.start = instrument.start
        elif not self.clocks.add(instrument):
            return
        else:
            instrument = self.clocks
            self.time_later()
            if self.refined and not self.planner.outdated(instrument):
                return
            self.refined = True
            self.planner.learn(instrument)
        if self.planner.family is not None:
            self.planner.family.correct(instrument)
            self.complete()
            return
        try:
            self.planning, self.arrived = self.planner.refine(instrument, self.refined), self.follow_refined
        except Exception as e:
            self.keep_schedule(say.reason(e))

    def leave_more(self):
        """Has schedules made that leave more memory free, if steps that follow these have too little room."""
        if self.crowded < self.CROWDED or self.planning is not None or not self.planner.leave_more(self.more):
            return
        self.crowded = 0
        if self.planner.family is None:
            self.planning, self.arrived = self.planner.again(self.refined), self.follow_refined
        elif self.refined:  # or others will be made anyway
            self.complete()

    def follow_refined(self, planning):
        """Follows a better schedule for the same step."""
        if planning.failed:
            self.keep_schedule(planning.failed)
        elif planning.schedule.device > self.planner.device and self.planner.leave_less():
            self.planning, self.arrived = self.planner.again(self.refined), self.follow_refined
        else:
            planning.schedule.trust = self.schedule.trust
            self.schedule, self.crowded = planning.schedule, 0
            self.report.planned(self.schedule)

    def follow_turned(self, planning):
        """Follows schedules for more kinds of steps."""
        if planning.failed:
            self.planner.family = self.schedule
            self.keep_schedule(planning.failed)
        else:
            self.recording, self.deviated = None, 0
            self.follow(planning)

    def follow_extended(self, planning):
        """Follows schedules for more steps."""
        if planning.failed:
            self.keep_schedule(planning.failed)
            return
        self.fitted.clear()
        self.complete()

    def keep_schedule(self, why):
        say.line("the schedule is kept: %s" % why)
