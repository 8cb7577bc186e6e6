"""Decisions on a real state: replayed, charged once, kept for feedback, and forgotten in time."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from steelyard import errors
from steelyard.accounts.rate_limits import RateWindows, TokenAllowance
from steelyard.accounts.service import AccountService
from steelyard.app.sweep import Sweeper
from steelyard.caller import LOCAL_ACCOUNT, Caller
from steelyard.decision_log.feedback import FeedbackService
from steelyard.decision_log.store import (
    StoredDecision,
    feedback_of_answers,
    find_decision,
    record_answer,
)
from steelyard.decision_log.wire import FeedbackRequest, FeedbackResponse
from steelyard.decision_log.withheld import features_of, has_text
from steelyard.operations.idempotency import KeyedWrites
from steelyard.operations.service import OperationLog
from steelyard.operations.write import Write
from steelyard.serving.registry import ModelRegistry
from steelyard.serving.service import DecisionService
from steelyard.storage import open_state
from support.decisions.factories import make_request_dict
from support.servers.calling import Sent, send
from support.servers.hosting import crash, hosted
from support.waiting import until

DAY_S = 86_400.0
LOCAL = Caller(LOCAL_ACCOUNT, None, "full", "127.0.0.1")


class Desk:
    """A model at 12 nano-USD a token, a state of its own, and a clock that the test sets."""

    def __init__(self, closing: ExitStack, folder: Path, *, accounts: bool = False) -> None:
        self.now = 1_800_000_000.0
        self.state = open_state(f"sqlite:///{folder / 'state.sqlite'}")
        closing.callback(self.state.close)
        self.model, self.scorer = closing.enter_context(hosted("a", price_nano=12))
        windows = RateWindows()
        closing.callback(windows.close)
        self.operations = OperationLog(self.state, accounts_enabled=accounts, now=lambda: self.now)
        self.accounts = AccountService(self.state, accounts_enabled=accounts)
        self.decisions = DecisionService(
            ModelRegistry([self.model]),
            self.operations,
            TokenAllowance(windows, 0),
            deadline_s=30,
            storing="on",
            record=record_answer,
            now=lambda: self.now,
        )
        self.feedback = FeedbackService(
            KeyedWrites(self.state, now=lambda: self.now), retention_days=30, now=lambda: self.now
        )

    def ask(self, key: str | None = None, caller: Caller = LOCAL, **fields: Any) -> Sent:
        return asyncio.run(self.send(key, caller=caller, **fields))

    async def send(self, key: str | None, *, caller: Caller = LOCAL, **fields: Any) -> Sent:
        services, body = {DecisionService: self.decisions}, make_request_dict(**fields)
        return await send("POST /v1/decide", services, body, caller=caller, key=key)

    def report(self, decision_id: str, caller: Caller = LOCAL) -> FeedbackResponse:
        request = FeedbackRequest(decision_id=decision_id, outcomes={"route": "other"})
        return asyncio.run(self.feedback.record(Write(caller), request))

    def sweep(self, text_days: float = 0.0) -> None:
        sweeper = Sweeper(
            self.state,
            self.operations,
            retention_days=30,
            text_days=text_days,
            interval_s=3600,
            now=lambda: self.now,
        )
        with closing(sweeper):
            sweeper.sweep()


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with ExitStack() as closing:
        yield Desk(closing, tmp_path)


@pytest.fixture
def paying(tmp_path: Path) -> Iterator[Desk]:
    with ExitStack() as closing:
        yield Desk(closing, tmp_path, accounts=True)


def id_of(reply: Sent) -> str:
    return str(json.loads(reply.body)["id"])


def test_a_repeated_key_gives_the_same_bytes_for_a_day_and_is_never_run_again(desk: Desk) -> None:
    first = desk.ask("k")
    desk.now += DAY_S - 1
    again = desk.ask("k")
    assert (again.body, again.is_replay) == (first.body, True)
    desk.now += 2
    with pytest.raises(errors.IdempotencyResponseExpiredError):
        desk.ask("k")
    assert desk.scorer.n_calls == 1
    with pytest.raises(errors.IdempotencyConflictError):
        desk.ask("k", context="Other.")


def test_requests_with_one_key_at_the_same_time_run_once(desk: Desk) -> None:
    async def ask_twice() -> list[Sent]:
        desk.scorer.hang()
        asking = [asyncio.create_task(desk.send("k")) for _ in range(3)]
        await until(lambda: desk.scorer.entered.acquire(blocking=False))
        desk.scorer.may_answer.set()
        return await asyncio.gather(*asking)

    replies = asyncio.run(ask_twice())
    assert desk.scorer.n_calls == 1
    assert len({reply.body for reply in replies}) == 1
    assert sorted(reply.is_replay for reply in replies) == [False, True, True]


def test_a_failure_after_acceptance_is_the_keys_end(desk: Desk) -> None:
    desk.scorer.behave = crash
    for _ in range(2):
        with pytest.raises(errors.EngineUnavailableError) as caught:
            desk.ask("k")
        assert caught.value.operation.status == "terminal"
    assert desk.scorer.n_calls == 1
    desk.scorer.behave = None
    assert not desk.ask("k2").is_replay


def test_a_decision_takes_feedback_while_it_is_kept(desk: Desk) -> None:
    decided = id_of(desk.ask())
    desk.now += 30 * DAY_S
    assert desk.report(decided) == FeedbackResponse(decision_id=decided, recorded=["route"])
    desk.now += 1
    with pytest.raises(errors.NotFoundError):
        desk.report(decided)


def test_the_sweep_removes_decisions_whose_time_is_over_and_their_feedback(desk: Desk) -> None:
    old = id_of(desk.ask())
    desk.report(old)
    desk.now += 29 * DAY_S
    young = id_of(desk.ask())
    desk.now += 2 * DAY_S
    desk.sweep()

    assert desk.state.read_now(lambda c: find_decision(c, LOCAL_ACCOUNT, young, 0)).id == young
    with pytest.raises(errors.NotFoundError):
        desk.state.read_now(lambda c: find_decision(c, LOCAL_ACCOUNT, old, 0))
    assert desk.state.read_now(lambda c: feedback_of_answers(c, [old])) == {}


def test_texts_go_after_their_days_and_answers_stay(desk: Desk) -> None:
    old = id_of(desk.ask())
    desk.report(old)
    desk.now += 5 * DAY_S
    young = id_of(desk.ask())

    def stored(id_: str) -> StoredDecision:
        return desk.state.read_now(lambda c: find_decision(c, LOCAL_ACCOUNT, id_, 0))

    asked, before = json.loads(stored(old).request), stored(young)
    for days in (0, 4):
        desk.sweep(text_days=days)
        assert has_text(stored(old).request) == (days == 0)
        assert stored(young) == before
    kept = json.loads(stored(old).request)
    assert kept.pop("text") == features_of(asked.pop("context"))
    assert kept == asked
    assert desk.state.read_now(lambda c: feedback_of_answers(c, [old])) != {}
    assert desk.report(old).recorded == ["route"]


def test_unstored_decisions_leave_nothing(desk: Desk) -> None:
    decided = id_of(desk.ask(store=False))
    with pytest.raises(errors.NotFoundError):
        desk.report(decided)


def open_account(desk: Desk, name: str, credit_nano: int) -> Caller:
    account = desk.accounts.create_account(name)
    if credit_nano:
        desk.accounts.add_credit(name, credit_nano)
    return Caller(account.id, None, "full", "127.0.0.1")


def test_anothers_decision_takes_no_feedback(paying: Desk) -> None:
    mine, theirs = (open_account(paying, name, 10**9) for name in ("mine", "theirs"))
    decided = id_of(paying.ask(caller=mine))
    with pytest.raises(errors.NotFoundError):
        paying.report(decided, caller=theirs)
    assert paying.report(decided, caller=mine).recorded == ["route"]


def test_credit_pays_once_for_a_key_and_not_at_all_for_a_failure(paying: Desk) -> None:
    price = paying.model.decide.prepare(make_request_dict()).input_tokens * 12
    caller = open_account(paying, "payer", price)
    paying.scorer.behave = crash
    with pytest.raises(errors.EngineUnavailableError):
        paying.ask("failing", caller)
    paying.scorer.behave = None
    first = paying.ask("k", caller)
    assert paying.ask("k", caller).body == first.body
    with pytest.raises(errors.InsufficientCreditError):
        paying.ask("k2", caller)
    assert paying.scorer.n_calls == 2
    summary = asyncio.run(paying.accounts.summary(caller))
    assert (summary.wallet.available_usd, summary.wallet.reserved_usd) == ("0", "0")
    # A refusal for want of credit does not use up the key.
    paying.accounts.add_credit("payer", price)
    assert not paying.ask("k2", caller).is_replay
