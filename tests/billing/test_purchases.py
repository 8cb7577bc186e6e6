"""Purchases: notices in any order, twice and late; disagreements; top-ups; referrals."""

from __future__ import annotations

import asyncio
import itertools
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard import errors
from steelyard.billing import referrals, states
from steelyard.billing import store as rows
from steelyard.billing.notices import Card
from steelyard.billing.providers.manual import ManualProvider
from steelyard.billing.wire import CreatePurchase, RedeemReferral
from steelyard.caller import Caller
from steelyard.ledger.money import NANO
from steelyard.operations.write import Replay, Write
from steelyard.storage import State, open_state
from support.accounts.buying import OPERATOR, Till
from support.accounts.operating import Desk

KINDS = list(states.ORDER)


@pytest.fixture
def state(tmp_path: Path, empty: Path) -> Iterator[State]:
    opened = open_state(f"sqlite:///{shutil.copy(empty, tmp_path)}")
    yield opened
    opened.close()


@pytest.fixture
def till(state: State) -> Till:
    return Till(state)


@pytest.mark.parametrize("state", KINDS)
def test_a_notice_that_comes_twice_does_nothing(state):
    assert states.step(state, state) == "ignore"


def test_only_the_transitions_of_the_diagram_are_applied():
    applied = {
        (state, kind)
        for state, kind in itertools.product(["pending", *KINDS], KINDS)
        if states.step(state, kind) == "apply"
    }
    assert applied == {
        ("pending", "paid"),
        ("pending", "failed"),
        ("pending", "expired"),
        ("paid", "refunded"),
        ("paid", "disputed"),
    }


