"""Feedback on the wire: what really happened, for decisions that were stored."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from steelyard.decisions.wire import Name, Probability
from steelyard.wire.limits import MAX_DECISIONS

#: How far from 1 the probabilities of an observed outcome may sum; they are then rescaled.
SUM_TOLERANCE = 1e-3

ObservedOutcome = (
    Annotated[str, Meta(min_length=1)] | Annotated[dict[str, Probability], Meta(min_length=1)]
)


class FeedbackRequest(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What really happened, for some or all decisions of one stored answer."""

    decision_id: Annotated[Name, Meta(description="The `id` of a stored answer, `dec_…`.")]
    outcomes: Annotated[
        dict[str, ObservedOutcome],
        Meta(
            min_length=1,
            max_length=MAX_DECISIONS,
            description="Decision id to the outcome that came true: its name, or an object from "
            "outcome to probability where that is not certain. What was said before of the same "
            "decision is replaced.",
        ),
    ]


class FeedbackResponse(Struct, frozen=True, kw_only=True):
    """What was recorded."""

    decision_id: str
    recorded: Annotated[
        list[str], Meta(description="The decision ids recorded by this call, in its order.")
    ]
