"""Rows of decisions kept for feedback, and of the feedback on them.

Lists and figures leave the request out: contexts are long.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import msgspec
import sqlalchemy as sa
from msgspec import UNSET

from steelyard.caller import Caller
from steelyard.decision_log.tables import decisions, feedback
from steelyard.decision_log.withheld import WITHHELD, features_of, without_text
from steelyard.decisions.kinds import Decision
from steelyard.decisions.rules import without_texts
from steelyard.decisions.validation import ValidRequest
from steelyard.decisions.wire import FEATURES, DecideResponse
from steelyard.errors import NotFoundError
from steelyard.storage.statements import Statement
from steelyard.wire.decoding import decode
from steelyard.wire.filling import filled
from steelyard.wire.origins import INFERRED
from steelyard.wire.violations import show

#: The routes whose operations are decisions.
DECIDING = ("POST /v1/decide", "POST /v1/systemone", "POST /v1/decisions")

#: Where the random part of an answer's id begins: behind ``dec_`` and the time.
CHANCE_AT = 14
#: Rows that a database driver hands over at a time.
_AT_A_TIME = 2_000
_SHORT = (
    decisions.c.id,
    decisions.c.created_at,
    decisions.c.model,
    decisions.c.version,
    decisions.c.total_ms,
    decisions.c.results,
)
_INSERT_DECISION = Statement(sa.insert(decisions), decisions.c.keys())


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerCriteria:
    """Which answers of an account; ``after`` is time and id of the answer before the page.

    ``by`` is the origin of the feedback that is read with them; without it, all that counts.
    """

    account_id: str
    since: float = 0.0
    until: float | None = None
    model: str | None = None
    key: str | None = None
    #: A named decision, or a version of one.
    named: str | None = None
    ids: Collection[str] | None = None
    after: tuple[float, str] | None = None
    newest_first: bool = True
    by: str | None = None


class ShortAnswer(NamedTuple):
    """An answer without its request, as a row of the state has it."""

    id: str
    created_at: float
    model: str
    version: str | None
    total_ms: float | None
    results: bytes


ShortRow: TypeAlias = sa.Row[str, float, str, str | None, float | None, bytes] | ShortAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredDecision:
    """An answer as it is kept for feedback."""

    id: str
    account_id: str
    created_at: float
    model: str
    version: str | None = None
    request: bytes
    results: bytes
    metadata: bytes | None = None
    outcome_names: Mapping[str, Sequence[str]] = field(default_factory=dict)
    total_ms: float | None = None
    key_id: str | None = None
    named: str | None = None
    named_alias: str | None = None


class FeedbackSource(NamedTuple):
    """Where a report came from, who made it, and the outcome that it named."""

    by: str
    who: str | None = None
    outcome: Any = None


@dataclass(frozen=True, slots=True)
class ObservedDecision:
    """A kept answer, and the outcomes observed of it by decision id."""

    decision: StoredDecision
    outcomes: dict[str, Any]
    sources: dict[str, FeedbackSource] = field(default_factory=dict)

    @property
    def place(self) -> tuple[float, str]:
        """Time and id, by which answers are in order."""
        return self.decision.created_at, self.decision.id


def insert_decision(connection: sa.Connection, decision: StoredDecision) -> None:
    """Keep an answer."""
    values = {
        "id": decision.id,
        "account_id": decision.account_id,
        "created_at": decision.created_at,
        "model": decision.model,
        "version": decision.version,
        "request": decision.request,
        "results": decision.results,
        "outcome_names": msgspec.json.encode(decision.outcome_names),
        "metadata": decision.metadata,
        "total_ms": decision.total_ms,
        "key_id": decision.key_id,
        "named": decision.named,
        "named_alias": decision.named_alias,
    }
    _INSERT_DECISION.change_each(connection, [values])


def find_decision(
    connection: sa.Connection, account_id: str, decision_id: str, not_before: float
) -> StoredDecision:
    """Return an answer that the database has; raise ``NotFoundError`` when it has none."""
    stored = look_for(connection, account_id, decision_id, not_before)
    if stored is None:
        raise not_stored(decision_id)
    return stored


def look_for(
    connection: sa.Connection, account_id: str, decision_id: str, not_before: float
) -> StoredDecision | None:
    """Return an answer that the database has, or ``None``."""
    row = connection.execute(
        sa.select(decisions).where(
            decisions.c.id == decision_id,
            decisions.c.account_id == account_id,
            decisions.c.created_at >= not_before,
        )
    ).first()
    return None if row is None else _stored(row)


def not_stored(decision_id: str) -> NotFoundError:
    """Return the error for an id without a stored decision."""
    return NotFoundError(
        f"No stored decision has the id {show(decision_id)}: it was not stored, its time is "
        "over, or it is not this account's."
    )


def time_of(connection: sa.Connection, account_id: str, decision_id: str) -> float | None:
    """Return when an answer that the database has was given."""
    of_account = (decisions.c.id == decision_id, decisions.c.account_id == account_id)
    return connection.scalar(sa.select(decisions.c.created_at).where(*of_account))


def counts_as_observed(by: str | None = None) -> sa.ColumnElement[bool]:
    """Return the condition of feedback from one origin; without it, of all that was observed."""
    if by is not None:
        return feedback.c.origin == by
    return sa.or_(feedback.c.origin.is_(None), feedback.c.origin.not_in(INFERRED))


def put_feedback(
    connection: sa.Connection,
    decision_id: str,
    outcomes: Mapping[str, Any],
    *,
    recorded_at: float,
    source: FeedbackSource | None = None,
) -> list[str]:
    """Store observed outcomes and return their names.

    An earlier report for the same name is replaced, except that a click or a model never replaces an
    observation.
    """
    if source is not None and source.by in INFERRED:
        observed = sa.select(feedback.c.name).where(
            feedback.c.decision_id == decision_id, counts_as_observed()
        )
        protected = set(connection.scalars(observed))
        outcomes = {name: value for name, value in outcomes.items() if name not in protected}
    if not outcomes:
        return []
    connection.execute(
        sa.delete(feedback).where(
            feedback.c.decision_id == decision_id, feedback.c.name.in_(list(outcomes))
        )
    )
    connection.execute(
        sa.insert(feedback),
        [
            {
                "decision_id": decision_id,
                "name": name,
                "outcome": msgspec.json.encode(outcome),
                "recorded_at": recorded_at,
                "origin": None if source is None else source.by,
                "who": None if source is None else source.who,
            }
            for name, outcome in outcomes.items()
        ],
    )
    return list(outcomes)


def count_decisions(connection: sa.Connection, criteria: AnswerCriteria) -> int:
    """Count the matching answers."""
    return connection.execute(
        sa.select(sa.func.count()).select_from(decisions).where(*in_window(criteria))
    ).scalar_one()


def count_observed_by_name(connection: sa.Connection, criteria: AnswerCriteria) -> dict[str, int]:
    """Return how many outcomes were observed of matching answers, by decision id."""
    joined = feedback.join(decisions, feedback.c.decision_id == decisions.c.id)
    counted = (
        sa.select(feedback.c.name, sa.func.count().label("n"))
        .select_from(joined)
        .where(*in_window(criteria), counts_as_observed(criteria.by))
        .group_by(feedback.c.name)
    )
    return {row.name: row.n for row in connection.execute(counted)}


def page_observed(
    connection: sa.Connection, criteria: AnswerCriteria, limit: int
) -> list[ObservedDecision]:
    """Return a page of the matching answers that have feedback."""
    of_answer = feedback.c.decision_id == decisions.c.id
    observed = sa.select(feedback.c.name).where(of_answer, counts_as_observed(criteria.by))
    return page_answers(connection, criteria, limit, observed.exists())


def page_answers(
    connection: sa.Connection,
    criteria: AnswerCriteria,
    limit: int,
    *further: sa.ColumnElement[bool],
) -> list[ObservedDecision]:
    """Return a page of matching answers in the order of the criteria, with their outcomes."""
    rows = connection.execute(
        sa.select(decisions)
        .where(*in_window(criteria), *_beyond(criteria), *further)
        .order_by(*_order(criteria))
        .limit(limit)
    ).all()
    ids = [row.id for row in rows]
    outcomes = feedback_of_answers(connection, ids, by=criteria.by)
    sources = sources_of_feedback(connection, ids)
    return [
        ObservedDecision(_stored(row), outcomes.get(row.id, {}), sources.get(row.id, {}))
        for row in rows
    ]


def count_answers(
    connection: sa.Connection, criteria: AnswerCriteria, *further: sa.ColumnElement[bool]
) -> int:
    """Return how many answers match the criteria."""
    count = sa.select(sa.func.count()).select_from(decisions)
    return connection.scalar(count.where(*in_window(criteria), *further)) or 0


def with_text() -> sa.ColumnElement[bool]:
    """Return the condition of answers whose text is stored."""
    return sa.func.substr(decisions.c.request, 1, len(WITHHELD)) != sa.literal(WITHHELD)


def withhold_before(connection: sa.Connection, before: float, *, limit: int) -> int:
    """Take the text out of answers older than a time; return of how many."""
    old = sa.select(decisions.c.id, decisions.c.request)
    rows = connection.execute(
        old.where(decisions.c.created_at < before, with_text()).limit(limit)
    ).all()
    for row in rows:
        change = sa.update(decisions).where(decisions.c.id == row.id)
        connection.execute(change.values(request=without_text(row.request)))
    return len(rows)


def delete_decisions_before(connection: sa.Connection, before: float, *, limit: int) -> int:
    """Remove answers older than a time, with their feedback."""
    old = sa.select(decisions.c.id).where(decisions.c.created_at < before).limit(limit)
    return connection.execute(sa.delete(decisions).where(decisions.c.id.in_(old))).rowcount


def in_window(criteria: AnswerCriteria) -> list[sa.ColumnElement[bool]]:
    """Return the conditions of matching answers, wherever a page of them begins."""
    of = decisions.c
    where = [of.account_id == criteria.account_id, of.created_at >= criteria.since]
    if criteria.until is not None:
        where.append(of.created_at < criteria.until)
    if criteria.model is not None:
        where.append(sa.or_(of.model == criteria.model, of.version == criteria.model))
    if criteria.ids is not None:
        where.append(of.id.in_(criteria.ids))
    if criteria.key is not None:
        where.append(of.key_id == criteria.key)
    if criteria.named is not None:
        where.append(is_of_named(of.named, criteria.named))
    return where


def is_of_named(column: sa.ColumnElement[Any], named: str) -> sa.ColumnElement[bool]:
    """Return whether a column has a named decision, or that version of it."""
    return sa.or_(column == named, column.startswith(f"{named}@", autoescape=True))


def _beyond(criteria: AnswerCriteria) -> list[sa.ColumnElement[bool]]:
    """Return the conditions of the answers after one, which may be gone; an index finds the first."""
    if criteria.after is None:
        return []
    at, id_ = decisions.c.created_at, decisions.c.id
    last_at, last_id = criteria.after
    if criteria.newest_first:
        return [at <= last_at, sa.or_(at < last_at, sa.and_(at == last_at, id_ < last_id))]
    return [at >= last_at, sa.or_(at > last_at, sa.and_(at == last_at, id_ > last_id))]


def _order(criteria: AnswerCriteria) -> list[sa.ColumnElement[Any]]:
    order: list[sa.ColumnElement[Any]] = [decisions.c.created_at, decisions.c.id]
    return [condition.desc() for condition in order] if criteria.newest_first else order


def newest_answers(
    connection: sa.Connection,
    criteria: AnswerCriteria,
    limit: int,
    *,
    observed_of: str | None = None,
    is_observed: bool = False,
) -> Sequence[ShortRow]:
    """Return matching answers without their requests, the newest first."""
    where = in_window(criteria) + _beyond(criteria)
    if is_observed:
        of_answer = feedback.c.decision_id == decisions.c.id
        observed = sa.select(feedback.c.name).where(of_answer, counts_as_observed(criteria.by))
        if observed_of is not None:
            observed = observed.where(feedback.c.name == observed_of)
        where.append(observed.exists())
    return connection.execute(
        sa.select(*_SHORT).where(*where).order_by(*_order(criteria)).limit(limit)
    ).all()


def ids_by_chance(connection: sa.Connection, criteria: AnswerCriteria, limit: int) -> Sequence[str]:
    """Return ids of matching answers, the first in the order of their random part."""
    by_chance = sa.func.substr(decisions.c.id, CHANCE_AT + 1)
    first = (
        sa.select(decisions.c.id)
        .where(*in_window(criteria))
        .order_by(by_chance, decisions.c.id)
        .limit(limit)
    )
    return connection.scalars(first).all()


def answers_between(connection: sa.Connection, criteria: AnswerCriteria) -> Iterator[ShortRow]:
    """Yield every matching answer, in no order, as ``newest_answers`` returns them."""
    streaming = connection.execution_options(yield_per=_AT_A_TIME)
    yield from streaming.execute(sa.select(*_SHORT).where(*in_window(criteria)))


def count_between(
    connection: sa.Connection, criteria: AnswerCriteria, *, first: float, width: float
) -> dict[int, int]:
    """Return how many stored answers there are in each stretch after ``first`` that has some."""
    place = stretch_of(connection, decisions.c.created_at, first, width)
    rows = connection.execute(
        sa.select(place, sa.func.count()).where(*in_window(criteria)).group_by(place)
    )
    return {int(at): n for at, n in rows}


def stretch_of(
    connection: sa.Connection, at: sa.ColumnElement[float], first: float, width: float
) -> sa.ColumnElement[int]:
    """Return in which stretch after ``first`` a time is."""
    passed = (at - first) / width
    # SQLite may have no floor(), and cuts off where PostgreSQL rounds.
    is_cut = connection.dialect.name == "sqlite"
    return sa.cast(passed if is_cut else sa.func.floor(passed), sa.BigInteger).label("place")


def feedback_between(
    connection: sa.Connection, criteria: AnswerCriteria
) -> dict[str, dict[str, Any]]:
    """Return the outcomes observed of matching answers, by answer and decision id."""
    rows = connection.execute(
        sa.select(feedback.c.decision_id, feedback.c.name, feedback.c.outcome)
        .join(decisions, decisions.c.id == feedback.c.decision_id)
        .where(*in_window(criteria), counts_as_observed(criteria.by))
    )
    return _by_answer(rows)


def feedback_of_answers(
    connection: sa.Connection, ids: Sequence[str], *, by: str | None = None
) -> dict[str, dict[str, Any]]:
    """Return the outcomes observed of some answers, by answer and then in order of decision id."""
    if not ids:
        return {}
    rows = connection.execute(
        sa.select(feedback.c.decision_id, feedback.c.name, feedback.c.outcome)
        .where(feedback.c.decision_id.in_(ids), counts_as_observed(by))
        .order_by(feedback.c.name)
    )
    return _by_answer(rows)


def sources_of_feedback(
    connection: sa.Connection, ids: Sequence[str]
) -> dict[str, dict[str, FeedbackSource]]:
    """Return where the feedback on some answers came from, by answer and decision id, as reported."""
    if not ids:
        return {}
    reports = connection.execute(
        sa.select(feedback)
        .where(feedback.c.decision_id.in_(ids), feedback.c.origin.is_not(None))
        .order_by(feedback.c.name)
    )
    sources: dict[str, dict[str, FeedbackSource]] = {}
    for row in reports:
        source = FeedbackSource(row.origin, row.who, msgspec.json.decode(row.outcome))
        sources.setdefault(row.decision_id, {})[row.name] = source
    return sources


def _by_answer(rows: Any) -> dict[str, dict[str, Any]]:
    by_answer: dict[str, dict[str, Any]] = {}
    for id_, name, outcome in rows:
        by_answer.setdefault(id_, {})[name] = msgspec.json.decode(outcome)
    return by_answer


def _stored(row: sa.Row[Any]) -> StoredDecision:
    return filled(
        StoredDecision,
        row,
        request=bytes(row.request),
        results=bytes(row.results),
        metadata=None if row.metadata is None else bytes(row.metadata),
        outcome_names=decode(row.outcome_names, dict[str, list[str]]),
    )


def record_answer(
    caller: Caller, at: float, request: ValidRequest, answer: DecideResponse
) -> Callable[[sa.Connection], None]:
    """Return the write that stores an answer, for the transaction that settles it."""
    is_withheld = request.store == FEATURES
    values: dict[str, Any] = {
        **({"text": features_of(request.context)} if is_withheld else {"context": request.context}),
        "decisions": [_as_sent(decision) for decision in request.decisions],
    }
    if request.temperature is not None:
        values["temperature"] = request.temperature
    if request.fields:
        values["fields"] = without_texts(request.fields) if is_withheld else request.fields
    if answer.rule is not UNSET:
        values["rule"] = answer.rule
    named = request.named
    stored = StoredDecision(
        id=answer.id,
        account_id=caller.account_id,
        created_at=at,
        model=answer.model,
        version=answer.version if isinstance(answer.version, str) else None,
        request=msgspec.json.encode(values),
        results=msgspec.json.encode(answer.decisions),
        metadata=msgspec.json.encode(request.metadata) if request.metadata else None,
        outcome_names={
            decision.id: list(decision.outcomes.names) for decision in request.decisions
        },
        total_ms=answer.timing_ms.get("total"),
        key_id=caller.key_id,
        named=None if named is None else named.reference,
        named_alias=None if named is None else named.alias,
    )
    return functools.partial(insert_decision, decision=stored)


def _as_sent(decision: Decision) -> dict[str, Any]:
    """Return a decision in the one form that any valid spelling of it has; its policy is left out."""
    names, descriptions = decision.outcomes.names, decision.outcomes.descriptions
    sent: dict[str, Any] = {"id": decision.id, "kind": decision.kind, "question": decision.question}
    if decision.kind == "ordinal":
        return {**sent, "outcomes": list(names), "rubric": list(descriptions)}
    return {**sent, "outcomes": dict(zip(names, descriptions, strict=True))}
