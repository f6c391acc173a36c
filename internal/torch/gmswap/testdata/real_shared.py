"""Optimizers whose parameters two ranks share, on a real PyTorch (FSDP2, split matrices): this rank's parts of their states wait on the host, and results are those
of plain PyTorch to the bit."""

import copy
import gc
import io
import os
import tempfile

import torch
from torch import distributed, multiprocessing

from gmswap_hook.states import AWAY, HERE, States, part, shared
from optimizers import Own
from real import main
from trained import Program, accumulated, clipped
from waiting import close, same, supported, tensors, there, trained

RANKS, STEPS = 2, 20
VARIANTS = [("SGD", dict(lr=0.01, momentum=0.9)), ("AdamW", {}), ("AdamW", {"fused": True}), ("AdamW", {"foreach": True, "amsgrad": True}), ("Adam", {"groups": True}),
            ("RMSprop", {}), ("Adagrad", {})]


def fully_sharded(model):
    from torch.distributed.fsdp import fully_shard

    for module in model[3:9:2]:
        fully_shard(module)
    return fully_shard(model)


def split(model):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    plan = {str(i): ColwiseParallel() if i % 2 else RowwiseParallel() for i in range(3, 9)}
    return parallelize_module(model, init_device_mesh("cpu", (RANKS,)), plan)


class Sharded(Program):
    prepared = staticmethod(fully_sharded)

    def results(self):
        return map(part, super().results())


class Split(Sharded):
    prepared = staticmethod(split)


def plain(make, prepare, steps):
    program = make()
    prepare(program)
    for i in range(steps):
        program.step(i)
    return program


def check(make, prepare=lambda program: None):
    def prepared():
        program = make()
        prepare(program)
        return program

    program, store, most = trained(prepared, STEPS)
    large = [t for state in program.optimizer.state.values() for t in tensors(state)]
    here, all = there(program.optimizer)
    assert sum(map(shared, large)) > 4 and here == 0 < most < all, "%d bytes of %d stay, %d were there in an update" % (here, all, most)
    assert same(plain(make, prepare, STEPS), program)
    del program, large
    close(store)


def variants():
    for kind in Sharded, Split:
        for optimizer, options in VARIANTS:
            def make(kind=kind, optimizer=optimizer, options=options):
                return kind(optimizer, **options)
            if supported(make):
                check(make)
    check(lambda: Sharded("AdamW"), clipped)
    check(lambda: Sharded("AdamW"), accumulated)


def reads():
    """Whoever reads a state has it on the device, and one that is held stays there. Copies are on the host."""
    program, store, _ = trained(lambda: Sharded("AdamW"), steps=8)
    state = next(s for s in program.optimizer.state.values() if type(s) is States and s.places)
    place = state.places["exp_avg"]
    assert place.where is AWAY and not place.tensor.untyped_storage().nbytes()
    other = copy.deepcopy(state)["exp_avg"]
    torch.save(program.optimizer.state_dict(), io.BytesIO())
    assert place.where is AWAY, "copies have it stay"
    assert shared(other) and torch.equal(part(other), part(state["exp_avg"]))
    held = state["exp_avg"]
    assert place.where is HERE and held is place.value and part(held).nbytes == place.nbytes
    with store.memory:
        assert not place.leave(), "the program holds it"
    del held
    with store.memory:
        assert place.leave() and place.left() and place.where is AWAY
    own = part(state["exp_avg"])
    with store.memory:
        assert not place.leave(), "the program holds its part"
    del own, place, state, program
    close(store)


def stays():
    """States of optimizers that nobody knows stay: ranks may have to meet in updates of theirs."""
    make = lambda: Sharded("Own")
    torch.optim.Own = Own
    program, store, _ = trained(make, steps=8)
    here, all = there(program.optimizer)
    assert here == all > 0
    assert [steps.why for steps in store.optimizers.values()] == ["ranks share parameters, and may have to meet in updates"]
    assert same(plain(make, lambda program: None, 8), program)


def rank(number, path):
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", init_method="file://" + path, rank=number, world_size=RANKS)
    variants()
    reads()
    stays()
    gc.collect()
    distributed.destroy_process_group()


def test_ranks():
    with tempfile.TemporaryDirectory() as folder:
        multiprocessing.spawn(rank, (os.path.join(folder, "ranks"),), RANKS)


if __name__ == "__main__":
    main(globals())
