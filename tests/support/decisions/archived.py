"""Stored answers of several days and accounts, all that is read of them, and their move to files."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import msgspec
from sqlalchemy import Connection, insert, select, update

from steelyard.app.rooms import names_of_decisions
from steelyard.caller import Caller
from steelyard.decision_log.answers import StoredAnswers
from steelyard.decision_log.archive.files import ArchiveFiles
from steelyard.decision_log.archive.run import ArchiveRuns
from steelyard.decision_log.archive.service import Archiving
from steelyard.decision_log.service import DecisionLog
from steelyard.decision_log.store import (
    AnswerCriteria,
    StoredDecision,
    insert_decision,
    put_feedback,
)
from steelyard.decision_log.tables import decisions
from steelyard.decision_log.wire import (
    DecisionLogQuery,
    DecisionSeriesQuery,
    DecisionSummaryQuery,
    ExportDecisionsQuery,
)
from steelyard.errors import NotFoundError
from steelyard.shadows.tables import shadow_answers
from steelyard.storage import State
from steelyard.storage.tables import accounts

DAY_S = 86_400.0
FIRST_DAY = 20_000
NOW = (FIRST_DAY + 5) * DAY_S + 1_000.0
RETENTION_DAYS = 30.0
LOCAL, ACME = "local", "acc_acme"
#: Answers of an account's day, and its days; the last one is today.
N_A_DAY, DAYS = 36, (0, 1, 5)
#: All of them, by day.
WINDOW: dict[str, Any] = {"since": FIRST_DAY * DAY_S, "until": NOW, "bucket_s": 86_400}

QUERIES: tuple[dict[str, Any], ...] = (
    {},
    {"since": (FIRST_DAY + 0.5) * DAY_S, "until": (FIRST_DAY + 1.5) * DAY_S},
    {"model": "router"},
    {"model": "router@2", "abstained": False},
    {"key": "key_1"},
    {"decision": "urgent"},
    {"has_feedback": True},
    {"has_feedback": False, "decision": "team"},
    {"abstained": True},
    {"wrong": True},
    {"wrong": False, "decision": "team"},
    {"p_from": 0.5, "p_to": 0.8},
    {"order": "chance", "decision": "team"},
)


def ids_of(account_id: str) -> list[str]:
    """Ids of an account's answers, the oldest first."""
    return [f"dec_{account_id[-5:]}{day}{number:03}" for day in DAYS for number in range(N_A_DAY)]


