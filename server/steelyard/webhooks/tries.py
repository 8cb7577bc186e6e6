"""When a delivery is tried again, and when a webhook has failed for too long."""

from __future__ import annotations

from steelyard.outbox.names import TEST

_MINUTE_S, _HOUR_S = 60.0, 3600.0
#: Seconds between two tries: eight tries within a day.
WAITS_S = (5.0, 30.0, 5 * _MINUTE_S, 30 * _MINUTE_S, 2 * _HOUR_S, 6 * _HOUR_S, 13 * _HOUR_S)
TRIES = len(WAITS_S) + 1
#: The share by which a wait is longer or shorter, so that what failed together is not tried together.
JITTER = 0.1
#: Seconds for which every try fails before a webhook is switched off.
FAILING_S = 3 * 24 * _HOUR_S
#: Deliveries that wait for a webhook that fails; with more it is switched off.
MAX_WAITING = 10_000
_GONE = 410


def next_wait_s(event: str, attempts: int, chance: float) -> float | None:
    """Return the seconds until the next try; ``None`` after the last. A test is tried once.

    ``chance`` is uniform in 0 to 1.

    >>> [next_wait_s("job.failed", attempts, 0.5) for attempts in (1, 7, 8)]
    [5.0, 46800.0, None]
    """
    if event == TEST or attempts >= TRIES:
        return None
    return WAITS_S[attempts - 1] * (1 + JITTER * (2 * chance - 1))


def why_off(status: int | None, failing_s: float, n_waiting: int, error: str | None) -> str | None:
    """Return why a webhook whose try failed is switched off; ``None`` where it is not."""
    if status == _GONE:
        return "It answered 410: the endpoint is gone for good."
    if failing_s >= FAILING_S:
        days = int(failing_s / (24 * _HOUR_S))
        return f"Every try failed for {days} days; the last one: {error}"
    if n_waiting > MAX_WAITING:
        return f"More than {MAX_WAITING} deliveries waited while tries failed; the last: {error}"
    return None
