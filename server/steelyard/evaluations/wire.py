"""Wire forms of evaluations: their state and their measures.

Every measured figure is a ``Measure``: its value, how many decisions it rests on, and a 95 %
interval.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Struct, UnsetType

from steelyard.decisions.wire import Kind
from steelyard.wire.jobs import JobNoun, JobStep, JobSummary, summary_of
from steelyard.wire.measures import Measure, ReliabilityRow
from steelyard.wire.methods import Method
from steelyard.wire.queries import CursorPage
from steelyard.wire.schemas import doc
from steelyard.wire.shown import Framed, Plotted, Shown

EvaluationStatus = Literal["queued", "running", "cancelling", "succeeded", "failed", "cancelled"]
RecordGroup = Literal["adapted", "base", "parent"]
FlipKind = Literal["fixed", "broken", "changed"]

#: Statuses of work that has ended.
ENDED = frozenset({"succeeded", "failed", "cancelled"})
#: The most scored decisions of a page, and how many one has when nothing is said.
MAX_RECORDS, DEFAULT_RECORDS = 500, 100


EVALUATION = JobNoun(
    kind="evaluation",
    prefix="eval_",
    noun="evaluation",
    plural="evaluations",
    title="Evaluation",
    lost="Its scores are lost. It can be started again.",
)


class EvaluationMetrics(Struct, frozen=True, kw_only=True):
    """The measures of an evaluation, as plain numbers.

    ``accuracy``, ``loss``, ``brier`` and ``ece`` stand with targets, ``expected_reward`` with
    rewards, and ``latency_ms`` where rows were timed.
    """

    n: Annotated[int, doc("Decisions scored.")]
    accuracy: float | UnsetType = UNSET
    loss: Annotated[float | UnsetType, doc("Mean cross-entropy against the targets, in nats.")] = (
        UNSET
    )
    brier: Annotated[float | UnsetType, doc("Mean squared error summed over outcomes, 0 to 2.")] = (
        UNSET
    )
    ece: Annotated[
        float | UnsetType, doc("Calibration error of the top outcome, 10 bins of equal width.")
    ] = UNSET
    expected_reward: float | UnsetType = UNSET
    latency_ms: Annotated[float | UnsetType, doc("Median server time of a request.")] = UNSET


class EvaluationError(Struct, frozen=True, kw_only=True):
    """Why an evaluation failed."""

    code: str
    message: str


class Evaluation(Shown, Struct, frozen=True, kw_only=True):
    """One model scored, or to be scored, on one version's evaluation rows."""

    id: str
    dataset_id: str
    dataset_version: int
    model_id: str
    model_sha256: str
    model_label: Annotated[str, doc("The model's number or base name, to show.")]
    model_name: str | None
    version: int | None
    status: EvaluationStatus
    created_at: float
    updated_at: float
    generation: Annotated[int, doc("1, and one more for each retry.")]
    training_job_id: str | None
    dataset_sha256: str
    evaluation_sha256: Annotated[
        str, doc("Of the evaluation rows: equal where no evaluation row was added.")
    ]
    method: Method
    evaluation_rows: int
    decisions: int
    named: Annotated[str | UnsetType, doc("How the request named the model.")] = UNSET
    completed_rows: int
    metrics: EvaluationMetrics | None
    error: EvaluationError | None

    @property
    def summary(self) -> JobSummary:
        """The evaluation as a list of jobs has it."""
        return summary_of(
            EVALUATION,
            self,
            f"{self.model_label} on version {self.dataset_version}",
            models=[self.model_label],
            progress=JobStep(phase="scoring", step=self.completed_rows, steps=self.evaluation_rows),
            ended=None,
            why=None if self.error is None else self.error.message,
        )


class EvaluationPage(CursorPage[Evaluation], frozen=True):
    """A page of evaluations, newest first."""


class EvaluationSubmission(Shown, Struct, frozen=True, kw_only=True):
    """The evaluations that a call started or found."""

    dataset_id: str
    data: list[Evaluation]
    queued: Annotated[int, doc("Newly queued.")]
    reused: Annotated[int, doc("Already scored or being scored.")]


