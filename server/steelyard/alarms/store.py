"""Rows of rules, looks, watched models and alarms, and reads of other rooms' rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from steelyard.alarms.budget import WATCHES
from steelyard.alarms.tables import (
    alarm_feedback,
    alarm_looks,
    alarm_rules,
    alarm_watches,
    alarms,
    golden_checks,
)
from steelyard.alarms.wire import AlarmRule, AlarmsQuery
from steelyard.decision_log.store import DECIDING, counts_as_observed
from steelyard.decision_log.tables import decisions, feedback
from steelyard.decision_log.withheld import has_text
from steelyard.evaluations.tables import evaluations
from steelyard.operations.tables import operations
from steelyard.storage.pages import OrderedPage, newest_first
from steelyard.wire.decoding import decoder_of

_decode_rule = decoder_of(AlarmRule).decode
ACTIVE = ("raised", "acknowledged")
#: Seconds for which what is kept of a model that does not answer, and an alarm that has cleared, are kept.
IDLE_S, CLEARED_S = 30 * 86_400.0, 400 * 86_400.0
_SHORT: tuple[Any, ...] = (
    decisions.c.id,
    decisions.c.account_id,
    decisions.c.created_at,
    decisions.c.model,
    decisions.c.version,
    decisions.c.total_ms,
    decisions.c.results,
)


def all_rules(connection: sa.Connection, account_ids: Iterable[str]) -> Sequence[sa.Row[Any]]:
    """Return the rules of some accounts."""
    of_accounts = alarm_rules.c.account_id.in_(list(account_ids))
    return connection.execute(
        sa.select(alarm_rules).where(of_accounts).order_by(alarm_rules.c.model)
    ).all()


def rules_of_models(connection: sa.Connection) -> list[tuple[str, AlarmRule]]:
    """Return the rules of every account that are of one model."""
    of_models = sa.select(alarm_rules).where(alarm_rules.c.model != "")
    return [(row.account_id, _decode_rule(row.body)) for row in connection.execute(of_models)]


def rule_of_model(connection: sa.Connection, account_id: str, model: str) -> AlarmRule | None:
    """Return an account's rule of one model; ``None`` where it has none."""
    of = alarm_rules.c
    body = connection.scalar(
        sa.select(of.body).where(of.account_id == account_id, of.model == model)
    )
    return None if body is None else _decode_rule(body)


def golden_checks_of(connection: sa.Connection, account_id: str, model: str) -> Sequence[bytes]:
    """Return the checks of a model's golden rows, the oldest first."""
    table = golden_checks.c
    return connection.scalars(
        sa.select(table.body)
        .where(table.account_id == account_id, table.model == model)
        .order_by(table.number)
    ).all()


def add_golden_check(
    connection: sa.Connection, account_id: str, model: str, number: int, body: bytes
) -> None:
    """Add a check, unless another process has added it."""
    table = golden_checks.c
    of = (table.account_id == account_id, table.model == model, table.number == number)
    if connection.scalar(sa.select(table.number).where(*of)) is None:
        values = {"account_id": account_id, "model": model, "number": number, "body": body}
        connection.execute(sa.insert(golden_checks), values)


def change_golden_check(
    connection: sa.Connection, account_id: str, model: str, number: int, before: bytes, body: bytes
) -> bool:
    """Write how a check ended; return whether no other process did so first."""
    table = golden_checks.c
    of = (table.account_id == account_id, table.model == model, table.number == number)
    changed = connection.execute(
        sa.update(golden_checks).where(*of, table.body == before).values(body=body)
    )
    return changed.rowcount == 1


def forget_golden_checks(
    connection: sa.Connection,
    account_id: str,
    model: str,
    before: int | None = None,
    but: Sequence[int] = (),
) -> None:
    """Remove a model's checks, or those before a number but some."""
    table = golden_checks.c
    where = [table.account_id == account_id, table.model == model]
    if before is not None:
        where += [table.number < before, table.number.not_in(but)]
    connection.execute(sa.delete(golden_checks).where(*where))


def delete_rule(connection: sa.Connection, account_id: str, model: str) -> None:
    """Remove a rule."""
    where = (alarm_rules.c.account_id == account_id, alarm_rules.c.model == model)
    connection.execute(sa.delete(alarm_rules).where(*where))


def put_rule(
    connection: sa.Connection, account_id: str, model: str, body: bytes, at: float
) -> None:
    """Store a rule in place of the one before."""
    delete_rule(connection, account_id, model)
    connection.execute(
        sa.insert(alarm_rules).values(account_id=account_id, model=model, body=body, updated_at=at)
    )


def find_look(connection: sa.Connection, name: str) -> sa.Row[Any]:
    """Return how far the last look came."""
    return connection.execute(sa.select(alarm_looks).where(alarm_looks.c.name == name)).one()


def move_look(connection: sa.Connection, before: sa.Row[Any], at: float, last_id: str = "") -> bool:
    """Store how far a look came; return whether no other process did so first."""
    table = alarm_looks.c
    moved = connection.execute(
        sa.update(alarm_looks)
        .where(table.name == before.name, table.at == before.at, table.last_id == before.last_id)
        .values(at=at, last_id=last_id)
    )
    return moved.rowcount == 1


