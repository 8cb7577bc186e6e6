"""Wire forms of the decide call: its request and its answer.

Here: the shapes, as msgspec structs that refuse unknown fields, from which the OpenAPI document is
made. Not here: rules that look at two fields at once (``steelyard.decisions.validation``).

An optional field may be left out or be ``null``; both mean the same.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Final, Literal, TypeAlias

from msgspec import UNSET, Meta, Struct, UnsetType, field

from steelyard.decisions.policy_wire import AbstainInput, PolicyInput
from steelyard.decisions.rules_wire import FieldValues, RuleResult
from steelyard.wire.limits import MAX_PLAYGROUND_DECISIONS, MAX_QUESTIONS
from steelyard.wire.schemas import SEVERAL_LINES
from steelyard.wire.shown import Shown

#: The action that sends a decision to a person; no outcome and no other action may have its name.
ABSTAIN = "abstain"

Kind = Literal["single", "binary", "ordinal"]

#: Every kind of decision.
KINDS: tuple[Kind, ...] = ("single", "binary", "ordinal")

#: The most actions of a policy.
MAX_ACTIONS = 255
#: Bounds of the caller's temperature.
MIN_TEMPERATURE, MAX_TEMPERATURE = 0.2, 5.0

#: Most characters of a question that is asked the other way round, and of a statement.
MAX_OPPOSITE = 2_000
#: Most characters of a guideline.
MAX_GUIDELINE = 10_000

Name = Annotated[str, Meta(min_length=1, max_length=128)]

Guideline = Annotated[
    Annotated[str, Meta(min_length=1, max_length=MAX_GUIDELINE, pattern=SEVERAL_LINES)] | None,
    Meta(
        description="Markdown: what reviewers and judges go by. Judges and other connected models read "
        "it after the question; base models, readers and families do not, and to them a question is "
        "the same with any guideline."
    ),
]

QuestionInput = Annotated[
    str | dict[str, Any] | list[Any], Meta(description="Text, or any JSON object or array.")
]
ContextInput = Annotated[
    str | dict[str, Any] | list[Any],
    Meta(description="What the decisions are about; may be empty."),
]
Rubric = Annotated[
    list[Any] | None, Meta(description="`ordinal` alone: one description per level.")
]
Temperature = Annotated[float, Meta(ge=MIN_TEMPERATURE, le=MAX_TEMPERATURE)]
FallbackNames = Annotated[list[Name], Meta(min_length=1, max_length=16)]
Escalate = Annotated[
    bool | None,
    Meta(
        description="Whether the list of `fallback` decides what the model abstains from, and "
        "texts unlike its training rows; both models are charged then."
    ),
]

#: Fields of a dataset row that a decide request must not have, and why.
ROW_FIELDS = {
    "targets": "Targets belong to the rows of a dataset",
    "rewards": "Rewards belong to the rows of a dataset",
}


class DecisionInput(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One question and the outcomes that the caller allows."""

    refused_fields: ClassVar[dict[str, str]] = ROW_FIELDS

    id: Annotated[Name, Meta(description="Unique in the request; not blank.")]
    question: QuestionInput
    kind: Kind | None = None
    outcomes: Annotated[
        Any,
        Meta(
            description="`single`: an array of 2 to 255 outcomes, or an object from name to "
            "description (null for none). `binary`: left out, or an object with `yes` and `no` "
            "(either or both), or both names in an array. `ordinal`: an array of levels in "
            "order, or left out, which names them by position from 0."
        ),
    ] = None
    rubric: Rubric = None
    opposite: Annotated[
        Annotated[str, Meta(min_length=1, max_length=MAX_OPPOSITE)] | None,
        Meta(
            description="`binary` alone: the same question asked the other way round, such that the "
            "answer is no where that of `question` is yes. A judge asks both and takes the "
            "difference; other models do not read it."
        ),
    ] = None
    statement: Annotated[
        Annotated[str, Meta(min_length=1, max_length=MAX_OPPOSITE)] | None,
        Meta(
            description="`binary` alone: what a yes to `question` states, for models that read "
            "statements. Left out, grammar makes it of the question."
        ),
    ] = None
    guideline: Guideline = None
    policy: PolicyInput | None = None
    weights: Annotated[
        dict[str, Annotated[float, Meta(gt=0)]] | None,
        Meta(description="Outcome to importance when choosing; 1 where left out."),
    ] = None
    costs: Annotated[
        dict[str, float | dict[str, float]] | None,
        Meta(
            description="Action to outcome to cost; or outcome to the cost of choosing it wrongly."
        ),
    ] = None
    abstain: AbstainInput | None = None


