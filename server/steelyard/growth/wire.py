"""Growth of named decisions on the wire. Times are Unix seconds."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from steelyard.families.wire import FAMILY_NAME, MaxPrice
from steelyard.wire.measures import Measure
from steelyard.wire.schemas import doc

GrowthPolicy = Literal["rows", "propose", "move"]
GrowthStage = Literal[
    "gathering", "training", "shadowing", "comparing", "refused", "proposed", "moved", "demoted"
]


class SetGrowth(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A named decision's growth policy, from gathering rows to moving `production`."""

    policy: Annotated[
        GrowthPolicy,
        doc(
            "`rows`: make rows of feedback. `propose`: also train a family, let it answer "
            "along, compare, and point the alias `proposed` to what passes. `move`: point "
            "`production` to it."
        ),
    ] = "propose"
    family: Annotated[
        Annotated[
            str, Meta(min_length=1, max_length=64, extra_json_schema={"pattern": FAMILY_NAME})
        ]
        | None,
        doc(
            "The family of its rows; as the decision is called, with hyphens. Small "
            "letters, digits and `-`, at most 48, the first a letter."
        ),
    ] = None
    at_least: Annotated[
        int,
        Meta(ge=1, le=1_000_000, description="New training rows without which nothing is trained."),
    ] = 100
    margin: Annotated[
        float,
        Meta(
            ge=0,
            le=0.2,
            description="How much less often than the model before the family may be right, at the "
            "lower end of its interval.",
        ),
    ] = 0.02
    shadow: Annotated[
        int,
        Meta(
            ge=0,
            le=10_000,
            description="Answers that the family gives along before it is compared.",
        ),
    ] = 100
    judge_rows: Annotated[
        Annotated[float, Meta(ge=0.5, le=1)] | None,
        doc(
            "The probability from which answers without feedback a day later become "
            "training rows, `by` a model; none where left out."
        ),
    ] = None
    novel: Annotated[
        float,
        Meta(
            gt=0,
            lt=1,
            description="Share of texts like its rows that may go back to the model before as novel.",
        ),
    ] = 0.05
    max_price_usd: MaxPrice = None


class LearningEstimate(Struct, frozen=True, kw_only=True):
    """Whether a family would pass, by heads trained on fractions of the rows."""

    rows: Annotated[int, doc("Training rows.")]
    evaluation: Annotated[int, doc("Labelled decisions of held-out rows.")]
    curve: Annotated[list[tuple[int, float]], doc("Training rows, and how often it is wrong.")]
    error: Annotated[float, doc("Of a family of all rows, by the fitted curve.")]
    model_error: Annotated[Measure, doc("Of the model that answers now, on feedback.")]
    chance: Annotated[float, doc("That such a family passes, simulated.")]
    more_rows: Annotated[
        int | None, doc("Further rows until that chance is one half; null: no number is enough.")
    ]


class GrowthComparison(Struct, frozen=True, kw_only=True):
    """The family against the model before it, on held-out rows."""

    comparison_id: str
    verdict: str
    right_change: Annotated[float, doc("Of the decision where it is least.")]
    right_low: Annotated[float, doc("The lower end of its interval, wider with every comparison.")]
    margin: float
    n_comparisons: Annotated[int, doc("How often a family was compared, with this.")]
    usd_before: Annotated[str, doc("Of 1,000 requests.")]
    usd_after: Annotated[
        str, doc("Of 1,000 requests, with those that go back to the model before.")
    ]
    is_as_right: bool
    is_cheaper: bool


class GrowthStep(Struct, frozen=True, kw_only=True):
    """Something that a growth did."""

    at: float
    stage: GrowthStage
    message: Annotated[str, doc("With its figures, for people.")]


class Growth(Struct, frozen=True, kw_only=True):
    """A named decision's growth policy, its progress, and why it waits."""

    decision: str
    policy: SetGrowth
    stage: GrowthStage
    waits_for: Annotated[str, doc("What the next step waits for, in a sentence.")]
    estimate: LearningEstimate | None
    comparison: GrowthComparison | None
    steps: Annotated[list[GrowthStep], doc("The newest 50, the newest first.")]
    set_by: str
    set_at: float
    turned_at: Annotated[float | None, doc("When it was last looked at.")]
    stopped_at: Annotated[float | None, doc("Null while it goes on.")]
