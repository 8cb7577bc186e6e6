"""UTC months, in which the caps of keys are counted."""

from __future__ import annotations

import time


def utc_month(at: float) -> str:
    """Return the month of a time in Unix seconds."""
    return time.strftime("%Y-%m", time.gmtime(at))
