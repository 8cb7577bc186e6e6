"""The life of an operation and of its key, state by state."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import func, select

from steelyard import errors
from steelyard.caller import Caller
from steelyard.decision_log.store import StoredDecision, find_decision, insert_decision
from steelyard.operations import service
from steelyard.operations.store import find_operation
from steelyard.operations.tables import idempotency_keys
from steelyard.operations.writes import Accepted
from steelyard.storage import State, open_state
from support.accounts.operating import LOCAL, ROUTE, Clock, Desk
from support.servers.calling import Sent
from support.waiting import check_that_it_stays_so, next_turn

DAY = 86_400.0


@pytest.fixture
def desk(state: State) -> Desk:
    return Desk(state)


def refused(
    desk: Desk, kind: type[errors.SteelyardError], key: str | None = "k", **given
) -> errors.SteelyardError:
    with pytest.raises(kind) as caught:
        asyncio.run(desk.accept(key, **given))
    return caught.value


def decision(name: str = "dec_1") -> StoredDecision:
    return StoredDecision(
        id=name, account_id="local", created_at=1.0, model="base", request=b"{}", results=b"{}"
    )


# none


def test_a_new_key_runs_and_is_recorded(desk: Desk):
    accepted = desk.accepted("k")
    assert accepted.operation_id.startswith("op_")
    assert desk.states() == {accepted.operation_id: "pending"}


def test_a_refusal_before_acceptance_leaves_the_key_free(state: State):
    desk = Desk(state, accounts_enabled=True)
    refused(desk, errors.InsufficientCreditError, reserved=5)
    assert desk.states() == {}
    desk.accounts.add_credit("local", 5)
    desk.accepted("k", reserved=5, payload="another")


# pending


def test_a_pending_key_of_another_process_is_waited_for(
    desk: Desk, state_url: str, monkeypatch: pytest.MonkeyPatch
):
    accepted = desk.accepted("k")
    with closing(open_state(state_url)) as other_state:
        other = Desk(other_state, desk.clock)

        async def call_both() -> Sent | Accepted:
            waiting = asyncio.create_task(other.accept("k"))
            await check_that_it_stays_so(lambda: not waiting.done(), 0.05)
            await desk.settled(accepted, 0, b"1")
            return await waiting

        reply = asyncio.run(call_both())
        assert isinstance(reply, Sent)
        assert (reply.body, reply.is_replay) == (b"1", True)
        monkeypatch.setattr(service, "WAIT_S", 0.01)
        accepted = desk.accepted("late")
        error = refused(other, errors.RequestInProgressError, "late")
        assert error.operation == errors.Operation(accepted.operation_id, "pending")
        assert error.retryable
        assert error.retry_after_s is not None
        refused(other, errors.IdempotencyConflictError, "late", payload="other")
        desk.settle(accepted, body=b"1")
        assert other.replayed("late").body == b"1"


def test_a_key_of_this_process_is_waited_for_no_longer_than_that(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(service, "WAIT_S", 0.01)
    accepted = desk.accepted("k")
    error = refused(desk, errors.RequestInProgressError)
    assert error.operation == errors.Operation(accepted.operation_id, "pending")
    refused(desk, errors.IdempotencyConflictError, payload="other")


@pytest.mark.parametrize("n_callers", [2, 20])
def test_callers_with_one_key_run_once_and_all_get_the_answer(desk: Desk, n_callers: int):
    runs: list[str] = []

    async def call() -> Sent:
        accepted = await desk.accept("k", reserved=10)
        if isinstance(accepted, Sent):
            return accepted
        runs.append(accepted.operation_id)
        await check_that_it_stays_so(lambda: len(runs) == 1, 0.02)
        return await desk.settled(accepted, 7, b"answer")

    async def call_all() -> list[Sent]:
        return await asyncio.gather(*(call() for _ in range(n_callers)))

    replies = asyncio.run(call_all())
    assert len(runs) == 1
    assert {(reply.body, reply.operation_id) for reply in replies} == {(b"answer", runs[0])}
    assert sum(reply.is_replay for reply in replies) == n_callers - 1
    assert desk.books()["revenue"] == 7


def test_those_who_wait_run_afresh_when_the_first_is_refused_after_all(desk: Desk):
    async def call_all() -> list[Accepted | Sent]:
        first = await desk.accept("k")
        assert isinstance(first, Accepted)
        waiting = asyncio.create_task(desk.accept("k"))
        await next_turn()
        await desk.log.release(first)
        return [first, await waiting]

    first, second = asyncio.run(call_all())
    assert isinstance(second, Accepted)
    assert isinstance(first, Accepted)
    assert desk.states() == {first.operation_id: "released", second.operation_id: "pending"}


def test_a_caller_that_gives_up_waiting_disturbs_no_others(desk: Desk):
    async def call_all() -> Sent:
        first = await desk.accept("k")
        assert isinstance(first, Accepted)
        waiting = [asyncio.create_task(desk.accept("k")) for _ in range(2)]
        await check_that_it_stays_so(lambda: not any(map(asyncio.Task.done, waiting)), 0.02)
        waiting[0].cancel()
        await next_turn()
        await desk.log.settle(first, amount_nano=0, body=b"1")
        reply = await waiting[1]
        assert isinstance(reply, Sent)
        return reply

    assert asyncio.run(call_all()).is_replay


# succeeded


def test_a_succeeded_key_replays_its_answer_byte_for_byte(desk: Desk):
    accepted = desk.accepted("k", reserved=10)
    first = desk.settle(accepted, 4, body=b'{"a": "\xc3\xa9"}')
    assert first == Sent(b'{"a": "\xc3\xa9"}', operation_id=accepted.operation_id)
    for _ in range(2):
        again = desk.replayed("k", reserved=10)
        assert again == Sent(first.body, operation_id=accepted.operation_id, is_replay=True)
    refused(desk, errors.IdempotencyConflictError, payload="other")
    assert desk.books() == {"paid": -4, "held": 0, "revenue": 4, "funding": 0}
    desk.check_ledger()


def test_a_key_is_of_its_account_and_route(desk: Desk):
    other = Caller(desk.accounts.create_account("other").id, None, "full", "127.0.0.1")
    desk.settle(desk.accepted("k"), body=b"1")
    desk.accepted("k", caller=other)
    desk.accepted("k", route="POST /v1/systemone")
    assert desk.replayed("k").body == b"1"


# failed


def test_a_terminal_failure_is_repeated(desk: Desk):
    accepted = desk.accepted("k", reserved=10)
    error = errors.EngineUnavailableError(
        "The engine failed.", details=[{"path": ["a"], "n": 1}], retry_after_s=3.5
    )
    desk.release(accepted, error)
    terminal = errors.Operation(accepted.operation_id, "terminal")
    assert error.operation == terminal
    for _ in range(2):
        again = refused(desk, errors.EngineUnavailableError)
        assert again.body() == error.body()
        assert (again.retry_after_s, again.operation) == (3.5, terminal)
    refused(desk, errors.IdempotencyConflictError, payload="other")
    assert desk.books()["held"] == desk.books()["paid"] == 0
    assert desk.states() == {accepted.operation_id: "failed"}


def test_a_failure_that_is_not_terminal_frees_the_key(desk: Desk):
    desk.release(desk.accepted("k", reserved=10))
    assert desk.books()["held"] == 0
    desk.accepted("k", payload="another")


# expired


def test_an_answer_is_replayed_for_a_day_and_its_key_remembered_for_30(desk: Desk):
    desk.settle(desk.accepted("k"), body=b"1")
    desk.clock.at += DAY - 1
    assert desk.replayed("k").body == b"1"
    desk.clock.at += 1
    refused(desk, errors.IdempotencyResponseExpiredError)
    refused(desk, errors.IdempotencyConflictError, payload="other")
    desk.clock.at += 28 * DAY
    refused(desk, errors.IdempotencyResponseExpiredError)
    desk.clock.at += DAY
    desk.accepted("k", payload="other")


def test_an_answer_that_was_dropped_is_not_looked_at_by_the_next_sweep(desk: Desk):
    desk.settle(desk.accepted("k"), body=b"1")
    desk.clock.at += DAY
    due = idempotency_keys.c.replay_until.is_not(None)
    count = select(func.count()).select_from(idempotency_keys).where(due)
    assert desk.state.read_now(lambda c: c.execute(count).scalar_one()) == 1
    desk.log.sweep()
    assert desk.state.read_now(lambda c: c.execute(count).scalar_one()) == 0
    refused(desk, errors.IdempotencyResponseExpiredError)


def test_the_sweep_drops_answers_then_keys_then_operations(desk: Desk):
    settled = desk.accepted("k")
    desk.settle(settled, body=b"1")
    paid = desk.accepted("paid", reserved=5)
    desk.settle(paid, 5)
    desk.clock.at += DAY
    desk.log.sweep()
    refused(desk, errors.IdempotencyResponseExpiredError)
    desk.log.sweep(desk.clock.at + 40 * DAY)
    assert desk.states() == {paid.operation_id: "succeeded"}
    desk.accepted("k", payload="other")
    desk.check_ledger()


# settling and releasing


def test_a_free_operation_without_a_key_leaves_its_record_alone(desk: Desk):
    accepted = desk.accepted()
    reply = desk.settle(accepted, body=b"[1]")
    assert (reply.body, reply.operation_id) == (b"[1]", accepted.operation_id)
    desk.settle(desk.accepted(), decision=decision())
    assert desk.state.read_now(lambda c: find_decision(c, "local", "dec_1", 0)) == decision()
    desk.release(desk.accepted(), errors.EngineUnavailableError("x"))
    assert desk.states() == {}


def test_the_excess_of_the_hold_is_released(state: State):
    desk = Desk(state, accounts_enabled=True)
    desk.accounts.add_credit("local", 100)
    accepted = desk.accepted(reserved=60)
    assert desk.books() == {"paid": 40, "held": 60, "revenue": 0, "funding": -100}
    refused(desk, errors.InsufficientCreditError, None, reserved=41)
    desk.settle(accepted, 25)
    assert desk.books() == {"paid": 75, "held": 0, "revenue": 25, "funding": -100}
    desk.check_ledger()


def test_the_decision_is_kept_with_the_charge_or_not_at_all(desk: Desk):
    async def settle(key: str, kept: StoredDecision) -> Accepted:
        accepted = await desk.accept(key, reserved=5)
        assert isinstance(accepted, Accepted)
        await desk.log.settle(
            accepted, amount_nano=5, body=b"1", also=partial(insert_decision, decision=kept)
        )
        return accepted

    asyncio.run(settle("a", decision()))
    found = desk.state.read_now(lambda c: find_decision(c, "local", "dec_1", 0))
    assert found == decision()
    with pytest.raises(Exception, match="decisions"):
        asyncio.run(settle("b", decision()))
    assert desk.books()["revenue"] == 5
    # The next request frees what could not be settled.
    desk.accepted("b", payload="other")
    assert desk.books()["held"] == 0
    desk.check_ledger()


def test_nothing_is_settled_twice(desk: Desk):
    accepted = desk.accepted(reserved=10)
    desk.settle(accepted, 10)
    with pytest.raises(errors.OutcomeUnknownError):
        desk.settle(accepted, 10)
    keyed = desk.accepted("k", reserved=10)
    desk.release(keyed)
    with pytest.raises(errors.RequestInProgressError) as caught:
        desk.settle(keyed, 10)
    assert caught.value.operation == errors.Operation(keyed.operation_id, "pending")
    desk.release(keyed)
    desk.release(accepted)
    assert desk.books() == {"paid": -10, "held": 0, "revenue": 10, "funding": 0}
    desk.check_ledger()


@pytest.mark.parametrize("amount", [-1, 11])
def test_no_more_is_charged_than_was_held(desk: Desk, amount: int):
    accepted = desk.accepted(reserved=10)
    with pytest.raises(ValueError, match="held"):
        desk.settle(accepted, amount)
    desk.settle(accepted, 10)


# caps


def test_a_cap_counts_spending_and_holds_of_the_utc_month(desk: Desk):
    key = desk.accounts.create_key(scope="inference", monthly_cap_nano=100).key
    caller = Caller("local", key.id, "inference", "127.0.0.1")
    first = desk.accepted(reserved=60, caller=caller)
    refused(desk, errors.KeyCapReachedError, None, reserved=41, caller=caller)
    second = desk.accepted(reserved=40, caller=caller)
    desk.settle(first, 10)
    desk.release(second)
    assert desk.month(key.id) == (10, 0)
    third = desk.accepted(reserved=90, caller=caller)
    refused(desk, errors.KeyCapReachedError, None, reserved=1, caller=caller)
    desk.accepted(reserved=0, caller=caller)
    # What was accepted in a month counts there, whenever it ends.
    desk.clock.at += 31 * DAY
    desk.accepted(reserved=100, caller=caller)
    desk.settle(third, 90)
    refused(desk, errors.KeyCapReachedError, None, reserved=1, caller=caller)


# what cannot be written


class Broken:
    """Breaks the writes of a state, before or after they are made."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, state: State, *, after: bool) -> None:
        write = state.write

        async def broken(work, *, is_synced=True):
            if after:
                await write(work, is_synced=is_synced)
            raise errors.StorageUnavailableError("The connection was lost.")

        self._patch = monkeypatch
        monkeypatch.setattr(state, "write", broken)

    def mend(self) -> None:
        self._patch.undo()


