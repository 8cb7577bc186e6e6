"""Shares of an alias's requests that another alias answers: begun, ended, and ended where it is worse."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec
from sqlalchemy import Connection, Row

from steelyard.decision_log.store import (
    AnswerCriteria,
    ObservedDecision,
    count_observed,
    page_observed,
)
from steelyard.decision_log.traffic import is_right, share
from steelyard.errors import InvalidReferenceError
from steelyard.ids import new_id
from steelyard.named import store as rows
from steelyard.named.serializers import to_wire
from steelyard.named.served import unknown_version
from steelyard.named.service import NamedDecisions, find_decision, who
from steelyard.named.splitting import ENOUGH, evidence_of_worse, is_in_share
from steelyard.named.wire import NamedDecision, ShareAlias, ShareFigures
from steelyard.operations.write import Write
from steelyard.outbox.publishing import publish
from steelyard.storage import State
from steelyard.storage.rows import lock_account
from steelyard.wire.violations import BODY

#: Seconds between two looks at feedback.
LOOK_S = 10.0
#: Answers with feedback that are looked at, the newest ones, and how many are read at a time.
_MOST, _PAGE = 20_000, 500
#: Who ends a share that is worse.
_SERVER = "steelyard"


class Shares:
    """Begins and ends shares."""

    def __init__(self, named: NamedDecisions, *, now: Callable[[], float] = time.time) -> None:
        self._named = named
        self._now = now

    async def share(
        self, write: Write, name: str, alias: str, request: ShareAlias
    ) -> NamedDecision:
        """Send another alias a share of an alias's requests; a share of 0 ends that."""
        by, now = who(write.caller), self._now()

        def work(connection: Connection) -> NamedDecision:
            account_id = write.caller.account_id
            lock_account(connection, account_id)
            row = find_decision(connection, account_id, name)
            before, after = (_number(connection, row, each) for each in (alias, request.to))
            running = rows.find_share(connection, row.id, alias)
            if running is not None:
                reason = "changed" if request.share else "ended"
                end = {"ended_at": now, "ended_by": by, "ended_reason": reason}
                rows.change_share(connection, running.id, end)
            if request.share:
                if before == after:
                    raise InvalidReferenceError(
                        f"{alias!r} and {request.to!r} both point to version {after} of {name!r}; "
                        f"move {request.to!r} to another version first.",
                        path=(*BODY, "to"),
                    )
                values = {
                    "id": new_id("nds"),
                    "named_id": row.id,
                    "alias": alias,
                    "to_alias": request.to,
                    "from_number": before,
                    "to_number": after,
                    "share": request.share,
                    "started_by": by,
                    "reason": request.reason,
                    "created_at": now,
                }
                rows.SHARES.insert(connection, values)
            return to_wire(connection, row)

        return await self._named.apply(write, name, work)


class ShareWatch:
    """Looks at the feedback on shares that go on, and ends those that are worse."""

    def __init__(self, state: State, *, now: Callable[[], float] = time.time) -> None:
        self._state = state
        self._now = now
        #: How much feedback there was on each share at the last look.
        self._seen: dict[str, int] = {}

    def tick(self) -> None:
        """Look at every share that goes on and has new feedback."""
        running = self._state.read_now(rows.running_shares)
        self._seen = {row.id: self._seen.get(row.id, 0) for row in running}
        for row in running:
            criteria = AnswerCriteria(
                account_id=row.account_id, named=row.name, since=row.created_at
            )
            n = self._state.read_now(lambda connection: count_observed(connection, criteria))  # noqa: B023
            if n != self._seen[row.id]:
                self._seen[row.id] = n
                self._judge(row, criteria)

    def _judge(self, row: Row[Any], criteria: AnswerCriteria) -> None:
        sides = {row.from_number: (0, 0), row.to_number: (0, 0)}
        for observed in self._observed(criteria):
            number = _version_of(row, observed)
            if number is not None:
                right, n = sides[number]
                sides[number] = (right + _is_right(observed), n + 1)
        before, after = sides[row.from_number], sides[row.to_number]
        evidence = evidence_of_worse(before, after)
        figures = ShareFigures(before=share(*before), after=share(*after), worse=evidence)
        values: dict[str, Any] = {"figures": msgspec.json.encode(figures)}
        if evidence >= ENOUGH:
            values |= {"ended_at": self._now(), "ended_by": _SERVER, "ended_reason": "worse"}

        def work(connection: Connection) -> None:
            # Another process may have ended it meanwhile.
            if rows.change_share(connection, row.id, values) and "ended_at" in values:
                data = {
                    "decision": row.name,
                    "alias": row.alias,
                    "to": row.to_alias,
                    "version": row.to_number,
                    "reason": "worse",
                    **msgspec.to_builtins(figures),
                }
                publish(connection, row.account_id, "decision.share_ended", row.id, data)

        self._state.write_now(work)

    def _observed(self, criteria: AnswerCriteria) -> list[ObservedDecision]:
        observed: list[ObservedDecision] = []
        while len(observed) < _MOST:
            page = self._state.read_now(
                lambda connection: page_observed(connection, criteria, _PAGE)  # noqa: B023
            )
            observed += page
            if len(page) < _PAGE:
                break
            criteria = replace(criteria, after=page[-1].place)
        return observed


def _version_of(row: Row[Any], observed: ObservedDecision) -> int | None:
    """Return the version that answered for the alias; ``None`` where a request named another place."""
    decision = observed.decision
    if decision.named == f"{row.name}@{row.from_number}" and decision.named_alias == row.alias:
        return int(row.from_number)
    if decision.named != f"{row.name}@{row.to_number}" or decision.named_alias != row.to_alias:
        return None
    # Requests that name the other alias themselves were not drawn by chance.
    context = msgspec.json.decode(decision.request)["context"]
    return int(row.to_number) if is_in_share(context, row.id, row.share) else None


def _is_right(observed: ObservedDecision) -> bool:
    """Whether every outcome that was reported is the top one of the answer."""
    results = msgspec.json.decode(observed.decision.results)
    return all(is_right(results[name]["top"], seen) for name, seen in observed.outcomes.items())


def _number(connection: Connection, row: Row[Any], alias: str) -> int:
    number = rows.alias_number(connection, row.id, alias)
    if number is None:
        raise unknown_version(row.name, alias[:64])
    return number
