"""Comparisons of two versions of a named decision on the wire. Times are Unix seconds."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from steelyard.evaluations.gate_wire import Gate
from steelyard.evaluations.wire import Change
from steelyard.named.wire import AliasName, DecisionName, VersionNumber
from steelyard.wire.jobs import JobNoun, JobStep, JobSummary, summary_of
from steelyard.wire.measures import Measure
from steelyard.wire.queries import CursorPage, PageQuery
from steelyard.wire.schemas import doc

Verdict = Literal["passed", "refused", "inconclusive"]
ComparisonStatus = Literal["queued", "running", "cancelling", "succeeded", "failed", "cancelled"]
COMPARISON = JobNoun(
    kind="named_comparison",
    prefix="ndc_",
    noun="comparison",
    plural="comparisons",
    title="Comparing",
    lost="Its answers are lost, and the price is refunded.",
)
_At = VersionNumber | AliasName
_Most = Annotated[int, Meta(ge=0, le=1_000)]


class RecordedAnswer(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """An answer that another provider gave, to be compared with a version's."""

    context: str | dict[str, Any] | list[Any]
    decision: Annotated[
        str | None, doc("The id of the version's decision; its only one when left out.")
    ] = None
    answer: Annotated[str, doc("One of its outcomes.")]
    probability: Annotated[
        Annotated[float, Meta(ge=0, le=1)] | None, doc("Of the answer; 1 when left out.")
    ] = None


