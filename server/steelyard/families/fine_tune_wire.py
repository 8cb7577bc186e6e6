"""Fine-tunes on the wire: a job, its progress, its events and its fee.

Money is exact decimal text, times are Unix seconds.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from steelyard.evaluations.gate_wire import Gate, JudgedOn
from steelyard.evaluations.wire import DEFAULT_RECORDS, MAX_RECORDS, Evaluation, RecordGroup
from steelyard.families.wire import Charge, ContinueRows, Follows, JobOutcome, JobStatus
from steelyard.wire.jobs import JobNoun, JobStep, JobSummary, summary_of
from steelyard.wire.methods import Method
from steelyard.wire.origins import LabelledBy
from steelyard.wire.queries import CursorPage, OneOf, PageQuery
from steelyard.wire.shown import Framed, Shown
from steelyard.wire.training import CurvePoint, FirstKind, HeadsKind, Phase

Warnings = Annotated[
    list[str] | UnsetType,
    Meta(
        description="Before it is queued and in the answer that queues it: models whose labels decide, "
        "and which have not qualified or are kin to what they judge."
    ),
]
FINE_TUNE = JobNoun(
    kind="fine_tune",
    prefix="ftj_",
    noun="fine-tune",
    plural="fine-tunes",
    title="Fine-tune",
    lost="The training is lost, the family stays as it is, and the fee is refunded.",
)
EventType = Literal[
    "queued",
    "started",
    "tokens_counted",
    "step",
    "trained",
    "scoring",
    "gate_passed",
    "gate_failed",
    "joined",
    "succeeded",
    "failed",
    "cancelling",
    "cancelled",
    "rolled_back",
]


class ResolvedHyperparameters(Struct, frozen=True, kw_only=True):
    """The hyperparameters of a fine-tune, all resolved."""

    steps: int
    learning_rate: float
    lora_rank: int
    seed: int
    judged_by: list[LabelledBy] | UnsetType = UNSET
    heads: Annotated[HeadsKind | UnsetType, Meta(description="`auto` where it is left out.")] = (
        UNSET
    )
    first: Annotated[
        FirstKind | UnsetType, Meta(description="A further fine-tune follows it; see `follows`.")
    ] = UNSET


class JobError(Struct, frozen=True, kw_only=True):
    """Why a fine-tune failed."""

    code: str
    message: str


class JobMetrics(Shown, Struct, frozen=True, kw_only=True):
    """The measures of a fine-tune that ended."""

    gate: Gate


class JobLimits(Struct, frozen=True, kw_only=True):
    """The bounds of a row."""

    max_questions: Annotated[int, Meta(description="The most decisions of a row.")]


class JobSplit(Struct, frozen=True, kw_only=True):
    """The rows that a fine-tune trains on and those that judge it."""

    train_rows: int
    validation_rows: int
    trained_tokens: Annotated[int, Meta(description="Tokens of the rows stepped over: its fee.")]


class JobLineage(Struct, frozen=True, kw_only=True):
    """Rows by when they came to the dataset and by side."""

    new_training: int
    earlier_training: int
    new_evaluation: int
    earlier_evaluation: int
    judged_on: JudgedOn = "new"


class JobProgress(Struct, frozen=True, kw_only=True):
    """Where a running fine-tune is."""

    step: int
    steps: int
    loss: Annotated[float | None, Meta(description="Newest training loss; null before the first.")]
    phase: Phase


class Job(Framed, Struct, frozen=True, kw_only=True):
    """A fine-tune.

    ``curve`` stands in the read of one succeeded job alone. Watch ``outcome``: a job can succeed
    and its model not join, because the gate did not pass it.
    """

    id: str
    dataset_id: str
    status: JobStatus
    created_at: float
    updated_at: float
    model: Annotated[str, Meta(description="Id of the base model.")]
    method: Method
    hyperparameters: ResolvedHyperparameters
    output_model: Annotated[str | None, Meta(description="Adapter id of the model it made.")]
    dataset_evaluation: Annotated[
        Evaluation | UnsetType | None, Meta(description="Its model on the held-out rows.")
    ] = UNSET
    metrics: JobMetrics | None
    error: JobError | None
    limits: JobLimits
    split: JobSplit
    progress: JobProgress | None
    curve: list[CurvePoint] | UnsetType | None = UNSET
    family: str | None
    parent: Annotated[
        str | None,
        Meta(
            description="Adapter id of the model that it trains from, or on another base model is "
            "compared with."
        ),
    ]
    family_deleted: bool
    dataset_version: int
    outcome: Annotated[JobOutcome | None, Meta(description="How it ended for its family.")]
    reason: Annotated[str | None, Meta(description="Why it made no model, in one line.")]
    lineage: JobLineage | None
    price_usd: Annotated[str, Meta(description="Held when queued, charged only if it succeeds.")]
    charge: Charge
    rows_deleted: Annotated[
        bool, Meta(description="Whether its rows went with a deleted dataset, and its records.")
    ]
    warnings: Warnings = UNSET
    follows: Follows = UNSET

    @property
    def gate(self) -> Gate | None:
        """The gate's verdict; ``None`` until it was judged."""
        return None if self.metrics is None else self.metrics.gate

    @property
    def has_joined(self) -> bool:
        """Whether its model passed the gate and joined the family."""
        return self.outcome == "joined"

    @property
    def is_behind_words(self) -> bool:
        """Whether words alone answer until its model replaces them."""
        return self.follows is not UNSET and self.parent is not None

    @property
    def summary(self) -> JobSummary:
        """The fine-tune as a list of jobs has it."""
        now = self.progress
        progress = None
        if now is not None:
            progress = JobStep(
                phase=now.phase, step=now.step, steps=now.steps, unit="steps", loss=now.loss
            )
        return summary_of(
            FINE_TUNE,
            self,
            self.family or "a deleted family",
            models=[self.model],
            progress=progress,
            ended=self.outcome,
            why=self.reason,
        )


