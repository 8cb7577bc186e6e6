"""One call from its request to its answer, over all its attempts; it does no input or output.

Requests, the reading of answers, retries and waits are decided here, once, for the client that blocks
and the one that does not.
"""

from __future__ import annotations

import gzip
import logging
import math
import platform
import random
import time
from typing import Any, Generic, TypeVar, cast

import httpx
import msgspec
from tenacity import RetryCallState

from steelyard.client.calls import Call
from steelyard.client.failures import (
    NoAnswerInTimeError,
    ServerUnreachableError,
    UnexpectedAnswerError,
)
from steelyard.client.options import ClientOptions
from steelyard.errors import (
    Operation,
    SteelyardError,
    UnsupportedEncodingError,
    error_from_body,
)
from steelyard.version import __version__
from steelyard.wire.decoding import decode

_Answer = TypeVar("_Answer")

#: Statuses after which a call is repeated when the body does not say.
RETRIED_STATUSES = frozenset({429, 502, 503, 504, 529})
#: Seconds that must be left for another attempt: the server's deadline and its settling where a
#: model runs, and a moment elsewhere.
SCORED_MARGIN_S, MARGIN_S = 95.0, 1.0
#: Seconds of the waits between attempts when the server names none.
FIRST_WAIT_S, LONGEST_WAIT_S = 0.25, 4.0
_CONNECT_S = 10.0
_JSON = "application/json"
#: Seconds that an attempt gets beyond the waits of httpx.
_GRACE_S = 0.25
#: Seconds from which a wait is logged: a person who looks on would take it for a hang.
_LOGGED_WAIT_S = 5.0

_log = logging.getLogger(__name__)

_USER_AGENT = (
    f"steelyard-python/{__version__} httpx/{httpx.__version__} "
    f"{platform.python_implementation()}/{platform.python_version()}"
)


class Compression:
    """Whether a client still compresses bodies, those of more than ``over`` bytes.

    A server that refuses once is not asked again.
    """

    def __init__(self, over: int | None) -> None:
        self._over = over

    def stop(self) -> None:
        """Compress no more."""
        self._over = None

    def compress(self, call: Call[Any]) -> bytes | None:
        """Return a call's body compressed; ``None`` where it goes out plain."""
        if self._over is None or call.body is None or not call.may_compress:
            return None
        if len(call.body) <= self._over:
            return None
        packed = gzip.compress(call.body, mtime=0)
        return packed if len(packed) < len(call.body) else None


