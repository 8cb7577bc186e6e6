"""UTC months, in which the caps of keys are counted."""

from __future__ import annotations

import time


def utc_month(at: float) -> str:
    """Return the month of a time in Unix seconds.

    Examples
    --------
    >>> utc_month(0.0), utc_month(1_795_000_000)
    ('1970-01', '2026-11')
    """
    return time.strftime("%Y-%m", time.gmtime(at))
