"""python -m gm TOOL ARGUMENTS runs a tool of this installation, also where its folder is not on PATH."""

import os
import sys

import gm
from gm import _tools

USAGE = f"""gm {gm.__version__}. python -m gm TOOL ... runs a tool:

  gmtrace   record what a program does with GPU memory, and show what is in a trace
  gmplan    solve memory layouts
  gmbench   replay traces through allocators, and compare what each needs
  gmstitch  run a program with an allocator that does not fragment
  gmswap    run training in less GPU memory

python -m gm TOOL --help says more."""


def main(words):
    if not words or words[0] in ("-h", "--help"):
        print(USAGE)
    elif words[0] == "--version":
        print(f"gm {gm.__version__}")
    elif words[0] not in _tools.NAMES:
        sys.stderr.write(f"gm: {words[0]!r} is no tool: expected one of {', '.join(_tools.NAMES)}\n")
        return 2
    else:
        try:
            program = _tools.path(words[0])
        except gm.Failed as failure:
            sys.stderr.write(f"gm: {failure}\n")
            return 1
        os.execv(program, words)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
