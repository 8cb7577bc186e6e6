"""Measured figures on the wire, of datasets and of live traffic alike."""

from __future__ import annotations

from typing import Annotated

from msgspec import Struct

from steelyard.wire.schemas import doc


class Measure(Struct, frozen=True, kw_only=True):
    """A measured figure with its 95 % interval; the interval is null where it cannot be had."""

    value: float
    low: float | None
    high: float | None
    n: Annotated[int, doc("Decisions it rests on.")]


def interval_text(
    low: float | None,
    high: float | None,
    *,
    form: str = ".4f",
    to: str = ", ",
    is_bounded: bool = True,
) -> str:
    """Write the ends of an interval, or why a figure has none.

    A figure with bounds has no interval over one context alone; one without bounds, such as a price,
    has none either where all values are equal (``is_bounded=False``).

    >>> interval_text(0.25, 0.5, form=".2f"), interval_text(None, None)
    ('0.25, 0.50', 'no interval: one context')
    """
    if low is None or high is None:
        return f"no interval: {'one context' if is_bounded else 'all alike, or one context'}"
    return f"{low:{form}}{to}{high:{form}}"


class ReliabilityRow(Struct, frozen=True, kw_only=True):
    """The decisions whose top probability is above ``low`` and up to ``high``."""

    low: float
    high: float
    n: int
    mean_top_probability: float | None
    accuracy: Measure | None
