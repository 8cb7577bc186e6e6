"""Accounts and keys: permissions, validity, and an account's summary."""

from __future__ import annotations

import asyncio
import re
from contextlib import closing

import pytest
from sqlalchemy import select, text

from steelyard import errors
from steelyard.accounts.service import AccountService, effective_limits
from steelyard.caller import Caller
from steelyard.settings import read_settings
from steelyard.storage import State, open_state
from steelyard.storage.tables import api_keys
from steelyard.wire.queries import ApiKeysQuery
from support.accounts.operating import START, Clock, Desk

LOCAL = Caller("local", None, "full", "::1")


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def accounts(state: State, clock: Clock) -> AccountService:
    return AccountService(state, accounts_enabled=True, limits={"a": 1}, now=clock)


def enter(accounts: AccountService, authorization: str | None) -> Caller:
    return asyncio.run(accounts.authenticate(authorization, "192.0.2.1"))


def bearer(secret: str) -> str:
    return f"Bearer {secret}"


@pytest.mark.parametrize("scope", ["full", "inference", "read"])
def test_a_key_names_its_caller_and_scope(accounts: AccountService, scope):
    account = accounts.create_account("acme")
    made = accounts.create_key(account="acme", name="laptop", scope=scope)
    expected = Caller(account.id, made.key.id, scope, "192.0.2.1")
    assert enter(accounts, bearer(made.secret)) == expected
    assert enter(accounts, f"bearer   {made.secret} ") == expected


def test_a_key_is_one_printable_word_and_kept_only_as_a_hash(
    accounts: AccountService, state: State
):
    made = accounts.create_key()
    assert re.fullmatch(r"steelyard_sk_[A-Za-z0-9_-]{43}", made.secret)
    assert made.key.prefix == made.secret[:21]
    assert made.secret not in repr(made)
    assert accounts.create_key().secret != made.secret
    rows = state.read_now(lambda c: c.execute(select(api_keys)).all())
    assert made.secret[21:] not in repr(rows)


@pytest.mark.parametrize("authorization", [None, "", "Bearer", "Bearer ", "Basic YTpi", "Token x"])
def test_a_call_without_a_bearer_key_is_refused(accounts: AccountService, authorization):
    with pytest.raises(errors.MissingApiKeyError):
        enter(accounts, authorization)


def test_other_keys_are_refused_all_alike(accounts: AccountService):
    secret = accounts.create_key().secret
    revoked = accounts.create_key()
    accounts.revoke_key(revoked.key.id)
    wrong = [
        secret[:-1] + ("A" if secret[-1] != "A" else "B"),  # known by its prefix alone
        "steelyard_sk_" + "A" * 43,
        secret + "A",
        secret[:-1],
        secret[:21],
        "onehot_sk_" + "A" * 46,
        "é" * 56,
        f"{secret} {secret}",
        revoked.secret,
    ]
    messages = set()
    for given in wrong:
        with pytest.raises(errors.InvalidApiKeyError) as caught:
            enter(accounts, bearer(given))
        messages.add(str(caught.value))
    assert len(messages) == 1
    assert not any(given in messages.pop() for given in wrong if messages)


def test_revoking_works_at_once_in_every_process(accounts: AccountService, state_url: str):
    made = accounts.create_key()
    with closing(open_state(state_url)) as other_state:
        other = AccountService(other_state, accounts_enabled=True)
        enter(other, bearer(made.secret))
        first = accounts.revoke_key(made.key.id)
        for service in (accounts, other):
            with pytest.raises(errors.InvalidApiKeyError):
                enter(service, bearer(made.secret))
        assert other.revoke_key(made.key.id).revoked_at == first.revoked_at == START


@pytest.mark.parametrize("authorization", [None, "Bearer whatever", "nonsense"])
def test_without_accounts_everyone_is_the_local_account(state: State, authorization):
    service = AccountService(state, accounts_enabled=False)
    assert enter(service, authorization) == Caller("local", None, "full", "192.0.2.1")


def test_the_last_use_is_noted_once_a_minute(accounts: AccountService, state: State, clock: Clock):
    made = accounts.create_key()

    def use() -> float | None:
        enter(accounts, bearer(made.secret))
        state.write_now(lambda connection: None)  # it is queued behind the note
        return accounts.list_keys()[0][1].last_used_at

    assert made.key.last_used_at is None
    assert use() == START
    clock.at += 59
    assert use() == START
    clock.at += 1
    assert use() == START + 60


def test_a_summary_has_the_available_credit(state: State, clock: Clock):
    desk = Desk(state, clock, accounts_enabled=True)
    service = AccountService(state, accounts_enabled=True, limits={"a": 1}, now=clock)
    service.add_credit("local", 1_500_000_000)
    desk.settle(desk.accepted(reserved=500_000_000), 250_000_000)
    desk.accepted(reserved=1_000_000_000)
    summary = asyncio.run(service.summary(LOCAL))
    assert (summary.accounts_enabled, summary.effective_limits) == (True, {"a": 1})
    assert (summary.user.id, summary.user.name) == ("local", "local")
    wallet = summary.wallet
    assert (wallet.balance_usd, wallet.available_usd, wallet.reserved_usd) == ("1.25", "0.25", "1")
    assert (wallet.paid_usd, wallet.promotional_usd) == ("1.25", "0")
    assert wallet.financial_shortfall_usd == "0"


