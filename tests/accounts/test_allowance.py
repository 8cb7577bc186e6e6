"""A caller's minute: requests and input tokens, and the words of a refusal."""

from __future__ import annotations

import asyncio

import pytest

from steelyard.accounts.rate_limits import RateWindows, RequestLimits, TokenAllowance
from steelyard.caller import Caller, SignedIn
from steelyard.errors import RateLimitedError, TooManyTokensError

ONE = Caller("acct_1", "key_1", "full", "192.0.2.1")
OTHER = Caller("acct_1", "key_2", "full", "192.0.2.1")
LOCAL = Caller("local", None, "full", "127.0.0.1")


@pytest.fixture
def windows():
    counting = RateWindows()
    yield counting
    counting.close()


def test_tokens_of_a_minute_are_counted_by_key(windows):
    allowance = TokenAllowance(windows, 100)
    asyncio.run(allowance.take(ONE, 60))
    asyncio.run(allowance.take(ONE, 40))
    with pytest.raises(RateLimitedError, match="100 input tokens") as refused:
        asyncio.run(allowance.take(ONE, 1))
    assert 0 < refused.value.retry_after_s <= 120
    asyncio.run(allowance.take(OTHER, 100))
    asyncio.run(allowance.take(LOCAL, 100))


def test_public_tokens_are_counted_by_address(windows):
    allowance = TokenAllowance(windows, 100)
    asyncio.run(allowance.take_public("192.0.2.1", 100))
    with pytest.raises(RateLimitedError, match="100 input tokens"):
        asyncio.run(allowance.take_public("192.0.2.1", 1))
    asyncio.run(allowance.take_public("192.0.2.2", 100))
    asyncio.run(allowance.take(ONE, 100))
    with pytest.raises(TooManyTokensError):
        asyncio.run(allowance.take_public("192.0.2.3", 101))


def test_a_request_over_the_allowance_has_its_own_error(windows):
    allowance = TokenAllowance(windows, 100)
    with pytest.raises(TooManyTokensError, match="101 input tokens"):
        asyncio.run(allowance.take(ONE, 101))
    with pytest.raises(TooManyTokensError):
        allowance.check(101)
    asyncio.run(allowance.take(ONE, 100))


def test_those_of_no_account_are_counted_one_by_one(windows):
    def signed_in(user_id, role):
        session = SignedIn("ses_1", user_id, "", role, 0.0, is_confirmed=False, is_operator=False)
        return Caller("none" if role is None else "acct_1", None, "read", "192.0.2.1", session)

    limits = RequestLimits(windows, per_minute=1, public_per_minute=1)
    for user_id, role in (("usr_1", None), ("usr_2", None), ("usr_1", "owner")):
        asyncio.run(limits.take(signed_in(user_id, role)))
    for user_id, role in (("usr_2", None), ("usr_2", "owner")):
        with pytest.raises(RateLimitedError):
            asyncio.run(limits.take(signed_in(user_id, role)))


def test_zero_sets_no_bound(windows):
    asyncio.run(TokenAllowance(windows, 0).take(ONE, 10**9))
    limits = RequestLimits(windows, per_minute=0, public_per_minute=0)
    for _ in range(10):
        asyncio.run(limits.take(ONE))
        asyncio.run(limits.take_public("192.0.2.1"))
    assert len(windows) == 0


def test_requests_and_addresses_are_counted_apart(windows):
    limits = RequestLimits(windows, per_minute=1, public_per_minute=1)
    asyncio.run(limits.take(ONE))
    asyncio.run(limits.take(OTHER))
    asyncio.run(limits.take_public(ONE.address))
    for again in (limits.take(ONE), limits.take_public(ONE.address)):
        with pytest.raises(RateLimitedError, match="More than 1 requests"):
            asyncio.run(again)