@pytest.mark.parametrize("key", [None, "k"])
@pytest.mark.parametrize("after", [False, True])
def test_a_settlement_that_cannot_be_written_charges_once_or_never(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, key: str | None, after: bool
):
    accepted = desk.accepted(key, reserved=10)
    broken = Broken(monkeypatch, desk.state, after=after)
    kind = errors.OutcomeUnknownError if key is None else errors.RequestInProgressError
    with pytest.raises(kind) as caught:
        desk.settle(accepted, 10, body=b"1")
    broken.mend()
    if key is None:
        desk.accepted("another")
    else:
        assert caught.value.operation == errors.Operation(accepted.operation_id, "pending")
        again = asyncio.run(desk.accept("k", reserved=10))
        if after:
            assert isinstance(again, Sent)
            assert again.body == b"1"
        else:
            assert isinstance(again, Accepted)
            desk.release(again)
    assert desk.books()["revenue"] == (10 if after else 0)
    assert desk.books()["held"] == 0
    desk.check_ledger()


def test_a_free_unkeyed_settlement_that_cannot_be_written_may_be_sent_again(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
):
    accepted = desk.accepted()
    Broken(monkeypatch, desk.state, after=False)
    with pytest.raises(errors.StorageUnavailableError):
        desk.settle(accepted, decision=decision())
    # Nothing is to be kept of the other, so there is nothing to fail.
    assert desk.settle(accepted, body=b"[1]").body == b"[1]"


