"""Shares of an alias's requests that another alias answers: begun, grown by steps, ended where worse."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import msgspec
from msgspec.structs import replace as replace_fields
from sqlalchemy import Connection, Row

from steelyard.decision_log.store import (
    AnswerCriteria,
    ObservedDecision,
    count_observed_by_name,
    page_observed,
)
from steelyard.decision_log.traffic import is_right, share
from steelyard.decision_log.withheld import has_text
from steelyard.errors import InvalidReferenceError
from steelyard.ids import new_id
from steelyard.named import store as rows
from steelyard.named.serializers import decode_figures, decode_ramp, to_wire
from steelyard.named.served import unknown_version
from steelyard.named.service import NamedDecisions, find_decision, who
from steelyard.named.splitting import ENOUGH, evidence_of_worse, is_in_share
from steelyard.named.wire import NamedDecision, ShareAlias, ShareEnd, ShareFigures, ShareRamp
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

    def __init__(self, named: NamedDecisions) -> None:
        self._named = named

    async def share(
        self, write: Write, name: str, alias: str, request: ShareAlias
    ) -> NamedDecision:
        """Send another alias a share of an alias's requests; a share of 0 ends that."""
        by, now = who(write.caller), time.time()

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
                _check_steps(request)
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
                    "ramp": _ramp(request.steps, request.step_hours, now)
                    if request.steps
                    else None,
                }
                rows.SHARES.insert(connection, values)
            return to_wire(connection, row)

        return await self._named.apply(write, name, work)


#: What an active alarm says that was raised since a time on the model of a version's answers: called
#: with the connection, the account, the version and the time.
FindAlarm = Callable[[Connection, str, str, float], str | None]


class ShareWatch:
    """Looks at shares that go on: takes the next step of those with steps, and ends those that are worse."""

    def __init__(self, state: State, *, now: Callable[[], float] = time.time) -> None:
        self._state = state
        self._now = now
        self._find_alarm: FindAlarm = lambda *_: None
        #: How much feedback there was on each share, and step of it, at the last look.
        self._seen: dict[tuple[str, float], int] = {}

    def register_alarms(self, find: FindAlarm) -> None:
        """Take the alarms from a room above."""
        self._find_alarm = find

    def tick(self) -> None:
        """Look at every share that goes on: at its new feedback, and whether its next step is due."""
        running = self._state.read_now(rows.running_shares)
        self._seen = {
            (row.id, row.share): self._seen.get((row.id, row.share), 0) for row in running
        }
        for row in running:
            ramp = None if row.ramp is None else decode_ramp(row.ramp)
            since = row.created_at if ramp is None else ramp.since
            criteria = AnswerCriteria(account_id=row.account_id, named=row.name, since=since)
            counts = self._state.read_now(
                lambda connection: count_observed_by_name(connection, criteria)  # noqa: B023
            )
            n = sum(counts.values())
            figures = ShareFigures() if row.figures is None else decode_figures(row.figures)
            if n != self._seen[row.id, row.share]:
                self._seen[row.id, row.share] = n
                figures = self._judge(row, criteria)
            if ramp is not None:
                self.go_on(row, ramp, figures)

    def go_on(self, row: Row[Any], ramp: ShareRamp, figures: ShareFigures) -> None:
        """Take the next step of a share once its time has come; end it where something speaks against it."""
        alarm, comparison = self._state.read_now(
            lambda connection: (
                self._find_alarm(
                    connection, row.account_id, f"{row.name}@{row.to_number}", ramp.since
                ),
                rows.find_comparison(
                    connection, row.named_id, row.from_number, row.to_number, row.created_at
                ),
            )
        )
        if alarm is not None:
            self._end(row, "alarm", replace_fields(figures, alarm=alarm))
        elif comparison is not None and comparison.verdict == "refused":
            self._end(row, "comparison", figures)
        elif ramp.next_at is not None and self._now() >= ramp.next_at:
            later = _ramp(ramp.steps[1:], ramp.step_hours, self._now())
            values = {"share": ramp.steps[0], "ramp": later}
            # Another process may have taken the step meanwhile, or ended the share.
            self._state.write_now(
                lambda connection: rows.change_share(connection, row.id, values, at=row.share)
            )

    def _end(self, row: Row[Any], reason: ShareEnd, figures: ShareFigures) -> None:
        end = {"ended_at": self._now(), "ended_by": _SERVER, "ended_reason": reason}
        values = {"figures": msgspec.json.encode(figures), **end}
        data = {
            "decision": row.name,
            "alias": row.alias,
            "to": row.to_alias,
            "version": row.to_number,
            "reason": reason,
            **msgspec.to_builtins(figures),
        }

        def work(connection: Connection) -> None:
            # Another process may have ended it meanwhile.
            if rows.change_share(connection, row.id, values):
                publish(connection, row.account_id, "decision.share_ended", row.id, data)

        self._state.write_now(work)

    def _judge(self, row: Row[Any], criteria: AnswerCriteria) -> ShareFigures:
        sides = {row.from_number: (0, 0), row.to_number: (0, 0)}
        for observed in self._observed(criteria):
            number = _version_of(row, observed)
            if number is not None:
                right, n = sides[number]
                sides[number] = (right + _is_right(observed), n + 1)
        before, after = sides[row.from_number], sides[row.to_number]
        evidence = evidence_of_worse(before, after)
        figures = ShareFigures(before=share(*before), after=share(*after), worse=evidence)
        if evidence >= ENOUGH:
            self._end(row, "worse", figures)
        else:
            values = {"figures": msgspec.json.encode(figures)}
            self._state.write_now(
                lambda connection: rows.change_share(connection, row.id, values, at=row.share)
            )
        return figures

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


def _check_steps(request: ShareAlias) -> None:
    steps = [request.share, *request.steps]
    if any(after <= before for before, after in pairwise(steps)):
        raise InvalidReferenceError(
            "Each step of a share is larger than the one before it; put the steps in order.",
            path=(*BODY, "steps"),
        )


def _ramp(steps: list[float], step_hours: float, now: float) -> bytes:
    """Return the steps that are to come from now on, as they are stored."""
    next_at = now + step_hours * 3_600 if steps else None
    ramp = ShareRamp(steps=steps, step_hours=step_hours, since=now, next_at=next_at)
    return msgspec.json.encode(ramp)


def _version_of(row: Row[Any], observed: ObservedDecision) -> int | None:
    """Return the version that answered for the alias; ``None`` where a request named another place."""
    decision = observed.decision
    # Without its text it cannot be seen whether an answer was drawn: it is left out of both sides.
    if not has_text(decision.request):
        return None
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
