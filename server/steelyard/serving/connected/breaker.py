"""What is a failure of a model's server, and a breaker for one that fails again and again."""

from __future__ import annotations

import time
from collections.abc import Callable

from steelyard.errors import EngineUnavailableError

#: Failures in a row after which the server is left alone, and seconds for which it is, doubling.
FAILURES, REST_S, MOST_REST_S = 5, 5.0, 60.0
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
    ) -> None:
        super().__init__(message, retry_after_s=retry_after_s, is_unreached=is_unreached)
        self.answered = status
        self.is_passing = is_unreached or status in _PASSING
        #: Whether it says something against the server, and not against what was asked.
        self.is_servers = status is None or status >= 500 or status in {*REFUSED_KEY, 404, 405}


class Breaker:
    """Leaves a server alone after failures in a row, then lets one request try; for one event loop."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._n_failures = 0
        self._rest_s = REST_S
        self._open_until: float | None = None

    @property
    def rest_s(self) -> float:
        """Seconds until a request may try; 0 when it may now."""
        return 0.0 if self._open_until is None else max(self._open_until - self._clock(), 0.0)

    def check(self, name: str) -> None:
        """Refuse a request while the server is left alone."""
        left_s = self.rest_s
        if left_s > 0:
            raise EngineUnavailableError(
                f"The server of {name} failed {FAILURES} times in a row and is left alone for "
                f"{left_s:.0f} s; send the request again after Retry-After, or name another model.",
                retry_after_s=max(left_s, 1.0),
                is_unreached=True,
            )
        if self._open_until is not None:  # this one tries; the others wait for how it goes
            self._open_until = self._clock() + self._rest_s

    def succeeded(self) -> None:
        """Note an answer."""
        self._n_failures, self._rest_s, self._open_until = 0, REST_S, None

    def failed(self) -> None:
        """Note a failure of the server."""
        self._n_failures += 1
        if self._open_until is not None:
            self._rest_s = min(self._rest_s * 2, MOST_REST_S)
        if self._n_failures >= FAILURES:
            self._open_until = self._clock() + self._rest_s
