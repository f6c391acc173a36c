"""Functions of PyTorch that fail with a pluggable allocator, answered by libgm.so.

All of torch.cuda's and torch.accelerator's functions of memory call these few of torch._C, by their names, so they themselves
stay as they are, wherever a program has put them.
"""

import functools

from . import account, cudnn, say, sharing

NO_HISTORY = "the history of allocations is not recorded: gmstitch run --stats FILE keeps one"


def redirect(torch, library):
    C = torch._C
    fractions = {}  # of devices
    real_set_fraction = getattr(C, "_cuda_setMemoryFraction", None)

    def stats(device):
        return account.nested(library.stats(device))

    def snapshot(pool=None, *_):
        return account.snapshot(library.segments(), torch.cuda.device_count(), pool)

    def set_fraction(fraction, device):
        real_set_fraction(fraction, device)
        fractions[device] = fraction

    def no_history(enabled=None, *_):
        if enabled:
            say.once(NO_HISTORY)

    def no_observer(observer):
        say.once("observers of a lack of memory are not called; OutOfMemoryError is raised as usual")

    answers = {
        "_cuda_memoryStats": stats,
        "_cuda_resetPeakMemoryStats": library.reset_peak,
        "_cuda_resetAccumulatedMemoryStats": library.reset_accumulated,
        "_cuda_memorySnapshot": snapshot,
        "_cuda_setMemoryFraction": set_fraction,
        "_cuda_getMemoryFraction": lambda device: fractions.get(device, 1.0),
        "_cuda_record_memory_history": no_history,
        "_cuda_record_memory_history_legacy": no_history,
        "_cuda_isHistoryEnabled": lambda: False,
        "_cuda_attach_out_of_memory_observer": no_observer,
        "_accelerator_getDeviceStats": stats,
        "_accelerator_resetPeakStats": library.reset_peak,
        "_accelerator_resetAccumulatedStats": library.reset_accumulated,
    }
    for name, answer in answers.items():
        put(C, name, answer)
    cudnn.keep_benchmark_off(torch)
    sharing.explain(torch)


def put(module, name, answer):
    """Puts a function in the place of one that is there."""
    real = getattr(module, name, None)
    if real is None:
        return

    @functools.wraps(real)
    def function(*args, **kwargs):
        return answer(*args, **kwargs)

    setattr(module, name, function)
