"""Wire forms of the log of stored decisions: answers, outcomes, and figures of both."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from steelyard.accounts.wire import Usd
from steelyard.decisions.policy_wire import Probability
from steelyard.decisions.rules_wire import RuleResult
from steelyard.decisions.wire import DecisionResult, Kind, Name, NamedUse
from steelyard.wire.limits import MAX_QUESTIONS
from steelyard.wire.measures import Measure, ReliabilityRow
from steelyard.wire.origins import Origin
from steelyard.wire.queries import (
    MAX_PAGE,
    CursorPage,
    ExportedAs,
    NextCursor,
    PageSize,
)
from steelyard.wire.schemas import doc

#: The most buckets of a summary.
MAX_BUCKETS = 1440
#: Seconds of a summary's window when nothing is said.
DEFAULT_WINDOW_S = 3600.0
#: The most points of a series, and seconds of its window when nothing is said.
MAX_POINTS, SERIES_WINDOW_S = 240, 86_400.0

#: Unix seconds; the bound is the year 5138.
Time = Annotated[float, Meta(ge=0, le=1e11)]
Share = Annotated[float, Meta(ge=0, le=1)]
Text = Annotated[str, Meta(min_length=1, max_length=128)]
FeedbackBy = Annotated[
    Origin | None,
    doc("Only feedback of this origin; without it all feedback but that of clicks and models."),
]


ModelFilter = Annotated[
    Text | None, doc("Answered under this name, or by the model of this number.")
]
NamedFilter = Annotated[
    Text | None, doc("Of this named decision, or of this version of it, `support_triage@7`.")
]


def _percent(share: float, places: int = 0) -> str:
    return f"{share * 100:.{places}f} %"


def _with_interval(share: Measure) -> str:
    low, high = share.low or 0.0, share.high or 0.0
    places = 0 if high >= 0.1 else 1
    ends = f"{low * 100:.{places}f}, {high * 100:.{places}f}"
    return f"{_percent(share.value, places)} [{ends}]"


class DecisionLogFilter(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Which stored answers.

    ``abstained``, ``wrong``, ``p_from``, ``p_to`` and ``has_feedback`` are about one and the same
    decision of an answer: the one named by ``decision``, or any.
    """

    since: Annotated[Time | None, doc("Answered at this time or later.")] = None
    until: Annotated[Time | None, doc("Answered before this time.")] = None
    model: ModelFilter = None
    key: Annotated[Text | None, doc("Asked for with the API key of this id.")] = None
    named: NamedFilter = None
    decision: Annotated[Text | None, doc("Only answers that have a decision of this id.")] = None
    has_feedback: Annotated[
        bool | None, doc("Only those with, or only those without feedback.")
    ] = None
    abstained: Annotated[
        bool | None, doc("Only those that abstained, or only those that did not.")
    ] = None
    wrong: Annotated[
        bool | None,
        doc(
            "Of those with feedback, only the ones whose top outcome did not come true; "
            "with false, only the ones whose did."
        ),
    ] = None
    p_from: Annotated[Share | None, doc("Only those whose top probability is above this.")] = None
    p_to: Annotated[Share | None, doc("Only those whose top probability is not above this.")] = None
    by: FeedbackBy = None


