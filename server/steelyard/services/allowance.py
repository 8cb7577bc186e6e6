"""How much a caller may send in a minute: requests, and input tokens.

Both are counted in a sliding window of 60 seconds (``steelyard.services.rate_windows``), which
several processes on one machine can share.
"""

from __future__ import annotations

from steelyard.errors import RateLimitedError, TooManyTokensError
from steelyard.services.caller import Caller
from steelyard.services.rate_windows import RateWindows


class TokenAllowance:
    """The input tokens that each caller may send in a minute.

    Parameters
    ----------
    windows : RateWindows
        Where tokens are counted.
    per_minute : int
        The allowance; 0 sets no bound.
    """

    def __init__(self, windows: RateWindows, per_minute: int) -> None:
        self._windows = windows
        self._per_minute = per_minute

    @property
    def per_minute(self) -> int:
        """The allowance; 0 when there is no bound."""
        return self._per_minute

    def check(self, input_tokens: int) -> None:
        """Refuse a request that no minute has room for; counts nothing.

        Raises
        ------
        steelyard.errors.TooManyTokensError
            When the request alone has more input tokens than the allowance.
        """
        if self._per_minute and input_tokens > self._per_minute:
            raise TooManyTokensError(
                f"The request has {input_tokens} input tokens, and {self._per_minute} a minute are "
                "allowed; shorten the context, or ask its decisions in several requests."
            )

    def take(self, caller: Caller, input_tokens: int) -> None:
        """Count a request's input tokens against its caller's minute.

        Raises
        ------
        steelyard.errors.TooManyTokensError
            When the request alone has more input tokens than the allowance.
        steelyard.errors.RateLimitedError
            When the caller's last minute has no room for it; ``retry_after_s`` says when it will.
        """
        self._take("tokens", identity(caller), input_tokens)

    def take_public(self, address: str, input_tokens: int) -> None:
        """Count a public request's input tokens against its address's minute; raises as ``take``."""
        self._take("public tokens", address, input_tokens)

    def _take(self, what: str, who: str, input_tokens: int) -> None:
        self.check(input_tokens)
        if not self._per_minute or not input_tokens:
            return
        wait_s = self._windows.take(what, who, self._per_minute, input_tokens)
        if wait_s is not None:
            raise RateLimitedError(
                f"More than {self._per_minute} input tokens in a minute; wait {wait_s:g} s and "
                "send it again.",
                retry_after_s=wait_s,
            )


class RequestLimits:
    """The requests that each caller, and each address without a key, may send in a minute.

    Parameters
    ----------
    windows : RateWindows
        Where requests are counted.
    per_minute : int
        Requests of a caller; 0 sets no bound.
    public_per_minute : int
        Requests of an address on public routes, and with keys that are refused; 0 sets no bound.
    """

    def __init__(self, windows: RateWindows, *, per_minute: int, public_per_minute: int) -> None:
        self._windows = windows
        self._per_minute = per_minute
        self._public_per_minute = public_per_minute

    def take(self, caller: Caller) -> None:
        """Count a request of a caller.

        Raises
        ------
        steelyard.errors.RateLimitedError
            When its last minute is full; ``retry_after_s`` says when there is room.
        """
        self._take("requests", identity(caller), self._per_minute)

    def take_public(self, address: str) -> None:
        """Count a request of an address; raises as ``take`` does."""
        self._take("public", address, self._public_per_minute)

    def _take(self, what: str, who: str, per_minute: int) -> None:
        if not per_minute:
            return
        wait_s = self._windows.take(what, who, per_minute)
        if wait_s is not None:
            raise RateLimitedError(
                f"More than {per_minute} requests in a minute; wait {wait_s:g} s and send it again.",
                retry_after_s=wait_s,
            )


def identity(caller: Caller) -> str:
    """Give what a caller is counted by: its key, or its account where it has none."""
    return caller.key_id or caller.account_id
