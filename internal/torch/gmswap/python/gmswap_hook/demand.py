"""Moves no more than has to be, without a schedule: what is saved stays until a request finds no room."""

from . import say


class Demand(object):
    """Conducts a step. Copies of what was saved first, and is needed last, begin before there is no room: of as many bytes as steps before had to
    move. So the memory can be had without waiting for them."""

    way = "on demand"

    def __init__(self, step, relief):
        self.step, self.relief = step, relief
        self.expected = relief.expected()
        self.copied = 0
        self.next = None  # the entry that is looked at next in the backward pass

    def take_over(self, entry, new, stream):
        """Goes on instead of one that followed a schedule, at an entry that is saved."""
        self.pack(entry, new, stream)

    def pack(self, entry, new, stream):
        if not new:
            return
        if self.copied < self.expected and entry.offload():
            self.copied += entry.nbytes
        self.relief.keep_room()

    def unpack(self, entry, stream):
        """Loads what is needed next, as long as there is room. A backward pass asks in the opposite order."""
        at = entry.index if self.next is None else min(self.next, entry.index)
        entries, room = self.step.entries, None
        while at >= 0:
            e = entries[at]
            if e.users and not e.resident() and e.on_host():
                if room is None:
                    room = self.relief.room()
                room -= e.nbytes
                if room < 0 and e is not entry:
                    break
                try:
                    e.load(stream)
                except e.memory.failures as why:
                    say.once("nothing is fetched ahead: %s" % say.reason(why))  # whoever needs the tensor tries again
                    break
            at -= 1
        self.next = at

    def end(self):
        pass