def next_answers(
    connection: sa.Connection, after: tuple[float, str], until: float, limit: int
) -> Sequence[sa.Row[Any]]:
    """Return stored answers of every account without their requests, the oldest first."""
    at, last_id = after
    table = decisions.c
    return connection.execute(
        sa.select(*_SHORT)
        .where(
            table.created_at >= at,
            sa.or_(table.created_at > at, table.id > last_id),
            table.created_at < until,
        )
        .order_by(table.created_at, table.id)
        .limit(limit)
    ).all()


def requests_of(connection: sa.Connection, ids: Sequence[str]) -> dict[str, bytes]:
    """Return the requests of answers, by answer id."""
    rows = connection.execute(
        sa.select(decisions.c.id, decisions.c.request).where(decisions.c.id.in_(ids))
    )
    return {row.id: request for row in rows if has_text(request := bytes(row.request))}


def next_feedback(
    connection: sa.Connection, since: float, until: float, limit: int
) -> Sequence[sa.Row[Any]]:
    """Return feedback that was not counted, the oldest first, with the answer's results."""
    table, counted = feedback.c, alarm_feedback.c
    return connection.execute(
        sa.select(feedback, *_SHORT[1:])
        .join(decisions, decisions.c.id == table.decision_id)
        .outerjoin(
            alarm_feedback,
            (counted.decision_id == table.decision_id) & (counted.name == table.name),
        )
        .where(table.recorded_at >= since, table.recorded_at < until)
        .where(counted.decision_id.is_(None), counts_as_observed())
        .order_by(table.recorded_at)
        .limit(limit)
    ).all()


def note_feedback(connection: sa.Connection, feedback_rows: Sequence[sa.Row[Any]]) -> None:
    """Store that feedback on decisions that are still stored was counted."""
    ids = {row.decision_id for row in feedback_rows}
    stored = set(connection.scalars(sa.select(decisions.c.id).where(decisions.c.id.in_(ids))))
    values = [
        {"decision_id": row.decision_id, "name": row.name}
        for row in feedback_rows
        if row.decision_id in stored
    ]
    if values:
        connection.execute(sa.insert(alarm_feedback), values)


def failed_operations(
    connection: sa.Connection, since: float, until: float
) -> list[tuple[str, str, int]]:
    """Return account, model and number of the decisions that failed after they had begun."""
    table = operations.c
    rows = connection.execute(
        sa.select(table.account_id, table.model, sa.func.count())
        .where(
            table.state == "failed",
            table.accepted_at >= since,
            table.accepted_at < until,
            table.route.in_(DECIDING),
        )
        .group_by(table.account_id, table.model)
    )
    return [(account_id, model, n) for account_id, model, n in rows]


def window_answers(
    connection: sa.Connection,
    account_id: str,
    model: str,
    version: str,
    *,
    since: float,
    until: float,
    limit: int,
) -> Sequence[sa.Row[Any]]:
    """Return the newest stored answers of a model in a window, without their requests."""
    table = decisions.c
    return connection.execute(
        sa.select(*_SHORT)
        .where(
            table.account_id == account_id,
            table.created_at >= since,
            table.created_at < until,
            table.model == model,
            table.version == version if version else table.version.is_(None),
        )
        .order_by(table.created_at.desc())
        .limit(limit)
    ).all()


def find_reference(
    connection: sa.Connection, account_id: str, *, label: str, evaluation_id: str | None
) -> sa.Row[Any] | None:
    """Return an evaluation that was chosen, or the one that a fine-tune made of its model."""
    table = evaluations.c
    of = (
        (table.model_label == label, table.training_job_id.is_not(None))
        if evaluation_id is None
        else (table.id == evaluation_id,)
    )
    return connection.execute(
        sa.select(evaluations)
        .where(
            table.account_id == account_id,
            table.status == "succeeded",
            table.predictions_sha256.is_not(None),
            *of,
        )
        .order_by(table.created_at)
        .limit(1)
    ).first()


def find_watches(
    connection: sa.Connection, keys: Iterable[tuple[str, str, str]]
) -> dict[tuple[str, str, str], bytes]:
    """Return the stored state of some models, by account, model and version."""
    distinct_keys = set(keys)
    table = alarm_watches.c
    rows = connection.execute(
        sa.select(alarm_watches).where(
            table.account_id.in_({key[0] for key in distinct_keys}),
            table.model.in_({key[1] for key in distinct_keys}),
        )
    )
    by_key = {(row.account_id, row.model, row.version): bytes(row.body) for row in rows}
    return {key: body for key, body in by_key.items() if key in distinct_keys}


def watches_of_account(
    connection: sa.Connection, account_id: str, limit: int
) -> Sequence[sa.Row[Any]]:
    """Return the stored state of an account's models, those that answered last first."""
    table = alarm_watches.c
    return connection.execute(
        sa.select(alarm_watches)
        .where(table.account_id == account_id)
        .order_by(table.updated_at.desc(), table.model, table.version)
        .limit(limit)
    ).all()


