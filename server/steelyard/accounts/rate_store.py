"""Rows of the minutes that several hosts count together, and slices of them for one host.

The database's clock says which minute it is: the hosts' own need not agree. Hosts lease in turns, so
no other host changes a value between its read and its write.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import BigInteger, Connection, bindparam, cast, delete, func, literal, select
from sqlalchemy.dialects.postgresql import insert

from steelyard.accounts.rate_limits import WINDOW_S, counts_in
from steelyard.accounts.tables import rate_windows

#: Of what is left of a minute, the part that one slice takes ahead at most: others need room too.
_AHEAD_PART = 4

_NOW = cast(func.extract("epoch", func.clock_timestamp()) * 1000, BigInteger)
_READ = select(
    rate_windows.c.key,
    rate_windows.c.number,
    rate_windows.c.previous,
    rate_windows.c.current,
).where(rate_windows.c.key.in_(bindparam("keys", expanding=True)))
_INSERT = insert(rate_windows)
_WRITE = _INSERT.on_conflict_do_update(
    index_elements=["key"],
    set_={name: _INSERT.excluded[name] for name in ("number", "previous", "current")},
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RateRequest:
    """A host's request for a slice of a caller's minute, and the unused rest of its last slice."""

    key: str
    limit: int
    needed: int
    ahead: int
    unused: int = 0
    unused_of: int = 0  # the number of the window that it was taken of


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """The slice a host received, with its counts; ``rest_s`` is the time left in the running window."""

    units: int
    number: int
    previous: int
    current: int
    rest_s: float


def lease(connection: Connection, requests: Sequence[RateRequest]) -> list[Slice]:
    """Lease a slice for each request: the amount needed, as far as there is room, and some ahead."""
    now = connection.execute(select(_NOW)).scalar_one() / 1000
    number, rest_s = int(now // WINDOW_S), WINDOW_S - now % WINDOW_S
    stored = connection.execute(_READ, {"keys": [request.key for request in requests]})
    rows = {row.key: (row.number, row.previous, row.current) for row in stored}
    slices = [slice_of(request, rows.get(request.key), number, rest_s) for request in requests]
    values = [
        {"key": request.key, "number": got.number, "previous": got.previous, "current": got.current}
        for request, got in zip(requests, slices, strict=True)
    ]
    connection.execute(_WRITE, values)
    return slices


def slice_of(
    request: RateRequest, row: tuple[int, int, int] | None, number: int, rest_s: float
) -> Slice:
    """Return the slice of a minute that a request gets, given the minute's stored counts."""
    previous, current = counts_in(number, row)
    if request.unused_of == number:
        current = max(current - request.unused, 0)
    elif request.unused_of == number - 1:
        previous = max(previous - request.unused, 0)
    room = max(int(request.limit - previous * rest_s / WINDOW_S - current), 0)
    units = min(request.needed, room)
    units += min(request.ahead, (room - units) // _AHEAD_PART)
    return Slice(
        units=units, number=number, previous=previous, current=current + units, rest_s=rest_s
    )


def sweep(connection: Connection, most: int) -> None:
    """Drop the minutes that are over and, past a number, the longest idle and least busy."""
    row = rate_windows.c
    number = cast(func.floor(func.extract("epoch", func.clock_timestamp()) / WINDOW_S), BigInteger)
    connection.execute(delete(rate_windows).where(row.number < number - literal(1)))
    n_rows = connection.scalar(select(func.count()).select_from(rate_windows)) or 0
    if n_rows > most:
        least = select(row.key).order_by(row.number, row.current + row.previous)
        connection.execute(
            delete(rate_windows).where(row.key.in_(least.limit(n_rows - most * 9 // 10)))
        )
