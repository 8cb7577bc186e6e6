"""Run a fine-tune: ``python -m steelyard.trainer FOLDER``.

The folder holds the task and its rows (``steelyard.trainer.task``). Killed at any moment
and started again, the program goes on from durable phases, and ends with the same artifact.

- SIGTERM and SIGINT end it at once, whatever it computes.
- When its standard input is a pipe, the pipe's end means that its parent is gone: it ends
  within moments, with status 4.
- A second program on the same folder waits until the first is gone.
- OpenMP reads its variables once, when a process starts, and threads of it that spin would slow
  every other process on the machine: without the variables of ``task.environment_of`` the program
  starts itself again with them. A parent that sets them spares that.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import signal
import stat
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import msgspec

from steelyard.settings import child_environment, openmp_variables
from steelyard.trainer.task import FAILED, STOPPED, TASK, environment_of
from steelyard.wire.decoding import decode

_STDIN = 0
_LOCK = "program.lock"


class _Threads(msgspec.Struct):
    """The part of a task that is needed before anything is loaded."""

    threads: int = 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the fine-tune of a folder, as a process of its own."""
    parser = argparse.ArgumentParser(
        prog="python -m steelyard.trainer", description="Run a fine-tune."
    )
    parser.add_argument("folder", type=Path, help="Holds task.json and rows.jsonl.")
    folder: Path = parser.parse_args(arguments).folder
    _start_with_environment(folder)
    for number in (signal.SIGTERM, signal.SIGINT):
        # The system's own way: a handler of ours would wait for the end of a pass or of a fit.
        signal.signal(number, signal.SIG_DFL)
    _end_with_starter()
    with (folder / _LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        # Loaded here: a program that waits or is called wrongly needs none of it.
        from steelyard.trainer.program import run_or_tell  # noqa: PLC0415

        return 0 if run_or_tell(folder) else FAILED


def _end_with_starter() -> None:
    """End this process at the end of its standard input, when that is a pipe."""
    try:
        mode = os.fstat(_STDIN).st_mode
    except OSError:
        return  # it was started without one
    if not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)):
        return

    def watch() -> None:
        try:
            while os.read(_STDIN, 65536):
                pass
        finally:
            # Everything durable is whole at every moment; there is nothing to put in order.
            os._exit(STOPPED)

    threading.Thread(target=watch, name="steelyard-lifeline", daemon=True).start()


def _start_with_environment(folder: Path) -> None:
    """Restart this process with the environment variables it needs, unless they are set."""
    try:
        threads = decode((folder / TASK).read_bytes(), _Threads).threads
    except (OSError, msgspec.DecodeError):
        threads = 0  # the program reports what is wrong with the task
    needed, current = environment_of(threads), openmp_variables()
    if any(current.get(name) != value for name, value in needed.items()):
        os.execve(  # noqa: S606  # this program, with its own arguments
            sys.executable, [sys.executable, *sys.orig_argv[1:]], child_environment(**needed)
        )


if __name__ == "__main__":
    status = main()
    sys.stderr.flush()
    # All is on the disk. Python would take its modules apart first, while the worker waits.
    os._exit(status)