class JobRecord(Struct, frozen=True, kw_only=True):
    """One held-out decision as one model scored it.

    ``targets``, ``loss``, ``brier`` and ``accuracy`` stand with targets; ``rewards`` and
    ``expected_reward`` with rewards, and ``scaled_reward`` and ``picked_best`` where the rewards of
    the outcomes differ.
    """

    context_sha256: str
    decision_id: str
    probabilities: dict[str, float]
    targets: dict[str, float] | UnsetType = UNSET
    rewards: dict[str, float] | UnsetType = UNSET
    loss: float | UnsetType = UNSET
    brier: float | UnsetType = UNSET
    accuracy: Annotated[
        float | UnsetType, doc("1 when the top outcome is the target's largest.")
    ] = UNSET
    expected_reward: float | UnsetType = UNSET
    scaled_reward: Annotated[
        float | UnsetType, doc("Expected reward with the worst outcome at 0 and the best at 1.")
    ] = UNSET
    picked_best: Annotated[
        float | UnsetType, doc("1 when the top outcome earns the best reward.")
    ] = UNSET


class EvaluationRecord(JobRecord, frozen=True, kw_only=True):
    """One decision as an evaluation scored it, with its place and, when asked, its context."""

    row: Annotated[int, doc("Place of its row among the evaluation rows of the version, from 0.")]
    context: Annotated[Any | UnsetType, doc("What the decision is about; with `context=true`.")] = (
        UNSET
    )


class EvaluationRecordPage(Struct, frozen=True, kw_only=True):
    """A page of an evaluation's scored decisions, by default in dataset and then decision order."""

    data: list[EvaluationRecord]
    total: Annotated[int, doc("Records that the query holds for.")]
    offset: int
    limit: int
    has_more: bool


class JobRecordPage(Struct, frozen=True, kw_only=True):
    """A page of a job's held-out records, in dataset order and then decision order."""

    group: RecordGroup
    groups: Annotated[list[RecordGroup], doc("Those that the job has.")]
    data: list[JobRecord]
    total: int
    offset: int
    limit: int
    has_more: bool


class Measures(Struct, frozen=True, kw_only=True):
    """Every measure of a set of decisions."""

    n: Annotated[int, doc("Decisions.")]
    contexts: int
    accuracy: Measure | UnsetType = UNSET
    loss: Measure | UnsetType = UNSET
    brier: Measure | UnsetType = UNSET
    ece: Measure | UnsetType = UNSET
    expected_reward: Measure | UnsetType = UNSET
    scaled_reward: Measure | UnsetType = UNSET
    picked_best: Measure | UnsetType = UNSET


class OutcomeMeasures(Struct, frozen=True, kw_only=True):
    """One outcome of a decision against the others; null where there is nothing to divide by."""

    outcome: str
    support: Annotated[int, doc("Decisions whose target's largest outcome it is.")]
    predicted: Annotated[int, doc("Decisions whose top outcome it is.")]
    precision: Measure | None
    recall: Measure | None
    f1: Measure | None
    share: Annotated[Measure, doc("Support over the decisions that offer it.")]
    mean_probability: Annotated[
        Measure, doc("What the model gives it on average; compare with share.")
    ]
    auc: Annotated[Measure | None, doc("Area under the ROC curve, this outcome against the rest.")]


class ConfusionMatrix(Struct, frozen=True, kw_only=True):
    """How often each target was answered with each outcome: ``counts[target][top]``."""

    outcomes: list[str]
    counts: list[list[int]]


class YesPoint(Struct, frozen=True, kw_only=True):
    """A binary decision answered "yes" from a probability of ``threshold`` up."""

    threshold: float
    predicted: Annotated[int, doc("Answered yes.")]
    precision: Measure | None
    recall: Measure | None
    f1: Measure | None


class DecisionMeasures(Struct, frozen=True, kw_only=True):
    """One decision of a dataset: its measures, and with targets those of its outcomes."""

    decision_id: str
    kind: Kind
    metrics: Measures
    outcomes: Annotated[
        list[OutcomeMeasures] | UnsetType,
        doc("Left out where the rows offer more than 255 outcomes together."),
    ] = UNSET
    confusion: Annotated[ConfusionMatrix | UnsetType, doc("As `outcomes`.")] = UNSET
    yes_curve: Annotated[list[YesPoint] | UnsetType, doc("Binary decisions alone.")] = UNSET
    coverage_curve: Annotated[
        list[CoveragePoint] | UnsetType,
        doc("Left out of the only decision: its curve is that of all decisions."),
    ] = UNSET


