"""Rows of drafts and of their logs; the rules are in ``steelyard.review.service``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import sqlalchemy as sa

from steelyard.review.log import Entry, EntryBody, pack_places, unpack_places
from steelyard.review.tables import draft_duties, draft_entries, drafts
from steelyard.review.wire import DraftsQuery
from steelyard.storage.pages import OrderedPage, newest_first
from steelyard.wire.decoding import decoder_of
from steelyard.wire.filling import filled

#: What becomes of an entry: it holds, it was undone, or it was undone for good.
HOLDS, UNDONE, GONE = 0, 1, 2
_STEPS = ("undo", "redo")

_decode_body = decoder_of(EntryBody).decode


def insert_draft(connection: sa.Connection, values: dict[str, Any]) -> None:
    """Write a new draft, open and with nothing in its log."""
    connection.execute(
        sa.insert(drafts), {"status": "open", "revision": 0, "sealed": None, **values}
    )


def find_draft(
    connection: sa.Connection, account_id: str, draft_id: str, *, is_locked: bool = False
) -> sa.Row[Any] | None:
    """Return a draft of an account; locked, no other writer changes it before the transaction ends."""
    query = sa.select(drafts).where(drafts.c.account_id == account_id, drafts.c.id == draft_id)
    return connection.execute(query.with_for_update() if is_locked else query).first()


def page_drafts(connection: sa.Connection, account_id: str, query: DraftsQuery) -> OrderedPage:
    """Return a page of an account's drafts, newest first."""
    owned = drafts.c.account_id == account_id
    where: list[sa.ColumnElement[bool]] = []
    if query.dataset_id is not None:
        where.append(drafts.c.dataset_id == query.dataset_id)
    if query.status is not None:
        where.append(drafts.c.status == query.status)
    return newest_first(
        connection, drafts, owned=owned, where=where, limit=query.limit, cursor=query.cursor
    )


def answered_drafts(connection: sa.Connection, account_id: str) -> list[sa.Row[Any]]:
    """Return an account's drafts with rows that several labelled apart, the oldest first."""
    answered = sa.select(draft_duties.c.draft_id).where(draft_duties.c.action == "answer")
    query = sa.select(drafts).where(drafts.c.account_id == account_id, drafts.c.id.in_(answered))
    return list(connection.execute(query.order_by(drafts.c.created_at, drafts.c.id)))


def drafts_assigned_to(
    connection: sa.Connection, account_id: str, reviewer: str
) -> list[sa.Row[Any]]:
    """Return an account's open drafts in which rows were assigned to a reviewer, by id."""
    assigned = sa.select(draft_duties.c.draft_id).where(
        draft_duties.c.action == "assign", draft_duties.c.reviewer == reviewer
    )
    query = sa.select(drafts).where(
        drafts.c.account_id == account_id, drafts.c.status == "open", drafts.c.id.in_(assigned)
    )
    return list(connection.execute(query.order_by(drafts.c.id)))


def delete_draft(connection: sa.Connection, draft_id: str) -> None:
    """Delete a draft and its logs."""
    connection.execute(sa.delete(draft_duties).where(draft_duties.c.draft_id == draft_id))
    connection.execute(sa.delete(draft_entries).where(draft_entries.c.draft_id == draft_id))
    connection.execute(sa.delete(drafts).where(drafts.c.id == draft_id))


def erase_logs(connection: sa.Connection, dataset_id: str) -> None:
    """Delete the logs of a dataset's drafts, which quote its rows; the drafts stay."""
    reviews = sa.select(drafts.c.id).where(drafts.c.dataset_id == dataset_id)
    for log in (draft_entries, draft_duties):
        connection.execute(sa.delete(log).where(log.c.draft_id.in_(reviews)))


def has_open(connection: sa.Connection, dataset_id: str) -> bool:
    """Return whether a dataset has a draft with edits that was not sealed."""
    rows = connection.execute(
        sa.select(drafts.c.id)
        .where(drafts.c.dataset_id == dataset_id, drafts.c.status == "open", drafts.c.revision > 0)
        .limit(1)
    )
    return rows.first() is not None


def open_of(connection: sa.Connection, dataset_id: str, reviewer: str) -> list[str]:
    """Return the open drafts of a dataset in which a reviewer was assigned rows."""
    of_draft = (draft_duties.c.draft_id == drafts.c.id) & (draft_duties.c.reviewer == reviewer)
    return [
        *connection.scalars(
            sa.select(drafts.c.id).where(
                drafts.c.dataset_id == dataset_id,
                drafts.c.status == "open",
                sa.exists().where(of_draft, draft_duties.c.action == "assign"),
            )
        )
    ]


def seal_draft(connection: sa.Connection, draft_id: str, *, at: float, sealed: bytes) -> None:
    """Write the result of a draft, as JSON; the time is in Unix seconds."""
    connection.execute(
        sa.update(drafts)
        .where(drafts.c.id == draft_id)
        .values(status="sealed", updated_at=at, sealed=sealed)
    )


