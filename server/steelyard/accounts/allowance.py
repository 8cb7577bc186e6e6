"""How much a caller may send in a minute: requests, and input tokens.

Both are counted in a sliding window of 60 seconds: by the processes of one machine
(``steelyard.accounts.rate_limits``), or by hosts together (``steelyard.accounts.shared_rates``).
"""

from __future__ import annotations

from typing import Protocol

from steelyard.caller import Caller
from steelyard.errors import RateLimitedError, TooManyTokensError
from steelyard.wire.violations import BODY, Path

_CONTEXT: Path = (*BODY, "context")


class Counters(Protocol):
    """What counts a minute."""

    async def count(self, what: str, who: str, limit: int, cost: int = 1) -> float | None:
        """Count a cost; ``None`` when it was, else the seconds until there is room."""


class TokenAllowance:
    """The input tokens that each caller may send in a minute."""

    def __init__(self, windows: Counters, per_minute: int) -> None:
        self._windows = windows
        self._per_minute = per_minute

    @property
    def per_minute(self) -> int:
        """The allowance; 0 when there is no bound."""
        return self._per_minute

    def check(self, input_tokens: int, path: Path = _CONTEXT) -> None:
        """Refuse a request that no minute has room for; counts nothing."""
        if self._per_minute and input_tokens > self._per_minute:
            raise TooManyTokensError(
                f"The request has {input_tokens} input tokens, and {self._per_minute} a minute are "
                "allowed; shorten the context, or ask its decisions in several requests.",
                path=path,
            )

    async def take(self, caller: Caller, input_tokens: int, path: Path = _CONTEXT) -> None:
        """Count a request's input tokens, most of them at a path, against its caller's minute."""
        self.check(input_tokens, path)
        await self._take("tokens", identity(caller), input_tokens)

    async def take_public(self, address: str, input_tokens: int) -> None:
        """Count a public request's input tokens against its address's minute."""
        self.check(input_tokens)
        await self._take("public tokens", address, input_tokens)

    async def _take(self, what: str, who: str, input_tokens: int) -> None:
        if not self._per_minute or not input_tokens:
            return
        wait_s = await self._windows.count(what, who, self._per_minute, input_tokens)
        if wait_s is not None:
            raise RateLimitedError(
                f"More than {self._per_minute} input tokens in a minute; wait {wait_s:g} s and "
                "send it again.",
                retry_after_s=wait_s,
            )


class RequestLimits:
    """The requests that each caller, and each address without a key, may send in a minute."""

    def __init__(self, windows: Counters, *, per_minute: int, public_per_minute: int) -> None:
        self._windows = windows
        self._per_minute = per_minute
        self._public_per_minute = public_per_minute

    async def take(self, caller: Caller) -> None:
        """Count a request of a caller."""
        await self._take("requests", identity(caller), self._per_minute)

    async def take_public(self, address: str) -> None:
        """Count a request of an address."""
        await self._take("public", address, self._public_per_minute)

    async def _take(self, what: str, who: str, per_minute: int) -> None:
        if not per_minute:
            return
        wait_s = await self._windows.count(what, who, per_minute)
        if wait_s is not None:
            raise RateLimitedError(
                f"More than {per_minute} requests in a minute; wait {wait_s:g} s and send it again.",
                retry_after_s=wait_s,
            )


def identity(caller: Caller) -> str:
    """Return what a caller is counted by: its key, else its account, else who is signed in."""
    if caller.session is not None and caller.session.role is None:
        return caller.session.user_id  # of no account, as many others may be
    return caller.key_id or caller.account_id
