"""What is rerun for a tensor whose maker took results that were not saved: the makers of those, as far back as what was saved."""

MOST = 16  # operators


class Chain(object):
    """Results that are made one after the other, the last of them the one that is wanted."""

    __slots__ = ("made", "ends")

    def __init__(self, made):
        self.made = made
        taken = {x.number: i for i, m in enumerate(made) for x in m.call.inputs()}
        self.ends = [[m.number for m in made[:i] if taken[m.number] == i] for i in range(len(made))]  # results that are not needed after the i-th is made

    @classmethod
    def like(cls, chain, made):
        """Returns a chain of results that are made as those of another one are, in other sizes."""
        new = cls.__new__(cls)
        new.made, new.ends = made, chain.ends
        return new

    def extra(self):
        """Returns the most bytes that are needed beside the wanted result: for what that is made of, and for other results of the operators."""
        most = live = 0
        sizes = {m.number: m.nbytes for m in self.made}
        for m, ended in zip(self.made, self.ends):
            most = max(most, live + max(0, m.call.nbytes - m.nbytes) + (m.nbytes if m is not self.made[-1] else 0))
            live += m.nbytes - sum(sizes[number] for number in ended)
        return most

    def run(self, rerun):
        """Makes the wanted result. rerun is given a maker and the results so far, by the numbers of their storages."""
        results = {}
        for m, ended in zip(self.made, self.ends):
            results[m.number] = rerun(m, results)
            for number in ended:
                del results[number]
        return results[self.made[-1].number]


def find(maker, saved, makers, undone=()):
    """Returns the chain that makes a result, None if there is none. saved tells the arguments that were saved, makers the results that can
    be made again, and undone those that can be made of what was made of them, by the numbers of their storages."""
    order, done = [], set()

    def other(x):
        """Returns what makes an argument that was not saved."""
        if x.number in undone and all(map(saved, undone[x.number].call.inputs())):
            return undone[x.number]
        return makers[x.number] if x.number in makers else None

    def visit(m, depth):
        if m.number in done:
            return True
        if depth > MOST:
            return False
        for x in m.call.inputs():
            if not saved(x):
                source = None if x.lasting else other(x)
                if source is None or len(order) >= MOST or not visit(source, depth + 1):
                    return False
        done.add(m.number)
        order.append(m)
        return len(order) <= MOST

    return Chain(order) if visit(maker, 1) else None
