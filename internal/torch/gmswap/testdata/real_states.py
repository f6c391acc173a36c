"""Trains small models whose optimizers' states wait on the host between updates, and compares with plain PyTorch to the bit."""

import copy
import io

import torch

from gmswap_hook import gradients, loading, steps as hooked_steps
from optimizers import Counting, Decayed, Drawing, Lists, Measured, Normed, Own, Twice
from trained import (STEPS, Program, accumulated, added, again, changed, clipped, closed, copied, dropped, frozen, held, hooked, looking,
                     owned, passed_on, prepared, read, saved, scaled, scheduled, zeroed)
from waiting import CHUNK, SMALLEST, all_of, close, counts, hook, same, stored, supported, tensors, there, trained

torch.set_num_threads(1)
torch.use_deterministic_algorithms(True)

EARLY = {"fused": True}, {"foreach": True}, {"groups": True}


def variants():
    for how in {"foreach": False}, {"foreach": True}, {"fused": True}, {}:
        yield "SGD", dict(how, lr=0.01, momentum=0.9)
        for optimizer in "Adam", "AdamW":
            yield optimizer, how
            yield optimizer, dict(how, amsgrad=True, weight_decay=0.01)
        yield "Adagrad", how
    for optimizer in "Adamax", "NAdam", "RAdam", "Adadelta", "RMSprop", "ASGD", "Rprop":
        for foreach in False, True:
            yield optimizer, {"foreach": foreach}
    yield "RMSprop", {"momentum": 0.9, "centered": True}
    yield "Adafactor", {}
    yield "AdamW", {"groups": True}
    yield "AdamW", {"lr": torch.tensor(0.001), "foreach": False}


def check(name, make, steps=STEPS, moved=True, few=True):
    hook.stores = {}
    if not supported(make):
        return
    plain = make()
    for i in range(steps):
        plain.step(i)
    program, store, most = trained(make, steps)
    here, all = there(program.optimizer)
    if moved and all:
        assert here == 0, "%s: %d bytes of states stay on the device" % (name, here)
        largest = max(all_of(state) for state in program.optimizer.state.values())
        few = 3 * max(CHUNK, largest) if few else all
        assert 0 < most <= few <= all, "%s: %d bytes of %d are there in an update" % (name, most, all)
        assert store.runtime.renewals == 1
    assert same(plain, program), "%s differs" % name
    del program
    close(store)


def others():
    for how in scheduled, clipped, accumulated, closed, zeroed, hooked, frozen, added:
        yield how.__name__, prepared(how)
    for fused in False, True:
        yield "scaled", prepared(scaled, fused=fused)
        yield "scaled and clipped", prepared(lambda p: (scaled(p), clipped(p)), fused=fused)


def kept():
    """Has room for some of the states after ten steps, and a little less after twenty."""
    store = stored()
    program = Program("AdamW")
    run, stay = store.runtime, []
    run.room = lambda: 7 * CHUNK - there(program.optimizer)[0]
    for i in range(STEPS):
        run.fits = i >= 10
        moved = store.lanes.moved
        program.step(i)
        if i == 0:
            with store.memory:
                store.make_room(1 << 40)
        if i == 20:
            with store.memory:
                before = counts(store)
                freed = store.spare(CHUNK)
                assert CHUNK <= freed < 2 * CHUNK and counts(store) == before - freed
        counts(store)
        stay.append((there(program.optimizer)[0], store.lanes.moved - moved))
    hook.stores = {}
    plain = Program("AdamW")
    for i in range(STEPS):
        plain.step(i)
    most = there(program.optimizer)[1]
    assert stay[9] == (0, most), stay[9]
    assert 3 * CHUNK < stay[19][0] <= 4 * CHUNK and sum(stay[19]) == most, stay[19]
    assert CHUNK < stay[-1][0] <= 3 * CHUNK and sum(stay[-1]) == most, stay[-1]
    assert same(plain, program)
    del program
    close(store)


def roomy(name):
    """Has room for an update of all states at once, in the middle of which none can go, and too little for that after ten steps."""
    plain, store = Program(name), stored()
    program, run = Program(name), store.runtime
    chunks, freed, update, run_whole = set(), [], hooked_steps.Steps.update, hooked_steps.Steps.run_whole

    def ask():
        with store.memory:
            freed.append(store.make_room(1 << 40))

    hooked_steps.Steps.update = lambda steps, *args: (chunks.add(i), update(steps, *args))
    hooked_steps.Steps.run_whole = lambda steps, whole: run_whole(steps, lambda: (ask(), whole()))
    for i in range(STEPS):
        if i == 10:
            run.room = lambda: 2 * there(program.optimizer)[1]
        hook.stores = {0: store}
        program.step(i)
        hook.stores = {}
        plain.step(i)
        if i == 15:
            ask()
    hooked_steps.Steps.update, hooked_steps.Steps.run_whole = update, run_whole
    assert chunks == {0, *range(10, STEPS)}, "%s: chunks in steps %s" % (name, chunks)
    assert freed == [0] * 9 + [there(program.optimizer)[1]], "%s: %s bytes were freed" % (name, freed)
    assert store.optimizers[program.optimizer].count == STEPS
    assert same(plain, program)
    del program
    close(store)


def other_stream(program, store):
    store.memory.stream, store.memory.follow = lambda: 9, store.memory.nothing


def other_state(program, store):
    state = program.optimizer.state[program.model[0].weight]
    state["exp_avg"] = state["exp_avg"].clone()


