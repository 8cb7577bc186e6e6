"""Becomes a program that the kernel kills when the process that started this one ends.

Run as a script, in an interpreter that imports nothing else: ``launch.py PARENT PROGRAM …``.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Replace this process by the program of the command line."""
    parent, program = int(sys.argv[1]), sys.argv[2:]
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before it could be watched
        sys.exit(1)
    os.execv(program[0], program)  # noqa: S606  the program is the host's own


if __name__ == "__main__":
    main()