class ImageInput(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One image; the context shows it at ``<image:N>``."""

    id: Annotated[int, Meta(ge=1, le=64)]
    media_type: Literal["image/jpeg", "image/png", "image/webp"]
    data: Annotated[
        str, Meta(min_length=4, max_length=28_000_000, description="Padded standard base64.")
    ]


Images = Annotated[list[ImageInput], Meta(min_length=1, max_length=8)]


#: What a caller keeps beside an answer.
MetadataValues = Annotated[
    dict[
        Annotated[str, Meta(max_length=64)],
        Annotated[str, Meta(max_length=512)] | int | float | bool | None,
    ],
    Meta(max_length=16),
]
Metadata = Annotated[
    MetadataValues | None,
    Meta(description="Kept with a stored decision; the model never reads it."),
]


#: Whether an answer is stored: in full, not at all, or without the text that it is about.
FEATURES: Final = "features"
Storing: TypeAlias = bool | Literal["features"]
_STORE = (
    "Whether the decision is stored for feedback. `features` stores no context: its SHA-256, length and "
    "language stand in its place, beside questions, probabilities, action, `metadata` and feedback."
)


class DecideRequest(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One context and the decisions asked on it."""

    refused_fields: ClassVar[dict[str, str]] = {
        **ROW_FIELDS,
        "fields": "Fields belong to a named decision that declares them",
    }

    context: ContextInput
    decisions: Annotated[
        list[DecisionInput],
        Meta(
            min_length=1,
            max_length=MAX_QUESTIONS,
            description="At most `max_decisions` of the server, which is 64 unless it is set.",
        ),
    ]
    model: Annotated[
        Name | None,
        Meta(
            description="A base model, a family such as `router` or a number such as `router@3`; "
            "the default base model when left out."
        ),
    ] = None
    fallback: Annotated[
        Literal["auto", "none"] | FallbackNames | None,
        Meta(
            description="Who answers when the model is unable to at the moment: `auto` (default) a "
            "base model that is no dearer, `none` nobody, or model names to try in order; a name "
            "that answers no calls is passed over."
        ),
    ] = None
    escalate: Escalate = None
    temperature: Annotated[
        Temperature | None,
        Meta(description="Below 1 sharpens the probabilities, above 1 softens them."),
    ] = None
    images: Images | None = None
    independent: Annotated[
        bool | None,
        Meta(
            description="Answer each decision as if sent alone. Decisions never affect each other "
            "here, so both values give the same answer."
        ),
    ] = None
    store: Annotated[Storing | None, Meta(description=_STORE)] = None
    metadata: Metadata = None
    explain: Annotated[
        bool | None,
        Meta(
            description="Answer once more without each sentence of the context (at most 8 parts), and "
            "say by how much the top outcome's probability falls: sensitivity, not reasoning. Its tokens "
            "are paid like the request's. The context must be text."
        ),
    ] = None


#: Names of named decisions and of their aliases.
NAME_PATTERN = "[a-z][a-z0-9_-]{0,63}"
#: A named decision: ``name``, ``name@alias`` or ``name@7``.
_REFERENCE = f"{NAME_PATTERN}(@([1-9][0-9]{{0,8}}|{NAME_PATTERN}))?"
REFERENCE_PATTERN = rf"^{_REFERENCE}\Z"

_OF_VERSION = "The version of a named decision has it"
#: Why a request of another wire has no questions that names a decision as its model.
OF_VERSION = "The version of a named decision has them"
#: A named decision as the model of another wire.
NamedModel = Annotated[
    str,
    Meta(
        max_length=138,
        description="A named decision: `decision:support_triage`, `decision:support_triage@staging` "
        "or `decision:support_triage@7`.",
        extra_json_schema={"pattern": rf"^decision:{_REFERENCE}\Z"},
    ),
]


class NamedDecideRequest(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One context for a named decision, whose version has the questions and the model."""

    refused_fields: ClassVar[dict[str, str]] = {
        **ROW_FIELDS,
        "decisions": "A request has decision or decisions, not both",
        **dict.fromkeys(("model", "fallback", "escalate", "temperature"), _OF_VERSION),
    }

    decision: Annotated[
        str,
        Meta(
            max_length=129,
            description="A named decision: `support_triage` (its alias `production`), "
            "`support_triage@staging` or the version `support_triage@7`.",
            extra_json_schema={"pattern": REFERENCE_PATTERN},
        ),
    ]
    context: Annotated[
        str | dict[str, Any] | list[Any],
        Meta(description="What the decision is about; may be empty."),
    ]
    fields: FieldValues | None = None
    store: Annotated[Storing | None, Meta(description=_STORE)] = None
    metadata: Metadata = None


class NamedUse(Struct, frozen=True, kw_only=True):
    """The version of a named decision that answered, and the alias that pointed to it."""

    name: str
    version: int
    alias: Annotated[str | None, Meta(description="Null where the version was asked for.")]

    @property
    def reference(self) -> str:
        """Name and version, such as ``support_triage@7``."""
        return f"{self.name}@{self.version}"


#: What a named decision's policies do, in an answer of another wire.
NamedActions = Annotated[
    dict[str, str] | UnsetType,
    Meta(description="Of a named decision: the action that each of its policies gives."),
]


class PolicyResult(Struct, frozen=True, kw_only=True):
    """The action that a decision's policy gives."""

    action: str
    expected_costs: dict[str, float] | UnsetType = UNSET


class RouteEntry(Struct, frozen=True, kw_only=True):
    """A model of a route, or a step of a ladder, that was asked, and its calibrated top probability."""

    model: str
    p_top: float


class Certified(Struct, frozen=True, kw_only=True):
    """The highest error rate of answers with this mark, and its confidence."""

    error: float
    confidence: float


class ReadAs(Struct, frozen=True, kw_only=True):
    """The statements that a yes/no question is read as by models that judge statements."""

    statement: Annotated[str, Meta(description="What a yes states.")]
    negation: Annotated[str, Meta(description="What a no states.")]


class DecisionResult(Struct, frozen=True, kw_only=True):
    """The answer to one decision; probabilities are in outcome order and sum to 1."""

    kind: Kind
    probabilities: dict[str, float]
    top: str
    p_top: float
    action: str
    expected_level: float | UnsetType = UNSET
    policy: PolicyResult | UnsetType = UNSET
    route: Annotated[
        list[RouteEntry] | UnsetType,
        Meta(
            description="The models of a route that were asked, in turn, or the steps of a family with "
            "a ladder: `words alone`, then `words and base model`; the last one decided."
        ),
    ] = UNSET
    calibration: Annotated[
        str | UnsetType,
        Meta(
            description="What a judge's probabilities were corrected by without labels: `opposite`, "
            "the same question asked the other way round; `own_opposite`, likewise as grammar or the "
            "judge itself words it; `contextual`, its answers about texts that say nothing."
        ),
    ] = UNSET
    unstated: Annotated[
        float | UnsetType,
        Meta(
            description="The probability that the context says neither yes nor no, by a model that "
            "knows: a reader with three logits. `probabilities` are those of yes and no if it does."
        ),
    ] = UNSET
    doubt: Annotated[
        str | UnsetType,
        Meta(
            description="Why the answer is less to be trusted: a long context was read in parts, or most "
            "of a language model's probability lies on other tokens than the outcomes' labels."
        ),
    ] = UNSET
    certified: Annotated[
        Certified | UnsetType,
        Meta(
            description="By a family with a bound: how often `top` is wrong at most among its answers "
            "that have this. An answer without it abstains."
        ),
    ] = UNSET
    read_as: Annotated[
        ReadAs | UnsetType | None,
        Meta(
            description="Where the request has `explain`: the question as a statement and its "
            "negation; null where no rule makes them, and for other kinds than `binary`."
        ),
    ] = UNSET


class TokenizerInfo(Struct, frozen=True, kw_only=True):
    """The tokenizer that counted the input."""

    name: str
    revision: str
    sha256: str


class Usage(Struct, frozen=True, kw_only=True):
    """The tokens of a request."""

    input_tokens: int
    tokenizer: TokenizerInfo
    decisions: int
    prompt_tokens: int
    thought_tokens: Annotated[
        dict[str, int] | UnsetType,
        Meta(
            description="Tokens that judges wrote before they answered, by model; they are paid like its "
            "input tokens."
        ),
    ] = UNSET

    @property
    def n_written(self) -> int:
        """The tokens that judges wrote before they answered."""
        return sum((self.thought_tokens or {}).values())


class Charge(Struct, frozen=True, kw_only=True):
    """The cost of a request; amounts are exact decimal strings of dollars."""

    operation_id: str
    currency: Literal["USD"] = "USD"
    amount_usd: str = "0"
    reserved_usd: str = "0"


class FallbackReport(Struct, frozen=True, kw_only=True):
    """Which model answered instead of the one asked for, and why."""

    from_: str = field(name="from")
    to: str
    reason: Annotated[
        str,
        Meta(
            description="The code of the error that moved the request on, or "
            "`recently_unavailable` for a model that was passed over without an attempt."
        ),
    ]


class AnswerWarning(Struct, frozen=True, kw_only=True):
    """A warning about a request that makes its answer less reliable."""

    code: Annotated[str, Meta(description="What it is, such as `unread_language`.")]
    message: Annotated[str, Meta(description="What was found, and what to do.")]


class Novelty(Struct, frozen=True, kw_only=True):
    """How unlike the training rows a context is; where it is unlike, every decision abstains."""

    share: Annotated[float, Meta(description="Of the training rows, how many lie further out.")]
    unlike: Annotated[
        bool,
        Meta(description="Of contexts like the held-out ones as many are as false alarms may be."),
    ]


class SentenceEffect(Struct, frozen=True, kw_only=True):
    """A part of the context, and how the answer differs without it."""

    text: str
    start: Annotated[int, Meta(ge=0, description="Its first character in the context.")]
    end: Annotated[int, Meta(ge=0, description="The character after its last.")]
    change: Annotated[
        float,
        Meta(
            ge=-1,
            le=1,
            description="What the probability of the top outcome loses without it; below 0 it gains.",
        ),
    ]
    top_without: Annotated[str, Meta(description="The top outcome without it.")]


class ThoughtReport(Struct, frozen=True, kw_only=True):
    """Text that a judge wrote as its first answer was not sure, and that answer."""

    text: Annotated[
        str,
        Meta(
            description="Read again by the judge as data, and by nothing else: no action is in it."
        ),
    ]
    tokens: int
    before: Annotated[
        dict[str, float], Meta(description="The probabilities of the first answer, by outcome.")
    ]


class DecideResponse(Shown, Struct, frozen=True, kw_only=True):
    """The answer to a decide request; ``timing_ms`` is in milliseconds by stage."""

    id: str
    model: str
    version: str | UnsetType = UNSET
    decisions: dict[str, DecisionResult]
    usage: Usage
    timing_ms: dict[str, float]
    fallback: FallbackReport | None = None
    charge: Charge
    temperature: dict[str, float] | UnsetType = UNSET
    stored: bool = False
    warnings: Annotated[
        list[AnswerWarning] | UnsetType,
        Meta(description="What about the context makes the answers less to be trusted."),
    ] = UNSET
    novelty: Annotated[
        Novelty | UnsetType,
        Meta(
            description="By a family that abstains on texts unlike its training rows; it stays where "
            "another model decides instead (`escalate`)."
        ),
    ] = UNSET
    decision: Annotated[
        NamedUse | UnsetType, Meta(description="Where the request named a decision.")
    ] = UNSET
    rule: Annotated[
        RuleResult | UnsetType,
        Meta(description="The action of the rules that the version of a named decision has."),
    ] = UNSET
    explanation: Annotated[
        dict[str, list[SentenceEffect]] | UnsetType,
        Meta(
            description="Where the request asked for it: of each decision the sentences of the context, "
            "those that change its answer most first. It is not stored with the decision."
        ),
    ] = UNSET
    thoughts: Annotated[
        dict[str, ThoughtReport] | UnsetType,
        Meta(
            description="Where the request asked for an explanation and a judge wrote before it answered: "
            "by decision. Not stored with the decision either."
        ),
    ] = UNSET


class PlaygroundRequest(DecideRequest, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One context and at most 8 decisions, for a base model; nothing is stored."""

    decisions: Annotated[
        list[DecisionInput], Meta(min_length=1, max_length=MAX_PLAYGROUND_DECISIONS)
    ]


UsdAmount = Annotated[str, Meta(pattern=r"^-?[0-9]+(\.[0-9]+)?\Z")]


class ModelQuote(Struct, frozen=True, kw_only=True):
    """The price of the request at this model."""

    id: Annotated[str, Meta(description="A model that may answer: the one asked for is first.")]
    quote_usd: Annotated[UsdAmount, Meta(description="Exact dollars.")]


class EstimateResponse(Struct, frozen=True, kw_only=True):
    """The price of a request at present; nothing runs and nothing is held."""

    currency: Literal["USD"] = "USD"
    input_tokens: Annotated[int, Meta(ge=0, description="Input tokens, as they are billed.")]
    tokenizer: TokenizerInfo
    maximum_charge_usd: Annotated[
        UsdAmount,
        Meta(description="Held while the request runs; a fallback never costs more than this."),
    ]
    models: list[ModelQuote]
