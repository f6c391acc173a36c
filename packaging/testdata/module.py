"""Uses the module gm as a program does, with a torch that dumps the snapshot named by SNAPSHOT: module.py OOM_TRACE."""

import os
import subprocess
import sys

import gm
from gm import _tools, _view


def fails(error, text, function, *args):
    try:
        function(*args)
    except error as failure:
        assert text in str(failure), failure
        return
    raise AssertionError(f"{function} does not fail")


def record(path):
    with gm.trace(path) as recorded:
        assert recorded._repr_html_() is None
    return recorded


oom, snapshot = sys.argv[1], os.environ.pop("SNAPSHOT")
assert os.path.dirname(_tools.path("gmtrace")) == os.path.dirname(sys.executable), _tools.path("gmtrace")
fails(RuntimeError, "gm.trace records GPU memory: PyTorch sees no CUDA device", record, "x.parquet")
fails(RuntimeError, "PyTorch sees no CUDA device", gm.why_oom)
os.environ["SNAPSHOT"] = snapshot

recorded = record("job.parquet")
assert "alloc " in recorded.show() and "pytorch snapshot" in repr(recorded.show()), recorded.show()
html = recorded._repr_html_()
assert html.startswith('<iframe sandbox="allow-scripts"') and "&lt;canvas" in html and "<pre>source      pytorch snapshot" in html
_view.LARGEST = 1000
html = recorded._repr_html_()
assert html.startswith("<img") and "data:image/png;base64,iVBOR" in html and "pytorch snapshot" in html
assert "<iframe" in recorded.page()._repr_html_()
recorded.page().save("page.html")
assert open("page.html").read(9).lower() == "<!doctype"

import torch

assert torch.cuda.memory.calls == ["all", None], torch.cuda.memory.calls


class Boom(Exception):
    pass


try:
    with gm.trace("failed.parquet"):
        raise Boom
except Boom:
    assert os.path.getsize("failed.parquet") > 0 and torch.cuda.memory.calls[-1] is None

torch.cuda.memory._record_memory_history(enabled="all")
assert "ran out of memory" not in gm.why_oom()
assert "FRAGMENTED" in gm.why_oom(oom) and gm.why_oom(oom) == gm.Trace(oom).why_oom()
for missing in (gm.load, gm.why_oom, gm.Trace):
    fails(FileNotFoundError, "nowhere", missing, "nowhere")
os.rename("failed.parquet", "gone.parquet")
gone = gm.Trace("gone.parquet")
os.remove("gone.parquet")
for missing in (gone.load, gone.show, gone.why_oom, gone.page):
    fails(FileNotFoundError, "gone.parquet", missing)


def module(*words):
    done = subprocess.run([sys.executable, "-m", "gm", *words], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


assert module() == module("--help") and module()[0] == 0 and "gmstitch" in module()[1]
assert module("--version") == (0, f"gm {gm.__version__}\n")
assert module("gmtrace", "--version")[1].startswith(f"gmtrace {gm.__version__}")
assert module("gmtrace", "show", "nowhere")[0] == 1
assert module("show") == (2, "gm: 'show' is no tool: expected one of gmtrace, gmplan, gmbench, gmstitch, gmswap\n")
fails(gm.Failed, "not a recording", gm.why_oom, __file__)
os.environ["GMTRACE_DIR"] = "."
fails(RuntimeError, "gmtrace run records this process already", record, "x.parquet")

try:
    table, imported = gm.load("job.parquet"), gm.load(snapshot)
except ImportError as failure:
    assert "none is installed" in str(failure), failure
else:
    assert list(table) == list(imported) if isinstance(table, dict) else list(table.columns) == list(imported.columns)
    assert len(table["time_ns"]) == len(imported["time_ns"]) > 0 and "op" in table
    print(type(table).__module__)