def newest_version(connection: sa.Connection, account_id: str, model: str) -> str | None:
    """Return the version of a model that answered last; ``None`` where none is watched."""
    table = alarm_watches.c
    return connection.scalar(
        sa.select(table.version)
        .where(table.account_id == account_id, table.model == model)
        .order_by(table.updated_at.desc())
        .limit(1)
    )


def is_known(connection: sa.Connection, account_id: str, model: str) -> bool:
    """Return whether a model has answered, or has a rule."""
    return any(
        connection.scalar(
            sa.select(sa.literal(1))
            .where(table.c.account_id == account_id, table.c.model == model)
            .limit(1)
        )
        for table in (alarm_watches, alarm_rules)
    )


def put_watch(
    connection: sa.Connection, key: Sequence[str], body: bytes, *, counted: int, at: float
) -> None:
    """Store the state of a model, and when it answered last."""
    account_id, model, version = key
    table = alarm_watches.c
    where = (table.account_id == account_id, table.model == model, table.version == version)
    connection.execute(sa.delete(alarm_watches).where(*where))
    connection.execute(
        sa.insert(alarm_watches).values(
            account_id=account_id,
            model=model,
            version=version,
            body=body,
            counted=counted,
            updated_at=at,
        )
    )


def insert_alarm(connection: sa.Connection, values: Mapping[str, Any]) -> None:
    """Add an alarm that is raised."""
    connection.execute(sa.insert(alarms), {"state": "raised", **values})


def active_alarms(
    connection: sa.Connection, account_id: str, model: str | None = None, **equal: str
) -> Sequence[sa.Row[Any]]:
    """Return alarms that have not cleared, by model and further columns."""
    where = [alarms.c.account_id == account_id, alarms.c.state.in_(ACTIVE)]
    if model is not None:
        where.append(alarms.c.model == model)
    where += [alarms.c[name] == value for name, value in equal.items()]
    return connection.execute(sa.select(alarms).where(*where)).all()


def alarm_on_answers(
    connection: sa.Connection, account_id: str, named: str, since: float
) -> str | None:
    """Return the texts of active alarms raised since a time on a model of a version's answers."""
    of = decisions.c
    of_version = (of.account_id == account_id, of.named == named, of.created_at >= since)
    raised = sa.select(alarms.c.message).where(
        alarms.c.account_id == account_id,
        alarms.c.state.in_(ACTIVE),
        alarms.c.created_at >= since,
        sa.select(of.id).where(*of_version, of.model == alarms.c.model).exists(),
    )
    message: str | None = connection.scalar(raised.order_by(alarms.c.created_at).limit(1))
    return message


def find_alarm(connection: sa.Connection, account_id: str, alarm_id: str) -> sa.Row[Any] | None:
    """Return an alarm of an account."""
    return connection.execute(
        sa.select(alarms).where(alarms.c.account_id == account_id, alarms.c.id == alarm_id)
    ).first()


def change_alarm(connection: sa.Connection, alarm_id: str, **values: Any) -> None:
    """Write columns of an alarm."""
    connection.execute(sa.update(alarms).where(alarms.c.id == alarm_id).values(**values))


def page_of_alarms(connection: sa.Connection, account_id: str, query: AlarmsQuery) -> OrderedPage:
    """Return a page of an account's alarms, the newest first."""
    owned, model = alarms.c.account_id == account_id, query.model
    where: list[sa.ColumnElement[bool]] = [alarms.c.state.in_(query.state)] if query.state else []
    if model is not None:
        where.append(sa.or_(alarms.c.model == model, alarms.c.version == model))
    return newest_first(
        connection, alarms, owned=owned, where=where, limit=query.limit, cursor=query.cursor
    )


def count_by_state(connection: sa.Connection) -> dict[str, int]:
    """Return how many alarms of every account are in each state that is not cleared."""
    rows = connection.execute(
        sa.select(alarms.c.state, sa.func.count())
        .where(alarms.c.state.in_(ACTIVE))
        .group_by(alarms.c.state)
    )
    counts = {state: n for state, n in rows}  # noqa: C416
    return {state: counts.get(state, 0) for state in ACTIVE}


def sweep(connection: sa.Connection, now: float) -> Sequence[sa.Row[Any]]:
    """Remove the state of models that no longer answer, and old alarms; return alarms to be cleared."""
    connection.execute(sa.delete(alarm_watches).where(alarm_watches.c.updated_at < now - IDLE_S))
    old = alarms.c.cleared_at < now - CLEARED_S
    connection.execute(sa.delete(alarms).where(alarms.c.state == "cleared", old))
    table, watch = alarms.c, alarm_watches.c
    is_watched = (
        (watch.account_id == table.account_id)
        & (watch.model == table.model)
        & (watch.version == table.version)
    )
    is_idle = (table.watch.in_(WATCHES), ~sa.exists().where(is_watched))
    return connection.execute(sa.select(alarms).where(table.state.in_(ACTIVE), *is_idle)).all()
