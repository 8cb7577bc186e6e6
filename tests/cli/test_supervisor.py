"""The supervisor of workers where the system gives it no further process."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Iterator

import pytest

from steelyard.cli.supervisor import Supervisor, WorkerFailedError

WORKER = """
import sys, time
print('{"model": "m", "engine": "e"}', flush=True)
time.sleep(float(sys.argv[1]))
"""


class Starved(Supervisor):
    """Has no process for some of its starts, by their numbers; its first worker ends at once."""

    failing: frozenset[int] = frozenset()
    n_starts = 0

    async def _start(self) -> Process:
        self.n_starts += 1
        if self.n_starts in self.failing:
            raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        seconds = "0" if self.n_starts == 1 else "60"
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", WORKER, seconds, stdin=PIPE, stdout=PIPE
        )
        self._processes.add(process)
        if self.n_starts > 2:
            self._stopping.set()
        return process


@pytest.fixture
def supervisor_of(tmp_path) -> Iterator[Callable[[], Starved]]:
    listener = socket.create_server(("127.0.0.1", 0))
    yield lambda: Starved(listener, {}, n_workers=1, shutdown_s=5.0, metrics=tmp_path)
    listener.close()


def test_a_start_without_a_process_ends_it_all(supervisor_of, caplog):
    async def run() -> None:
        supervisor = supervisor_of()
        supervisor.failing = frozenset({1})
        await asyncio.wait_for(supervisor.run(lambda _: None), 30)

    with pytest.raises(WorkerFailedError):
        asyncio.run(run())
    assert os.strerror(errno.EAGAIN) in caplog.text


def test_a_worker_is_replaced_once_there_is_a_process_for_it(supervisor_of, caplog):
    ready = []

    async def run() -> int:
        supervisor = supervisor_of()
        supervisor.failing = frozenset({2})
        await asyncio.wait_for(supervisor.run(ready.append), 60)
        return supervisor.n_starts

    assert asyncio.run(run()) == 3
    assert ready == [{"model": "m", "engine": "e"}]
    assert "no worker could be started" in caplog.text