class SliceMeasures(Struct, frozen=True, kw_only=True):
    """The decisions of one slice."""

    value: Annotated[str, doc("What the decisions of the slice have in common.")]
    metrics: Measures


class SliceTable(Struct, frozen=True, kw_only=True):
    """The decisions cut by one property, the largest slice first."""

    by: Annotated[str, doc("The property, such as `kind`.")]
    slices: list[SliceMeasures]
    unlisted: Annotated[int, doc("Smaller slices that were left out.")] = 0


class CoveragePoint(Struct, frozen=True, kw_only=True):
    """The share left when every decision with a top probability below ``threshold`` is abstained."""

    threshold: float
    n: Annotated[int, doc("Decisions answered.")]
    coverage: Annotated[float, doc("Share of decisions answered, 0 to 1.")]
    accuracy: Annotated[
        Measure | UnsetType | None, doc("Of those answered; the risk is 1 minus it.")
    ] = UNSET
    expected_reward: Measure | UnsetType | None = UNSET
    scaled_reward: Measure | UnsetType | None = UNSET


class Latency(Struct, frozen=True, kw_only=True):
    """How long a connected model took to answer a row, retries included."""

    p50: Annotated[float, doc("Milliseconds: half of the rows took less.")]
    p95: float
    n: Annotated[int, doc("Rows that were timed.")]


class EvaluationDetail(Framed, Plotted, Struct, frozen=True, kw_only=True):
    """Everything measured on an evaluation's decisions."""

    metrics: EvaluationMetrics
    overall: Measures
    decisions: Annotated[list[DecisionMeasures], doc("The most asked first, and then by id.")]
    decisions_unlisted: Annotated[int, doc("Decisions asked less often that were left out.")] = 0
    slices: list[SliceTable]
    reliability: Annotated[list[ReliabilityRow] | UnsetType, doc("With targets alone.")] = UNSET
    coverage_curve: list[CoveragePoint]
    latency_ms: Annotated[
        Latency | None,
        doc(
            "Of a connected model's rows, or of the few that a model of this server "
            "was asked one at a time; null where none was timed."
        ),
    ] = None
    input_tokens: Annotated[
        int | None,
        doc(
            "Of all rows' requests, as they are paid for at the model's price; null where an "
            "earlier release did not count them."
        ),
    ] = None
    unstated_rate: Annotated[
        Measure | None,
        doc(
            "Of the decisions that a model answered with `unstated`, the share in which the "
            "context more likely than not does not say; null where none was."
        ),
    ] = None
    decided_by: Annotated[
        dict[str, Measure],
        doc(
            "Of a route, the share of decisions that each model decided; of a family with a "
            "ladder, each step: `words alone`, `words and base model`. Empty for other models."
        ),
    ] = {}
    sample: Annotated[
        float | None,
        doc(
            "Share of the contexts, chosen by hash, that all but `metrics` and "
            "`input_tokens` rest on, as do records, comparisons and trials, where there are over "
            "200,000 decisions; null where on all."
        ),
    ] = None


class CostPoint(Struct, frozen=True, kw_only=True):
    """The mean cost of acting at one threshold."""

    threshold: float
    coverage: Annotated[float, doc("Share of decisions acted on, 0 to 1.")]
    cost: Annotated[Measure | None, doc("Mean cost of the decisions acted on; null without any.")]
    cost_in_all: Annotated[
        Measure | UnsetType, doc("Mean cost with the cost of abstaining counted.")
    ] = UNSET


class CostCurve(Plotted, Struct, frozen=True, kw_only=True):
    """Mean cost by threshold.

    Of a binary decision with two costs, ``threshold`` is the least probability of "yes" to act on
    it; of a matrix of costs, it is ``abstain_below``.
    """

    points: list[CostPoint]
    best_threshold: Annotated[
        float, doc("The first of the points with the lowest mean cost over all.")
    ]
    calibrated_threshold: Annotated[
        float | UnsetType, doc("Where calibrated probabilities cost least: fp / (fp + fn).")
    ] = UNSET


