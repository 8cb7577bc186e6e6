"""Named decisions, their versions, moves and shares as the wire has them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import msgspec
from sqlalchemy import Connection, Row

from steelyard.named import store as rows
from steelyard.named import wire
from steelyard.wire.decoding import decoder_of
from steelyard.wire.filling import filled

#: Shares that a named decision lists.
_MOST_SHARES = 5

decode_figures = decoder_of(wire.ShareFigures).decode
decode_ramp = decoder_of(wire.ShareRamp).decode


def to_wire(connection: Connection, row: Row[Any]) -> wire.NamedDecision:
    """Return a named decision as the wire has it."""
    return all_to_wire(connection, [row])[0]


def all_to_wire(connection: Connection, entries: Collection[Row[Any]]) -> list[wire.NamedDecision]:
    """Return named decisions as the wire has them."""
    ids = [row.id for row in entries]
    latest = rows.latest_numbers(connection, ids)
    aliases: dict[str, list[wire.NamedAlias]] = {}
    for row in rows.aliases_of(connection, ids):
        alias = wire.NamedAlias(alias=row.alias, version=row.number, moved_at=row.moved_at)
        aliases.setdefault(row.named_id, []).append(alias)
    shares: dict[str, list[wire.NamedShare]] = {}
    for row in rows.shares_of(connection, ids):
        of_decision = shares.setdefault(row.named_id, [])
        if len(of_decision) < _MOST_SHARES:
            of_decision.append(_share(row))
    return [
        filled(
            wire.NamedDecision,
            row,
            aliases=aliases.get(row.id, []),
            shares=shares.get(row.id, []),
            latest=latest[row.id],
        )
        for row in entries
    ]


def version_to_wire(name: str, row: Row[Any]) -> wire.NamedVersion:
    """Return a version of a named decision as the wire has it."""
    content = msgspec.json.decode(row.content)
    return filled(
        wire.NamedVersion,
        row,
        name=name,
        version=row.number,
        **{field: content.get(field) for field in wire.NamedContent.__struct_fields__},
    )


def _share(row: Row[Any]) -> wire.NamedShare:
    return filled(
        wire.NamedShare,
        row,
        to=row.to_alias,
        from_version=row.from_number,
        to_version=row.to_number,
        figures=wire.ShareFigures() if row.figures is None else decode_figures(row.figures),
        ramp=None if row.ramp is None else decode_ramp(row.ramp),
    )


def move_to_wire(row: Row[Any]) -> wire.AliasMove:
    """Return a move as the wire has it."""
    return filled(wire.AliasMove, row, from_version=row.from_number, to_version=row.to_number)