class CompareVersions(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Which version to compare with which other, and on how much."""

    decision: DecisionName
    version: Annotated[_At, doc("The candidate: a number, or an alias.")]
    against: Annotated[_At, doc("What it would replace.")] = "production"
    rows: Annotated[_Most, doc("Held-out rows of its dataset, at most.")] = 300
    stored: Annotated[_Most, doc("Stored decisions asked again, at most.")] = 200
    traffic_s: Annotated[
        Annotated[float, Meta(gt=0, le=1e9)] | None, doc("Those of the last so many seconds alone.")
    ] = None
    recorded: Annotated[
        list[RecordedAnswer],
        Meta(
            max_length=1_000,
            description="Answers recorded elsewhere, in place of `against`: `version` alone is asked about "
            "their texts, and about no others. They are kept until the comparison ends.",
        ),
    ] = []
    disagreement: Annotated[
        float,
        Meta(
            gt=0,
            lt=1,
            description="How often the candidate may answer otherwise where it answers alone, for `switches`.",
        ),
    ] = 0.02
    max_price_usd: Annotated[
        str | None, doc("Refuse with `price_changed`, and hold nothing, when dearer.")
    ] = None


class ActionMove(Struct, frozen=True, kw_only=True):
    """An action that became another, and how often."""

    before: str
    after: str
    n: int


class ComparedDecision(Struct, frozen=True, kw_only=True):
    """One decision as both versions answered it."""

    decision: str
    n: int
    changed: Annotated[Measure | None, doc("The share with another action.")]
    abstained: Annotated[Change, doc("The share that goes to a person.")]
    right: Annotated[Change | None, doc("The share of right actions; null without labels.")]
    wrong: Annotated[Change | None, doc("The share of wrong actions; null without labels.")]
    moves: Annotated[list[ActionMove], doc("The most frequent ones.")]


class ComparedRules(Struct, frozen=True, kw_only=True):
    """How often the rules of two versions take other actions."""

    n: Annotated[int, doc("Texts whose fields both versions take.")]
    changed: Annotated[Measure | None, doc("The share with another action.")]
    right: Annotated[
        Change | None,
        doc(
            "The share with the action that a version's own rules take on the known outcomes of all "
            "its decisions; null without labels."
        ),
    ]
    moves: Annotated[list[ActionMove], doc("The most frequent ones.")]


class ComparedSide(Struct, frozen=True, kw_only=True):
    """Both versions on held-out rows, or on stored decisions."""

    contexts: int
    labelled: Annotated[int, doc("Decisions whose right outcome is known.")]
    decisions: list[ComparedDecision]
    gate: Annotated[
        Gate | None, doc("Whether the candidate loses no more than it may; null without labels.")
    ]
    rules: Annotated[
        ComparedRules | None, doc("Where both versions have rules, and some texts their fields.")
    ] = None


class ComparisonEstimate(Struct, frozen=True, kw_only=True):
    """The texts, tokens and price of a comparison that is not begun."""

    contexts: Annotated[int, doc("Texts that both are asked about.")]
    input_tokens_before: Annotated[int, doc("Of the earlier version's requests.")]
    input_tokens_after: Annotated[int, doc("Of the candidate's.")]
    price_usd: Annotated[
        str, doc("Of both, here; the provider of a connected model may charge too.")
    ]
    warnings: list[str]


class ComparedPrice(Struct, frozen=True, kw_only=True):
    """The price of a request at each version."""

    input_tokens_before: Annotated[float, doc("Mean of a request.")]
    input_tokens_after: float
    usd_before: Annotated[str, doc("Of 1,000 requests such as these.")]
    usd_after: str


class AgreementBand(Struct, frozen=True, kw_only=True):
    """How often both versions gave the same answer where the candidate was so sure."""

    low: float
    high: Annotated[float, doc("Its top probability, with this end.")]
    agree: Measure


class Switch(Struct, frozen=True, kw_only=True):
    """How far the candidate may answer a decision alone, judged without labels."""

    decision: str
    budget: Annotated[float, doc("Share of its answers that may differ.")]
    threshold: Annotated[
        float | None,
        doc(
            "Top probability from which they differ no more often, with 95 % confidence; null: "
            "none does on so few."
        ),
    ]
    alone: Annotated[float, doc("Share of the answers from it on.")]
    agree: Annotated[Measure, doc("Of all answers.")]
    bands: list[AgreementBand]
    to_label: Annotated[
        list[str], doc("Stored decisions whose labels say whose answers are to stand, 20 at most.")
    ]
    advice: str


class ComparisonResult(Struct, frozen=True, kw_only=True):
    """Whether the candidate may replace the other version, the reasons against it, and its changes."""

    verdict: Verdict
    reasons: Annotated[list[str], doc("Codes; empty where it passed.")]
    sentences: Annotated[list[str], doc("The reasons in words, with figures.")]
    changes: Annotated[list[str], doc("What the versions say otherwise.")]
    rows: Annotated[ComparedSide | None, doc("On held-out rows.")]
    stored: Annotated[ComparedSide | None, doc("On stored decisions.")]
    price: ComparedPrice | None
    left_out: Annotated[int, doc("Contexts that one of the models cannot read.")]
    switches: Annotated[
        list[Switch], doc("By decision, on stored decisions; else on held-out rows.")
    ] = []
    warnings: Annotated[
        list[str],
        doc(
            "Models whose labels settle it, and which had not qualified or are kin to what "
            "they judge."
        ),
    ] = []


class NamedComparison(Struct, frozen=True, kw_only=True):
    """A comparison of two versions: a job, and its result."""

    id: str
    object: Literal["named.comparison"]
    status: ComparisonStatus
    decision: str
    version: int
    against: int
    dataset_id: str | None
    dataset_version: int | None
    recorded: Annotated[
        bool, doc("Whether it is with answers recorded elsewhere, not with `against`.")
    ] = False
    contexts: Annotated[int, doc("To be asked.")]
    completed_contexts: int
    price_usd: str
    charge: Literal["free", "reserved", "charged", "released"]
    result: ComparisonResult | None
    error: str | None
    error_code: str | None
    made_by: Annotated[
        str | None, doc("An address of mail, a key's id, or the account; null of early ones.")
    ] = None
    created_at: float
    updated_at: float
    warnings: Annotated[
        list[str] | UnsetType, doc("As its result has them; in the answer that queues it.")
    ] = UNSET

    @property
    def other(self) -> str:
        """The other side in words: a version, or recorded answers."""
        return "recorded answers" if self.recorded else str(self.against)

    @property
    def summary(self) -> JobSummary:
        """The comparison as a list of jobs has it."""
        return summary_of(
            COMPARISON,
            self,
            f"{self.decision} {self.version} with {self.other}",
            models=[],
            progress=JobStep(
                phase="comparing",
                step=self.completed_contexts,
                steps=self.contexts,
                unit="contexts",
            ),
            ended=None if self.result is None else self.result.verdict,
            why=self.error,
        )


class ComparisonsQuery(PageQuery, frozen=True, kw_only=True):
    """Which page of the account's comparisons."""

    decision: Annotated[DecisionName | None, doc("Of one named decision.")] = None


class ComparisonPage(CursorPage[NamedComparison], frozen=True):
    """A page of comparisons, newest first."""
