"""The logs of who is to label which rows of drafts; the rules are in ``steelyard.review.duties``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from sqlalchemy import Connection, Row, func, insert, select

from steelyard.review.duties import Answer, Apart, Duty
from steelyard.review.log import pack_places, unpack_places
from steelyard.review.tables import draft_duties
from steelyard.wire.decoding import decoder_of
from steelyard.wire.filling import filled

_decode_answer, _decode_apart = decoder_of(Answer).decode, decoder_of(Apart).decode


def duties_after(connection: Connection, draft_id: str, number: int) -> list[Duty]:
    """Return the entries of a log that are newer than one, the oldest first."""
    rows = connection.execute(
        select(draft_duties)
        .where(draft_duties.c.draft_id == draft_id, draft_duties.c.number > number)
        .order_by(draft_duties.c.number)
    )
    return [_read(row) for row in rows]


def append_duties(connection: Connection, draft_id: str, duties: Sequence[Duty]) -> None:
    """Write the next entries of a log."""
    connection.execute(
        insert(draft_duties),
        [
            {
                "draft_id": draft_id,
                "number": duty.number,
                "at": duty.at,
                "reviewer": duty.reviewer,
                "action": duty.action,
                "places": pack_places(duty.places),
                "body": None if duty.body is None else msgspec.json.encode(duty.body),
            }
            for duty in duties
        ],
    )


def count_assigned(connection: Connection, draft_id: str) -> int:
    """Count the entries of a log that are no answers."""
    number = connection.scalar(
        select(func.count())
        .select_from(draft_duties)
        .where(draft_duties.c.draft_id == draft_id, draft_duties.c.action != "answer")
    )
    return number or 0


def _read(row: Row[Any]) -> Duty:
    decode = _decode_answer if row.action == "answer" else _decode_apart
    return filled(
        Duty,
        row,
        places=unpack_places(row.places),
        body=None if row.body is None else decode(row.body),
    )
