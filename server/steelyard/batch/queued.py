"""Parts that the workers of a state answer, on whichever machines they run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any

import msgspec

from steelyard.app.foundation import open_frames
from steelyard.batch.parts import Parts, keep_part
from steelyard.batch.workers import Note, WorkerPart
from steelyard.bulk import store as rows
from steelyard.bulk.files import read_answers, write_partition
from steelyard.caller import LOCAL_ACCOUNT
from steelyard.errors import EngineUnavailableError
from steelyard.jobs.failures import Failure
from steelyard.settings import Settings
from steelyard.storage import State, open_state
from steelyard.storage.frame_store import FrameStore
from steelyard.storage.home import state_url_of
from steelyard.wire.decoding import decode

#: Parts that wait for workers, are answered, or wait to be fetched.
_AHEAD = 256
#: Seconds between two looks for answers, and between two notes that the caller still waits.
_LOOK_S, _NOTE_S = 0.2, 600.0
#: Seconds after which it is said that no worker has taken anything.
_PATIENCE_S = 15.0


@dataclass(frozen=True, slots=True)
class Queue:
    """The durable queue of a state: each part is answered once and fetched once, across crashes."""

    state: State
    store: FrameStore
    _: KW_ONLY
    say: Callable[[str], object]
    ahead: int = _AHEAD
    now: Callable[[], float] = time.time

    def answer(
        self, parts: Iterable[WorkerPart], request: dict[str, Any], stored: Parts, note: Note
    ) -> None:
        """Hand parts to the workers and store their answers, until all are there.

        Raise ``EngineUnavailableError`` when workers cannot answer: finished answers are kept.
        """
        run, left = stored.run, iter(parts)
        encoded = msgspec.json.encode(request)
        there = self.state.write_now(
            lambda c: rows.begin(c, run, LOCAL_ACCOUNT, encoded, at=self.now())
        )
        waiting: dict[int, int] = {}
        began_at = noted_at = self.now()
        is_taken = False
        while True:
            while len(waiting) < self.ahead and (part := next(left, None)) is not None:
                if part.number not in there:
                    self._add(run, part)
                waiting[part.number] = len(part.contexts)
            if not waiting:
                break
            n_fetched = self._fetch(stored, waiting, note)
            if n_fetched:
                noted_at, is_taken = self.now(), True
                continue
            if not is_taken and self.now() - began_at >= _PATIENCE_S:
                is_taken = True
                self._say_if_untaken(run)
            if self.now() - noted_at >= _NOTE_S:
                noted_at = self.now()
                self.state.write_now(partial(rows.touch, run_id=run, at=noted_at))
            time.sleep(_LOOK_S)
        self.state.write_now(partial(rows.end, run_id=run))

    def _say_if_untaken(self, run: str) -> None:
        jobs = self.state.read_now(rows.pending)
        if not any(job.id == run and job.runner for job in jobs):
            self.say(
                "No worker has taken a part yet: one that runs another job comes to it, or start "
                "'steelyard worker' with the same state."
            )

    def _add(self, run: str, part: WorkerPart) -> None:
        sha256 = write_partition(self.store, part.rows, part.contexts)
        self.state.write_now(lambda c: rows.add(c, run, part.number, sha256, at=self.now()))

    def _fetch(self, parts: Parts, waiting: dict[int, int], note: Note) -> int:
        """Store the parts answered since the last look; return their number."""
        run, answered = self.state.read_now(
            lambda c: (rows.find_run(c, parts.run), rows.answered(c, parts.run))
        )
        for number, sha256 in answered.items():
            # A part that is not waited for was stored by a command that died before it noted that.
            if number in waiting:
                keep_part(parts.folder, number, read_answers(self.store, sha256))
                note(number, waiting.pop(number))
        if answered:
            self.state.write_now(lambda c: rows.remove(c, parts.run, list(answered), at=self.now()))
        elif run is None:
            raise EngineUnavailableError(
                "Nobody fetched the answers for a week, and the run was given up; start it again: "
                "what was fetched is kept."
            )
        elif run.error is not None:
            raise EngineUnavailableError(
                f"The workers cannot answer: {decode(run.error, Failure).message}"
            )
        return len(answered)


@contextmanager
def open_queue(settings: Settings, say: Callable[[str], object] = print) -> Iterator[Queue]:
    """Open the queue of the settings' state; ``say`` receives messages for the user."""
    with closing(open_state(state_url_of(settings))) as state:
        yield Queue(state, open_frames(settings, "bulk"), say=say)
