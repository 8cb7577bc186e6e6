"""Numbers as people read them: each with its interval and its number of rows."""

from __future__ import annotations

import time
from datetime import UTC, datetime

from steelyard.evaluations.wire import Change
from steelyard.wire.measures import Measure, interval_text

#: Measures that are shares, and read in percent; their changes read in points.
SHARES = frozenset({"accuracy", "scaled_reward", "picked_best", "ece"})


def measure_text(measure: Measure | None, *, places: int = 3) -> str:
    """Return a measure with its 95 % interval and n; ``—`` where there is none.

    >>> from steelyard.wire.measures import Measure
    >>> measure_text(Measure(value=0.5, low=0.4, high=0.6, n=80))
    '0.500 (0.400 to 0.600, n = 80)'
    """
    if measure is None:
        return "—"
    ends = interval_text(measure.low, measure.high, form=f".{places}f", to=" to ")
    return f"{measure.value:.{places}f} ({ends}, n = {measure.n:,})"


def counted(n: int, noun: str) -> str:
    """Return a number of things in words.

    >>> counted(1, "row"), counted(1200, "row")
    ('1 row', '1,200 rows')
    """
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def percent_text(share: float) -> str:
    """Return a share in whole percent.

    >>> percent_text(0.25)
    '25 %'
    """
    return f"{share * 100:.0f} %"


def share_text(measure: Measure | None) -> str:
    """Return a share in percent with its 95 % interval and n; ``not known yet`` where there is none.

    >>> from steelyard.wire.measures import Measure
    >>> share_text(Measure(value=0.5, low=0.4, high=0.6, n=80))
    '50 % (40 to 60, of 80)'
    """
    if measure is None:
        return "not known yet"
    low, high = measure.low, measure.high
    ends = "" if low is None or high is None else f"{low * 100:.0f} to {high * 100:.0f}, "
    return f"{percent_text(measure.value)} ({ends}of {measure.n:,})"


def named_text(name: str, measure: Measure | None) -> str:
    """Return a measure of a name: a share in percent, another one as it is."""
    return share_text(measure) if name in SHARES else measure_text(measure)


def named_change_text(name: str, change: Change) -> str:
    """Return the paired change of a measure of a name: a share's in points.

    >>> change = Change(before=0.5, after=0.6, change=0.1, low=0.05, high=0.15, n=80)
    >>> named_change_text("accuracy", change), named_change_text("loss", change)
    ('+10 points (+5 to +15, of 80)', '+0.100 (+0.050 to +0.150, n = 80)')
    """
    if name not in SHARES:
        return change_text(change)
    low, high = change.low, change.high
    ends = "" if low is None or high is None else f"{low * 100:+.0f} to {high * 100:+.0f}, "
    return f"{change.change * 100:+.0f} points ({ends}of {change.n:,})"


def change_text(change: Change | None, form: str = ".3f") -> str:
    """Return a paired change with its 95 % interval and n; ``—`` where there is none."""
    if change is None:
        return "—"
    ends = interval_text(change.low, change.high, form=f"+{form}", to=" to ")
    return f"{change.change:+{form}} ({ends}, n = {change.n:,})"


def is_free(price_usd: str) -> bool:
    """Whether a price is nothing.

    >>> is_free("0"), is_free("0.00"), is_free("0.25")
    (True, True, False)
    """
    return float(price_usd) == 0


def ago(at: float | None, now: float | None = None) -> str:
    """Return how long ago a time in Unix seconds was, in words.

    >>> ago(1000.0, 1090.0), ago(None)
    ('2 min ago', 'never')
    """
    if at is None:
        return "never"
    passed = max(0.0, (time.time() if now is None else now) - at)
    for seconds, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if passed >= seconds:
            return f"{passed / seconds:.0f} {unit} ago"
    return "just now"


def ahead(at: float | None, now: float | None = None) -> str:
    """Return how far off a coming time in Unix seconds is, in words.

    >>> ahead(1000.0 + 6 * 86_400, 1000.0), ahead(None)
    ('in 6 d', 'never')
    """
    if at is None:
        return "never"
    left = max(0.0, at - (time.time() if now is None else now))
    for seconds, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if left >= seconds:
            return f"in {left / seconds:.0f} {unit}"
    return "in less than a minute"


def moment(at: float | None) -> str:
    """Return a time in Unix seconds in UTC, to the minute; ``—`` where there is none.

    >>> moment(0.0), moment(None)
    ('1 Jan 1970 00:00', '—')
    """
    if at is None:
        return "—"
    moment_utc = datetime.fromtimestamp(at, UTC)
    return f"{moment_utc.day} {moment_utc:%b %Y %H:%M}"