def append_entries(
    connection: sa.Connection, draft_id: str, entries: Sequence[Entry], *, at: float
) -> None:
    """Write the next entries of a log; the time is in Unix seconds."""
    connection.execute(
        sa.insert(draft_entries),
        [
            {
                "draft_id": draft_id,
                "number": entry.number,
                "at": at,
                "reviewer": entry.reviewer,
                "action": entry.action,
                "rows": len(entry.rows()),
                "row": entry.row,
                "places": None if entry.places is None else pack_places(entry.places),
                "target": entry.target,
                "undone": HOLDS,
                "body": msgspec.json.encode(entry.body),
            }
            for entry in entries
        ],
    )
    connection.execute(
        sa.update(drafts)
        .where(drafts.c.id == draft_id)
        .values(revision=entries[-1].number, updated_at=at)
    )


def entries_after(connection: sa.Connection, draft_id: str, number: int) -> list[Entry]:
    """Return the entries of a log that are newer than one, the oldest first."""
    rows = connection.execute(
        sa.select(draft_entries)
        .where(draft_entries.c.draft_id == draft_id, draft_entries.c.number > number)
        .order_by(draft_entries.c.number)
    )
    return [read_entry(row) for row in rows]


def read_entry(row: sa.Row[Any]) -> Entry:
    """Return an entry of its row."""
    body = _decode_body(row.body)
    return filled(
        Entry,
        row,
        places=None if row.places is None else unpack_places(row.places),
        body=body,
        same=None if body.same is None else unpack_places(body.same),
    )


def find_undoable(connection: sa.Connection, draft_id: str, reviewer: str | None) -> Entry | None:
    """Return a reviewer's last entry that holds."""
    newest_first = _standing(draft_id, reviewer, HOLDS).order_by(draft_entries.c.number.desc())
    return _first(connection, newest_first)


def find_redoable(connection: sa.Connection, draft_id: str, reviewer: str | None) -> Entry | None:
    """Return a reviewer's last undone edit that can be redone."""
    undo = draft_entries.alias("undo")
    is_of_it = sa.and_(
        undo.c.draft_id == draft_entries.c.draft_id, undo.c.target == draft_entries.c.number
    )
    newest_first = (
        _standing(draft_id, reviewer, UNDONE)
        .join(undo, is_of_it)
        .where(undo.c.draft_id == draft_id, undo.c.action == "undo")
        .order_by(undo.c.number.desc())
    )
    return _first(connection, newest_first)


def entries_between(
    connection: sa.Connection,
    draft_id: str,
    reviewer: str | None,
    standing: int,
    first: int,
    last: int,
) -> list[Entry]:
    """Return a reviewer's entries of a range that hold, or were undone, the oldest first.

    Of more numbers than one, those about one row each: the others may name any number of rows.
    """
    selected = _standing(draft_id, reviewer, standing).where(
        draft_entries.c.number.between(first, last)
    )
    if first < last:
        selected = selected.where(draft_entries.c.row.is_not(None))
    rows = connection.execute(selected.order_by(draft_entries.c.number))
    return [read_entry(row) for row in rows]


def set_undone(
    connection: sa.Connection, draft_id: str, numbers: Sequence[int], undone: int
) -> None:
    """Note whether entries hold."""
    connection.execute(
        sa.update(draft_entries)
        .where(draft_entries.c.draft_id == draft_id, draft_entries.c.number.in_(numbers))
        .values(undone=undone)
    )


def drop_redoable(connection: sa.Connection, draft_id: str, reviewer: str | None) -> None:
    """Clear a reviewer's redo history: they made another edit since."""
    connection.execute(
        sa.update(draft_entries)
        .where(_of(draft_id, reviewer), draft_entries.c.undone == UNDONE)
        .values(undone=GONE)
    )


def page_entries(
    connection: sa.Connection, draft_id: str, *, row: int | None, after: int | None, limit: int
) -> tuple[list[sa.Row[Any]], bool]:
    """Return a page of a log, newest first, and whether there is more."""
    rows: list[sa.Row[Any]] = []
    while len(rows) <= limit:
        conditions = [draft_entries.c.draft_id == draft_id]
        if after is not None:
            conditions.append(draft_entries.c.number < after)
        if row is not None:
            conditions.append(sa.or_(draft_entries.c.row == row, draft_entries.c.row.is_(None)))
        page = connection.execute(
            sa.select(draft_entries)
            .where(*conditions)
            .order_by(draft_entries.c.number.desc())
            .limit(limit + 1)
        ).all()
        # Which rows an entry about many has is seen only in its places.
        rows += [record for record in page if row is None or read_entry(record).touches(row)]
        if len(page) <= limit:
            break
        after = page[-1].number
    return rows[:limit], len(rows) > limit


def _standing(draft_id: str, reviewer: str | None, standing: int) -> sa.Select[Any]:
    return sa.select(draft_entries).where(
        _of(draft_id, reviewer), draft_entries.c.undone == standing
    )


def _first(connection: sa.Connection, statement: sa.Select[Any]) -> Entry | None:
    row = connection.execute(statement.limit(1)).first()
    return None if row is None else read_entry(row)


def _of(draft_id: str, reviewer: str | None) -> sa.ColumnElement[bool]:
    theirs = draft_entries.c.reviewer
    return sa.and_(
        draft_entries.c.draft_id == draft_id,
        theirs.is_(None) if reviewer is None else theirs == reviewer,
        draft_entries.c.action.not_in(_STEPS),
    )