class Exchange(Generic[_Answer]):
    """The attempts of one call."""

    def __init__(
        self,
        call: Call[_Answer],
        options: ClientOptions,
        compression: Compression,
    ) -> None:
        self._call = call
        self._options = options
        self._compression = compression
        self._session = options.session_token
        self._started = time.monotonic()
        self._packed = compression.compress(call)
        self._may_repeat = False
        self._named_wait_s: float | None = None

    def request(self) -> dict[str, Any]:
        """Return the arguments of httpx's ``request`` for the next attempt."""
        # What was judged of the attempt before says nothing of this one.
        self._may_repeat, self._named_wait_s = False, None
        call = self._call
        headers = {"Accept": "application/json", "User-Agent": self._options.agent or _USER_AGENT}
        if self._session is not None:
            headers.update(self._session.headers())
            if self._options.account_id is not None:
                headers["X-Steelyard-Account"] = self._options.account_id
        if self._options.forwarded_for is not None:
            headers["X-Forwarded-For"] = self._options.forwarded_for
        if self._options.api_key is not None:
            headers["Authorization"] = f"Bearer {self._options.api_key}"
        if call.idempotency_key is not None:
            headers["Idempotency-Key"] = call.idempotency_key
        if call.body is not None:
            headers["Content-Type"] = call.content_type
        if self._packed is not None:
            headers["Content-Encoding"] = "gzip"
        left_s = self._left_s()
        return {
            "method": call.method,
            "url": self._options.url + call.path,
            "params": list(call.query) or None,
            "headers": headers,
            "content": call.body if self._packed is None else self._packed,
            "timeout": httpx.Timeout(left_s, connect=min(left_s, _CONNECT_S)),
        }

    def ends_at(self) -> float | None:
        """Return when the next attempt must be over; ``None`` where only its waits are bounded.

        Those are httpx's, whose errors name the wait: they come first. Rows that go up or come down
        take as long as the line needs.
        """
        moves_rows = self._call.answer is bytes or self._call.content_type != _JSON
        return None if moves_rows else time.monotonic() + self._left_s() + _GRACE_S

    def must_send_plain(self, response: httpx.Response) -> bool:
        """Return whether the server refuses compressed bodies; from then on they go out plain.

        The attempt is then made again at once, with the same key.
        """
        if self._packed is None or response.status_code != UnsupportedEncodingError.status:
            return False
        error = _error_object(response.content)
        if error is not None and error.get("code") != UnsupportedEncodingError.code:
            return False
        self._packed = None
        self._compression.stop()
        return True

    def check(self, response: httpx.Response) -> None:
        """Raise the error of a refused response."""
        if self._session is not None:
            self._session.keep(response)
        if not response.is_success:
            raise self._refusal(response)

    def answer(self, response: httpx.Response) -> _Answer:
        """Return the decoded answer of a response, or raise the server's error."""
        self.check(response)
        if self._call.answer is bytes:
            return cast("_Answer", response.content)
        try:
            return decode(response.content, self._call.answer)
        except msgspec.DecodeError as error:
            self._may_repeat = False
            unexpected = UnexpectedAnswerError(
                f"{self._options.url} answered {self._call.path} with what this client cannot read "
                f"({error}); is a Steelyard server of version {__version__} there?",
                http_status=response.status_code,
            )
            unexpected.request_id = response.headers.get("X-Request-ID")
            raise unexpected from None

    def lost(self, error: httpx.RequestError) -> SteelyardError:
        """Return the error for an attempt that ended without an answer."""
        url, timeout_s = self._options.url, self._options.timeout_s
        self._named_wait_s = None
        self._may_repeat = isinstance(error, httpx.TransportError)
        if isinstance(error, httpx.DecodingError):
            return UnexpectedAnswerError(
                f"The answer of {url} cannot be decompressed; is a Steelyard server there?"
            )
        is_connecting = isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
        if isinstance(error, httpx.TimeoutException) and not is_connecting:
            return NoAnswerInTimeError(
                f"No answer from {url} within {timeout_s:g} s; ask less in one call, or give a "
                "longer timeout_s."
            )
        if is_connecting:
            return ServerUnreachableError(
                f"No connection to {url} ({str(error) or type(error).__name__}); start a server there "
                "with `steelyard serve`, or give another url."
            )
        return ServerUnreachableError(
            f"The connection to {url} broke before the answer ({str(error) or type(error).__name__}); "
            "try again."
        )

    def is_worth_repeating(self, state: RetryCallState) -> bool:
        """Return whether the failure of an attempt may pass; for tenacity's ``retry``."""
        if state.outcome is None or not state.outcome.failed:
            return False
        # Tenacity sees a cancellation and Ctrl-C too; those end the call.
        return self._may_repeat and isinstance(state.outcome.exception(), SteelyardError)

    def wait_s(self, state: RetryCallState) -> float:
        """Return the seconds before the next attempt; for tenacity's ``wait``.

        The time that the server names and up to a tenth more, else a wait that doubles, each a little
        different so that clients do not come back together.
        """
        if self._named_wait_s is not None:
            return self._named_wait_s * random.uniform(1.0, 1.1)  # noqa: S311
        doubled: float = FIRST_WAIT_S * 2.0 ** (state.attempt_number - 1)
        return min(doubled, LONGEST_WAIT_S) * random.uniform(0.8, 1.2)  # noqa: S311

    def log_wait(self, state: RetryCallState) -> None:
        """Log why a long wait begins; for tenacity's ``before_sleep``."""
        if state.upcoming_sleep < _LOGGED_WAIT_S or state.outcome is None:
            return
        _log.warning(
            "The next attempt is in %.0f s. %s",
            state.upcoming_sleep,
            state.outcome.exception(),
            extra={"path": self._call.path},
        )

    def is_over(self, state: RetryCallState) -> bool:
        """Return whether attempts or time are used up; for tenacity's ``stop``."""
        if state.attempt_number > self._options.max_retries:
            return True
        margin_s = SCORED_MARGIN_S if self._call.is_scored else MARGIN_S
        return self._elapsed_s() + state.upcoming_sleep + margin_s > self._options.timeout_s

    def _left_s(self) -> float:
        return max(self._options.timeout_s - self._elapsed_s(), 0.001)

    def _elapsed_s(self) -> float:
        return time.monotonic() - self._started

    def _refusal(self, response: httpx.Response) -> SteelyardError:
        status, headers = response.status_code, response.headers
        error_object = _error_object(response.content)
        self._named_wait_s = _seconds(headers.get("Retry-After"))
        error = error_from_body(
            status,
            None if error_object is None else {"error": error_object},
            retry_after_s=self._named_wait_s,
        )
        if type(error) is SteelyardError:
            error = UnexpectedAnswerError(
                error.message,
                details=error.details,
                retry_after_s=self._named_wait_s,
                http_status=status,
                server_code=None if error_object is None else str(error_object.get("code")),
            )
        request_id = None if error_object is None else error_object.get("request_id")
        error.request_id = (
            request_id if isinstance(request_id, str) else headers.get("X-Request-ID")
        )
        state, operation_id = headers.get("Idempotency-Status"), headers.get("X-Operation-ID")
        if operation_id is not None:
            error.operation = Operation(
                operation_id, "terminal" if state == "terminal" else "pending"
            )
        flag = None if error_object is None else error_object.get("retryable")
        is_retryable = flag if isinstance(flag, bool) else status in RETRIED_STATUSES
        self._may_repeat = is_retryable and state != "terminal"
        return error


def _error_object(content: bytes) -> dict[str, Any] | None:
    """Return the member ``error`` of a body; ``None`` when it is not one of ours."""
    try:
        error = decode(content, dict[str, Any]).get("error")
    except msgspec.DecodeError:
        return None
    return error if isinstance(error, dict) else None


def _seconds(header: str | None) -> float | None:
    """Return a ``Retry-After`` of seconds; a date there is left to the client's own wait."""
    try:
        seconds = float(header or "")
    except ValueError:
        return None
    return seconds if math.isfinite(seconds) and seconds >= 0 else None
