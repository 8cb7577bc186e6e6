"""Stored answers of the state and of its archived files, read as one log.

Answers with feedback are in the state. A row in both, as while its day moves, counts as the state's.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy import Connection, func, select

from steelyard.decision_log import store as rows
from steelyard.decision_log.archive.files import SCHEMA, ArchiveFiles
from steelyard.decision_log.archive.store import files_with, ids_between
from steelyard.decision_log.store import (
    AnswerCriteria,
    ObservedDecision,
    ShortAnswer,
    ShortRow,
    StoredDecision,
)
from steelyard.decision_log.tables import decisions
from steelyard.decision_log.wire import LoggedDecision
from steelyard.decision_log.withheld import has_text
from steelyard.storage.pages import unknown_cursor
from steelyard.wire.decoding import decode

#: Archived rows that are made objects at a time.
_AT_A_TIME = 250

_SHORT = ShortAnswer._fields

#: Characters of a context that a list shows, and the bytes of a request that hold as many.
_BEGINNING, _BEGINNING_BYTES = 200, 1_300

_QUOTED = re.compile(r'"((?:[^"\\]|\\u[0-9a-fA-F]{4}|\\[^u])*)')


class StoredAnswers:
    """Reads accounts' stored answers; without files only those of the state."""

    def __init__(self, files: ArchiveFiles | None = None) -> None:
        self._files = files

    def find(
        self, connection: Connection, account_id: str, decision_id: str, not_before: float
    ) -> StoredDecision:
        """Return a stored answer; raise ``NotFoundError`` when none has the id."""
        stored = rows.look_for(connection, account_id, decision_id, not_before)
        stored = stored or self.find_archived(connection, account_id, decision_id, not_before)
        if stored is None:
            raise rows.not_stored(decision_id)
        return stored

    def find_archived(
        self, connection: Connection, account_id: str, decision_id: str, not_before: float
    ) -> StoredDecision | None:
        """Return an answer that only a file has."""
        criteria = AnswerCriteria(account_id=account_id, since=not_before, ids=(decision_id,))
        row = next(self._rows(connection, criteria, SCHEMA.names), None)
        return None if row is None else _stored(row, account_id)

    def place_of(
        self, connection: Connection, account_id: str, decision_id: str
    ) -> tuple[float, str]:
        """Return time and id of the answer that a cursor names."""
        at = rows.time_of(connection, account_id, decision_id)
        if at is None:
            criteria = AnswerCriteria(account_id=account_id, ids=(decision_id,))
            row = next(self._rows(connection, criteria, ("id", "created_at")), None)
            if row is None:
                raise unknown_cursor()
            at = row["created_at"]
        return at, decision_id

    def newest(
        self,
        connection: Connection,
        criteria: AnswerCriteria,
        limit: int,
        *,
        observed_of: str | None = None,
        is_observed: bool = False,
    ) -> Sequence[ShortRow]:
        """Return matching answers without their requests, the newest first."""
        stored = rows.newest_answers(
            connection, criteria, limit, observed_of=observed_of, is_observed=is_observed
        )
        if is_observed:
            return stored
        if len(stored) == limit:
            criteria = _as_far_as(criteria, stored[-1].created_at)
        archived = islice(self._rows(connection, criteria, _SHORT), limit)
        both: list[ShortRow] = [*stored, *(_short(row) for row in archived)]
        both.sort(key=lambda row: (row.created_at, row.id), reverse=True)
        return both[:limit]

    def beginnings(
        self, connection: Connection, account_id: str, answers: Sequence[LoggedDecision]
    ) -> dict[str, str]:
        """Return the first characters of the context of each answer of a page."""
        ids = {answer.id for answer in answers}
        texts = beginnings(connection, ids)
        if archived := ids - texts.keys():
            since = min(answer.created_at for answer in answers)
            criteria = AnswerCriteria(account_id=account_id, since=since, ids=archived)
            for row in self._rows(connection, criteria, ("id", "created_at", "request")):
                texts[row["id"]] = beginning_of(row["request"])
        return texts

    def page(
        self, connection: Connection, criteria: AnswerCriteria, limit: int
    ) -> list[ObservedDecision]:
        """Return a page of matching answers in the order of the criteria, with their outcomes."""
        stored = rows.page_answers(connection, criteria, limit)
        if len(stored) == limit:
            criteria = _as_far_as(criteria, stored[-1].decision.created_at)
        archived = islice(self._rows(connection, criteria, SCHEMA.names), limit)
        both = [
            *stored,
            *(ObservedDecision(_stored(row, criteria.account_id), {}) for row in archived),
        ]
        both.sort(key=lambda answer: answer.place, reverse=criteria.newest_first)
        return both[:limit]

    def between(self, connection: Connection, criteria: AnswerCriteria) -> Iterator[ShortRow]:
        """Yield every matching answer, in no order, as ``newest`` returns them."""
        yield from rows.answers_between(connection, criteria)
        for row in self._rows(connection, criteria, _SHORT):
            yield _short(row)

    def by_chance(
        self, connection: Connection, criteria: AnswerCriteria, limit: int
    ) -> list[ShortRow]:
        """Return matching answers in an order that chance gave them, and that stays."""
        ids = list(rows.ids_by_chance(connection, criteria, limit))
        for table in self._tables(connection, criteria, ("id",)):
            ids = sorted([*ids, *table["id"].to_pylist()], key=_chance)[:limit]
        answers = self.between(connection, replace(criteria, ids=ids)) if ids else ()
        return sorted(answers, key=lambda row: _chance(row.id))

    def count(self, connection: Connection, criteria: AnswerCriteria) -> int:
        """Count the matching answers."""
        n = rows.count_decisions(connection, criteria)
        if criteria.ids is not None and not criteria.ids:
            return n
        return n + sum(len(table) for table in self._tables(connection, criteria, ()))

    def count_between(
        self, connection: Connection, criteria: AnswerCriteria, *, first: float, width: float
    ) -> dict[int, int]:
        """Return how many stored answers there are in each stretch after ``first`` that has some."""
        counts = Counter(rows.count_between(connection, criteria, first=first, width=width))
        for table in self._tables(connection, criteria, ()):
            places = np.floor((table["created_at"].to_numpy() - first) / width).astype(np.int64)
            for place, n in zip(*np.unique(places, return_counts=True), strict=True):
                counts[int(place)] += int(n)
        return dict(counts)

    def _rows(
        self, connection: Connection, criteria: AnswerCriteria, columns: Sequence[str]
    ) -> Iterator[dict[str, Any]]:
        """Yield the matching answers that only files have, in the order of the criteria."""
        for table in self._tables(connection, criteria, columns):
            yield from _in_parts(table, newest_first=criteria.newest_first)

    def _tables(
        self, connection: Connection, criteria: AnswerCriteria, columns: Sequence[str]
    ) -> Iterator[pa.Table]:
        if self._files is None:
            return
        for file in files_with(connection, criteria):
            for table in self._files.read(file.sha256, criteria, columns):
                at = table["created_at"]
                stored_ids = ids_between(
                    connection, criteria.account_id, at[0].as_py(), at[-1].as_py()
                )
                if stored_ids:
                    is_stored = pc.is_in(
                        table["id"], value_set=pa.array(sorted(stored_ids), pa.string())
                    )
                    table = table.filter(pc.invert(is_stored))  # noqa: PLW2901
                if len(table):
                    yield table


