"""Several worker processes behind one listening socket: started, watched, restarted, stopped.

The workers share the socket, so the kernel hands a connection to whichever is free to take it, and
one that waits when a worker dies is taken by another. A worker that dies is replaced. Workers are
in process groups of their own: Ctrl-C reaches the supervisor alone, which tells them. Should the
supervisor itself be killed, the end of its pipe ends them at once.
"""

from __future__ import annotations

import asyncio
import json
import logging
import signal
import socket
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from steelyard.cli.failures import FAILED
from steelyard.settings import child_environment

_log = logging.getLogger(__name__)

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
#: Seconds that a worker has beyond ``shutdown_s`` to close its engines and state.
_CLOSING_S = 10.0
#: Seconds before a worker that dies young is replaced: doubled each time, up to the second.
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 5.0
#: Seconds after which a worker's start counts as good.
_SETTLED_S = 30.0


class WorkerFailedError(Exception):
    """A worker that ended before any was ready."""

    def __init__(self, status: int) -> None:
        super().__init__(f"A worker could not start (exit status {status}).")
        self.status = status


class Supervisor:
    """Keeps worker processes running."""

    def __init__(
        self,
        listener: socket.socket,
        settings: Mapping[str, Any],
        *,
        n_workers: int,
        shutdown_s: float,
        metrics: Path,
    ) -> None:
        self._listener = listener
        self._settings = json.dumps(dict(settings), default=str).encode() + b"\n"
        self._n_workers = n_workers
        self._shutdown_s = shutdown_s
        self._metrics = metrics
        self._processes: set[Process] = set()
        self._stopping = asyncio.Event()
        self._n_signals = 0
        self._stop_signal = signal.SIGTERM

    async def run(self, on_ready: Callable[[Mapping[str, str]], None]) -> None:
        """Keep the workers running until SIGINT or SIGTERM; fail where one ends before all are ready."""
        loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            loop.add_signal_handler(number, self._hear, number)
        ready: list[asyncio.Future[Mapping[str, str]]] = [
            loop.create_future() for _ in range(self._n_workers)
        ]
        keepers = [asyncio.create_task(self._keep(future)) for future in ready]
        try:
            stopped = asyncio.create_task(self._stopping.wait())
            everyone = asyncio.gather(*ready)
            await asyncio.wait((everyone, stopped), return_when=asyncio.FIRST_COMPLETED)
            if everyone.done():
                on_ready(everyone.result()[0])
                await stopped
            everyone.cancel()
            stopped.cancel()
        finally:
            self._stopping.set()
            self._listener.close()
            await self._stop_all(keepers)
            for number in _SIGNALS:
                loop.remove_signal_handler(number)

    async def _keep(self, ready: asyncio.Future[Mapping[str, str]]) -> None:
        """Run one worker after another until the supervisor stops."""
        pause_s = _FIRST_PAUSE_S
        loop = asyncio.get_running_loop()
        while not self._stopping.is_set():
            began = loop.time()
            try:
                process = await self._start()
            except OSError as error:  # too many processes or files, or too little memory
                _log.error("no worker could be started: %s", error.strerror or error)
                if not ready.done():
                    ready.set_exception(WorkerFailedError(FAILED))
                    return
                pause_s = await self._pause(pause_s)
                continue
            assert process.stdout is not None  # noqa: S101  # it was asked for
            line = await process.stdout.readline()
            if line and not ready.done():
                ready.set_result(json.loads(line))
            status = await process.wait()
            self._processes.discard(process)
            self._forget(process.pid)
            if self._stopping.is_set():
                return
            if not ready.done():
                ready.set_exception(WorkerFailedError(status))
                return
            if loop.time() - began > _SETTLED_S:
                pause_s = _FIRST_PAUSE_S
            _log.error(
                "worker %d ended with status %d; starting another in %g s",
                process.pid,
                status,
                pause_s,
            )
            pause_s = await self._pause(pause_s)

    async def _pause(self, seconds: float) -> float:
        """Wait, unless the supervisor stops; returns how long to wait the next time."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._stopping.wait(), seconds)
        return min(seconds * 2, _LONGEST_PAUSE_S)

    async def _start(self) -> Process:
        descriptor = self._listener.fileno()
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "steelyard.cli.worker",
            str(descriptor),
            stdin=PIPE,
            stdout=PIPE,
            pass_fds=(descriptor,),
            start_new_session=True,
            env=child_environment(PROMETHEUS_MULTIPROC_DIR=str(self._metrics)),
        )
        self._processes.add(process)
        assert process.stdin is not None  # noqa: S101  # it was asked for
        with suppress(ConnectionError):
            process.stdin.write(self._settings)
            await process.stdin.drain()
        return process

    async def _stop_all(self, keepers: list[asyncio.Task[None]]) -> None:
        """Ask every worker to stop, and end those that do not."""
        self._signal(self._stop_signal)
        _, late = await asyncio.wait(keepers, timeout=self._shutdown_s + _CLOSING_S)
        if late:
            self._signal(signal.SIGKILL)
            await asyncio.wait(late)
        for keeper in keepers:
            keeper.exception()  # one that could not start its worker was heard already

    def _hear(self, number: signal.Signals) -> None:
        self._n_signals += 1
        if self._n_signals == 1:
            self._stop_signal = number  # workers wait less after Ctrl-C
            self._stopping.set()
        else:  # the second stops the workers at once, and the third ends them
            self._signal(signal.SIGTERM if self._n_signals == 2 else signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        for process in tuple(self._processes):
            with suppress(ProcessLookupError):
                process.send_signal(number)

    def _forget(self, pid: int) -> None:
        """Remove a dead worker's gauges, such as the length of its queue."""
        for path in self._metrics.glob(f"gauge_live*_{pid}.db"):
            path.unlink(missing_ok=True)


def supervise(
    supervisor_of: Callable[[], Supervisor], on_ready: Callable[[Mapping[str, str]], None]
) -> None:
    """Run a supervisor in this process."""

    async def main() -> None:
        await supervisor_of().run(on_ready)

    asyncio.run(main())
