"""Processes of this machine that answer the parts of a run beside each other.

One process reads the rows and gives each part to a free worker, a few parts ahead and no more. A
part is written once, under its number, by the process that answered it; of one that died with its
process another is given the rows. Which parts are there is all that is known of a run, so that it
goes on wherever it was stopped, with any number of processes.
"""

from __future__ import annotations

import functools
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from multiprocessing.connection import wait as wait_for
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from steelyard.batch.answering import Answer, by_this_process
from steelyard.batch.parts import Parts, write_part
from steelyard.bulk.columns import with_answers
from steelyard.decisions.kinds import Decision
from steelyard.decisions.validation import read_request
from steelyard.errors import EngineUnavailableError
from steelyard.processes import count_processors

#: Takes the number of a part that is kept, and how many rows it has.
Note = Callable[[int, int], object]
#: Parts that are read for each process: the one that it answers and the next.
_AHEAD = 2
#: How often processes may die in a row without a part.
_MOST_DEATHS = 5
_FAILED = 1


@dataclass(frozen=True, slots=True)
class Workers:
    """How many processes answer, and the engine of each."""

    count: int
    engine: str | None = None
    threads: int | None = None

    def settings(self) -> dict[str, Any]:
        """Return the settings of each: together they have a thread for every core."""
        threads = self.threads or max(1, count_processors() // self.count)
        return {"engine": self.engine, "threads": threads}

    def answer(
        self, parts: Iterable[WorkerPart], request: dict[str, Any], stored: Parts, note: Note
    ) -> None:
        """Answer parts, and keep them: see ``answer_parts``."""
        answer_parts(parts, request, stored.folder, self, note)


@dataclass(frozen=True, slots=True)
class WorkerPart:
    """Some rows as columns, the context of each, and which part they are."""

    number: int
    rows: pl.DataFrame
    contexts: Sequence[Any]


def answer_parts(
    parts: Iterable[WorkerPart],
    request: dict[str, Any],
    folder: Path,
    workers: Workers,
    note: Note,
) -> None:
    """Answer parts in processes that store them in a folder; ``note`` takes each stored part.

    Raise ``EngineUnavailableError`` when processes die again and again without answering a part.
    """
    setup = msgspec.json.encode([workers.settings(), request])
    left = iter(parts)
    given: dict[Future[None], WorkerPart] = {}
    again: list[WorkerPart] = []
    n_deaths = 0
    pool = _pool(workers)
    try:
        while True:
            while len(given) < _AHEAD * workers.count:
                part = again.pop() if again else next(left, None)
                if part is None:
                    break
                try:
                    given[pool.submit(_answer, setup, part, folder)] = part
                except BrokenProcessPool:
                    again.append(part)
                    break
            if not given and not again:
                return
            done, _ = wait(given, return_when=FIRST_COMPLETED)
            is_broken = not done
            for future in done:
                part = given.pop(future)
                try:
                    future.result()
                except BrokenProcessPool:
                    is_broken = True
                    again.append(part)
                else:
                    n_deaths = 0
                    note(part.number, len(part.contexts))
            if is_broken:
                n_deaths += 1
                if n_deaths > _MOST_DEATHS:
                    raise EngineUnavailableError(
                        f"A process that answers rows died {n_deaths} times without a part; look at "
                        "the memory of the machine, or take fewer workers, and start again: what "
                        "was answered is kept."
                    )
                again += given.values()
                given.clear()
                pool.shutdown(wait=True)
                pool = _pool(workers)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _pool(workers: Workers) -> ProcessPoolExecutor:
    # Not forked: an engine's threads do not come along.
    return ProcessPoolExecutor(workers.count, mp_context=multiprocessing.get_context("spawn"))


@dataclass(frozen=True, slots=True)
class _Opened:
    """A process's opened model, and the closing that runs when it is collected."""

    decisions: tuple[Decision, ...]
    answer: Answer
    closing: ExitStack


def _answer(setup: bytes, part: WorkerPart, folder: Path) -> None:
    """Answer a part and keep it, in one of the processes."""
    opened = _opened(setup)
    answers = opened.answer(part.contexts, [])
    write_part(folder, part.number, with_answers(part.rows, opened.decisions, answers))


@functools.cache
def _opened(setup: bytes) -> _Opened:
    """Load the model of this process; it stays loaded until the process ends."""
    from steelyard.app.deployment import open_deployment  # noqa: PLC0415
    from steelyard.settings import read_settings  # noqa: PLC0415

    # The process that reads the rows gets the signal, and stops the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, name="steelyard-lifeline", daemon=True).start()
    given, request = msgspec.json.decode(setup)
    closing = ExitStack()
    deployment = closing.enter_context(open_deployment(read_settings(given)))
    decisions = read_request({**request, "context": ""}).decisions
    return _Opened(decisions, by_this_process(deployment.answers, request), closing)


def _end_with_parent() -> None:
    # One that was killed says nothing, and the queues of the pool never end.
    parent = multiprocessing.parent_process()
    if parent is not None:
        with suppress(OSError):
            wait_for([parent.sentinel])
        os._exit(_FAILED)