MOVES = st.lists(
    st.one_of(
        st.tuples(st.just("buy"), st.integers(5, 50)),
        st.tuples(st.just("spend"), st.integers(1, 30)),
        st.tuples(st.just("give"), st.integers(1, 10)),
        # Which purchase, what is said of it, and under which of few event ids.
        st.tuples(st.just("tell"), st.integers(0, 3), st.sampled_from(KINDS), st.integers(0, 2)),
    ),
    min_size=5,
    max_size=25,
)


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A state with its tables."""
    path = tmp_path_factory.mktemp("empty") / "state.sqlite"
    open_state(f"sqlite:///{path}").close()
    return path


@settings(max_examples=10)
@given(MOVES)
def test_books_are_right_after_any_notices(empty, moves):
    with tempfile.TemporaryDirectory() as folder:
        path = shutil.copy(empty, folder)
        state = open_state(f"sqlite:///{path}")
        try:
            _check_books(Till(state), moves)
        finally:
            state.close()


def _check_books(till: Till, moves) -> None:
    desk = Desk(till.state, accounts_enabled=True)
    bought, spent, given_nano = [], 0, 0
    for move, *what in moves:
        if move == "buy":
            bought.append(till.buy(str(what[0])))
        elif move == "give":
            till.accounts.add_credit("local", what[0] * NANO)
            given_nano += what[0] * NANO
        elif move == "spend":
            amount = what[0] * NANO
            try:
                accepted = asyncio.run(desk.accept(None, reserved=amount, caller=OPERATOR))
            except errors.InsufficientCreditError:
                assert till.books()["paid"] < amount
                continue
            desk.settle(accepted, amount)
            spent += amount
        elif bought:
            number, kind, event = what
            purchase = bought[number % len(bought)]
            before = till.books()
            outcome = till.tell(f"{purchase.id} {kind} {event}", kind, purchase)
            assert till.tell(f"{purchase.id} {kind} {event}", kind, purchase) == outcome
            if outcome != "applied":
                assert till.books() == before
    books = till.books()
    by_state = dict.fromkeys(["pending", *KINDS], 0)
    for purchase in bought:
        by_state[till.state_of(purchase)] += int(purchase.amount_usd) * NANO
    back = by_state["refunded"] + by_state["disputed"]
    paid_in = by_state["paid"] + back
    assert books["purchases_pending"] == by_state["pending"]
    assert books["refunds"] == back
    assert books["paid"] + books["held"] == paid_in + given_nano - back - spent
    assert books["funding"] == -(paid_in + by_state["pending"] + given_nano)


@pytest.mark.parametrize(
    "order", sorted(set(itertools.permutations(["paid", "refunded", "paid"]))), ids="-".join
)
def test_a_refund_that_overtakes_its_payment_waits_for_it(till, order):
    purchase = till.buy()
    for number, kind in enumerate(order):
        till.tell(str(number), kind, purchase)
    assert till.state_of(purchase) == "refunded"
    assert till.books()["paid"] == 0
    assert till.query("SELECT id FROM provider_events WHERE outcome IN ('waiting', 'parked')") == []


@pytest.mark.parametrize(
    "changed",
    [
        {"amount_nano": 19 * NANO},
        {"currency": "eur"},
        {"account_id": "acct_other"},
        {"purchase_id": "pur_unknown"},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_a_notice_that_disagrees_is_parked_and_gives_nothing(till, changed):
    purchase = till.buy()
    assert till.tell("evt", "paid", purchase, **changed) == "parked"
    assert till.state_of(purchase) == "pending"
    assert till.books()["paid"] == 0
    [parked] = till.service.parked()
    assert parked.id == "evt"
    assert parked.reason
    till.service.clear("evt")
    assert till.service.parked() == []
    with pytest.raises(errors.NotFoundError, match="parked"):
        till.service.clear("evt")


def test_a_second_payment_of_one_purchase_is_shown_to_an_operator(till):
    purchase = till.buy()
    assert till.tell("one", "paid", purchase, payment="pi_1") == "applied"
    assert till.tell("two", "paid", purchase, payment="pi_1") == "ignored"
    assert till.tell("three", "paid", purchase, payment="pi_2") == "parked"
    assert "pi_2 paid for it a second time" in till.service.parked()[0].reason
    assert till.books()["paid"] == 20 * NANO


def test_money_for_an_expired_purchase_is_shown_to_an_operator(till):
    purchase = till.buy()
    till.clock += till.provider.lifetime_s
    till.top_ups.tick()
    assert till.state_of(purchase) == "expired"
    assert till.tell("late", "paid", purchase) == "parked"
    assert "expired" in till.service.parked()[0].reason
    assert till.books()["paid"] == 0


def test_a_key_buys_once(till):
    first = till.buy("20", "k")
    with pytest.raises(Replay) as again:
        till.buy("20", "k")
    assert first.id.encode() in again.value.body
    with pytest.raises(errors.IdempotencyConflictError):
        till.buy("30", "k")
    assert till.books()["purchases_pending"] == 20 * NANO


@pytest.fixture
def unanswered(till, monkeypatch):
    """A till at which a purchase was begun, of key ``k``, that the provider did not answer."""

    def die(ask):
        raise errors.PaymentProviderError("gone")

    with monkeypatch.context() as patch:
        patch.setattr(till.provider, "begin", die)
        with pytest.raises(errors.PaymentProviderError):
            till.buy("20", "k")
    return till


def test_a_crash_before_the_provider_answered_leaves_one_purchase(unanswered):
    till = unanswered
    with pytest.raises(errors.IdempotencyConflictError):
        till.buy("21", "k")
    till.buy("20", "k")
    assert till.books()["purchases_pending"] == 20 * NANO


def test_a_key_of_an_expired_purchase_opens_no_page(unanswered):
    till = unanswered
    till.clock += till.provider.lifetime_s
    till.top_ups.tick()
    with pytest.raises(errors.PurchaseStateError, match="expired; send a new key"):
        till.buy("20", "k")


@pytest.mark.parametrize("usd", ["4.99", "10000.01", "-5", "5.001", "much", "1e3"])
def test_amounts_that_cannot_be_bought(till, usd):
    with pytest.raises(errors.InvalidRequestError, match="amount_usd"):
        till.buy(usd)


def test_an_api_key_changes_no_money(till):
    write = Write(Caller("acct_1", "key_1", "full", ""))
    with pytest.raises(errors.ConsoleOnlyError):
        asyncio.run(till.service.create(write, CreatePurchase(amount_usd="20")))


def test_an_operator_confirms_and_refunds_transfers(state):
    till = Till(state, ManualProvider())
    purchase = till.buy()
    assert till.service.confirm(purchase.id) == till.service.confirm(purchase.id)
    assert till.books()["paid"] == 20 * NANO
    assert till.service.refund(purchase.id).state == "refunded"
    assert till.service.refund(purchase.id).state == "refunded"
    assert till.books()["paid"] == 0
    with pytest.raises(errors.PurchaseStateError, match="account credit"):
        till.service.confirm(purchase.id)


def test_a_refund_of_spent_credit_needs_a_flag(state):
    till = Till(state, ManualProvider())
    purchase = till.buy()
    till.service.confirm(purchase.id)
    desk = Desk(state, accounts_enabled=True)
    desk.settle(asyncio.run(desk.accept(None, reserved=NANO, caller=OPERATOR)), NANO)
    with pytest.raises(errors.PurchaseStateError, match="--even-if-spent"):
        till.service.refund(purchase.id)
    till.service.refund(purchase.id, even_if_spent=True)
    assert till.books()["paid"] == -NANO


def test_an_account_that_runs_low_buys_once_at_a_time_up_to_its_cap(till):
    till.set_top_up("10", "20", "50")
    till.provider.says = "down"
    for _ in range(3):
        till.top_ups.tick()
    assert len(set(till.provider.charged)) == 1, "one purchase, asked for until it is answered"
    assert till.books()["paid"] == 0
    till.provider.says = "paid"
    till.top_ups.tick()
    assert till.books()["paid"] == 20 * NANO
    till.top_ups.tick()
    assert till.books()["paid"] == 20 * NANO, "no longer low"
    desk = Desk(till.state, accounts_enabled=True)
    for _ in range(2):
        desk.settle(asyncio.run(desk.accept(None, reserved=16 * NANO, caller=OPERATOR)), 16 * NANO)
        till.top_ups.tick()
    assert -till.books()["funding"] == 40 * NANO, "a third would pass the cap of the month"
    till.clock += 32 * 86_400
    till.top_ups.tick()
    assert -till.books()["funding"] == 60 * NANO


def test_three_failures_turn_top_ups_off_and_tell_the_owner(till):
    till.set_top_up("10", "20", "100")
    till.provider.says = "failed"
    for _ in range(5):
        till.top_ups.tick()
    assert len(till.provider.charged) == 3
    shown = asyncio.run(till.service.billing(OPERATOR)).top_up
    assert (shown.is_on, shown.failures, shown.under_way) == (False, 3, None)
    assert [row.kind for row in till.query("SELECT kind FROM billing_events")] == ["top_up_off"]
    till.set_top_up("10", "20", "100")
    till.provider.says = "paid"
    till.top_ups.tick()
    assert asyncio.run(till.service.billing(OPERATOR)).top_up.failures == 0
    assert till.books()["paid"] == 20 * NANO


def test_a_card_is_charged_no_more_once_its_provider_may_forget_the_key(till, monkeypatch):
    monkeypatch.setattr(till.provider, "needs_card", True)
    monkeypatch.setattr(till.provider, "lifetime_s", 2 * 86_400.0)
    till.state.write_now(
        lambda connection: rows.put_card(
            connection, "local", provider="told", payment="pi_1", customer="cus_1"
        )
    )
    card = Card(customer="cus_1", method="pm_1", brand="visa", last4="4242")
    till.state.write_now(
        lambda connection: rows.describe_card(
            connection, account_id="local", payment="pi_1", card=card
        )
    )
    till.set_top_up("10", "20", "20")
    till.provider.says = "down"
    till.top_ups.tick()
    till.clock += 21 * 3_600
    till.top_ups.tick()
    assert len(till.provider.charged) == 2
    assert len(set(till.provider.charged)) == 2, "the first expired, and another was begun"


def test_top_ups_set_anew_keep_the_one_under_way(till):
    till.set_top_up("10", "20", "100")
    till.provider.says = "down"
    till.top_ups.tick()
    assert asyncio.run(till.service.end_top_up(Write(OPERATOR))).ended
    till.set_top_up("15", "20", "100")
    till.top_ups.tick()
    assert len(set(till.provider.charged)) == 1


def test_both_sides_of_a_referral_get_credit_once_and_spend_it_first(state):
    till = Till(state, ManualProvider(), referral_nano=3 * NANO)
    owner = Caller(till.accounts.create_account("owner").id, None, "full", "")
    code = asyncio.run(till.service.referral(owner)).code
    redeem = RedeemReferral(code=code.lower())
    asyncio.run(till.service.redeem(Write(OPERATOR), redeem))
    with pytest.raises(errors.ReferralRefusedError, match="before"):
        asyncio.run(till.service.redeem(Write(OPERATOR), redeem))
    assert till.books(owner.account_id)["promotional"] == 0
    for _ in range(2):
        till.service.confirm(till.buy("5").id)
    assert till.books(owner.account_id)["promotional"] == 3 * NANO
    desk = Desk(state, accounts_enabled=True)
    desk.settle(asyncio.run(desk.accept(None, reserved=12 * NANO, caller=OPERATOR)), 4 * NANO)
    books = till.books()
    assert (books["promotional"], books["paid"]) == (0, 9 * NANO)
    assert asyncio.run(till.service.referral(owner)).earned_usd == "3"


@pytest.mark.parametrize("case", ["unknown", "own", "late", "mutual"])
def test_codes_that_do_not_count(state, case):
    till = Till(state, ManualProvider(), referral_nano=NANO)
    owner = Caller(till.accounts.create_account("owner").id, None, "full", "")
    code = asyncio.run(till.service.referral(OPERATOR if case == "own" else owner)).code
    if case == "mutual":
        own = asyncio.run(till.service.referral(OPERATOR)).code
        state.write_now(lambda c: referrals.redeem(c, owner.account_id, own, 1.0))
    if case == "late":
        till.service.confirm(till.buy("5").id)
    request = RedeemReferral(code="NOTACODE" if case == "unknown" else code)
    with pytest.raises(errors.ReferralRefusedError):
        asyncio.run(till.service.redeem(Write(OPERATOR), request))
