import os
import shutil

calls = []


def _record_memory_history(**options):
    calls.append(options["enabled"])


def _dump_snapshot(name):
    assert calls[-1:] == ["all"], calls
    shutil.copy(os.environ["SNAPSHOT"], name)
