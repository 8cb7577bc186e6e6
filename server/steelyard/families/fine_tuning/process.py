"""The process that trains one fine-tune: started, watched and killed by the job worker.

It is a process of its own, since training holds the interpreter and the memory of its libraries for
long, and can be stopped within moments only by a kill. Everything that it has done is in its folder
(``steelyard.trainer.task``), so a kill loses little.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from steelyard.settings import child_environment
from steelyard.trainer.task import ENVIRONMENT, MODULE

#: How far it stands back behind processes that answer calls, as ``nice`` counts.
_NICENESS = 10


class TrainerProcess:
    """A running trainer, which ends with this process, as its standard input then closes; thread-safe."""

    def __init__(self, folder: Path) -> None:
        self._process = subprocess.Popen(  # noqa: S603  # our own module
            [sys.executable, "-m", MODULE, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
            env=child_environment(**ENVIRONMENT),
        )
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, self._process.pid, _NICENESS)

    @property
    def pid(self) -> int:
        """Id of the process."""
        return self._process.pid

    @property
    def status(self) -> int | None:
        """Its exit status, negative when a signal ended it; ``None`` while it runs."""
        return self._process.poll()

    def kill(self) -> None:
        """Kill it and its children now; nothing when it has ended."""
        if self._process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self.close()

    def close(self) -> None:
        """Release a process that has ended."""
        if self._process.stdin is not None:
            with suppress(OSError):
                self._process.stdin.close()
