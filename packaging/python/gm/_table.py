"""Traces as tables."""

import os
import tempfile

from gm import _tools


def load(path):
    """Return a trace, one row an event, as a DataFrame of pandas or polars, whichever is installed, or a dict of columns by pyarrow.

    Files that are no Parquet, such as snapshots of PyTorch, are imported. formats/README.md of gm has the columns.
    """
    with open(path, "rb") as file:
        parquet = file.read(4) == b"PAR1"
    if parquet:
        return _read(os.fspath(path))
    with tempfile.TemporaryDirectory(prefix="gm-") as folder:
        made = os.path.join(folder, "trace.parquet")
        _tools.run("gmtrace", "import", path, "-o", made)
        return _read(made)


def _read(path):
    for reader in (_pandas, _polars, _pyarrow):
        try:
            return reader(path)
        except ImportError:
            continue
    raise ImportError("gm.load needs pandas with pyarrow or fastparquet, polars, or pyarrow: none is installed")


def _pandas(path):
    import pandas

    return pandas.read_parquet(path)


def _polars(path):
    import polars

    return polars.read_parquet(path, memory_map=False)


def _pyarrow(path):
    from pyarrow import parquet

    return parquet.read_table(path, memory_map=False).to_pydict()
