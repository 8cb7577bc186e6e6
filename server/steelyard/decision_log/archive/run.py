"""Moving a closed day of an account's stored decisions to files, one after another.

Each file is written and durable, then named by the state, then its rows leave the state in small
transactions. A process that dies in between leaves a file without a reference, which is swept, or rows
that are in both, of which the state's count until the next run has removed them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, ClassVar

from sqlalchemy import ColumnElement, Connection, Table

from steelyard.decision_log.archive import store as rows
from steelyard.decision_log.archive.files import (
    GROUP_BYTES,
    GROUP_ROWS,
    ArchiveFiles,
)
from steelyard.decision_log.store import AnswerCriteria
from steelyard.decision_log.tables import decision_archivings
from steelyard.jobs.store import PendingJob
from steelyard.jobs.work import Run, TableWork
from steelyard.storage import State

#: Rows removed in one transaction, and seconds between two, so that requests wait little for them.
_AT_ONCE, _PAUSE_S = 500, 0.01


@dataclass(eq=False, slots=True)
class ArchiveRuns(TableWork):
    """Moves of closed days as a kind of job; rows that ``referring_columns`` name stay."""

    name: ClassVar[str] = "decision_archive"
    table: ClassVar[Table] = decision_archivings

    state: State
    files: ArchiveFiles
    referring_columns: Sequence[ColumnElement[str]]
    sweep_files: Callable[[], object]
    _: KW_ONLY
    now: Callable[[], float] = time.time

    def open(self, job: PendingJob) -> ArchiveRun:
        """Return the run of a day."""
        return ArchiveRun(job, self)

    def sweep(self) -> None:
        """Remove the files that the state does not name."""
        self.sweep_files()


class ArchiveRun(Run):
    """A day that moves here."""

    def __init__(self, job: PendingJob, work: ArchiveRuns) -> None:
        super().__init__(job)
        self._work = work

    def advance(self) -> bool:
        """Remove the rows of a file that is named, or write and name the next file, or end."""
        work, account_id = self._work, self.job.account_id
        day: int = work.find(self.job).day
        sha256 = work.state.read_now(partial(rows.next_uncleared, account_id=account_id, day=day))
        if sha256 is not None:
            self._clear(sha256)
            return True
        if self._write(day):
            return True
        self._keep(status="succeeded")
        return False

    def close(self) -> None:
        """Do nothing: a run holds nothing between two steps."""

    def _write(self, day: int) -> bool:
        """Write and name a file; return whether there was anything for one."""
        work, account_id = self._work, self.job.account_id
        after = work.state.read_now(partial(rows.last_place, account_id=account_id, day=day))
        with work.files.write() as writer:
            while not writer.is_full:
                if self.stopping.is_set():
                    return True
                group = work.state.read_now(
                    partial(
                        rows.next_rows,
                        account_id=account_id,
                        day=day,
                        after=after,
                        referring_columns=work.referring_columns,
                        limit=GROUP_ROWS,
                        n_bytes=GROUP_BYTES,
                    )
                )
                if not group:
                    break
                writer.add(group)
                after = (group[-1].created_at, group[-1].id)
            if not writer.n_rows:
                return False
            written = writer.adopt()
        self._keep(partial(rows.record_file, job=self.job, day=day, file=written))
        return True

    def _clear(self, sha256: str) -> None:
        """Remove the rows of a file, once the file is verified."""
        work = self._work
        work.files.check(sha256)
        everything = AnswerCriteria(account_id=self.job.account_id, newest_first=False)
        for table in work.files.read(sha256, everything, ("id",)):
            ids = table["id"].to_pylist()
            for start in range(0, len(ids), _AT_ONCE):
                some = ids[start : start + _AT_ONCE]
                self._keep(
                    partial(rows.remove_rows, ids=some, referring_columns=work.referring_columns)
                )
                if self.stopping.wait(_PAUSE_S):
                    return
        self._keep(partial(rows.set_cleared, sha256=sha256))

    def _keep(self, work: Callable[[Connection], object] | None = None, **values: Any) -> None:
        """Write something of the run, if it still counts."""

        def write(connection: Connection) -> bool:
            is_ours = rows.keep_run(connection, self.job, self._work.now(), **values)
            if is_ours and work is not None:
                work(connection)
            return is_ours

        self._work.write(write)
