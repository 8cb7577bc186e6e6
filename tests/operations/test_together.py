"""Operations that begin and end together: each counts after those before it, and all are a few trips."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from contextlib import closing
from typing import Any

import pytest

from steelyard import errors
from steelyard.caller import Caller
from steelyard.decision_log.store import StoredDecision
from steelyard.ledger.books import referral
from steelyard.operations.posting import post_operation
from steelyard.operations.writes import Accepted
from steelyard.storage import State, open_state
from support.accounts.operating import Desk
from support.servers.calling import Sent
from support.servers.forwarder import forwarded
from support.servers.postgres_server import PostgresServer
from support.waiting import next_turn


@pytest.fixture
def desk(state: State) -> Desk:
    return Desk(state, accounts_enabled=True)


def call_together(desk: Desk, *calls: Coroutine[Any, Any, Any]) -> list[Any]:
    """Return the results or errors of calls that wait for one turn to write, in their order."""
    entered, may_go_on = threading.Event(), threading.Event()
    desk.state.submit(lambda _: entered.set() or may_go_on.wait(60))
    assert entered.wait(60)

    async def call_all() -> list[Any]:
        tasks = [asyncio.create_task(call) for call in calls]
        await next_turn()
        may_go_on.set()
        return await asyncio.gather(*tasks, return_exceptions=True)

    return asyncio.run(call_all())


def kinds(outcomes: list[Any]) -> list[type]:
    return [type(outcome) for outcome in outcomes]


def test_together_no_more_is_held_than_there_is(desk: Desk):
    desk.accounts.add_credit("local", 100)
    first = desk.accepted(reserved=40)
    outcomes = call_together(
        desk,
        desk.accept(reserved=50),
        desk.accept("b", reserved=11),
        desk.settled(first, 30),
        desk.accept("c", reserved=20),
        desk.accept(reserved=1),
    )
    assert kinds(outcomes) == [
        Accepted,
        errors.InsufficientCreditError,
        Sent,
        Accepted,
        errors.InsufficientCreditError,
    ]
    assert desk.books() == {"paid": 0, "held": 70, "revenue": 30, "funding": -100}
    desk.check_ledger()


def test_together_a_cap_is_kept(desk: Desk):
    desk.accounts.add_credit("local", 1000)
    key = desk.accounts.create_key(scope="inference", monthly_cap_nano=100).key
    caller = Caller("local", key.id, "inference", "127.0.0.1")
    outcomes = call_together(desk, *(desk.accept(reserved=30, caller=caller) for _ in range(5)))
    assert kinds(outcomes) == [Accepted] * 3 + [errors.KeyCapReachedError] * 2
    assert desk.month(key.id) == (0, 90)
    first, second, _ = outcomes[:3]
    call_together(desk, desk.settled(first, 10), desk.settled(second, 0), desk.accept(reserved=5))
    assert desk.month(key.id) == (10, 30)
    desk.check_ledger()


def test_together_promotional_credit_is_spent_once(desk: Desk):
    desk.state.write_now(
        lambda c: post_operation(c, "local", "referral", referral(15), 15, desk.clock.at)
    )
    desk.accounts.add_credit("local", 100)
    both = [desk.accepted(reserved=20) for _ in range(2)]
    call_together(desk, *(desk.settled(one, 10) for one in both))
    assert desk.books()["promotional"] == 0
    assert desk.books()["paid"] == 95
    desk.check_ledger()


def test_together_a_key_runs_once(desk: Desk):
    desk.accounts.add_credit("local", 100)
    done = desk.accepted("done", reserved=1)
    desk.settle(done, 1, b"1")

    async def run(key: str) -> Sent:
        outcome = await desk.accept(key, reserved=5)
        if isinstance(outcome, Accepted):
            outcome = await desk.settled(outcome, 5, outcome.operation_id.encode())
        return outcome

    outcomes = call_together(desk, *(run(key) for key in ("a", "done", "b", "a", "b", "a")))
    assert [outcome.is_replay for outcome in outcomes] == [False, True, False, True, True, True]
    assert outcomes[3].body == outcomes[5].body == outcomes[0].body != outcomes[2].body
    assert desk.books()["revenue"] == 11
    desk.check_ledger()


@pytest.mark.parametrize("is_first", [True, False])
def test_together_a_key_that_is_settled_is_not_free(desk: Desk, is_first: bool):
    desk.accounts.add_credit("local", 100)
    accepted = desk.accepted("k", reserved=5)
    calls = [desk.settled(accepted, 5, b"1"), desk.accept("k", reserved=5)]
    replay = call_together(desk, *(calls if is_first else calls[::-1]))[1 if is_first else 0]
    assert (replay.body, replay.is_replay) == (b"1", True)
    assert desk.books()["revenue"] == 5
    desk.check_ledger()


def test_together_a_dead_operation_frees_its_key_and_hold(desk: Desk, state_url: str):
    desk.accounts.add_credit("local", 100)
    dead = desk.accepted("k", reserved=90)
    desk.state.close()
    with closing(open_state(state_url)) as state:
        again = Desk(state, desk.clock, accounts_enabled=True)
        outcomes = call_together(again, again.accept(reserved=10), again.accept("k", reserved=50))
        assert kinds(outcomes) == [Accepted, Accepted]
        assert again.states()[dead.operation_id] == "released"
        assert again.books()["held"] == 60
        again.check_ledger()


def test_together_one_that_cannot_be_kept_fails_alone(desk: Desk):
    desk.accounts.add_credit("local", 100)
    kept = StoredDecision(
        id="dec_1", account_id="local", created_at=1.0, model="base", request=b"{}", results=b"{}"
    )
    ran = [desk.accepted(reserved=5) for _ in range(3)]
    outcomes = call_together(
        desk,
        desk.settled(ran[0], 5, decision=kept),
        desk.settled(ran[1], 5, decision=kept),
        desk.settled(ran[2], 5),
    )
    assert isinstance(outcomes[1], Exception)
    assert kinds([outcomes[0], outcomes[2]]) == [Sent, Sent]
    assert desk.books()["revenue"] == 10
    desk.check_ledger()


def test_many_take_as_few_trips_to_the_database_as_some(postgres: PostgresServer):
    n_trips = []
    with forwarded(postgres.new_state()) as (forwarder, url), closing(open_state(url)) as state:
        desk = Desk(state, accounts_enabled=True)
        desk.accounts.add_credit("local", 10**6)
        key = desk.accounts.create_key(scope="inference", monthly_cap_nano=10**5).key
        caller = Caller("local", key.id, "inference", "127.0.0.1")
        for turn, n_calls in enumerate((2, 2, 50)):
            accepted = call_together(
                desk,
                *(desk.accept(f"{turn} {n}", reserved=5, caller=caller) for n in range(n_calls)),
            )
            before = forwarder.n_trips
            call_together(desk, *(desk.settled(one, 3) for one in accepted))
            n_trips.append(forwarder.n_trips - before)
        desk.check_ledger()
        assert desk.month(key.id) == (3 * 54, 0)
    # Two turns, of the one that the others wait for, and of theirs.
    assert n_trips[2] <= n_trips[1] <= 7