@pytest.mark.parametrize("after", [False, True])
def test_a_release_that_cannot_be_written_is_made_later(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, after: bool
):
    accepted = desk.accepted("k", reserved=10)
    broken = Broken(monkeypatch, desk.state, after=after)
    with pytest.raises(errors.StorageUnavailableError):
        desk.release(accepted)
    broken.mend()
    desk.log.sweep()
    assert desk.books()["held"] == 0
    desk.accepted("k", payload="other")


@pytest.mark.parametrize("after", [False, True])
def test_an_unreported_acceptance_holds_nothing_for_long(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, after: bool
):
    broken = Broken(monkeypatch, desk.state, after=after)
    refused(desk, errors.StorageUnavailableError, reserved=10)
    broken.mend()
    desk.release(desk.accepted("k", reserved=10, payload="other"))
    assert desk.books()["held"] == 0
    desk.check_ledger()


def test_a_cancelled_acceptance_holds_nothing_for_long(desk: Desk):
    async def cancel_at_every_step() -> None:
        for steps in range(6):
            task = asyncio.create_task(desk.accept("k", reserved=10))
            for _ in range(steps):
                await (asyncio.wait({task}, timeout=0.002) if steps > 3 else next_turn())
            if task.done():
                outcome = task.result()
                assert isinstance(outcome, Accepted)
                await desk.log.release(outcome)
                continue
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        last = await desk.accept("k", reserved=10, payload="other")
        assert isinstance(last, Accepted)
        await desk.log.release(last)

    asyncio.run(cancel_at_every_step())
    assert desk.books()["held"] == 0
    desk.check_ledger()


