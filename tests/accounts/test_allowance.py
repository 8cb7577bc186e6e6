"""What a caller may send in a minute: requests and input tokens, and the words of a refusal."""

from __future__ import annotations

import asyncio

import pytest

from steelyard.accounts.allowance import RequestLimits, TokenAllowance
from steelyard.accounts.rate_limits import RateWindows
from steelyard.caller import Caller
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


def test_a_request_over_the_allowance_is_told_apart(windows):
    allowance = TokenAllowance(windows, 100)
    with pytest.raises(TooManyTokensError, match="101 input tokens"):
        asyncio.run(allowance.take(ONE, 101))
    with pytest.raises(TooManyTokensError):
        allowance.check(101)
    asyncio.run(allowance.take(ONE, 100))


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
