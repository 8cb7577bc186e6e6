"""Named decisions as requests refer to them: the version of an alias, read at most every half second.

A version never changes, so its questions are read once; an alias may be moved by any process, and its
target is one row. A request gets the version of one read, never parts of two.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, TypeVar

from sqlalchemy import Connection, Row

from steelyard.decisions.named import NamedRequest, Reference
from steelyard.decisions.validation import ValidRequest
from steelyard.decisions.wire import NamedUse
from steelyard.errors import NamedDecisionArchivedError, NotFoundError
from steelyard.named import store as rows
from steelyard.named.content import ask, read_stored
from steelyard.named.splitting import is_in_share
from steelyard.recent import Recent
from steelyard.storage import State
from steelyard.wire.storing import StoreSetting

#: Seconds for which a reference's version is taken as read: a move is in effect everywhere after them.
FRESH_S = 0.5
#: References, and versions, that are kept at hand.
_MAX_REFERENCES, _MAX_VERSIONS = 4_096, 512

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")
_Place = tuple[str, str, str | int]


@dataclass(frozen=True, slots=True)
class _Split:
    """A share of the requests that another alias answers, and its version."""

    share_id: str
    share: float
    use: NamedUse
    questions: ValidRequest


@dataclass(frozen=True, slots=True)
class _Served:
    """The version of a reference when it was read."""

    read_at: float
    use: NamedUse
    questions: ValidRequest
    store: StoreSetting
    split: _Split | None = None


class ServedDecisions:
    """Finds the versions that requests refer to; for one event loop, reading on its threads."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._served: Recent[_Place, _Served] = Recent(_MAX_REFERENCES)
        self._versions: Recent[str, ValidRequest] = Recent(_MAX_VERSIONS)

    async def open(self, account_id: str, request: NamedRequest) -> ValidRequest:
        """Return the request of a named decision about a context."""
        reference = request.reference
        place = (account_id, reference.name, reference.at)
        served = self._served.find(place)
        now = time.monotonic()
        if served is None or now - served.read_at > FRESH_S:
            served = await self._read(account_id, reference, now)
            self._served.note(place, served)
        split = served.split
        if split is not None and is_in_share(request.context, split.share_id, split.share):
            return ask(split.questions, request, split.use, served.store)
        return ask(served.questions, request, served.use, served.store)

    def forget(self, account_id: str, name: str) -> None:
        """Look up a named decision anew, which this process has changed."""
        for place in [place for place in self._served if place[:2] == (account_id, name)]:
            self._served.pop(place)

    async def _read(self, account_id: str, reference: Reference, now: float) -> _Served:
        alias = reference.at if isinstance(reference.at, str) else None

        def read(connection: Connection) -> tuple[Row[Any], ValidRequest, Row[Any] | None]:
            row = rows.find_served(connection, account_id, reference.name, reference.at)
            if row is None:
                raise unknown_decision(reference.name)
            if row.archived_at is not None:
                raise NamedDecisionArchivedError(
                    f"The named decision {reference.name!r} is archived; bring it back with "
                    f"POST /v1/named-decisions/{reference.name}/archive and archived false."
                )
            if row.id is None:
                raise unknown_version(reference.name, reference.at)
            shared = None if alias is None else rows.find_share(connection, row.named_id, alias)
            return row, self._questions(connection, row.id), shared

        row, questions, shared = await self._state.read(read)
        self._versions.note(row.id, questions)
        use = NamedUse(name=reference.name, version=row.number, alias=alias)
        if shared is None:
            return _Served(now, use, questions, row.store)
        others = await self._state.read(
            lambda connection: self._questions(connection, shared.version_id)
        )
        self._versions.note(shared.version_id, others)
        to = NamedUse(name=reference.name, version=shared.to_number, alias=shared.to_alias)
        split = _Split(shared.id, shared.share, to, others)
        return _Served(now, use, questions, row.store, split)

    def _questions(self, connection: Connection, version_id: str) -> ValidRequest:
        known = self._versions.find(version_id)
        return known or read_stored(rows.content_of(connection, version_id))


def unknown_decision(name: str) -> NotFoundError:
    """Return the refusal of a name that no named decision has."""
    return NotFoundError(f"There is no named decision {name!r}; see GET /v1/named-decisions.")


def unknown_version(name: str, at: str | int) -> NotFoundError:
    """Return the refusal of a version or an alias that a named decision lacks."""
    noun = "version" if isinstance(at, int) else "alias"
    return NotFoundError(
        f"The named decision {name!r} has no {noun} {at!r}; see GET /v1/named-decisions/{name}."
    )
