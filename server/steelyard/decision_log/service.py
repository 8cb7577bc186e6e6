"""The log of stored decisions: pages of them, one in full, and figures of a window of time."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType, structs
from sqlalchemy import Connection

from steelyard.caller import Caller
from steelyard.decision_log import wire
from steelyard.decision_log.answers import StoredAnswers
from steelyard.decision_log.exports import export_table, outcome_names
from steelyard.decision_log.series import Series
from steelyard.decision_log.store import (
    AnswerCriteria,
    ObservedDecision,
    ShortRow,
    StoredDecision,
    feedback_between,
    feedback_of_answers,
    sources_of_feedback,
)
from steelyard.decision_log.traffic import Traffic, did_abstain, is_right, logged_result
from steelyard.decision_log.true_shares import (
    MOST_BY_CHANCE,
    MOST_IN_STRATA,
    FindRates,
    in_strata,
    read_checked,
)
from steelyard.decisions.rules_wire import RuleResult
from steelyard.decisions.wire import DecisionResult, Kind, NamedUse
from steelyard.errors import InvalidRequestError, Violation
from steelyard.exports import export_pieces
from steelyard.jobs.serial_executor import SerialExecutor
from steelyard.operations.idempotency import SECONDS_A_DAY
from steelyard.storage import State
from steelyard.wire.decoding import convert, decode, decoder_of
from steelyard.wire.filling import filled
from steelyard.wire.violations import refusal

#: Answers read at a time where a filter looks into them, and the most that one page looks into.
_AT_A_TIME, _MAX_LOOKED = 500, 20_000
#: Answers read at a time for an export, with their requests: contexts are long.
_EXPORTED_AT_A_TIME = 64


class _ShortResult(msgspec.Struct):
    """The fields of a result that lists and figures need."""

    kind: Kind
    top: str
    p_top: float
    action: str
    unstated: float | None = None


_results = decoder_of(dict[str, _ShortResult])


class DecisionLog:
    """Stored decisions, and figures of them."""

    def __init__(
        self,
        state: State,
        *,
        retention_days: float,
        answers: StoredAnswers | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._state = state
        self._answers = answers or StoredAnswers()
        self._retention_s = retention_days * SECONDS_A_DAY
        self._now = now
        self._find_rates: FindRates | None = None
        # A summary looks at every answer of its window: of the threads that read, it is to have one.
        self._adding_up = SerialExecutor()

    def register_rates(self, find: FindRates) -> None:
        """Take the rates of models from a room above."""
        self._find_rates = find

    async def page(self, caller: Caller, query: wire.DecisionLogQuery) -> wire.DecisionLogPage:
        """Return a page of stored answers, the newest first.

        A filter that looks into answers reads at most 20,000 of them for a page: a page may then be
        short, or empty, and still go on.
        """
        _check_ranges(query)
        since = max(query.since or 0.0, self._oldest())

        def read(connection: Connection) -> wire.DecisionLogPage:
            page = _page(connection, self._answers, caller, query, since)
            texts = self._answers.beginnings(connection, caller.account_id, page.data)
            data = [structs.replace(logged, text=texts.get(logged.id, "")) for logged in page.data]
            return structs.replace(page, data=data)

        return await self._state.read(read)

    async def export(self, caller: Caller, query: wire.ExportDecisionsQuery) -> Iterator[bytes]:
        """Return stored decisions in a format, in pieces that are made as they are read.

        Answers stored after the export began are left out.
        """
        _check_ranges(query)
        since = max(query.since or 0.0, self._oldest())
        until = self._now() if query.until is None else query.until

        window = _criteria(caller, query, since, until)

        def pages() -> Iterator[list[ObservedDecision]]:
            criteria = window
            while True:
                page = self._state.read_now(
                    partial(self._answers.page, criteria=criteria, limit=_EXPORTED_AT_A_TIME)
                )
                if page:
                    yield page
                if len(page) < _EXPORTED_AT_A_TIME:
                    return
                criteria = replace(criteria, after=page[-1].place)

        def is_exported(name: str, result: wire.LoggedResult) -> bool:
            return query.decision in {None, name} and _matches_result(result, query)

        # Labels of a folder are named before its rows, so all are looked at for them once.
        names = (
            await asyncio.to_thread(outcome_names, pages(), query.decision)
            if query.format == "hf"
            else None
        )
        checked = await self._adding_up.take(
            lambda: self._state.read(
                lambda connection: read_checked(connection, self._answers, window, query.decision)
            )
        )
        table = export_table(pages, is_exported, names, checked)
        return export_pieces(table, query.format)

    async def get(self, caller: Caller, decision_id: str) -> wire.StoredAnswer:
        """Return a stored answer in full."""

        def read(connection: Connection) -> wire.StoredAnswer:
            stored = self._answers.find(connection, caller.account_id, decision_id, self._oldest())
            metadata = {} if stored.metadata is None else msgspec.json.decode(stored.metadata)
            request = msgspec.json.decode(stored.request)
            rule = request.pop("rule", UNSET)
            return filled(
                wire.StoredAnswer,
                stored,
                expires_at=stored.created_at + self._retention_s,
                request=request,
                results=decode(stored.results, dict[str, DecisionResult]),
                metadata=metadata,
                named=_named_use(stored),
                rule=rule if rule is UNSET else convert(rule, RuleResult),
                feedback=feedback_of_answers(connection, [stored.id]).get(stored.id, {}),
                feedback_by=_reports(connection, stored.id) or UNSET,
            )

        return await self._state.read(read)

    async def summary(
        self,
        caller: Caller,
        query: wire.DecisionSummaryQuery,
        server: wire.ServerErrors | None = None,
    ) -> wire.DecisionSummary:
        """Return figures of the stored answers of a window, one window at a time."""
        until = self._now() if query.until is None else query.until
        since = max(until - wire.DEFAULT_WINDOW_S if query.since is None else query.since, 0.0)
        _check_window(query, since, until, wire.MAX_BUCKETS)
        # What is older than the oldest that is kept cannot be there.
        since = min(max(since, self._oldest()), until)
        traffic = Traffic(since, until, query.bucket_s)
        await self._adding_up.take(
            lambda: self._state.read(
                lambda connection: _add_up(
                    connection, caller.account_id, query, traffic, self._answers
                )
            )
        )
        return traffic.summary(server)

    async def series(self, caller: Caller, query: wire.DecisionSeriesQuery) -> wire.DecisionSeries:
        """Return figures of stored answers over time, one window at a time, as for a summary."""
        until = self._now() if query.until is None else query.until
        since = max(until - wire.SERIES_WINDOW_S if query.since is None else query.since, 0.0)
        _check_window(query, since, until, wire.MAX_POINTS)
        since = min(max(since, self._oldest()), until)
        series = Series(caller.account_id, since, until, query, self._answers, self._find_rates)
        return await self._adding_up.take(lambda: self._state.read(series.read))

    async def find_archived(self, account_id: str, decision_id: str) -> StoredDecision | None:
        """Return a stored answer that has left the state for a file."""
        return await self._state.read(
            lambda connection: self._answers.find_archived(
                connection, account_id, decision_id, self._oldest()
            )
        )

    def _oldest(self) -> float:
        return self._now() - self._retention_s


def _named_use(stored: StoredDecision) -> NamedUse | UnsetType:
    if stored.named is None:
        return UNSET
    name, _, version = stored.named.partition("@")
    return NamedUse(name=name, version=int(version), alias=stored.named_alias)


def _criteria(
    caller: Caller, query: wire.DecisionLogFilter, since: float, until: float | None
) -> AnswerCriteria:
    return AnswerCriteria(
        account_id=caller.account_id,
        since=since,
        until=until,
        model=query.model,
        key=query.key,
        by=query.by,
        named=query.named,
    )


def _page(
    connection: Connection,
    answers: StoredAnswers,
    caller: Caller,
    query: wire.DecisionLogQuery,
    since: float,
) -> wire.DecisionLogPage:
    sought = (query.abstained, query.wrong, query.p_from, query.p_to)
    # The database itself finds those that have feedback.
    is_selected = query.has_feedback or (query.has_feedback is None and query.decision is None)
    looks_into = not is_selected or any(condition is not None for condition in sought)
    size = _AT_A_TIME if looks_into else query.limit + 1
    logged_decisions: list[wire.LoggedDecision] = []
    n_looked = 0
    criteria = _criteria(caller, query, since, query.until)
    if query.cursor is not None:
        place = answers.place_of(connection, caller.account_id, query.cursor)
        criteria = replace(criteria, after=place)
    if query.order != "newest":
        return _page_by_chance(connection, answers, criteria, query)
    while True:
        rows = answers.newest(
            connection,
            criteria,
            size,
            is_observed=bool(query.has_feedback) or query.wrong is not None,
            observed_of=query.decision,
        )
        observed = feedback_of_answers(connection, [row.id for row in rows], by=query.by)
        for row in rows:
            logged = _to_wire(row, observed.get(row.id, {}))
            if looks_into and not _matches(logged, query):
                continue
            if len(logged_decisions) == query.limit:
                return wire.DecisionLogPage(
                    data=logged_decisions, has_more=True, next_cursor=logged_decisions[-1].id
                )
            logged_decisions.append(logged)
        n_looked += len(rows)
        if len(rows) < size:
            return wire.DecisionLogPage(data=logged_decisions, has_more=False, next_cursor=None)
        criteria = replace(criteria, after=(rows[-1].created_at, rows[-1].id))
        if n_looked >= _MAX_LOOKED:
            return wire.DecisionLogPage(
                data=logged_decisions, has_more=True, next_cursor=rows[-1].id
            )


def _page_by_chance(
    connection: Connection,
    answers: StoredAnswers,
    criteria: AnswerCriteria,
    query: wire.DecisionLogQuery,
) -> wire.DecisionLogPage:
    if query.cursor is not None:
        message = "goes with the order newest; check the answers of the first page, then ask again."
        raise refusal(("query", "cursor"), message, "empty_range")
    rows = _rows_by_chance(connection, answers, criteria, query)
    observed = feedback_of_answers(connection, [row.id for row in rows], by=query.by)
    all_logged = (_to_wire(row, observed.get(row.id, {})) for row in rows)
    data = list(islice((logged for logged in all_logged if _matches(logged, query)), query.limit))
    return wire.DecisionLogPage(data=data, has_more=False, next_cursor=None)


def _rows_by_chance(
    connection: Connection,
    answers: StoredAnswers,
    criteria: AnswerCriteria,
    query: wire.DecisionLogQuery,
) -> list[ShortRow]:
    if query.order == "chance":
        return answers.by_chance(connection, criteria, MOST_BY_CHANCE)
    if query.decision is None or query.outcome is None:
        name = "decision" if query.decision is None else "outcome"
        message = "is needed for the order strata; name it."
        raise refusal(("query", name), message, "empty_range")
    rows = answers.by_chance(connection, criteria, MOST_IN_STRATA)
    return list(in_strata(rows, query.decision, query.outcome))


def _reports(connection: Connection, decision_id: str) -> dict[str, wire.FeedbackReport]:
    sources = sources_of_feedback(connection, [decision_id]).get(decision_id, {})
    return {
        name: convert(source._asdict(), wire.FeedbackReport) for name, source in sources.items()
    }


def _to_wire(row: ShortRow, observed: dict[str, Any]) -> wire.LoggedDecision:
    results = _results.decode(row.results).items()
    decisions = {name: logged_result(result, observed.get(name)) for name, result in results}
    return filled(wire.LoggedDecision, row, decisions=decisions, text="")


def _matches(logged: wire.LoggedDecision, query: wire.DecisionLogQuery) -> bool:
    if query.decision is not None:
        result = logged.decisions.get(query.decision)
        return result is not None and _matches_result(result, query)
    return any(_matches_result(result, query) for result in logged.decisions.values())


def _matches_result(result: wire.LoggedResult, query: wire.DecisionLogFilter) -> bool:
    if query.has_feedback not in {None, result.feedback is not None}:
        return False
    if query.abstained not in {None, result.abstained}:
        return False
    if query.p_from is not None and result.p_top <= query.p_from:
        return False
    if query.p_to is not None and result.p_top > query.p_to:
        return False
    if query.wrong is None:
        return True
    return result.feedback is not None and query.wrong != is_right(result.top, result.feedback)


def _add_up(
    connection: Connection,
    account_id: str,
    query: wire.DecisionSummaryQuery,
    traffic: Traffic,
    answers: StoredAnswers,
) -> None:
    criteria = AnswerCriteria(
        account_id=account_id,
        since=traffic.since,
        until=traffic.until,
        model=query.model,
        by=query.by,
        named=query.named,
    )
    observed = feedback_between(connection, criteria)
    for id_, at, named, version, total_ms, results in answers.between(connection, criteria):
        outcomes = observed.get(id_)
        is_counted = False
        for name, result in _results.decode(results).items():
            if query.decision is not None and name != query.decision:
                continue
            is_counted = True
            group = traffic.group_of((named, version, name))
            outcome = None if outcomes is None else outcomes.get(name)
            traffic.add(
                group,
                at,
                result.p_top,
                abstained=did_abstain(result.action, result.top),
                is_right=None if outcome is None else is_right(result.top, outcome),
            )
            if result.unstated is not None:
                traffic.add_unstated(result.unstated)
        if is_counted:
            traffic.add_answer(at, total_ms)


def _check_ranges(query: wire.DecisionLogFilter) -> None:
    violations = []
    if query.since is not None and query.until is not None and query.until <= query.since:
        violations.append(_violation("until", "until is not after since; give a later time."))
    if query.p_from is not None and query.p_to is not None and query.p_to <= query.p_from:
        violations.append(_violation("p_to", "p_to is not above p_from; give a larger one."))
    if violations:
        raise InvalidRequestError(violations=violations)


def _check_window(
    query: wire.DecisionSummaryQuery,
    since: float,
    until: float,
    most: int,
) -> None:
    if until <= since:
        name = "since" if query.until is None else "until"
        message = "until is not after since; give a later time."
        raise InvalidRequestError.at(("query", name), message, "empty_range")
    n = math.ceil(until / query.bucket_s) - math.floor(since / query.bucket_s)
    if n > most:
        message = (
            f"bucket_s makes {n} buckets of the window, and {most} are allowed; give a "
            "larger one or a shorter window."
        )
        raise InvalidRequestError.at(("query", "bucket_s"), message, "too_many_buckets")


def _violation(name: str, message: str) -> Violation:
    return Violation(("query", name), message, "empty_range")
