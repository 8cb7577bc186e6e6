"""Shadows on the wire."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from steelyard.wire.measures import Measure
from steelyard.wire.schemas import doc


class SetShadow(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The model that is to score a share of a family's requests."""

    model: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=128,
            description="A base or connected model, a number such as `router@3`, or a family, which "
            "stands for the number that it serves now.",
        ),
    ]
    share: Annotated[
        float,
        Meta(gt=0, le=1, description="Of the stored answers, chosen by a hash of their ids."),
    ] = 0.1


class Shadow(Struct, frozen=True, kw_only=True):
    """The model that scores beside a family."""

    family: str
    model: str
    share: float
    since: float


class EndedShadow(Struct, frozen=True, kw_only=True):
    """A family that has no shadow any more."""

    family: str
    ended: bool


class ShadowQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The window of a comparison."""

    since: float | None = None
    until: float | None = None


class ShadowFigures(Struct, frozen=True, kw_only=True):
    """One decision as the family and its shadow answered it.

    The counts are of answers with feedback on the decision, by who was right.
    """

    n: Annotated[int, doc("Answers that both scored.")]
    agreement: Annotated[Measure, doc("Share with the same top outcome.")]
    observed: int
    both_right: int
    family_right: Annotated[int, doc("The family alone.")]
    shadow_right: Annotated[int, doc("The shadow alone.")]
    both_wrong: int
    family_accuracy: Measure | UnsetType = UNSET
    shadow_accuracy: Measure | UnsetType = UNSET


class ShadowReport(Struct, frozen=True, kw_only=True):
    """A family and its shadow on the same stored answers of a window, the newest where there are many."""

    shadow: Shadow | None
    since: float
    until: float
    answers: Annotated[int, doc("Answers that both scored, at most 20,000.")]
    decisions: dict[str, ShadowFigures]
