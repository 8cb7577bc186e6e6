"""Wire forms of the frontier: each model's quality, price and latency."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Struct

from steelyard.wire.measures import Measure
from steelyard.wire.schemas import doc
from steelyard.wire.shown import Framed

FrontierMeasure = Literal["accuracy", "log_loss", "expected_cost"]

#: The most models of a frontier.
MAX_POINTS = 64


class FrontierPoint(Struct, frozen=True, kw_only=True):
    """One model by its newest evaluation."""

    evaluation: Annotated[str, doc("Id of the evaluation.")]
    model: Annotated[str, doc("The model's number or base name.")]
    family: str | None
    estimate: Measure
    price_usd_per_1000: Annotated[
        str | None,
        doc(
            "1,000 decisions like these at today's price; null where an earlier "
            "release did not count their tokens."
        ),
    ]
    latency_ms: Annotated[float | None, doc("Median of the timed rows; null where none was timed.")]
    dominated: Annotated[
        bool,
        doc(
            "Whether another model is nowhere worse and somewhere better, by estimate, "
            "price and, where both have one, latency."
        ),
    ]


class Frontier(Framed, Struct, frozen=True, kw_only=True):
    """The models that were evaluated on the same rows of a dataset."""

    dataset_id: str
    dataset_version: Annotated[
        int | None, doc("Whose evaluation rows they are; null where nothing was evaluated.")
    ]
    measure: FrontierMeasure
    data: Annotated[list[FrontierPoint], doc("The best estimate first.")]
    unlisted: Annotated[int, doc("Models evaluated longer ago that were left out.")]
