"""Traces as notebooks and prompts show them."""

import base64
import html
import os
import tempfile

from gm import _table, _tools


LARGEST = 10 << 20  # characters of a page in a notebook, which stores it with each run of its cell


class Text(str):
    """Text that a prompt shows as it is."""

    __repr__ = str.__str__


class Trace:
    """A trace in a file, or a snapshot of PyTorch. Notebooks show the page of gmtrace page or, if it is too large, a picture, and a summary."""

    def __init__(self, path):
        self.path = os.fspath(_tools.existing(path))

    @classmethod
    def _coming(cls, path):
        """Return a trace whose file will be written."""
        self = cls.__new__(cls)
        self.path = os.fspath(path)
        return self

    def __repr__(self):
        return f"gm.Trace({self.path!r})"

    def load(self):
        """Return the trace as a table, see gm.load."""
        return _table.load(self.path)

    def show(self):
        """Return the summary that gmtrace show prints."""
        return Text(_tools.run("gmtrace", "show", _tools.existing(self.path)))

    def why_oom(self):
        """Say why the program ran out of memory, see gm.why_oom."""
        return Text(_tools.run("gmtrace", "why-oom", _tools.existing(self.path)))

    def page(self):
        """Return the page of gmbench report, for notebooks: the trace in several allocators."""
        return Page(_tools.run("gmbench", "report", "-o", "-", _tools.existing(self.path)))

    def _repr_html_(self):
        if not os.path.exists(self.path):
            return None
        shown = self._tensors()
        if shown is None or len(shown.text) > LARGEST:
            shown = self._picture()
        else:
            shown = shown._repr_html_()
        return f"{shown}<details><summary>{html.escape(self.path)}</summary><pre>{html.escape(self.show())}</pre></details>"

    def _tensors(self):
        """Return the page of gmtrace page, or None if there are no tensors to show."""
        try:
            return Page(_tools.run("gmtrace", "page", "-o", "-", self.path))
        except _tools.Failed:
            return None

    def _picture(self):
        with tempfile.TemporaryDirectory(prefix="gm-") as folder:
            name = os.path.join(folder, "picture.png")
            _tools.run("gmtrace", "show", "--png", name, self.path)
            with open(name, "rb") as file:
                picture = base64.b64encode(file.read()).decode("ascii")
        return f'<img alt="GPU memory over time" style="max-width:100%" src="data:image/png;base64,{picture}">'


class Page:
    """A page in HTML, which notebooks show in a frame."""

    def __init__(self, text):
        self.text = text

    def save(self, path):
        """Write the page to a file."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.text)

    def _repr_html_(self):
        return f'<iframe sandbox="allow-scripts" title="GPU memory" style="width:100%;height:900px;border:0" srcdoc="{html.escape(self.text)}"></iframe>'
