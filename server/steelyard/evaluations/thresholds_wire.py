"""Wire forms of an outcome's thresholds: requests and results."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from steelyard.decisions.wire import Name
from steelyard.evaluations.queries_wire import MAX_COST
from steelyard.wire.measures import Measure
from steelyard.wire.schemas import doc

_Cost = Annotated[float, Meta(ge=0, le=MAX_COST)]


class ThresholdTrial(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """An outcome to find a threshold of, by precision or by costs; without either, its curve alone."""

    decision_id: Annotated[Name, doc("The decision it is for.")]
    outcome: Annotated[str, Meta(min_length=1, description="One of its outcomes.")]
    precision: Annotated[
        Annotated[float, Meta(gt=0, lt=1)] | None,
        doc("Share of what is sent to the outcome that must be right."),
    ] = None
    confidence: Annotated[
        float, Meta(ge=0.5, lt=1, description="Of that precision, over draws of the rows.")
    ] = 0.95
    wrong_cost: Annotated[
        _Cost | None, doc("What a decision wrongly sent to the outcome costs.")
    ] = None
    abstain_cost: Annotated[
        _Cost | None, doc("With it: what abstaining costs, such as a person's time.")
    ] = None


class CertifiedPrecision(Struct, frozen=True, kw_only=True):
    """The least precision of answers sent to an outcome, and its confidence."""

    precision: float
    confidence: float


class OutcomePoint(Struct, frozen=True, kw_only=True):
    """Decisions sent to an outcome from a probability of ``threshold`` up."""

    threshold: float
    sent: Annotated[int, doc("Decisions sent to the outcome.")]
    precision: Annotated[Measure | None, doc("Share of those that are right.")]
    recall: Annotated[Measure | None, doc("Share of the decisions with this label that are sent.")]
    cost: Annotated[
        Measure | UnsetType | None,
        doc("With costs: mean cost where this outcome is the likeliest."),
    ] = UNSET


class OutcomeThreshold(Struct, frozen=True, kw_only=True):
    """The probability from which to act on an outcome, and the effect of each threshold."""

    decision_id: str
    outcome: str
    n: Annotated[int, doc("Decisions scored.")]
    contexts: int
    threshold: Annotated[
        float | None,
        doc(
            "The lowest that is certified, or where none is, the lowest that is right "
            "often enough on these rows; with costs the cheapest. Null where there is none."
        ),
    ]
    at_threshold: Annotated[OutcomePoint | None, doc("What that threshold does.")]
    certified: Annotated[
        CertifiedPrecision | None, doc("Null where the rows certify no threshold.")
    ]
    missing_rows: Annotated[
        int | None,
        doc(
            "With a precision: further evaluation rows that would certify it, were they "
            "answered alike; null where no number would."
        ),
    ]
    points: list[OutcomePoint]
