"""The gate on the wire: a candidate against the model it would replace, on held-out rows."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from steelyard.evaluations.gate_reasons import sentence_of
from steelyard.evaluations.wire import Flips
from steelyard.wire.shown import Framed, Plotted

#: What decides: a gain on new decisions, or that all together did not become worse.
JudgedOn = Literal["new", "all"]


class GateChange(Struct, frozen=True, kw_only=True):
    """What the gate compares: after minus before, with a 95 % interval."""

    before: float
    after: float
    change: float
    low: float
    high: float


class BeforeAfter(Struct, frozen=True, kw_only=True):
    """A figure of the old and of the new version; null where there is too little to tell."""

    before: float | None
    after: float | None


class GateGroup(Struct, frozen=True, kw_only=True):
    """The candidate against its predecessor on one group of held-out decisions.

    ``loss`` and ``accuracy`` stand with targets, ``scaled_reward`` and ``picked_best`` with rewards.
    """

    decisions: int
    contexts: int
    loss: Annotated[GateChange | UnsetType, Meta(description="A fall is good.")] = UNSET
    scaled_reward: Annotated[GateChange | UnsetType, Meta(description="A rise is good.")] = UNSET
    flips: Flips
    accuracy: BeforeAfter | UnsetType = UNSET
    picked_best: BeforeAfter | UnsetType = UNSET
    margin: Annotated[
        float | UnsetType,
        Meta(
            description="By how much the interval must clear 0 on `new`, or stay below 0.05 on "
            "`earlier` where all rows are judged at once, to allow for one mistake more than was "
            "seen, and for few contexts."
        ),
    ] = UNSET


class GateSlice(Struct, frozen=True, kw_only=True):
    """The candidate against its predecessor on one decision, or on one outcome of a decision.

    Of every held-out decision, new and earlier. The figures are those of a ``GateGroup``.
    """

    decision_id: str
    outcome: Annotated[
        str | UnsetType,
        Meta(description="The right outcome of these decisions; absent for a whole decision."),
    ] = UNSET
    decisions: int
    contexts: int
    loss: Annotated[GateChange | UnsetType, Meta(description="A fall is good.")] = UNSET
    scaled_reward: Annotated[GateChange | UnsetType, Meta(description="A rise is good.")] = UNSET
    flips: Flips
    accuracy: BeforeAfter | UnsetType = UNSET
    picked_best: BeforeAfter | UnsetType = UNSET
    p_value: Annotated[
        float | None,
        Meta(
            description="How likely a change at least as bad is where nothing became worse, "
            "corrected for how many slices are looked at; null where there is too little to tell."
        ),
    ]
    worse: Annotated[bool, Meta(description="Whether the gate fails because of it.")]


class GateDeltas(Struct, frozen=True, kw_only=True):
    """The changes alone."""

    new: float | UnsetType = UNSET
    earlier: float | UnsetType = UNSET
    ece: float | None = None


class Gate(Framed, Plotted, Struct, frozen=True, kw_only=True):
    """Whether a candidate holds up on held-out rows against the model it would replace."""

    passed: bool
    against: Literal["parent", "base"]
    reasons: Annotated[list[str], Meta(description="Why not; empty when passed.")]
    groups: Annotated[
        dict[str, GateGroup],
        Meta(
            description="`new`, and `earlier` if any; `earlier` alone where a version that corrects "
            "rows was judged on all of them by their present labels."
        ),
    ]
    deltas: GateDeltas
    ece: BeforeAfter
    judged_on: Annotated[
        JudgedOn,
        Meta(
            description="`new`: a gain on new decisions was asked for. `all`: the version corrects "
            "rows, and all decisions by their present labels had to become no worse."
        ),
    ] = "new"
    by_decision: Annotated[
        list[GateSlice],
        Meta(description="One a decision; those that became worse, then the largest."),
    ] = []
    by_outcome: Annotated[
        list[GateSlice],
        Meta(description="One a right outcome; those that became worse, then the largest."),
    ] = []
    unlisted: Annotated[
        int, Meta(description="Slices looked at and left out of the two lists for their number.")
    ] = 0
    baseline: Annotated[
        GateGroup | UnsetType,
        Meta(
            description="The candidate against the text baseline (TF-IDF and logistic regression) "
            "on every held-out decision: `before` is the baseline's figure."
        ),
    ] = UNSET

    @property
    def sentences(self) -> list[str]:
        """Why it did not pass, in words; empty when it passed."""
        return [sentence_of(self, reason) for reason in self.reasons]