def test_without_accounts_spending_is_a_shortfall(state: State, clock: Clock):
    desk = Desk(state, clock)
    desk.settle(desk.accepted(reserved=500), 500)
    wallet = asyncio.run(desk.accounts.summary(LOCAL)).wallet
    assert (wallet.balance_usd, wallet.available_usd) == ("-0.0000005", "0")
    assert wallet.financial_shortfall_usd == "0.0000005"


def test_effective_limits_are_the_settings():
    given = {"requests_per_minute": 7, "live_limit": 9, "fine_tune_queue_per_account": 5}
    limits = effective_limits(read_settings(given, environ={}))
    assert given.items() <= limits.items()
    assert (limits["warm_limit"], limits["fine_tune_queue"]) == (1, 20)
    assert limits["max_decisions"] == 64
    assert all(type(value) is int for value in limits.values())


def page(accounts: AccountService, caller: Caller = LOCAL, **options):
    return asyncio.run(accounts.keys(caller, ApiKeysQuery(**options)))


def test_keys_are_paged_newest_first(accounts: AccountService, clock: Clock):
    ids = []
    for index in range(5):
        clock.at += 1
        ids.append(accounts.create_key(name=str(index)).key.id)
    accounts.create_key(account=accounts.create_account("other").id)
    accounts.revoke_key(ids[2])
    first = page(accounts, limit=3)
    assert [key.id for key in first.data] == [ids[4], ids[3], ids[2]]
    assert (first.has_more, first.next_cursor) == (True, ids[2])
    last = page(accounts, limit=3, cursor=first.next_cursor)
    assert [key.id for key in last.data] == [ids[1], ids[0]]
    assert (last.has_more, last.next_cursor) == (False, None)
    assert [key.id for key in page(accounts, revoked=True).data] == [ids[2]]
    assert [key.id for key in page(accounts, revoked=False, cursor=ids[2]).data] == ids[1::-1]
    with pytest.raises(errors.InvalidRequestError) as caught:
        page(accounts, cursor="key_unknown")
    assert caught.value.details[0]["path"] == ["query", "cursor"]


def test_a_capped_key_shows_its_spending_this_month(state: State, clock: Clock):
    desk = Desk(state, clock)
    made = desk.accounts.create_key(scope="inference", monthly_cap_nano=1000)
    caller = Caller("local", made.key.id, "inference", "")
    desk.settle(desk.accepted(reserved=600, caller=caller), 600)
    [key] = page(desk.accounts).data
    assert (key.monthly_cap_usd, key.month_spent_usd) == ("0.000001", "0.0000006")
    clock.at += 31 * 86_400
    [key] = page(desk.accounts).data
    assert key.month_spent_usd == "0"
    uncapped = desk.accounts.create_key().key
    assert (uncapped.monthly_cap_usd, uncapped.month_spent_usd) == (None, None)


@pytest.mark.parametrize("scope", ["full", "read"])
def test_only_an_inference_key_has_a_cap(accounts: AccountService, scope):
    with pytest.raises(errors.InvalidRequestError, match="inference"):
        accounts.create_key(scope=scope, monthly_cap_nano=5)


@pytest.mark.parametrize(
    "options",
    [
        {"scope": "all"},
        {"name": " "},
        {"name": "a\nb"},
        {"scope": "inference", "monthly_cap_nano": -1},
    ],
)
def test_keys_of_other_forms_are_not_made(accounts: AccountService, options):
    with pytest.raises(errors.InvalidRequestError):
        accounts.create_key(**options)


def test_what_is_not_there_is_not_found(accounts: AccountService):
    for call in (
        lambda: accounts.create_key(account="nobody"),
        lambda: accounts.list_keys("nobody"),
        lambda: accounts.add_credit("nobody", 1),
        lambda: accounts.revoke_key("key_unknown"),
    ):
        with pytest.raises(errors.NotFoundError):
            call()


def test_an_account_has_a_name_of_its_own(accounts: AccountService):
    made = accounts.create_account(" acme ")
    assert made.id.startswith("acct_")
    assert sorted(entry.name for entry in accounts.list_accounts()) == ["acme", "local"]
    for name in ("acme", "local", "", "x" * 129):
        with pytest.raises(errors.InvalidRequestError):
            accounts.create_account(name)


@pytest.mark.parametrize("amount", [0, -1, 2**62 + 1])
def test_credit_is_positive_and_bounded(accounts: AccountService, amount: int):
    with pytest.raises(errors.InvalidRequestError):
        accounts.add_credit("local", amount)


def test_keys_listed_for_an_operator_name_their_accounts(accounts: AccountService, clock: Clock):
    accounts.create_account("acme")
    accounts.create_key(name="one")
    clock.at += 1
    accounts.create_key(account="acme", name="two")
    assert [(name, key.name) for name, key in accounts.list_keys()] == [
        ("acme", "two"),
        ("local", "one"),
    ]
    assert [key.name for _, key in accounts.list_keys("acme")] == ["two"]


def test_a_key_that_cannot_be_noted_still_gets_in(
    accounts: AccountService, state: State, monkeypatch: pytest.MonkeyPatch
):
    made = accounts.create_key()
    state.write_now(lambda c: c.execute(text("DROP TABLE feedback")).close())
    monkeypatch.setattr(
        "steelyard.accounts.store.touch_api_key",
        lambda connection, **_: connection.execute(text("SELECT * FROM feedback")),
    )
    assert enter(accounts, bearer(made.secret)).key_id == made.key.id
