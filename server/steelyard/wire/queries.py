"""Queries on the wire: what may stand after the ``?`` of an address."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta, Struct

from steelyard.errors import InvalidRequestError, Violation
from steelyard.wire.violations import show

MAX_PAGE = 200
#: The largest number of a version, a row or a place: that of the state's columns.
MAX_NUMBER = 2**31 - 1

Cursor = Annotated[str, Meta(min_length=1, max_length=64)]
PageSize = Annotated[int, Meta(ge=1, le=MAX_PAGE)]


class ApiKeysQuery(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Which page of the account's keys."""

    revoked: Annotated[
        bool | None, Meta(description="Revoked keys alone, or the others alone; both by default.")
    ] = None
    limit: Annotated[PageSize, Meta(description="Keys of a page.")] = MAX_PAGE
    cursor: Annotated[
        Cursor | None, Meta(description="`next_cursor` of the page before; the first by default.")
    ] = None


def read_statuses(given: Sequence[str], statuses: Sequence[str]) -> tuple[str, ...]:
    """Give the statuses that a query names.

    Parameters
    ----------
    given : sequence of str
        Each may hold several, separated by commas.
    statuses : sequence of str
        Those there are.

    Raises
    ------
    steelyard.errors.InvalidRequestError
        When there is no such status.

    Examples
    --------
    >>> read_statuses(["queued, running", "failed"], ["queued", "running", "failed", "cancelled"])
    ('queued', 'running', 'failed')
    """
    wanted = tuple(name.strip() for text in given for name in text.split(","))
    for name in wanted:
        if name not in statuses:
            message = f"status has {show(name)}; the statuses are {', '.join(statuses)}."
            raise InvalidRequestError(
                violations=[Violation(("query", "status"), message, "not_allowed")]
            )
    return wanted
