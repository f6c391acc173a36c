"""Weak references to storages."""

import weakref


class StorageWeakRef(object):
    def __init__(self, storage):
        self.cell, self.memory = storage.memory.cell, weakref.ref(storage.memory)
        self.cdata = self.cell.address

    def expired(self):
        return self.memory() is None
