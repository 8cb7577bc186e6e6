"""Laws of money that hold after any sequence of operations, credits, deaths and clocks."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from steelyard import errors
from steelyard.caller import Caller
from steelyard.operations.writes import Accepted
from steelyard.storage import open_state
from support.accounts.operating import Desk
from support.servers.calling import Sent

CAP = 300


class Money(RuleBasedStateMachine):
    """Two callers of one account, the second with a capped key, against a plain model."""

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        self._url = f"sqlite:///{Path(self._folder.name) / 'state.sqlite'}"
        self.state = open_state(self._url)
        self.desk = Desk(self.state, accounts_enabled=True)
        key = self.desk.accounts.create_key(scope="inference", monthly_cap_nano=CAP).key
        self.callers = [Caller("local", None, "full", ""), Caller("local", key.id, "inference", "")]
        self.key_id = key.id
        self.running: list[Accepted] = []
        self.ended: list[Accepted] = []
        self.answers: dict[str, bytes] = {}
        self.credit = self.charged = self.charged_to_key = 0

    def teardown(self) -> None:
        self.state.close()
        self._folder.cleanup()

    @property
    def held(self) -> int:
        return sum(accepted.reserved_nano for accepted in self.running)

    @property
    def held_by_key(self) -> int:
        return sum(a.reserved_nano for a in self.running if a.write.caller.key_id is not None)

    @rule(amount=st.integers(1, 200))
    def add_credit(self, amount: int) -> None:
        self.desk.accounts.add_credit("local", amount)
        self.credit += amount

    @rule(
        reserved=st.integers(0, 150),
        who=st.integers(0, 1),
        key=st.sampled_from([None, "a", "b", "c"]),
    )
    def accept(self, reserved: int, who: int, key: str | None) -> None:
        if key is not None and any(a.write.key == key for a in self.running):
            return  # it would wait
        caller = self.callers[who]
        try:
            outcome = asyncio.run(self.desk.accept(key, reserved=reserved, caller=caller))
        except errors.InsufficientCreditError:
            assert reserved > self.credit - self.charged - self.held
        except errors.KeyCapReachedError:
            assert who == 1
            assert reserved > CAP - self.charged_to_key - self.held_by_key
        except errors.EngineUnavailableError:
            assert self.answers[key or ""] == b"failed"
        else:
            if isinstance(outcome, Sent):
                assert outcome.body == self.answers[key or ""]
                return
            assert key not in self.answers
            if reserved:
                assert reserved <= self.credit - self.charged - self.held
            self.running.append(outcome)

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def settle(self, data: st.DataObject) -> None:
        accepted = self._take(data)
        amount = data.draw(st.integers(0, accepted.reserved_nano))
        body = accepted.operation_id.encode()
        self.desk.settle(accepted, amount, body=body)
        self.charged += amount
        if accepted.write.caller.key_id is not None:
            self.charged_to_key += amount
        if accepted.write.key is not None:
            self.answers[accepted.write.key] = body

    @precondition(lambda self: self.running)
    @rule(data=st.data(), is_terminal=st.booleans())
    def release(self, data: st.DataObject, is_terminal: bool) -> None:
        accepted = self._take(data)
        self.desk.release(accepted, errors.EngineUnavailableError("x") if is_terminal else None)
        if is_terminal and accepted.write.key is not None:
            self.answers[accepted.write.key] = b"failed"

    @precondition(lambda self: any(a.is_recorded for a in self.ended))
    @rule(data=st.data())
    def end_again(self, data: st.DataObject) -> None:
        accepted = data.draw(st.sampled_from([a for a in self.ended if a.is_recorded]))
        self.desk.release(accepted, errors.EngineUnavailableError("x"))
        try:
            self.desk.settle(accepted, accepted.reserved_nano)
        except errors.SteelyardError:
            return
        raise AssertionError("an operation that had ended was settled")

    @rule()
    def sweep(self) -> None:
        self.desk.log.sweep()

    @rule()
    def die_and_start_again(self) -> None:
        self.state.close()
        self.state = open_state(self._url)
        self.desk = Desk(self.state, self.desk.clock, accounts_enabled=True)
        self.desk.log.sweep()
        self.ended += self.running
        self.running = []

    def _take(self, data: st.DataObject) -> Accepted:
        accepted = self.running.pop(data.draw(st.integers(0, len(self.running) - 1)))
        self.ended.append(accepted)
        return accepted

    @invariant()
    def the_books_are_right(self) -> None:
        self.desk.check_ledger()
        books = self.desk.books()
        assert books == {
            "paid": self.credit - self.charged - self.held,
            "held": self.held,
            "revenue": self.charged,
            "funding": -self.credit,
        }
        assert books["paid"] >= 0
        assert self.desk.month(self.key_id) == (self.charged_to_key, self.held_by_key)
        assert self.charged_to_key + self.held_by_key <= CAP


Money.TestCase.settings = settings(max_examples=12, stateful_step_count=20, deadline=None)
TestMoney = Money.TestCase
