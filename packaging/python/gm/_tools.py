"""The command line tools that the package brings."""

import os
import shutil
import subprocess
import sys
import sysconfig

NAMES = ("gmtrace", "gmplan", "gmbench", "gmstitch", "gmswap")


class Failed(RuntimeError):
    """A tool failed. The text is what it said."""


def path(tool):
    """Return the path of a tool: that of this installation, or else the one on PATH."""
    modules = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    folders = [
        sysconfig.get_path("scripts"),
        os.path.dirname(sys.executable),
        os.path.join(modules, "bin"),  # by pip install --target
        sysconfig.get_path("scripts", "posix_user"),  # by pip install --user
    ]
    for folder in folders:
        found = os.path.join(folder, tool)
        if os.access(found, os.X_OK):
            return found
    found = shutil.which(tool)
    if found is None:
        raise Failed(f"{tool} is not installed in {', '.join(folders)}, nor on PATH")
    return found


def existing(path):
    """Return a path, or raise FileNotFoundError if nothing is there."""
    os.stat(path)
    return path


def run(tool, *args):
    """Run a tool and return what it printed."""
    done = subprocess.run([path(tool), *map(os.fspath, args)], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Failed(done.stderr.strip() or f"{tool} ended with status {done.returncode}")
    return done.stdout
