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
from waiting import close, hook, same, stored, supported, tensors, there, trained

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


class Summed(object):
    """Updates by gradients of which some are parts of sums: in each operator on one ranks meet. Their parts of the others are of several sizes."""

    def __init__(self, optimizer, **options):
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.tensor import Replicate, Shard, distribute_tensor

        torch.manual_seed(0)
        self.mesh, self.out, self.steps = init_device_mesh("cpu", (RANKS,)), [], 0
        kinds = 4 * [(33, 60, Shard(0)), (500, Replicate())] + [(500, Replicate())]
        self.parameters = [torch.nn.Parameter(distribute_tensor(torch.randn(size), self.mesh, [lies])) for *size, lies in kinds]
        self.optimizer = getattr(torch.optim, optimizer)(self.parameters, **options)

    def step(self, i):
        from torch.distributed.tensor import DTensor, Partial, Shard, distribute_tensor

        self.steps += 1
        draw = torch.Generator().manual_seed(i)
        for p in self.parameters:
            whole = torch.randn(p.shape, generator=draw)
            summed = DTensor.from_local(whole * (0.3 + distributed.get_rank()), self.mesh, [Partial()])
            p.grad = distribute_tensor(whole, self.mesh, [Shard(0)]) if p.placements[0].is_shard() else summed
        self.optimizer.step()

    def results(self):
        for p in self.parameters:
            yield part(p)
            yield from map(part, filter(torch.is_tensor, self.optimizer.state[p].values()))


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


def meetings():
    """Ranks meet in the same order, whether they update all at once or chunk by chunk, and in whatever chunks."""
    for options in {"foreach": True}, {"foreach": False}, {"fused": True}:
        def make(options=options):
            return Summed("AdamW", **options)
        expected = plain(make, lambda program: None, STEPS) if supported(make) else None
        for roomy in ((), (0,), (1,)) if expected is not None else ():
            if distributed.get_rank() in roomy:
                store, program = stored(), make()
                for i in range(STEPS):
                    program.step(i)
                hook.stores = {}
            else:
                program, store, most = trained(make, STEPS)
                assert there(program.optimizer)[0] == 0 < most
            assert same(expected, program), (options, roomy)
            del program
            close(store)


def put_together():
    """States are put together for a checkpoint, set again, and given away by the program."""
    from torch.distributed.checkpoint.state_dict import StateDictOptions, get_optimizer_state_dict, set_optimizer_state_dict

    whole = StateDictOptions(full_state_dict=True)
    results = []
    for trains in lambda make: plain(make, lambda program: None, 8), lambda make: trained(make, 8)[0]:
        program = trains(lambda: Sharded("AdamW"))
        found = get_optimizer_state_dict(program.model, program.optimizer, options=whole)
        other = Sharded("AdamW")
        other.step(0)
        set_optimizer_state_dict(other.model, other.optimizer, found, options=whole)
        set_optimizer_state_dict(program.model, program.optimizer, found, options=whole)
        other.out = program.out
        results += [program, other]
    assert same(results[0], results[2])
    assert all(torch.equal(*pair) for pair in zip(*([part(s["exp_avg"]) for s in x.optimizer.state.values()] for x in results[1::2])))
    program, store, _ = trained(lambda: Sharded("AdamW"), 8)
    for state in program.optimizer.state.values():
        for key in list(state):
            state[key] = state[key].to("cpu", copy=True)
    close(store)


def reads():
    """Whoever reads a state has it on the device, and one that is held stays there. Files have copies on the host."""
    program, store, _ = trained(lambda: Sharded("AdamW"), steps=8)
    state = next(s for s in program.optimizer.state.values() if type(s) is States and s.places)
    place = state.places["exp_avg"]
    assert place.where is AWAY and not place.tensor.untyped_storage().nbytes()
    torch.save(program.optimizer.state_dict(), io.BytesIO())
    assert place.where is AWAY, "a file has it stay"
    other = copy.deepcopy(state)["exp_avg"]
    assert place.where is HERE, "ranks may put copies together"
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
    meetings()
    put_together()
    reads()
    stays()
    gc.collect()
    distributed.destroy_process_group()


def test_ranks():
    with tempfile.TemporaryDirectory() as folder:
        multiprocessing.spawn(rank, (os.path.join(folder, "ranks"),), RANKS)


if __name__ == "__main__":
    main(globals())
