"""Random programs: shapes, branches, evaluations, errors, threads and graphs that are kept vary from step to step. SEED says which."""

import contextlib
import os
import random
import threading

import torch
from torch import nn, ops

from gpu import Block, Net, batch, cuda, digest, hook, runtimes, train, update

STEPS = 8
ROWS = 256  # of a batch: tensors of 64 KiB
KINDS = (64, 8, 10), (256, 8, 10), (768, 4, 10)  # rows of the shortest batch, how often that the longest has, and the most blocks
OFTEN = 12, 8, 1  # how often a kind is drawn; the larger ones take longer


class Branches(nn.Module):
    """Blocks in an order that is another one now and then, some of them left out or used twice."""

    def __init__(self, blocks):
        super().__init__()
        self.blocks = [Block(5 * i) for i in range(blocks)]
        self.order, self.fails = list(range(blocks)), None
        self.side, self.turn = None, 0

    def forward(self, x):
        for n, i in enumerate(self.order):
            if n == self.fails:
                raise ValueError("in the middle")
            x = self.beside(self.blocks[i], x) if self.side is not None and (n + self.turn) % 3 == 1 else self.blocks[i](x)
        return x

    def beside(self, block, x):
        """Runs a block in the other stream."""
        here = torch.cuda.current_stream()
        there = self.side if here.cuda_stream != self.side.cuda_stream else torch.cuda.default_stream()
        there.wait_stream(here)
        x.record_stream(there)
        with torch.cuda.stream(there):
            y = block(x)
        y.record_stream(here)
        here.wait_stream(there)
        return y


