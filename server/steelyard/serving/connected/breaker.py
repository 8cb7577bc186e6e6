"""Failures of a model's server, and a breaker for one that fails again and again."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from steelyard.errors import EngineUnavailableError
from steelyard.patience import Patience

#: Failures in a row after which the server is left alone, and seconds for which it is, doubling.
FAILURES, REST_S, MOST_REST_S = 5, 5.0, 60.0
#: Seconds between two looks whether a rest is over.
_LOOK_S = 0.1
_PASSING = {408, 425, 429, 500, 502, 503, 504, 529}
#: Statuses by which a server refuses the key.
REFUSED_KEY = {401, 403}


class RemoteFailureError(EngineUnavailableError):
    """A call that the model's server did not answer as it should."""

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        retry_after_s: float | None = None,
        is_unreached: bool = False,
        reported: str = "",
    ) -> None:
        super().__init__(message, retry_after_s=retry_after_s, is_unreached=is_unreached)
        self.answered = status
        #: The server's own message, which its operator alone sees.
        self.reported = reported
        self.is_passing = is_unreached or status in _PASSING
        #: Whether it speaks against the server, and not against the request.
        self.is_servers = status is None or status >= 500 or status in {*REFUSED_KEY, 404, 405}


class RestingError(EngineUnavailableError):
    """A request that was not sent, since the model's server is left alone after failures."""


class SilentServerError(RestingError):
    """A job's request to a server that has answered nothing for so long that no job waits for it."""

    retryable = False


class Breaker:
    """Leaves a server alone after failures in a row, then lets one request try; for one event loop."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._patience = Patience(clock)
        self._n_failures = 0
        self._n_rests = 0
        self._rest_s = REST_S
        self._open_until: float | None = None
        self._is_trying = False
        self._last_failure = ""

    @property
    def rest_s(self) -> float:
        """Seconds until a request may try; 0 when it may now."""
        return 0.0 if self._open_until is None else max(self._open_until - self._clock(), 0.0)

    def check(self, name: str) -> bool:
        """Refuse a request while the server is left alone; return whether this one tries after that."""
        left_s = self.rest_s
        if left_s > 0:
            raise RestingError(
                f"The server of {name} failed {FAILURES} times in a row and is left alone for "
                f"{left_s:.0f} s; send the request again after Retry-After, or name another model. "
                f"The last failure: {self._last_failure}",
                retry_after_s=max(left_s, 1.0),
                is_unreached=True,
            )
        if self._open_until is None:
            return False
        self._is_trying = True  # the others wait for how it goes
        self._open_until = self._clock() + self._rest_s
        return True

    async def wait_out(self) -> None:
        """Wait until the rest is over and the request that then tries has ended.

        Raise ``SilentServerError`` when the server has answered nothing for longer than a job
        waits.
        """
        n_rests = self._n_rests
        while self._n_rests == n_rests and (left_s := self.rest_s) > 0:
            if self._patience.is_over:
                raise SilentServerError(self._last_failure, is_unreached=True)
            await asyncio.sleep(min(left_s, _LOOK_S))

    def end_rest(self) -> None:
        """Allow the next request to try at once, for a job that begins."""
        self._patience.succeeded()
        self._allow_try()

    def _allow_try(self) -> None:
        if self._open_until is not None and not self._is_trying:
            self._open_until = self._clock()

    def succeeded(self) -> None:
        """Note an answer."""
        self._patience.succeeded()
        self._n_failures, self._rest_s, self._open_until = 0, REST_S, None
        self._is_trying = False

    def failed(self, message: str, *, is_try: bool = False) -> None:
        """Note a failure of the server."""
        self._patience.failed()
        self._n_failures += 1
        self._last_failure = message
        if is_try:
            self._rest_s = min(self._rest_s * 2, MOST_REST_S)
        elif self._open_until is not None or self._n_failures < FAILURES:
            return  # during a rest it was sent before that, and says nothing new
        self._is_trying = False
        self._n_rests += 1
        self._open_until = self._clock() + self._rest_s

    def gave_up(self) -> None:
        """Note that the one that tried was given up by its caller: another may try."""
        self._is_trying = False
        self._allow_try()