# the dead


def test_a_lease_that_ran_out_frees_hold_and_key(desk: Desk, state_url: str):
    accepted = desk.accepted("k", reserved=10)
    with closing(open_state(state_url)) as other_state:
        other = Desk(other_state, Clock())
        refused(other, errors.RequestInProgressError)
        other.clock.at += 131
        again = other.accepted("k", reserved=3, payload="other")
        assert other.books()["held"] == 3
        with pytest.raises(errors.RequestInProgressError):
            desk.settle(accepted, 10)
        other.settle(again, 3, body=b"2")
        assert other.books()["revenue"] == 3
        other.check_ledger()


def test_a_state_that_was_closed_leaves_dead_operations(desk: Desk, state_url: str):
    accepted = desk.accepted("k", reserved=10)
    unkeyed = desk.accepted(reserved=5)
    desk.state.close()
    with closing(open_state(state_url)) as state:
        again = Desk(state, desk.clock)
        again.log.sweep()
        assert again.books()["held"] == 0
        assert again.states() == {
            accepted.operation_id: "released",
            unkeyed.operation_id: "released",
        }
        row = state.read_now(lambda c: find_operation(c, accepted.operation_id))
        assert row is not None
        assert (row.amount_nano, row.route, row.account_id) == (0, ROUTE, LOCAL.account_id)
        again.accepted("k")


