"""Recomputes what a schedule keeps, where a request finds no room and the host has none either."""

from .between import Unlike
from .remake import Remake


class Spare(object):
    """How the entries of a step are recomputed that a schedule does not have recomputed: as those of the recorded step were made."""

    def __init__(self, follower, memory):
        self.follower, self.step, self.memory = follower, follower.step, memory
        self.versions = {}  # of parameters when a model was called that has them, by the ordinals of their storages

    def note(self):
        """Notes the parameters that were met last."""
        for ordinal in list(self.memory.lasting):
            if ordinal not in self.versions:
                self.versions[ordinal] = self.versions_of(ordinal)

    def versions_of(self, ordinal):
        return [t._version for t in self.memory.parameters(ordinal) if not t.is_inference()]

    def remake(self, entry):
        """Has an entry recomputed. Returns False if that is not sure to work, or if something would have to be recomputed before."""
        step, schedule = self.step, self.follower.schedule
        if entry.step != step.number or entry.made is not None or entry.alias is None or not entry.intact() or entry.index >= step.certain:
            return False
        try:
            recipe = schedule.recipe(entry.index)
            if recipe is None or not recipe.usable(self.memory, step.entries):
                return False
            involved = [entry, *(step.entries[i] for i in recipe.sources)]
            if any(e.key in self.memory.exported or schedule.exactly(e.index) != (e.nbytes, e.laid_out()) for e in involved):
                return False
        except Unlike:
            return False
        if any(e.made is not None for e in involved) or any(self.versions.get(ordinal) != self.versions_of(ordinal) for ordinal in recipe.lasting):
            return False
        try:
            entry.made = Remake(recipe, step.entries, entry)
        except self.memory.failures:  # there is no room for some of its words to compare
            return False
        return True
