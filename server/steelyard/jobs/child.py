"""The process that runs a server's jobs: gone when there have been none for a while.

It is started when there are some; a server's first one while the server starts too, so that the first
job need not wait for it. It is a process of its own, since training and scoring in bulk would stall the server's event loop.
It loads the same model from the same settings. Several processes of one server may each want it; a
lock in the home lets one run.
"""

from __future__ import annotations

import json
import logging
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from steelyard.errors import SteelyardError
from steelyard.settings import child_environment

_log = logging.getLogger(__name__)

#: Runs jobs until its standard input ends, or there have been none for a while.
MODULE = "steelyard.cli.job_worker"
#: Seconds between two looks for work without a worker.
_LOOK_S = 15.0
#: Seconds before a process that died young is replaced: doubled each time, up to the second.
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 60.0
_SETTLED_S = 30.0
#: Seconds that it has to stop before it is killed.
_STOP_S = 10.0


class WorkerChild:
    """Keeps a process that runs jobs while there are any, from ``start`` or ``prepare`` on; thread-safe."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._settings = json.dumps(settings, default=str).encode() + b"\n"
        self._on_job_end: Callable[[], object] = lambda: None
        self._expects_work = False
        self._changed = threading.Event()
        self._stopping = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._began = 0.0
        self._pause_s = _FIRST_PAUSE_S
        self._thread: threading.Thread | None = None

    @property
    def pid(self) -> int | None:
        """Id of the process while it runs."""
        process = self._process
        return None if process is None or process.poll() is not None else process.pid

    def prepare(self) -> None:
        """Start a process that gets ready meanwhile, and opens nothing before ``start``."""
        self._spawn()

    def start(
        self, has_work: Callable[[], bool], on_job_end: Callable[[], object] = lambda: None
    ) -> None:
        """Look for work, now and from time to time; ``on_job_end`` is called when a job has ended."""
        self._on_job_end = on_job_end
        self._send(self._settings)
        self._thread = threading.Thread(
            target=self._keep, args=(has_work,), name="steelyard-worker", daemon=True
        )
        self._thread.start()

    def wake(self) -> None:
        """Look for work now."""
        self._changed.set()

    def expect(self) -> None:
        """Start a process for work that is likely to come; it ends if none does."""
        if self.pid is None:
            self._expects_work = True
            self._changed.set()

    def close(self) -> None:
        """End the process; the next one takes up its job. A second call does nothing."""
        self._stopping.set()
        self._changed.set()
        if self._thread is not None:
            self._thread.join()
        process = self._process
        if process is None:
            return
        if process.stdin is not None:
            with suppress(OSError):
                process.stdin.close()
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _keep(self, has_work: Callable[[], bool]) -> None:
        while not self._stopping.is_set():
            self._changed.clear()
            try:
                if self.pid is not None:
                    self._send(b"\n")
                elif self._expects_work or has_work():
                    self._expects_work = False
                    self._start()
            except SteelyardError as error:
                _log.warning("The jobs could not be looked at: %s", error.message)
            except Exception:  # noqa: BLE001  the next look may work
                _log.exception("The process that runs jobs could not be started.")
            self._changed.wait(_LOOK_S)

    def _start(self) -> None:
        if self._process is not None and self._process.stdin is not None:
            with suppress(OSError):
                self._process.stdin.close()
        if self._process is not None and self._process.returncode:
            self._pause()
        if self._stopping.is_set():
            return
        self._spawn()
        self._send(self._settings)

    def _spawn(self) -> None:
        self._began = time.monotonic()
        self._process = subprocess.Popen(  # noqa: S603  # our own module
            [sys.executable, "-m", MODULE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
            env=child_environment(),
        )
        threading.Thread(
            target=self._listen, args=(self._process,), name="steelyard-job-ends", daemon=True
        ).start()

    def _listen(self, process: subprocess.Popen[bytes]) -> None:
        """Read the lines of a process, one for each job that ended, until it is gone."""
        assert process.stdout is not None  # noqa: S101
        with process.stdout as lines:
            for _ in lines:
                self._on_job_end()

    def _send(self, line: bytes) -> None:
        """Send the settings, or an empty line, at which the process looks for work at once."""
        process = self._process
        if process is not None and process.stdin is not None:
            with suppress(OSError):
                process.stdin.write(line)
                process.stdin.flush()

    def _pause(self) -> None:
        """Wait before a process that failed is replaced."""
        assert self._process is not None  # noqa: S101
        if time.monotonic() - self._began > _SETTLED_S:
            self._pause_s = _FIRST_PAUSE_S
        _log.error(
            "The process that runs jobs ended with status %d; starting another in %g s.",
            self._process.returncode,
            self._pause_s,
        )
        self._stopping.wait(self._pause_s)
        self._pause_s = min(self._pause_s * 2, _LONGEST_PAUSE_S)