def other_group(program, store):
    program.optimizer.add_param_group({"params": [torch.nn.Parameter(torch.ones(64, 64))]})
    program.optimizer.param_groups[-1]["params"][0].grad = torch.ones(64, 64)


def known():
    """States that were used in another stream, that the program has replaced, or that are yet to be made, are not updated at once."""
    for change in other_stream, other_state, other_group:
        store, program = stored(), Program("AdamW")
        program.set_to_none = False
        chunks, update = [], hooked_steps.Steps.update
        hooked_steps.Steps.update = lambda steps, *args: (chunks.append(step), update(steps, *args))
        for step in range(12):
            if step == 6:
                change(program, store)
            program.step(step)
        hook.stores, hooked_steps.Steps.update = {}, update
        places = [place for state in program.optimizer.state.values() for place in state.places.values()]
        assert set(chunks) == {0, 6}, "%s: chunks in steps %s" % (change.__name__, sorted(set(chunks)))
        assert len({place.home for place in places}) == 1 and len(places) == len([t for s in program.optimizer.state.values() for t in tensors(s)])
        del program, places
        close(store)


def written():
    """States that are written to files, and copied, stay on the host."""
    program, store, _ = trained(lambda: Program("AdamW"), 8)
    copy.deepcopy(program.optimizer.state_dict())
    torch.save(program.optimizer.state_dict(), io.BytesIO())
    assert there(program.optimizer)[0] == 0
    del program
    close(store)


def full():
    """Has no room on the host for all states."""
    plain = Program("AdamW")
    for i in range(STEPS):
        plain.step(i)
    program, store, _ = trained(lambda: Program("AdamW"), room=100000)
    here, all = there(program.optimizer)
    assert 0 < all - here <= 100000, "%d bytes of %d stay" % (here, all)
    assert same(plain, program)
    del program
    close(store)


def loaded():
    """Loads states from the host, from now on in all programs; before the first step and later, and reads them before they are used."""
    loading.Loading.elsewhere = lambda self, param, value: param.requires_grad
    loading.Loading(torch, SMALLEST)

    def resumed(look):
        def prepare(program):
            other = Program("AdamW")
            other.step(0)
            program.optimizer.load_state_dict(other.optimizer.state_dict())
            first = program.optimizer.state[program.model[3].weight]
            assert not hook.stores or dict.get(first, "exp_avg").untyped_storage().nbytes() == 0, "states are not left on the host"
            look(program)

        return prepare

    check("resumed", prepared(resumed(lambda program: None)))
    check("resumed and read", prepared(resumed(read)))
    check("resumed and saved", prepared(resumed(saved)))
    for look in saved, copied, again:
        check("loaded, " + look.__name__, prepared(looking(look)), few=False)


def foreign():
    """Trains with optimizers that nobody knows, in memory for a part of their states."""
    for kind in Own, Lists, Twice, Decayed, Normed, Measured, Counting, Drawing:
        moved = kind in (Own, Lists, Twice, Decayed)
        setattr(torch.optim, kind.__name__, kind)
        plain, store = Program(kind.__name__), stored()
        program, hook.stores = Program(kind.__name__), {}
        store.runtime.room = lambda: CHUNK
        for i in range(STEPS):
            plain.step(i)
            hook.stores = {0: store}
            program.step(i)
            if i == 2:
                with store.memory:
                    store.make_room(1 << 40)
            hook.stores = {}
        steps = store.optimizers[program.optimizer]
        here, all = there(program.optimizer)
        assert (here == 0 < all) == moved == (not steps.why), "%s: %d bytes of %d stay: %s" % (kind.__name__, here, all, steps.why)
        assert same(plain, program), "%s differs" % kind.__name__
        del program, steps
        close(store)


def early():
    """Updates parameters in the backward pass, from now on in all programs. States come in the order of the backward pass before."""
    plain = [Program("AdamW", **how) for how in EARLY]
    for program in plain:
        for i in range(STEPS):
            program.step(i)
    own = Program("Own")
    for i in range(STEPS):
        own.step(i)
    watch = gradients.Gradients(torch)
    watch.apart, hook.unguarded, hook.early = hook.apart, watch.unguarded, lambda: watch.local.ours
    for how, program in zip(EARLY, plain):
        early_as(how, program, lambda: Program("AdamW", **how))
    early_as("of others", own, lambda: Program("Own"))


def early_as(how, plain, make):
    program, store, most = trained(make)
    steps = store.optimizers[program.optimizer]
    assert steps.count == STEPS and len(steps.turns.before) == len(list(program.model.parameters()))
    here, all = there(program.optimizer)
    assert here == 0 < most < all, "early %s: %d bytes of %d stay, %d were there in an update" % (how, here, all, most)
    assert same(plain, program), "early %s differs" % how
    del program, steps
    close(store)


def main():
    for optimizer, options in variants():
        check("%s %s" % (optimizer, options), lambda: Program(optimizer, **options), 30)
    for name, make in others():
        check(name, make)
    for look in read, changed, saved, copied, again:
        check(look.__name__, prepared(looking(look)), few=False)
    for look in passed_on, dropped, held, owned:  # some stay, or are still to be made
        check(look.__name__, prepared(looking(look)), moved=False)
    kept()
    for name in "AdamW", "RMSprop":
        roomy(name)
    known()
    written()
    full()
    loaded()
    foreign()
    early()
    print("ok")


main()
