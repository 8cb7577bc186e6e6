"""Wire forms of alarms: rules, watched metrics, and alarms with their evidence. Times are Unix seconds."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from steelyard.alarms.budget import FALSE_ALARMS, GoldenWatch, Watch
from steelyard.alarms.golden_wire import GoldenRows, GoldenState
from steelyard.wire.measures import Measure
from steelyard.wire.queries import CursorPage, PageQuery
from steelyard.wire.schemas import doc

AlarmState = Literal["raised", "acknowledged", "cleared"]
ReferenceKind = Literal["evaluation", "window"]
ClearedReason = Literal["recovered", "rules_changed", "superseded"]

Time = Annotated[float, Meta(ge=0, le=1e11)]
_Model = Annotated[str, Meta(min_length=1, max_length=128)]


class ChosenReference(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The reference for a model: an evaluation, or its stored answers in a window."""

    evaluation_id: Annotated[str, Meta(min_length=1, max_length=64)] | None = None
    since: Time | None = None
    until: Time | None = None


class PutAlarmRule(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A new rule for a model, in place of the present one."""

    model: Annotated[
        _Model | None,
        doc("A family, base model or route; without one, every model of no own rule."),
    ] = None
    enabled: bool = True
    watches: Annotated[list[Watch] | None, doc("What is watched; all by default.")] = None
    false_alarms: Annotated[
        Annotated[float, Meta(ge=1e-6, le=0.2)],
        doc(
            "The chance that 10,000 decisions of a model that did not change raise an "
            "alarm; the watches share it."
        ),
    ] = FALSE_ALARMS
    reference: Annotated[
        ChosenReference | None,
        doc(
            "By default the evaluation that a family's fine-tune made, else the first "
            "1,000 answers."
        ),
    ] = None
    golden: Annotated[
        GoldenRows | None,
        doc(
            "Rows that the model is asked on a clock, to see which answers move. `model` may "
            "then be `decision:NAME`, a named decision's production."
        ),
    ] = None


class RemoveRuleQuery(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The model whose rule is removed."""

    model: Annotated[
        _Model | None, doc("As in the rule; without one, the rule of every model of no own rule.")
    ] = None


class AlarmRule(Struct, frozen=True, kw_only=True):
    """The metrics watched for a model, and their limits."""

    model: Annotated[str | None, doc("Null: of every model without a rule.")]
    enabled: bool
    watches: list[Watch]
    false_alarms: float
    reference: ChosenReference | None
    golden: GoldenRows | None = None
    updated_at: Annotated[float | None, doc("Null: as it is by default.")]


class AlarmReference(Struct, frozen=True, kw_only=True):
    """The reference that a model is compared with."""

    kind: ReferenceKind
    evaluation_id: str | None = None
    since: float | None = None
    until: float | None = None
    n: Annotated[int, doc("Answers, or scored decisions, of all decisions.")] = 0


class WatchedModel(Struct, frozen=True, kw_only=True):
    """A model whose stored answers are counted."""

    model: str
    version: Annotated[str | None, doc("Of a family, its number that answered.")]
    answers: Annotated[int, doc("Counted since its reference was chosen.")]
    reference: Annotated[
        AlarmReference | None, doc("Null while its first 1,000 answers are gathered.")
    ]
    looked_at: float


class AlarmRules(Struct, frozen=True, kw_only=True):
    """An account's rules, the default for all models first, and the metrics they watch."""

    data: list[AlarmRule]
    watched: list[WatchedModel]
    golden: Annotated[list[GoldenState], doc("Rows that models are asked on a clock.")] = []


class AlarmsQuery(PageQuery, frozen=True, kw_only=True):
    """Which alarms, and which page of them."""

    state: Annotated[
        list[AlarmState], doc("Those in one of these states; repeated, or separated by commas.")
    ] = []
    model: _Model | None = None


class DecisionsBehind(Struct, frozen=True, kw_only=True):
    """The query of ``GET /v1/decisions/log`` that pages the decisions behind an alarm."""

    since: float
    until: float
    model: str
    decision: str | None = None
    has_feedback: bool | None = None


class AlarmEvidence(Struct, frozen=True, kw_only=True):
    """Why an alarm was raised: a figure of a stretch of decisions, and its reference."""

    figure: Annotated[
        str,
        doc(
            "`outcome:NAME`, `abstained`, `p_top`, `right`, `loss`, `gap`, `length`, "
            "`new_words`, `distance`, `slow`, `failed`, `escalated`, or of golden rows `moved` and "
            "`stale`, in hours."
        ),
    ]
    estimate: Annotated[
        Measure,
        doc(
            "Its 95 % interval holds at all times at once; of contexts, whose figure is the "
            "median of a sample, that of this sample."
        ),
    ]
    reference: AlarmReference
    reference_value: float
    reference_low: Annotated[
        float | None, doc("Where its 95 % interval begins; null of alarms of earlier versions.")
    ] = None
    reference_high: float | None = None
    reference_n: int
    since: float
    until: float
    total_variation: Annotated[
        Measure | None, doc("How far the outcomes' shares are from the reference's, 0 to 1.")
    ] = None
    log_evidence: Annotated[
        float | None,
        doc(
            "Log of the odds won against the reference, or of one over the p-value of a "
            "window's share, less what looking at several costs."
        ),
    ] = None
    log_threshold: float | None = None
    p_value: Annotated[float | None, doc("Of contexts, whose test it is.")] = None
    decisions: DecisionsBehind

    @property
    def reference_estimate(self) -> Measure:
        """The figure of the reference, with its interval."""
        return Measure(
            value=self.reference_value,
            low=self.reference_low,
            high=self.reference_high,
            n=self.reference_n,
        )


class Alarm(Struct, frozen=True, kw_only=True):
    """Something about a model's decisions that is no longer as it was."""

    id: str
    model: str
    version: str | None
    decision: str | None
    watch: Watch | GoldenWatch
    state: AlarmState
    message: str
    raised_at: float
    acknowledged_at: float | None
    acknowledged_by: Annotated[str | None, doc("The key; null without accounts.")]
    cleared_at: float | None
    cleared_reason: ClearedReason | None
    evidence: AlarmEvidence


class AlarmPage(CursorPage[Alarm], frozen=True):
    """A page of alarms, newest first."""


class FeedbackSelection(Struct, frozen=True, kw_only=True):
    """Of whose decisions feedback came: where these are surer or less sure, it is no fair sample."""

    decisions: int
    with_feedback: Annotated[Measure | None, doc("Share of the decisions.")]
    mean_p_top: float | None
    mean_p_top_with_feedback: float | None


class AlarmDetail(Struct, frozen=True, kw_only=True):
    """An alarm, and how its figure is now."""

    alarm: Alarm
    now: Annotated[
        Measure | None,
        doc("Of the newest decisions, 500 at most; null where it is watched no more."),
    ]
    selection: Annotated[FeedbackSelection | None, doc("Of watches of feedback alone.")]
