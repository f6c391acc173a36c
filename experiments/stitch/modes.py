"""The ways in which a program is run: PyTorch's own two, and under gmstitch."""

import os
import signal
import subprocess
import sys
import time

EXPANDABLE = {name: "expandable_segments:True" for name in ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")}
PYTORCH = ("default", "expandable")
# A tool of gm with its flags, or none, and variables of the environment.
MODES = {"default": ([], {}), "expandable": ([], EXPANDABLE), "gmstitch": (["gmstitch", "run"], {}), "auto": (["gmstitch", "run", "--auto"], {})}


class Ended:
    """How a program ended: its status, None where it took too long, its output, and its seconds."""

    def __init__(self, code, text, seconds):
        self.code, self.text, self.seconds = code, text, seconds


def command(folder, mode, words):
    """Returns a command and its environment. folder holds the tools."""
    tool, env = MODES[mode]
    if tool:
        words = [os.path.join(folder, tool[0]), *tool[1:], "--", *words]
    clean = {k: v for k, v in os.environ.items() if k not in EXPANDABLE}
    return words, {**clean, "PYTHONUNBUFFERED": "1", **env}


def run(folder, mode, words, timeout, log, **more):
    """Runs a program to its end, or for so many seconds, with more variables of the environment. Its output goes to the log as well."""
    words, env = command(folder, mode, [str(w) for w in words])
    env.update(more)
    start = time.monotonic()
    log.write("\n$ [%s] %s\n" % (mode, " ".join(words)))
    log.flush()
    begin = log.tell()
    try:
        p = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, env=env, start_new_session=True)
        code = p.wait(timeout)
    except OSError as e:
        log.write("%s\n" % e)
        log.flush()
        code = 127
    except subprocess.TimeoutExpired:
        code = None
        end(p)
    seconds = time.monotonic() - start
    log.seek(begin)
    text = log.read()
    log.seek(0, os.SEEK_END)
    print("$ [%s] %s -> %s, %.1f s" % (mode, " ".join(words)[-200:], "too long" if code is None else code, seconds))
    for line in text.splitlines()[-(1 if code == 0 else 12):]:
        print("    " + line[:300])
    sys.stdout.flush()
    return Ended(code, text, seconds)


def end(p):
    """Ends a program and all it started: torchrun's workers hear of SIGTERM alone."""
    for sign, seconds in ((signal.SIGTERM, 10), (signal.SIGKILL, 10)):
        try:
            os.killpg(p.pid, sign)
            p.wait(seconds)
            if sign == signal.SIGKILL:
                return
        except (ProcessLookupError, subprocess.TimeoutExpired):
            pass
