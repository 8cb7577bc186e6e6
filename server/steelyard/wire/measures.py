"""Measured figures on the wire, of datasets and of live traffic alike."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct


class Measure(Struct, frozen=True, kw_only=True):
    """A measured figure with its 95 % interval; the interval is null where it cannot be had."""

    value: float
    low: float | None
    high: float | None
    n: Annotated[int, Meta(description="Decisions it rests on.")]


class ReliabilityRow(Struct, frozen=True, kw_only=True):
    """The decisions whose top probability is above ``low`` and up to ``high``."""

    low: float
    high: float
    n: int
    mean_top_probability: float | None
    accuracy: Measure | None
