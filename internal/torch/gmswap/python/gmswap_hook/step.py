"""A step of a program."""

from .selection import PASSED

NOTHING = None, None, None, None


class Members(object):
    """Which of the tensors that calls of models save may be moved, as a recorded step had them."""

    def __init__(self):
        self.calls = {}  # by calls and the numbers of tensors: their entries, and the step's course
        self.end = None  # where the step was when its backward pass began

    def note(self, step, index):
        self.calls.setdefault(step.call, {})[step.packs] = index, step.course

    def ended(self, step):
        self.end = self.end or step.where()


class Step(object):
    """A forward pass and the backward pass after it."""

    def __init__(self, number, arguments=None):
        self.number, self.conduct, self.ended = number, None, ""
        self.arguments = arguments  # of modules, which are held until the backward pass begins
        self.lodging = None  # what has gradients leave
        self.entries = []
        self.stream = 0  # that of the forward pass
        self.strays = False  # something was saved on another one
        self.backward = False
        self.trail = self.course = 0  # stand for all parameters that were saved so far; the latter also for how many tensors came before each
        self.dims = ()  # of the inputs of the model that began it
        self.calls, self.call, self.packs = {}, None, 0  # how often models were called, the last such call, and how many tensors that has saved
        self.turn = 0  # how many calls there were
        self.depth = 0  # of modules that are looked at and run now
        self.members = None  # those that are moved, None: the large ones
        self.other = False  # a call that was to save nothing that is moved has saved something
        self.selected = False  # no others are looked at
        self.awaits = None  # of those, the ones that the call under way saves, by their numbers; None: all that it saves are looked at
        self.awaited = NOTHING  # what such a tensor is expected to be: its entry, or the points at which it is saved and used, and the course then
        self.astray = False  # the course is another one
        self.pace = None  # measures how fast the program comes from one point to the next
        self.short = False  # too little of what is looked at could leave when a request found no room
        self.deviation = ""  # from the schedule
        self.differs = False  # it does something else than the schedule's step, and not the same with other sizes
        self.saves = 0  # tensors that were saved before this one
        self.agreed = 0  # the trail when what was saved last was as expected
        self.certain = 0  # so many entries are what was expected, as since then other parameters were used as expected
        self.parting = None  # what chooses what leaves the device, where no schedule does
        self.spare = None  # what has that recomputed which a schedule keeps, where the host may have too little room
        self.stranger = False  # a model has begun it that was not there before
        self.room = False  # it is known that there is room for it
        self.alone = False  # and some to spare: what it saves is not looked at, but for the first tensor of each call
        self.looked = None  # the call of which one was looked at last
        self.whole = True  # all that it saves is looked at

    def follow(self, ordinal):
        """Notes that a copy of a parameter is saved, which is another step than one that saves the parameter."""
        self.trail, self.course = hash((self.trail, -ordinal)), hash((self.course, -ordinal, self.packs))

    def called(self, module):
        """Notes that a model is called."""
        key = id(module)
        self.calls[key] = self.calls.get(key, 0) + 1
        self.call, self.packs, self.turn = (key, self.calls[key]), 0, self.turn + 1
        if self.selected:
            self.awaits = self.members.calls.get(self.call)

    def unpack(self, entry, stream):
        """Does what is to be done when an entry is asked for."""
        if self.pace is not None:
            self.pace.arrive()
        if not self.backward:
            self.turn_back()
        lodging = self.lodging
        if lodging is not None:
            if lodging.lacks or lodging.due or entry.index <= lodging.next:
                lodging.unpack(entry.index)
            lodging.passed = entry.index
        self.conduct.unpack(entry, stream)

    def turn_back(self):
        """Notes that the backward pass has begun."""
        self.backward = True
        if self.arguments is not None and self.arguments.wanted:
            self.arguments.release()

    def moves(self, nbytes, smallest):
        """Returns whether a tensor is moved that is saved now. Where members are given it is not its size that tells, unless that is far above those
        that are too small."""
        members = self.members.calls.get(self.call) if self.members is not None else None
        if members is None:
            self.other = self.other or self.members is not None and nbytes >= smallest
            return nbytes >= smallest
        if self.selected:
            return self.astray or self.awaited[0] is not None
        return self.packs in members and nbytes > 0 or nbytes >= 4 * smallest

    def expects(self):
        """Returns whether a tensor is to be looked at that is saved now: one of those that were selected, or of a call that was not."""
        self.awaited = self.awaits.get(self.packs, NOTHING) if self.awaits is not None else NOTHING
        if self.awaited is not NOTHING and self.awaited[3] != self.course:
            self.awaited, self.astray = NOTHING, True
        return self.awaits is None or self.astray or self.awaited[0] is not None

    def where(self):
        return self.call, self.packs, self.course

    def select(self, selection):
        """Has no others looked at than these."""
        self.members, self.selected, self.whole = selection, True, False
        self.awaits = selection.calls.get(self.call)

    def look_at_all(self):
        self.members, self.selected, self.awaits, self.awaited, self.astray = None, False, None, NOTHING, False

    def pass_over(self):
        """Notes that entries before the one that is saved now were not looked at."""
        self.entries.extend([PASSED] * (self.awaited[0] - len(self.entries)))

    def agrees(self, entry, new):
        """Notes that what is saved now is as expected."""
        if self.trail != self.agreed:
            self.agreed, self.certain = self.trail, entry.index if new else len(self.entries)

    def way(self):
        """Returns how the step goes, or went: the word for users."""
        return self.ended or ("adapted" if self.deviation else self.conduct.way)
