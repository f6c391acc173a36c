"""Moves everything, without a schedule: out when it is saved, back in the opposite order."""

import collections

from . import say


class Reactive(object):
    """Conducts a step. Window is the bytes that are on the device longer than they need be, each way, so that copies have time."""

    way = "moved whole"

    def __init__(self, step, window):
        self.step, self.window = step, window
        self.leaving, self.leaving_bytes = collections.deque(), 0
        self.ahead, self.ahead_bytes = collections.deque(), 0
        self.next = None  # the entry that is looked at next

    def take_over(self, entry, new, stream):
        """Goes on instead of one that followed a schedule, at an entry that is saved."""
        for e in self.step.entries:
            if e.users and e.alias is not None and e is not entry:
                self.pack(e, True, stream)
        self.pack(entry, new, stream)

    def pack(self, entry, new, stream):
        if not new or not entry.offload():
            return
        self.leaving.append(entry)
        self.leaving_bytes += entry.nbytes
        while self.leaving_bytes > self.window and len(self.leaving) > 1:
            self.free()

    def free(self):
        entry = self.leaving.popleft()
        self.leaving_bytes -= entry.nbytes
        entry.free()

    def unpack(self, entry, stream):
        """Loads what comes before the entry, as far as the window reaches. A backward pass asks in the opposite order."""
        entries, ahead = self.step.entries, self.ahead
        while ahead and ahead[0].index >= entry.index:
            self.ahead_bytes -= ahead.popleft().nbytes
        at = min(self.next, entry.index) if self.next is not None else entry.index
        try:
            while at >= 0 and self.ahead_bytes <= self.window:
                e = entries[at]
                if e.users and not e.resident() and e.ticket:
                    with e.memory.trial:
                        e.load(stream)
                    if e.index < entry.index:
                        ahead.append(e)
                        self.ahead_bytes += e.nbytes
                at -= 1
        except entry.memory.failures as e:
            say.once("nothing is fetched ahead: %s" % say.brief(e))  # whoever needs the tensor tries again
        self.next = at

    def end(self):
        self.leaving.clear()
        self.ahead.clear()