class Program(object):
    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.shortest, self.longest, blocks = self.rng.choices(KINDS, OFTEN)[0]
        self.model = Branches(self.rng.randint(blocks // 2 + 1, blocks))
        self.fixed = self.rng.random() < 0.3
        self.branches = self.rng.random() < 0.4
        self.rows = self.draw()

    def draw(self):
        return self.rng.randint(1, self.longest) * self.shortest

    def batch(self, number):
        return batch(number, self.rows if self.fixed else self.draw())

    def shuffle(self):
        n = len(self.model.blocks)
        self.model.order = self.rng.choices(range(n), k=self.rng.randint(2, n)) if self.branches else list(range(n))

    def run(self, number):
        """Makes a step of a kind that is drawn."""
        self.shuffle()
        kinds = self.plain, self.twice, self.again, self.accumulated, self.evaluated, self.failed, self.beside
        kind = self.rng.choices(kinds, (10, 1, 1, 2, 2, 2, 2))[0]
        update(self.model, kind(number))

    def loss(self, number):
        return ops.loss(self.model(self.batch(number)))

    def plain(self, number):
        loss = self.loss(number)
        loss.backward()
        return loss

    def twice(self, number):
        """Runs two forward passes, then one backward pass."""
        x = self.batch(number)
        loss = ops.loss(self.model(x) * self.model(x))
        loss.backward()
        return loss

    def again(self, number):
        """Runs the graph backward twice."""
        loss = self.loss(number)
        loss.backward(retain_graph=True)
        loss.backward()
        return loss

    def accumulated(self, number):
        for _ in range(2):
            loss = self.plain(number)
        return loss

    def evaluated(self, number):
        with torch.no_grad():
            print(digest(self.loss(number + 50)))
        self.loss(number + 60)  # nobody runs it backward
        return self.plain(number)

    def failed(self, number):
        self.model.fails = self.rng.randrange(len(self.model.order))
        try:
            self.loss(number)
        except ValueError:
            pass
        self.model.fails = None
        return self.plain(number)

    def beside(self, number):
        """Has another thread use memory meanwhile."""
        sizes, done, wrong = [self.rng.randint(1, self.shortest) for _ in range(20)], threading.Event(), []

        def work():
            while not done.is_set():
                for byte, rows in enumerate(sizes):
                    x, y = (cuda(rows, 256, byte=byte) for _ in range(2))
                    if x.read() != y.read():
                        wrong.append(byte)
                    done.wait(0.001)

        def watched():
            try:
                work()
            except Exception as e:
                wrong.append(e)

        thread = threading.Thread(target=watched)
        thread.start()
        try:
            return self.plain(number)
        finally:
            done.set()
            thread.join()
            assert not wrong, wrong


def successive():
    """Models that are trained one after the other, each of other layers than the one before, the first one while steps are still recorded."""
    for blocks, steps in (4, 2), (3, 10), (5, 10), (4, 10):
        model = Net(blocks)
        for step in range(steps):
            train(model, step, 2048)
        del model


class Seen(object):
    """Counts the operators that steps look at, with the modules that are watched then."""

    def __init__(self):
        from gmswap_hook import hooks, live, settings

        settings.Settings.for_all_sizes = lambda settings: False  # as where no step is like another one but for its size
        self.counts, run = [], live.Live.run

        def counted(live, *args):
            self.counts[-1] += 1
            return run(live, *args)

        live.Live.run, self.near = counted, 0
        watch = hooks.Hooks.watch_near

        def watched(hooks):
            self.near += 1
            watch(hooks)

        hooks.Hooks.watch_near = watched


def fits():
    """Has steps of which no two are alike, and of which the last but two fit. The operators of these are looked at in the first layers alone."""
    model, seen = Net(12), Seen() if hook() else None
    for step, rows in enumerate([40, 44, 48, 52, 56, 60, 64, 68, 72, 76, 80, 12, 13, 84, 88]):
        if seen:
            seen.counts.append(0)
        train(model, step, rows * 16)
    if seen:
        few, many = max(seen.counts[-4:-2]), min(seen.counts[-2:])
        assert seen.near and 0 < few < many / 2, seen.counts


def lengths():
    """Has steps of random sizes, the largest of which do not fit."""
    model, draw = Net(12), random.Random(5)
    for step in range(24):
        train(model, step, draw.randint(20, 88) * 16)


class Translator(nn.Module):
    """An encoder and a decoder, whose texts differ in length."""

    def __init__(self, *blocks):
        super().__init__()
        self.encoder, self.decoder = map(Net, blocks)

    def forward(self, source=None, target=None):
        return ops.loss(self.encoder(source)) + ops.loss(self.decoder(target))


def translations():
    """Has steps of two lengths that vary by themselves, with evaluations and other kinds of steps among them. SEED says which."""
    draw = random.Random(int(os.environ.get("SEED", "0")))
    model, longest, named = Translator(draw.randint(2, 5), draw.randint(1, 5)), draw.choice([20, 40, 60]), draw.random() < 0.7
    for step in range(20):
        source, target = (batch(step, draw.randint(4, longest) * 16) for _ in range(2))
        if draw.random() < 0.1:
            with torch.no_grad():
                print(digest(model(source, target)))
        for _ in range(draw.choice([1] * 8 + [2])):  # gradients of two add up
            loss = model(target=target, source=source) if named else model(source, target)
            loss.backward()
        update(model, loss)


def exhausted():
    """Holds more than there may be, where nothing can be moved."""
    model, kept = Net(), []
    for step in range(5):
        train(model, step)
    try:
        while True:
            kept.append(batch(0, 8 * ROWS))
    except torch.cuda.OutOfMemoryError as e:
        print(type(e).__name__)
    kept.clear()
    train(model, 5)


def loaded():
    """Holds more than there may be before a model is run: data that it trains with."""
    data = [batch(i, 8 * ROWS) for i in range(24)]
    print(digest(*data))
    model = Net()
    for step in range(6):
        loss = ops.loss(model(data[step + 10]))
        loss.backward()
        update(model, loss)


def unmodelled():
    """Runs no model at all."""
    data = [batch(i, 8 * ROWS) for i in range(24)]
    for i in range(1, 24):
        data[i] = data[i] + data[i - 1]
    print(digest(*data))


def tried_beside():
    """Has a thread ask for memory that it needs, while the hook asks for what it can do without."""
    model = Net()
    for step in range(3):
        train(model, step)
    kept = [batch(0, 8 * ROWS) for _ in range(20)]
    with runtimes[0].memory.trial if runtimes else contextlib.nullcontext():
        thread = threading.Thread(target=lambda: kept.append(batch(1, 8 * ROWS)))
        thread.start()
        thread.join()
    print(len(kept), digest(kept[-1]))
    kept.clear()
    train(model, 3)


def tried():
    """Asks for more than there is between a forward and a backward pass, and goes on without."""
    model = Net()
    for step in range(4):
        loss = ops.loss(model(batch(step)))
        try:
            cuda(1 << 16, 256, byte=1)
        except torch.cuda.OutOfMemoryError:
            pass
        loss.backward()
        update(model, loss)


def refused():
    """Finds no memory for what is fetched before it is needed."""
    model = Net()
    for step in range(6):
        train(model, step)
        if step == 0 and runtimes:
            refuse(runtimes[0].memory)


def refuse(memory):
    take = memory.take

    def taken(nbytes, dtype=None):
        if max(e.needed for e in memory.entries.values()) == 1:  # as long as it is not loaded for a use
            raise torch.cuda.OutOfMemoryError()
        return take(nbytes, dtype)

    memory.take = taken


def limited():
    program = Program(int(os.environ["SEED"]))
    for step in range(STEPS):
        program.run(step)


def limited_streams():
    """Has a second stream run some of the blocks, or a step, or the first one while that one has the rest."""
    program = Program(int(os.environ["SEED"]))
    side, main = torch.cuda.Stream(), torch.cuda.current_stream()
    draw = random.Random(int(os.environ["SEED"]) + 1)
    for step in range(STEPS):
        program.model.side, program.model.turn = draw.choice([None, side, side]), draw.choice([0, 0, 1])
        if draw.random() < 0.7:
            program.run(step)
            continue
        side.wait_stream(main)
        with torch.cuda.stream(side):
            program.run(step)
        main.wait_stream(side)
