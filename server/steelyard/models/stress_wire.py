"""How often a model's answers flip under pressure: the report, as a home keeps and the wire has it."""

from __future__ import annotations

from typing import Annotated

from msgspec import Struct

from steelyard.wire.measures import Measure
from steelyard.wire.schemas import doc


class StressLine(Struct, frozen=True, kw_only=True):
    """Answers under one kind of pressure, held against those to the rows as they are."""

    pressure: str
    description: str
    flipped: Annotated[
        Measure | None, doc("Share of answers whose likeliest outcome is another; null of none.")
    ]
    beyond_noise: Annotated[
        Measure | None, doc("That share less the one under harmless wording; null of those two.")
    ]


class StressReport(Struct, frozen=True, kw_only=True):
    """How often a model's answers flip under pressure, beside harmless changes of wording."""

    model: str
    dataset_version: int
    contexts: Annotated[int, doc("Rows of which all requests were answered.")]
    tested_at: Annotated[float, doc("Unix seconds.")]
    lines: list[StressLine]