class JobPage(CursorPage[Job], Shown, frozen=True):
    """A page of fine-tunes, newest first."""


class JobEvent(Struct, frozen=True, kw_only=True):
    """Something that happened to a fine-tune."""

    seq: Annotated[int, Meta(description="From 1, without gaps.")]
    created_at: float
    type: EventType
    message: Annotated[str, Meta(description="One line for a person.")]


class JobEvents(Shown, Struct, frozen=True, kw_only=True):
    """Everything that happened to a fine-tune, oldest first."""

    data: list[JobEvent]


class FineTuneEstimate(Struct, frozen=True, kw_only=True):
    """The fee that a fine-tune started now with the same request would hold."""

    currency: Literal["USD"] = "USD"
    price_usd: Annotated[str, Meta(description="Send it as `max_price_usd` when starting.")]
    minimum_applied: Annotated[
        bool, Meta(description="Whether the fee is the minimum, for want of tokens.")
    ]
    trained_tokens: int | None
    steps: int
    seed: int
    passes: Annotated[float, Meta(description="How often the steps go over the training rows.")]
    train_rows: int
    rows: ContinueRows
    dataset_version: int
    warnings: Warnings = UNSET


class JobsQuery(PageQuery, frozen=True, kw_only=True):
    """Which page of the account's fine-tunes."""

    status: OneOf[JobStatus] = []
    dataset_id: Annotated[
        Annotated[str, Meta(min_length=1, max_length=64)] | None,
        Meta(description="Only those that train on this dataset."),
    ] = None


class JobRecordsQuery(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Which page of a fine-tune's held-out records."""

    group: Annotated[
        RecordGroup,
        Meta(description="Whose answers: the new model's, its base's, or its parent's if any."),
    ] = "adapted"
    offset: Annotated[Annotated[int, Meta(ge=0)], Meta(description="Records before the page.")] = 0
    limit: Annotated[
        Annotated[int, Meta(ge=1, le=MAX_RECORDS)], Meta(description="Records of the page.")
    ] = DEFAULT_RECORDS
