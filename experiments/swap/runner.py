"""Runs one of ../programs and takes what it says."""

import json
import os
import signal
import subprocess

TRAIN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "programs", "train.py")


def run(words, seconds, **environ):
    """Returns the result of a program, None if it failed, what it said, and why it failed, "" if it did not. After so many seconds it is ended, and all
    that it has started."""
    child = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace", start_new_session=True,
                             env=dict(os.environ, **environ))
    try:
        out, said = child.communicate(timeout=max(1, seconds))
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        return None, child.communicate()[1], "too long"
    found = [line for line in out.splitlines() if line.startswith("RESULT ")]
    result = json.loads(found[-1].removeprefix("RESULT ")) if found else {"ok": "status %d" % child.returncode}
    return (result, said, "") if result["ok"] is True else (None, said, str(result["ok"]))
