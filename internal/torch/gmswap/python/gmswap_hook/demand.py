"""Moves no more than has to be, without a schedule: what is saved stays until a request finds no room."""

from . import say


class Demand(object):
    """Conducts a step. From what it saves first it is foreseen how much will have to be moved; the copies of that begin at once, in the order in
    which it was saved. So the memory can be had without waiting for them."""

    way = "on demand"
    SURE = 16  # entries from which on what is foreseen is relied on

    def __init__(self, step, relief):
        self.step, self.relief = step, relief
        self.lacking = 0  # bytes that there will be no room for
        self.fits = False  # it is known that there is room for all
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
        if self.step.parting is not None:
            self.step.parting.live.packed(entry, new)
        if not new:
            return
        self.saved += entry.nbytes
        if self.relief.foresight.looks(entry.index + 1):
            self.look(entry.index + 1)
        if self.step.parting is not None:
            self.step.parting.copy(self.lacking)
            known = entry.index >= self.SURE and (self.fits or self.lacking)
            self.step.parting.watch(self.saved, self.lacking if known else None)
        elif self.copied < self.lacking:
            self.copy()
        if self.saved - self.looked >= self.relief.window // 2:
            self.looked = self.saved
            self.relief.keep_room()

    def look(self, count):
        """Foresees what there will be no room for."""
        self.lacking, self.fits = self.relief.lacking(count, self.saved), self.relief.fits(count, self.saved)
        if self.step.parting is None:  # or some will be recomputed
            self.relief.expect(self.lacking)

    def copy(self):
        """Begins copies of what was saved first."""
        entries = self.step.entries
        while self.at < len(entries) and self.copied < self.lacking:
            e = entries[self.at]
            self.at += 1
            if e.users and (e.hosted or e.offload()):
                self.copied += e.nbytes

    def unpack(self, entry, stream):
        """Loads what is needed next, as long as there is room. A backward pass asks in the opposite order."""
        self.relief.backward.at = entry.index
        self.relief.weigh()
        at = entry.index if self.next is None else min(self.next, entry.index)
        entries, room = self.step.entries, None
        while at >= 0:
            for e in needed(entries[at]) if entries[at].alias is None else ():
                if room is None:
                    room = self.relief.room_ahead(entry.index, self.saved)
                room -= e.nbytes
                if (room < 0 and at != entry.index) or not self.load(e, stream):
                    self.next = at
                    return
            at -= 1
        self.next = at

    @staticmethod
    def load(entry, stream):
        try:
            with entry.memory.trial:
                entry.load(stream)
        except entry.memory.failures as why:
            say.once("nothing is fetched ahead: %s" % say.brief(why))  # whoever needs the tensor tries again
            return False
        return True

    def end(self):
        self.relief.learn(self.step)


def needed(entry):
    """Yields what has to be copied back for an entry: itself, or what it is recomputed from."""
    if not entry.users or entry.resident():
        return
    if entry.on_host():
        yield entry
    elif entry.made is not None:
        for source in entry.made.sources.values():
            yield from needed(source)
