"""Stored answers of the state and of its archived files, read as one log.

What has feedback is in the state. A row that is in both, as while its day moves, counts as the state's.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy import Connection

from steelyard.decision_log import store as rows
from steelyard.decision_log.archive.files import SCHEMA, ArchiveFiles
from steelyard.decision_log.archive.store import files_with, ids_between
from steelyard.decision_log.store import (
    ObservedDecision,
    ShortAnswer,
    ShortRow,
    StoredDecision,
    Wanted,
)
from steelyard.storage.pages import unknown_cursor
from steelyard.wire.decoding import decode

#: Archived rows that are made objects at a time.
_AT_A_TIME = 250
_SHORT = ShortAnswer._fields


class StoredAnswers:
    """Reads accounts' stored answers; without files only those of the state."""

    def __init__(self, files: ArchiveFiles | None = None) -> None:
        self._files = files

    def find(
        self, connection: Connection, account_id: str, decision_id: str, not_before: float
    ) -> StoredDecision:
        """Return a kept answer, or refuse an id that is not that of one."""
        found = rows.look_for(connection, account_id, decision_id, not_before)
        found = found or self.find_archived(connection, account_id, decision_id, not_before)
        if found is None:
            raise rows.not_stored(decision_id)
        return found

    def find_archived(
        self, connection: Connection, account_id: str, decision_id: str, not_before: float
    ) -> StoredDecision | None:
        """Return an answer that is in no place but a file."""
        wanted = Wanted(account_id=account_id, since=not_before, ids=(decision_id,))
        row = next(self._rows(connection, wanted, SCHEMA.names), None)
        return None if row is None else _stored(row, account_id)

    def place_of(
        self, connection: Connection, account_id: str, decision_id: str
    ) -> tuple[float, str]:
        """Return time and id of the answer that a cursor names."""
        at = rows.time_of(connection, account_id, decision_id)
        if at is None:
            wanted = Wanted(account_id=account_id, ids=(decision_id,))
            row = next(self._rows(connection, wanted, ("id", "created_at")), None)
            if row is None:
                raise unknown_cursor()
            at = row["created_at"]
        return at, decision_id

    def newest(
        self,
        connection: Connection,
        wanted: Wanted,
        limit: int,
        *,
        observed_of: str | None = None,
        is_observed: bool = False,
    ) -> Sequence[ShortRow]:
        """Return wanted answers without what was asked, the newest first."""
        found = rows.newest_answers(
            connection, wanted, limit, observed_of=observed_of, is_observed=is_observed
        )
        if is_observed:
            return found
        if len(found) == limit:
            wanted = _as_far_as(wanted, found[-1].created_at)
        archived = islice(self._rows(connection, wanted, _SHORT), limit)
        both: list[ShortRow] = [*found, *(_short(row) for row in archived)]
        both.sort(key=lambda row: (row.created_at, row.id), reverse=True)
        return both[:limit]

    def page(self, connection: Connection, wanted: Wanted, limit: int) -> list[ObservedDecision]:
        """Return a page of the kept answers in the order that is wanted, with what was observed."""
        found = rows.page_answers(connection, wanted, limit)
        if len(found) == limit:
            wanted = _as_far_as(wanted, found[-1].decision.created_at)
        archived = islice(self._rows(connection, wanted, SCHEMA.names), limit)
        both = [
            *found,
            *(ObservedDecision(_stored(row, wanted.account_id), {}) for row in archived),
        ]
        both.sort(key=lambda one: one.place, reverse=wanted.newest_first)
        return both[:limit]

    def between(self, connection: Connection, wanted: Wanted) -> Iterator[ShortRow]:
        """Yield every wanted answer, in no order, as ``newest`` returns them."""
        yield from rows.answers_between(connection, wanted)
        for row in self._rows(connection, wanted, _SHORT):
            yield _short(row)

    def count(self, connection: Connection, wanted: Wanted) -> int:
        """Count the kept answers of an account."""
        n = rows.count_decisions(connection, wanted)
        if wanted.ids is not None and not wanted.ids:
            return n
        return n + sum(len(table) for table in self._tables(connection, wanted, ()))

    def count_between(
        self, connection: Connection, wanted: Wanted, *, first: float, width: float
    ) -> dict[int, int]:
        """Return how many stored answers there are in each stretch after ``first`` that has some."""
        counts = Counter(rows.count_between(connection, wanted, first=first, width=width))
        for table in self._tables(connection, wanted, ()):
            places = np.floor((table["created_at"].to_numpy() - first) / width).astype(np.int64)
            for place, n in zip(*np.unique(places, return_counts=True), strict=True):
                counts[int(place)] += int(n)
        return dict(counts)

    def _rows(
        self, connection: Connection, wanted: Wanted, columns: Sequence[str]
    ) -> Iterator[dict[str, Any]]:
        """Yield the wanted answers that are in files alone, in the order that is wanted."""
        for table in self._tables(connection, wanted, columns):
            yield from _in_parts(table, newest_first=wanted.newest_first)

    def _tables(
        self, connection: Connection, wanted: Wanted, columns: Sequence[str]
    ) -> Iterator[pa.Table]:
        if self._files is None:
            return
        for file in files_with(connection, wanted):
            for table in self._files.read(file.sha256, wanted, columns):
                at = table["created_at"]
                held = ids_between(connection, wanted.account_id, at[0].as_py(), at[-1].as_py())
                if held:
                    is_held = pc.is_in(table["id"], value_set=pa.array(sorted(held), pa.string()))
                    table = table.filter(pc.invert(is_held))  # noqa: PLW2901
                if len(table):
                    yield table


def _as_far_as(wanted: Wanted, at: float) -> Wanted:
    """Return what is wanted up to a time, that time included: a page of the state ends there."""
    if wanted.newest_first:
        return replace(wanted, since=at)
    return replace(wanted, until=math.nextafter(at, math.inf))


def _in_parts(table: pa.Table, *, newest_first: bool) -> Iterator[dict[str, Any]]:
    if not newest_first:
        for start in range(0, len(table), _AT_A_TIME):
            yield from table.slice(start, _AT_A_TIME).to_pylist()
        return
    for stop in range(len(table), 0, -_AT_A_TIME):
        start = max(stop - _AT_A_TIME, 0)
        yield from reversed(table.slice(start, stop - start).to_pylist())


def _short(row: dict[str, Any]) -> ShortAnswer:
    return ShortAnswer(*(row[name] for name in _SHORT))


def _stored(row: dict[str, Any], account_id: str) -> StoredDecision:
    names = decode(row["outcome_names"], dict[str, list[str]])
    return StoredDecision(**{**row, "account_id": account_id, "outcome_names": names})
