"""Wire forms of prompt tuning: a job, its progress, and its result.

Losses are mean cross-entropies against the targets, in nats. Money is exact decimal text, times are
Unix seconds.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from steelyard.decisions.wire import Name
from steelyard.wire.jobs import JobNoun, JobStep, JobSummary, summary_of
from steelyard.wire.queries import CursorPage, OneOf, PageQuery
from steelyard.wire.schemas import doc
from steelyard.wire.shown import Shown

TuningStatus = Literal["queued", "running", "cancelling", "succeeded", "failed", "cancelled"]
Effort = Literal["standard", "thorough"]
#: Where a running job is, in order.
TuningPhase = Literal["measuring_noise", "searching", "testing"]
Verdict = Literal["improved", "inconclusive", "no_improvement"]
TuningCharge = Literal["free", "reserved", "charged", "released"]

PROMPT_TUNING = JobNoun(
    kind="prompt_tuning",
    prefix="pt_",
    noun="prompt-tuning job",
    plural="prompt-tuning jobs",
    title="Tuning",
    lost="The wordings that it tried are lost, and the price is refunded.",
)
DatasetId = Annotated[str, Meta(min_length=1, max_length=64)]


class CreatePromptTuning(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Which decision of a dataset to tune the wording of."""

    dataset_id: Annotated[DatasetId, doc("Id of the dataset.")]
    effort: Annotated[Effort, doc("`standard` searches 4 rounds, `thorough` 12.")] = "standard"
    decision: Annotated[
        Name | None, doc("Id of the decision; may be left out when the dataset asks one.")
    ] = None
    model: Annotated[
        Name | None, doc("A base model, or a tuned model that answers; the default base if not.")
    ] = None
    max_price_usd: Annotated[
        str | None, doc("Refuse with `price_changed`, and hold nothing, when dearer.")
    ] = None


class ChangePromptTuning(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Whether a job's label issues are dismissed."""

    label_issues_dismissed: bool


class PromptTuningQuery(PageQuery, frozen=True, kw_only=True):
    """Which page of the account's prompt-tuning jobs."""

    status: OneOf[TuningStatus] = []
    dataset_id: Annotated[DatasetId | None, doc("Only those on this dataset.")] = None


class TuningProgress(Struct, frozen=True, kw_only=True):
    """Where a running job is."""

    phase: TuningPhase
    round: Annotated[int, doc("Rounds that ended.")]
    rounds: Annotated[int, doc("Rounds at most.")]
    original_loss: Annotated[
        float | None, doc("On the validation rows; null before it is measured.")
    ]
    best_loss: Annotated[float | None, doc("Of the best wording so far.")]


class PartChange(Struct, frozen=True, kw_only=True):
    """One part of the wording, before and after; empty where there is no description."""

    part: Annotated[str, doc("`question`, `outcome:NAME`, or `level:N`, counted from 0.")]
    before: str
    after: str


class TuningRound(Struct, frozen=True, kw_only=True):
    """The best wording after a round of the search."""

    round: int
    best_loss: Annotated[float, doc("On the validation rows.")]


class LabelIssue(Struct, frozen=True, kw_only=True):
    """A row whose label contradicts the wording."""

    row: Annotated[str, doc("`r4` is the row of index 4, from 0.")]
    reason: str


class OutcomeRecall(Struct, frozen=True, kw_only=True):
    """How many of an outcome's evaluation rows each wording gets right."""

    rows: int
    original: Annotated[float | None, doc("Null where no row has the label.")]
    tuned: float | None


class TuningTest(Struct, frozen=True, kw_only=True):
    """The numbers behind a verdict: one test on evaluation rows, both wordings on each."""

    rows: int
    contexts: int
    original_loss: float
    tuned_loss: float
    gain: Annotated[float, doc("`original_loss` less `tuned_loss`.")]
    gain_low: Annotated[float, doc("95 % interval, paired, over contexts.")]
    gain_high: float
    label_shares_loss: Annotated[
        float, doc("Of telling every row the shares of the training labels, knowing nothing.")
    ]
    original_accuracy: float
    tuned_accuracy: float
    recall: Annotated[dict[str, OutcomeRecall], doc("By outcome.")]


class TuningResult(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The result of a job; use ``tuned`` only when the verdict is ``improved``."""

    verdict: Verdict
    reasons: Annotated[list[str], doc("Why it is not proven, when it is not.")]
    tuned: Annotated[dict[str, Any] | None, doc("The decision to use; null unless improved.")]
    candidate: Annotated[dict[str, Any] | None, doc("The wording tested, proven or not.")]
    changes: list[PartChange]
    test: Annotated[
        TuningTest | None,
        doc("Of the original alone where there is no candidate; old results lack it."),
    ] = None
    label_issues: list[LabelIssue]
    original: Annotated[dict[str, Any], doc("The decision as the rows word it.")]
    decision: str
    rows: Annotated[int, doc("Training rows that ask it in these words.")]
    rows_left_out: Annotated[int, doc("Rows that word it differently.")]
    noise_band: Annotated[float, doc("The gain that chance alone makes; a proven one is larger.")]
    rounds: list[TuningRound]


class PromptTuningJob(Shown, Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A job that rewrites a decision's wording and proves the rewrite."""

    id: str
    object: Literal["prompt_tuning.job"]
    status: TuningStatus
    dataset_id: str
    dataset_version: int
    model: Annotated[str, doc("The model that the wording is tuned for.")]
    decision: Annotated[str, doc("Id of the decision.")]
    effort: Effort
    price_usd: Annotated[str, doc("Held while it runs; charged for an improvement or a rerun.")]
    charge: TuningCharge
    progress: TuningProgress | None
    result: TuningResult | None
    created_at: float
    updated_at: float
    error: Annotated[str | None, doc("Why it failed; not there otherwise.")] = None
    error_code: str | None = None
    label_issues_dismissed_at: Annotated[
        float | None, doc("Not there unless they are dismissed.")
    ] = None

    @property
    def summary(self) -> JobSummary:
        """The job as a list of all kinds has it."""
        now = self.progress
        progress = None
        if now is not None:
            progress = JobStep(
                phase=now.phase.replace("_", " "),
                step=now.round,
                steps=now.rounds,
                unit="rounds",
                loss=now.best_loss,
            )
        return summary_of(
            PROMPT_TUNING,
            self,
            self.decision,
            models=[self.model],
            progress=progress,
            ended=None if self.result is None else self.result.verdict,
            why=self.error,
        )


class PromptTuningPage(CursorPage[PromptTuningJob], frozen=True):
    """A page of prompt-tuning jobs, newest first."""
