"""Recomputes what a schedule keeps, where a request finds no room and the host has none either."""

from .between import Unlike
from .entry import version
from .remake import Remake


class Spare(object):
    """How the entries of a step are recomputed that a schedule does not have recomputed: as those of the recorded step were made, one from none of the others."""

    def __init__(self, follower, memory):
        self.follower, self.step, self.memory = follower, follower.step, memory
        self.versions = {}  # of parameters when a model was called that has them, by the ordinals of their storages
        self.sources = set()  # the indexes of what entries are recomputed from here

    def note(self):
        """Notes the parameters that were met last."""
        if len(self.versions) < len(self.memory.lasting):
            for ordinal in list(self.memory.lasting):
                if ordinal not in self.versions:
                    self.versions[ordinal] = self.versions_of(ordinal)

    def versions_of(self, ordinal):
        return [version(t) for t in self.memory.parameters(ordinal)]

    def remake(self, entry):
        """Has an entry recomputed. Returns False if that is not sure to work."""
        recipe = self.recipe_of(entry)
        if recipe is None:
            return False
        try:
            entry.made = Remake(recipe, self.step.entries, entry)
        except self.memory.failures:  # there is no room for some of its words to compare
            return False
        self.sources.update(recipe.sources)
        if self.step.parting is not None:
            self.step.parting.owe(entry, recipe)
        return True

    def recipe_of(self, entry):
        """Returns how an entry is recomputed, None where that is not sure to be right, or needs something else to be recomputed before."""
        step, schedule, index = self.step, self.follower.schedule, entry.index
        if entry.step != step.number or entry.made is not None or entry.alias is None or not entry.intact() or index >= step.certain or index in self.sources:
            return None
        try:
            recipe = schedule.recipe(index)
            if recipe is None or not recipe.usable(self.memory, step.entries):
                return None
            involved = [entry, *(step.entries[i] for i in recipe.sources)]
            if any(e.made is not None or schedule.exactly(e.index) != (e.nbytes, e.laid_out()) for e in involved):
                return None
        except Unlike:
            return None
        if any(e.key in self.memory.exported for e in involved) or step.parting is not None and step.parting.written(entry, recipe):
            return None
        return recipe if all(self.versions.get(ordinal) == self.versions_of(ordinal) for ordinal in recipe.lasting) else None