def _chance(id_: str) -> tuple[str, str]:
    return id_[rows.CHANCE_AT :], id_


def _as_far_as(criteria: AnswerCriteria, at: float) -> AnswerCriteria:
    """Return the criteria cut at a time, inclusive, where a page of the database ends."""
    if criteria.newest_first:
        return replace(criteria, since=at)
    return replace(criteria, until=math.nextafter(at, math.inf))


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


def beginnings(connection: Connection, ids: Collection[str]) -> dict[str, str]:
    """Return the first characters of the context of each answer that the database has."""
    first = func.substr(decisions.c.request, 1, _BEGINNING_BYTES)
    rows = connection.execute(select(decisions.c.id, first).where(decisions.c.id.in_(ids)))
    return {id_: beginning_of(bytes(request)) for id_, request in rows}


def beginning_of(request: bytes) -> str:
    r"""Return the first characters of the context of a stored request, which its JSON begins with.

    Empty where the text is not stored.

    >>> beginning_of(b'{"context":"It is \\"late\\".","decisions":[]}')
    'It is "late".'
    >>> beginning_of(b'{"context":{"a":1},"decisions":[]}')
    '{"a":1}'
    """
    if not has_text(request):
        return ""
    text = request[:_BEGINNING_BYTES].decode(errors="ignore").removeprefix('{"context":')
    quoted = _QUOTED.match(text)
    text = msgspec.json.decode(f'"{quoted[1]}"') if quoted else text.split(',"decisions":')[0]
    return str(text)[:_BEGINNING]