class DecisionLogQuery(DecisionLogFilter, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Which stored answers, and which page of them."""

    order: Annotated[
        Literal["newest", "chance", "strata"],
        doc(
            "`chance`: in an order that is random and stays. Whoever checks answers from "
            "its beginning on checks a fair sample, of which `true_share` of a series is made. One "
            "page, of the first 2,000. `strata`: the same in turn of four strata of the probability of "
            "`outcome` of `decision`, so that rare ones are among the first; of the first 20,000."
        ),
    ] = "newest"
    outcome: Annotated[
        Text | None, doc("With the order `strata`: the outcome whose probability counts.")
    ] = None
    limit: Annotated[PageSize, doc("The most answers of a page; it may have fewer, and go on.")] = (
        MAX_PAGE
    )
    cursor: NextCursor = None


class ExportDecisionsQuery(
    DecisionLogFilter, frozen=True, forbid_unknown_fields=True, kw_only=True
):
    """The stored decisions to export, and the format."""

    format: ExportedAs = "parquet"


class LoggedResult(Struct, frozen=True, kw_only=True):
    """One decision of a stored answer."""

    kind: Kind
    top: str
    p_top: float
    action: str
    abstained: bool
    feedback: Annotated[ObservedOutcome | None, doc("What came true; null while nobody has told.")]


class LoggedDecision(Struct, frozen=True, kw_only=True):
    """A stored answer, in short."""

    id: str
    created_at: float
    model: str
    version: Annotated[str | None, doc("Where a family answered, its model that did.")]
    total_ms: Annotated[
        float | None, doc("Server time of the answer; null for those of old servers.")
    ]
    decisions: Annotated[dict[str, LoggedResult], doc("By decision id.")]
    text: Annotated[
        str, doc("The beginning of the context; of one that is no text, of its JSON.")
    ] = ""


class DecisionLogPage(CursorPage[LoggedDecision], frozen=True):
    """A page of stored answers, newest first. Where filters match little it may be short."""


class FeedbackReport(Struct, frozen=True, kw_only=True):
    """Feedback that says where it came from."""

    by: Origin
    who: Annotated[str | None, doc("Who was named, or else the key or user id.")]
    outcome: ObservedOutcome


class StoredAnswer(Struct, frozen=True, kw_only=True):
    """A stored answer in full: its request, its answer, its outcome."""

    id: str
    created_at: float
    expires_at: Annotated[float, doc("When it is removed, and takes no feedback.")]
    model: str
    version: str | None
    total_ms: float | None
    request: Annotated[
        dict[str, Any],
        doc(
            "`context`, `decisions` as a dataset has them, and `temperature` and `fields` if "
            "given. Where no text is stored, `text` in place of `context`: its `sha256`, `characters` and "
            "`language`; of `fields` the numbers, true and false stay."
        ),
    ]
    results: Annotated[dict[str, DecisionResult], doc("By decision id.")]
    metadata: dict[str, Any]
    named: Annotated[NamedUse | UnsetType, doc("Where the request named a decision.")] = UNSET
    rule: Annotated[RuleResult | UnsetType, doc("The action of its rules, where it has some.")] = (
        UNSET
    )
    feedback: Annotated[
        dict[str, ObservedOutcome],
        doc(
            "By decision id; those nobody told of are left out, and so are reports of "
            "clicks and models."
        ),
    ]
    feedback_by: Annotated[
        dict[str, FeedbackReport] | UnsetType,
        doc("Every report that says where it came from; absent without any."),
    ] = UNSET


class DecisionSummaryQuery(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Which stored answers are summed up."""

    since: Annotated[
        Time | None, doc("Answered at this time or later; an hour before `until`.")
    ] = None
    until: Annotated[Time | None, doc("Answered before this time; now.")] = None
    bucket_s: Annotated[
        Annotated[int, Meta(ge=1, le=86_400)],
        doc("Seconds of a bucket; the window has at most 1,440 of them."),
    ] = 60
    model: ModelFilter = None
    named: NamedFilter = None
    decision: Annotated[Text | None, doc("Only decisions of this id.")] = None
    by: FeedbackBy = None


class DecisionBucket(Struct, frozen=True, kw_only=True):
    """The decisions of a stretch of time; the first and the last may reach out of the window."""

    start: Annotated[float, doc("Unix seconds; a whole number of buckets.")]
    answers: int
    decisions: int
    abstained: int
    with_feedback: int


class TopProbabilityRow(Struct, frozen=True, kw_only=True):
    """The decisions whose top probability is above ``low`` and not above ``high``."""

    low: float
    high: float
    n: int
    with_feedback: int
    wrong: Annotated[
        int, doc("Of those with feedback, the ones whose top outcome did not come true.")
    ]


class DecisionGroup(Struct, frozen=True, kw_only=True):
    """The decisions of one id by one model."""

    model: str
    version: str | None
    decision: str
    decisions: int
    abstain_rate: Measure
    feedback_share: Measure
    accuracy: Annotated[Measure | None, doc("On feedback; null without any.")]


class ServerErrors(Struct, frozen=True, kw_only=True):
    """How requests to decide ended, of every account and whether stored or not, since a start."""

    since: Annotated[float, doc("When the process that answers began to count.")]
    requests: Annotated[int, doc("Requests to the three routes that decide.")]
    refused: Annotated[int, doc("Ended with a status of 4xx.")]
    failed: Annotated[int, doc("Ended with a status of 5xx.")]
    error_rate: Annotated[Measure | None, doc("Share that failed; null without any.")]


class DecisionSummary(Struct, frozen=True, kw_only=True):
    """Figures of the stored answers of a window of time.

    Shares have exact 95 % intervals, which take decisions as independent of each other.
    """

    since: float
    until: float
    bucket_s: int
    answers: Annotated[int, doc("Stored answers.")]
    decisions: Annotated[int, doc("Decisions of them; `n` counts these.")]
    abstain_rate: Annotated[Measure | None, doc("Null where there is no decision.")]
    unstated_rate: Annotated[
        Measure | None,
        doc(
            "Of the decisions that have `unstated`, the share in which the context more "
            "likely than not does not say. Null where none has it."
        ),
    ] = None
    feedback_share: Annotated[Measure | None, doc("Null where there is no decision.")]
    accuracy: Annotated[
        Measure | None,
        doc(
            "Share of the decisions with feedback whose top outcome came true. Feedback "
            "is no random sample of the traffic."
        ),
    ]
    reliability: Annotated[list[ReliabilityRow], doc("On feedback: accuracy by top probability.")]
    top_probabilities: Annotated[
        list[TopProbabilityRow],
        doc(
            "By top probability in hundredths, those that have decisions: sums of them "
            "say what a threshold would have done."
        ),
    ] = []
    latency_p50_ms: Annotated[
        Measure | None,
        doc(
            "Median server time; `n` counts answers, and the interval is that of the "
            "order statistics, null where there are too few."
        ),
    ]
    latency_p95_ms: Measure | None
    buckets: Annotated[list[DecisionBucket], doc("In order of time, empty ones included.")]
    groups: Annotated[list[DecisionGroup], doc("By model and decision, the most decisions first.")]
    groups_left_out: Annotated[int, doc("Groups beyond the first 100.")]
    server: Annotated[ServerErrors | None, doc("Null for callers who may not read `/metrics`.")]


class DecisionSeriesQuery(DecisionSummaryQuery, frozen=True, kw_only=True):
    """The stored answers to draw over time."""

    since: Annotated[Time | None, doc("Answered at this time or later; a day before `until`.")] = (
        None
    )
    bucket_s: Annotated[
        Annotated[int, Meta(ge=60, le=86_400)],
        doc("Seconds of a point; the window has at most 240 of them."),
    ] = 3600


class SeriesOutcome(Struct, frozen=True, kw_only=True):
    """An outcome whose share is reported at each point."""

    decision: str
    outcome: str
    share: Annotated[
        Measure | None, doc("Share of the window's decisions whose top outcome it is.")
    ] = None
    true_share: Annotated[
        Measure | None,
        doc(
            "Share of which it is true: the model's answers to all, corrected by the `n` "
            "that were checked from the beginning of the order by chance (`order=chance` of the log) "
            "without a gap, or of each stratum (`order=strata`). Feedback on others does not count. "
            "Null of fewer than two."
        ),
    ] = None
    corrected_share: Annotated[
        Measure | None,
        doc(
            "Where no answers were checked by chance, and one model gave them all: the share "
            "corrected by how often its evaluation says so of what is so and of what is not, `n` labelled "
            "decisions (Rogan and Gladen). It takes the errors here to be those there."
        ),
    ] = None
    corrected_by: Annotated[str | None, doc("That evaluation, its newest.")] = None
    answers: Annotated[
        int, doc("Answers of the window that have the decision: what both are of.")
    ] = 0
    checks_to_halve: Annotated[
        int | None, doc("Further checks by chance that about halve its interval.")
    ] = None
    checks_left_out: Annotated[
        int, doc("Answers with feedback that do not count for it: others come before them.")
    ] = 0

    def in_words(self) -> str:
        """Return the true share in words beside the model's, and how to narrow its interval."""
        says = "—" if self.share is None else _percent(self.share.value)
        true, of = self.true_share, f"{self.answers:,}"
        waiting = f"{self.checks_left_out:,} checked out of turn count once those before are."
        more = waiting if self.checks_left_out else ""
        if true is None or true.low is None or true.high is None:
            rates = self.corrected_share
            about = (
                "" if rates is None else f"about {_with_interval(rates)} by {self.corrected_by}; "
            )
            text = f"{about}the model says {says} of {of}; too few were checked by chance. {more}"
            return text.rstrip()
        return (
            f"{_with_interval(true)} of {of}, from {true.n:,} checks; the model says {says}. "
            f"{self.checks_to_halve:,} more checks halve the interval. {more}"
        ).rstrip()


class SeriesPoint(Struct, frozen=True, kw_only=True):
    """Figures of a stretch of time; null where there is nothing to measure."""

    start: Annotated[float, doc("Unix seconds; a whole number of stretches.")]
    answers: Annotated[int, doc("Stored answers, of every decision.")]
    answers_read: Annotated[int, doc("Those that the figures are of.")]
    decisions: int
    abstain_rate: Measure | None
    escalation_rate: Annotated[
        Measure | None, doc("Share of answers for which a route asked a further model.")
    ]
    outcomes: Annotated[
        list[Measure | None],
        doc("Shares among decisions of the same id, in the order of `outcomes`."),
    ]
    latency_p50_ms: Measure | None
    latency_p95_ms: Measure | None
    accuracy: Annotated[
        Measure | None, doc("On feedback, which is no random sample of the traffic.")
    ]
    brier: Annotated[
        Measure | None, doc("On feedback: mean squared error summed over outcomes, 0 to 2.")
    ]
    cost_usd: Annotated[
        Usd | None,
        doc(
            "Charged for decisions, stored or not; null for one decision or number of a "
            "model, which have no cost of their own."
        ),
    ]


class DecisionSeries(Struct, frozen=True, kw_only=True):
    """Figures of stored answers over time.

    Shares have exact 95 % intervals and times those of order statistics, which take decisions as
    independent of each other.
    """

    since: float
    until: float
    bucket_s: int
    is_sampled: Annotated[
        bool,
        doc(
            "Whether there were more than 20,000 answers: then figures are of a share of "
            "each stretch's, and those on feedback of the newest that have some."
        ),
    ]
    outcomes: Annotated[list[SeriesOutcome], doc("Those that were on top most often, 8 at most.")]
    outcomes_left_out: int
    data: Annotated[list[SeriesPoint], doc("In order of time, empty ones included.")]


#: How far from 1 the probabilities of an observed outcome may sum; they are then rescaled.
SUM_TOLERANCE = 1e-3

ObservedOutcome = (
    Annotated[str, Meta(min_length=1)] | Annotated[dict[str, Probability], Meta(min_length=1)]
)


class FeedbackRequest(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The real outcomes of some or all decisions of one stored answer."""

    decision_id: Annotated[Name, doc("The `id` of a stored answer, `dec_…`.")]
    outcomes: Annotated[
        dict[str, ObservedOutcome],
        Meta(
            min_length=1,
            max_length=MAX_QUESTIONS,
            description="Decision id to the outcome that came true: its name, or an object from "
            "outcome to probability where that is not certain. What was said before of the same "
            "decision is replaced.",
        ),
    ]
    by: Annotated[
        Origin | None,
        doc(
            "Where the labels came from. Those of a `click` or a `model` count only where "
            "a query names them, and never replace others."
        ),
    ] = None
    who: Annotated[
        Text | None, doc("Who labelled, with `by`; the key or the user that calls by default.")
    ] = None


class FeedbackResponse(Struct, frozen=True, kw_only=True):
    """The recorded outcomes."""

    decision_id: str
    recorded: Annotated[list[str], doc("The decision ids recorded by this call, in its order.")]
