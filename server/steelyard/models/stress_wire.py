"""How often a model's answers flip under pressure: the report, as a home keeps and the wire has it."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from steelyard.wire.measures import Measure


class StressLine(Struct, frozen=True, kw_only=True):
    """Answers under one kind of pressure, held against those to the rows as they are."""

    pressure: str
    description: str
    flipped: Annotated[
        Measure | None,
        Meta(description="Share of answers whose likeliest outcome is another; null of none."),
    ]
    beyond_noise: Annotated[
        Measure | None,
        Meta(description="That share less the one under harmless wording; null of those two."),
    ]


class StressReport(Struct, frozen=True, kw_only=True):
    """How often a model's answers flip under pressure, beside harmless changes of wording."""

    model: str
    dataset_version: int
    contexts: Annotated[int, Meta(description="Rows of which all requests were answered.")]
    tested_at: Annotated[float, Meta(description="Unix seconds.")]
    lines: list[StressLine]