def fill(connection: Connection) -> None:
    """Store the answers of two accounts; some have feedback, and a shadow took some up."""
    connection.execute(insert(accounts), {"id": ACME, "name": "acme", "created_at": 1.0})
    for account_id in (LOCAL, ACME):
        for place, id_ in enumerate(ids_of(account_id)):
            number = place % N_A_DAY
            # Several at the same time, so that their order is that of their ids.
            at = (FIRST_DAY + DAYS[place // N_A_DAY]) * DAY_S + number // 3 * 13.0
            insert_decision(connection, answer(id_, account_id, at, number))
            if number % 9 == 4:
                told: dict[str, Any] = {"team": "billing"}
                if number % 2:
                    told["urgent"] = {"yes": 0.25, "no": 0.75}
                put_feedback(connection, id_, told, recorded_at=at + 60)
            if number % 12 == 7:
                connection.execute(
                    insert(shadow_answers),
                    {
                        "decision_id": id_,
                        "account_id": account_id,
                        "family": "router",
                        "model": "other",
                        "taken_at": at,
                    },
                )


def answer(id_: str, account_id: str, at: float, number: int) -> StoredDecision:
    """An answer to one decision or two."""
    p = 0.3 + number % 7 / 10
    team: dict[str, Any] = {
        "kind": "single",
        "probabilities": {"billing": p, "other": 1 - p},
        "top": "billing" if p >= 0.5 else "other",
        "p_top": max(p, 1 - p),
        "action": "abstain" if number % 5 == 0 else "billing",
    }
    results = {"team": team}
    if number % 2:
        urgent = {**team, "kind": "binary", "probabilities": {"yes": p, "no": 1 - p}}
        results["urgent"] = {**urgent, "top": "yes", "action": "yes"}
    asked = [
        {"id": name, "kind": result["kind"], "question": "What is it?"}
        for name, result in results.items()
    ]
    return StoredDecision(
        id=id_,
        account_id=account_id,
        created_at=at,
        model="router" if number % 3 else "base",
        version=f"router@{number % 2 + 1}" if number % 3 else None,
        request=msgspec.json.encode({"context": f"Karte {number}, \u00e9", "decisions": asked}),
        results=msgspec.json.encode(results),
        metadata=b'{"queue":"a"}' if number % 4 == 0 else None,
        outcome_names={name: list(result["probabilities"]) for name, result in results.items()},
        total_ms=None if number % 6 == 0 else float(number),
        key_id=f"key_{number % 2}" if number % 8 else None,
    )


def log_of(state: State, files: ArchiveFiles | None) -> DecisionLog:
    """The log as it is read at ``NOW``."""
    return DecisionLog(
        state, retention_days=RETENTION_DAYS, answers=StoredAnswers(files), now=lambda: NOW
    )


def everything_of(
    state: State, files: ArchiveFiles | None, account_id: str = LOCAL
) -> dict[str, Any]:
    """Everything reported of an account's stored answers, by request."""
    return asyncio.run(_ask(state, files, Caller(account_id, None, "full", "test")))


async def _ask(state: State, files: ArchiveFiles | None, me: Caller) -> dict[str, Any]:
    log, answers = log_of(state, files), StoredAnswers(files)
    told: dict[str, Any] = {}
    for asked in QUERIES:
        cursor, pages = None, []
        while True:
            page = await log.page(me, DecisionLogQuery(**asked, limit=40, cursor=cursor))
            pages.append(msgspec.to_builtins(page))
            cursor = page.next_cursor
            if cursor is None:
                break
        told[f"log {asked}"] = pages
    for account_id in (LOCAL, ACME):
        for id_ in ids_of(account_id)[::9]:
            try:
                told[id_] = msgspec.to_builtins(await log.get(me, id_))
            except NotFoundError as error:
                told[id_] = error.message
    told["export"] = b"".join(await log.export(me, ExportDecisionsQuery(format="csv")))
    told["some"] = b"".join(
        await log.export(me, ExportDecisionsQuery(format="csv", key="key_1", abstained=False))
    )
    for model in (None, "router@1"):
        summary = await log.summary(me, DecisionSummaryQuery(**WINDOW, model=model))
        series = await log.series(me, DecisionSeriesQuery(**WINDOW, model=model))
        told[f"summary {model}"] = msgspec.to_builtins(summary)
        told[f"series {model}"] = msgspec.to_builtins(series)

    def read(connection: Connection) -> None:
        wanted = AnswerCriteria(account_id=me.account_id, newest_first=False)
        oldest = answers.page(connection, wanted, 50)
        told["oldest"] = oldest
        told["next oldest"] = answers.page(
            connection, dataclasses.replace(wanted, after=oldest[-1].place), 50
        )
        told["counts"] = [
            answers.count(connection, AnswerCriteria(account_id=me.account_id, ids=ids))
            for ids in (None, [], ids_of(me.account_id)[3:60:4], ["dec_none"])
        ]

    state.read_now(read)
    return told


def move_all(state: State, files: ArchiveFiles, after_write: Callable[[], object]) -> None:
    """Move every day that is due; something may look after each write of a run."""
    archiving = Archiving(state, after_days=1, retention_days=RETENTION_DAYS, now=lambda: NOW)
    archiving.tick()
    runs = ArchiveRuns(state, files, names_of_decisions(), lambda: None, now=lambda: NOW)
    while jobs := state.read_now(runs.pending):
        job = dataclasses.replace(jobs[0], runner=state.instance)
        state.write_now(functools.partial(runs.claim, job=job))
        run = runs.open(job)
        while run.advance():
            after_write()
        after_write()


def ids_in_state(state: State, account_id: str = LOCAL) -> set[str]:
    """Ids of the answers that the state itself has."""
    of = select(decisions.c.id).where(decisions.c.account_id == account_id)
    return state.read_now(lambda connection: set(connection.scalars(of)))


def end_account(state: State, account_id: str) -> None:
    """Set the end of an account's days of grace to the past."""
    is_it = accounts.c.id == account_id
    state.write_now(
        lambda connection: connection.execute(update(accounts).where(is_it).values(deletes_at=1.0))
    )