class ActionShare(Struct, frozen=True, kw_only=True):
    """How often a policy takes one action."""

    action: str
    share: Measure
    cost: Annotated[Measure | UnsetType, doc("Mean cost if it were always taken.")] = UNSET


class PolicyReport(Struct, frozen=True, kw_only=True):
    """The actions of a policy on the decisions of an evaluation."""

    n: int
    coverage: Annotated[Measure, doc("Share of decisions acted on.")]
    actions: Annotated[
        list[ActionShare], doc("With abstaining; of more than 255, those taken most.")
    ]
    accuracy: Annotated[Measure | UnsetType | None, doc("Of the top outcome, where acted on.")] = (
        UNSET
    )
    expected_reward: Measure | UnsetType | None = UNSET
    cost: Annotated[
        Measure | UnsetType | None, doc("Mean cost under the targets, where acted on.")
    ] = UNSET
    promised_cost: Annotated[
        Measure | UnsetType | None,
        doc("The same under the model's own probabilities; compare with cost."),
    ] = UNSET
    least_cost: Annotated[
        Measure | UnsetType | None, doc("The same if the targets had been known.")
    ] = UNSET


class Change(Struct, frozen=True, kw_only=True):
    """A measure of two models on the same decisions; ``change`` is after minus before."""

    before: float
    after: float
    change: float
    low: Annotated[float | None, doc("End of the 95 % interval of the change.")]
    high: float | None
    n: int


class Flips(Struct, frozen=True, kw_only=True):
    """Decisions by whether each model's top outcome is right (with rewards: the best)."""

    fixed: Annotated[int, doc("Wrong before, right after.")]
    broken: Annotated[int, doc("Right before, wrong after.")]
    same_right: int
    same_wrong: int


class PairedMeasures(Struct, frozen=True, kw_only=True):
    """Two models on the same decisions."""

    n: int
    contexts: int
    accuracy: Change | UnsetType = UNSET
    loss: Change | UnsetType = UNSET
    brier: Change | UnsetType = UNSET
    ece: Annotated[Change | UnsetType | None, doc("Null under 50 decisions.")] = UNSET
    expected_reward: Change | UnsetType = UNSET
    scaled_reward: Change | UnsetType = UNSET
    picked_best: Change | UnsetType = UNSET
    flips: Flips
    p_value: Annotated[float, doc("McNemar's exact test of fixed against broken, two-sided.")]


class ComparisonSlice(Struct, frozen=True, kw_only=True):
    """The paired decisions of one slice."""

    value: str
    metrics: PairedMeasures


class ComparisonTable(Struct, frozen=True, kw_only=True):
    """The paired decisions cut by one property, the largest slice first."""

    by: str
    slices: list[ComparisonSlice]
    unlisted: int = 0


class FlippedRecord(Struct, frozen=True, kw_only=True):
    """A decision that the two models answer otherwise.

    ``fixed`` and ``broken`` ones are right in one of the two; ``changed`` ones in neither.
    """

    context_sha256: str
    decision_id: str
    flip: FlipKind
    right: Annotated[list[str], doc("The outcome, or outcomes, that are right.")]
    before: Annotated[str, doc("Top outcome of the model before.")]
    after: Annotated[str, doc("Top outcome of the model after.")]
    p_before: Annotated[float, doc("Its probability.")]
    p_after: float


class Unpaired(Struct, frozen=True, kw_only=True):
    """Decisions that only one of the two models scored; they are left out."""

    before: int
    after: int


class EvaluationComparison(Framed, Struct, frozen=True, kw_only=True):
    """Two models on the same decisions, paired one by one."""

    method: Method
    unpaired: Unpaired
    overall: PairedMeasures
    groups: list[ComparisonTable]
    flipped: Annotated[
        list[FlippedRecord], doc("Those fixed and broken, the surest changes of mind first.")
    ]
    flipped_total: int
    changed: Annotated[
        list[FlippedRecord], doc("Those wrong in both with another top outcome, the surest first.")
    ]
    changed_total: int