def test_the_sweep_spares_running_operations(desk: Desk, state_url: str):
    accepted = desk.accepted("k", reserved=10)
    with closing(open_state(state_url)) as other_state:
        Desk(other_state, desk.clock).log.sweep()
    desk.log.sweep()
    desk.settle(accepted, 10)
    assert desk.books()["revenue"] == 10


KILLED = """
import asyncio, os, signal, sys
from support.accounts.operating import Desk
from steelyard.storage import open_state
desk = Desk(open_state(sys.argv[1]))
print(desk.accepted("k", reserved=10).operation_id, desk.accepted(reserved=5).operation_id)
sys.stdout.flush()
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_operations_of_a_killed_process_are_freed_at_once(desk: Desk, state_url: str):
    tests = str(Path(__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {tests!r})\n{KILLED}", state_url],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    keyed, unkeyed = done.stdout.split()
    # On PostgreSQL the server hears of the death a moment later, from the closed connection.
    for _ in range(1000):
        try:
            again = desk.accepted("k", reserved=10, payload="other")
        except (errors.IdempotencyConflictError, errors.RequestInProgressError):
            continue
        break
    assert desk.states()[keyed] == "released"
    desk.settle(again, 4)
    desk.log.sweep()
    assert desk.states()[unkeyed] == "released"
    assert desk.books() == {"paid": -4, "held": 0, "revenue": 4, "funding": 0}
    desk.check_ledger()
