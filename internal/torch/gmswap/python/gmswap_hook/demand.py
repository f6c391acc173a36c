"""Moves no more than has to be, without a schedule: what is saved stays until a request finds no room."""

from . import say


class Demand(object):
    """Conducts a step. From what it saves first it is foreseen how much will have to be moved; the copies of that begin at once, in the order in
    which it was saved. So the memory can be had without waiting for them."""

    way = "on demand"

    def __init__(self, step, relief):
        self.step, self.relief = step, relief
        self.lacking = 0  # bytes that there will be no room for
        self.copied, self.at = 0, 0  # bytes whose copies began, and the entry that is next
        self.saved = sum(e.nbytes for e in step.entries)  # bytes
        self.looked = self.saved  # when it was last looked whether there is room
        self.next = None  # the entry that is looked at next in the backward pass

    def take_over(self, entry, new, stream):
        """Goes on instead of one that followed a schedule, at an entry that is saved."""
        if new:
            self.saved -= entry.nbytes  # it is among the entries
        self.pack(entry, new, stream)

    def pack(self, entry, new, stream):
        if not new:
            return
        self.saved += entry.nbytes
        if self.relief.foresight.looks(entry.index + 1):
            self.lacking = self.relief.lacking(entry.index + 1, self.saved)
        if self.copied < self.lacking:
            self.copy()
        if self.saved - self.looked >= self.relief.window // 2:
            self.looked = self.saved
            self.relief.keep_room()

    def copy(self):
        """Begins copies of what was saved first."""
        entries = self.step.entries
        while self.at < len(entries) and self.copied < self.lacking:
            e = entries[self.at]
            self.at += 1
            if e.users and e.offload():
                self.copied += e.nbytes

    def unpack(self, entry, stream):
        """Loads what is needed next, as long as there is room. A backward pass asks in the opposite order."""
        if self.next is None:
            self.relief.weigh()
        self.relief.backward.at = entry.index
        at = entry.index if self.next is None else min(self.next, entry.index)
        entries, room = self.step.entries, None
        while at >= 0:
            e = entries[at]
            if e.users and not e.resident() and e.on_host():
                if room is None:
                    room = self.relief.room_ahead(entry.index)
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
        self.relief.learn(self.step)
