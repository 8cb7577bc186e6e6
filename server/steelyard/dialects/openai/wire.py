"""The call ``POST /v1/decisions`` on the wire: the shape that OpenAI's client and LiteLLM use.

Values that a field's type allows are checked by ``steelyard.dialects.openai.mapping``. An optional
field may be left out or be ``null``.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, TypeVar

from msgspec import UNSET, Meta, Struct, UnsetType

from steelyard.decisions import wire
from steelyard.decisions.rules_wire import FieldValues, RuleResult
from steelyard.wire.limits import MAX_OUTCOMES, MAX_QUESTIONS, MIN_OUTCOMES
from steelyard.wire.schemas import doc

#: Levels of one score.
MAX_LEVELS = 10

QuestionType = Literal["predicate", "choice", "score"]
_Value = TypeVar("_Value")
#: Of a field that OpenAI's clients may send, and that changes nothing here.
Unused = Annotated[_Value | None, doc("Taken and not used.")]


class InputPart(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A part of a message or of instructions: text, JSON, or an image (which is refused)."""

    type: Literal["input_text", "output_text", "input_json", "input_image"]
    text: Annotated[str | None, doc("Of a text part.")] = None
    data: Annotated[dict[str, Any] | list[Any] | None, doc("Of a JSON part; read as its text.")] = (
        None
    )
    image_url: str | None = None
    detail: str | None = None
    prompt_cache_breakpoint: Unused[dict[str, Any]] = None


class InputMessage(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One message of the input."""

    role: Literal["user", "assistant", "developer", "system"]
    content: str | list[InputPart]
    type: Literal["message"] | None = None
    phase: Unused[str] = None


class ChoiceInput(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One choice; a boolean and a text of the same letters are two choices."""

    value: str | bool
    description: str | None = None


class LevelInput(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One level of a score."""

    label: str
    description: str | None = None


class DecisionsQuestionInput(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One question: whether a statement holds, which choice fits, or which level does."""

    type: QuestionType
    instructions: str | Annotated[list[InputPart], Meta(min_length=1)]
    name: Annotated[wire.Name | None, doc("Given back with the answer.")] = None
    choices: Annotated[
        Annotated[list[ChoiceInput], Meta(min_length=MIN_OUTCOMES, max_length=MAX_OUTCOMES)] | None,
        doc("Of a `choice` alone, which needs them."),
    ] = None
    levels: Annotated[
        Annotated[list[LevelInput], Meta(min_length=MIN_OUTCOMES, max_length=MAX_LEVELS)] | None,
        doc("Of a `score` alone, which needs them; in order."),
    ] = None


Input = Annotated[
    str | Annotated[list[InputMessage], Meta(min_length=1)],
    doc("What the questions are about: text, or messages."),
]


class DecisionsRequest(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One input and the questions asked on it, in OpenAI's shape."""

    model: Annotated[wire.Name, doc("A model's name.")]
    input: Input
    questions: Annotated[list[DecisionsQuestionInput], Meta(min_length=1, max_length=MAX_QUESTIONS)]
    safety_identifier: Unused[str] = None
    prompt_cache_key: Unused[str] = None
    prompt_cache_options: Unused[dict[str, Any]] = None


class NamedDecisionsRequest(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One input for a named decision, whose version has the questions."""

    refused_fields: ClassVar[dict[str, str]] = {"questions": wire.OF_VERSION}

    model: wire.NamedModel
    input: Input
    fields: FieldValues | None = None
    safety_identifier: Unused[str] = None
    prompt_cache_key: Unused[str] = None
    prompt_cache_options: Unused[dict[str, Any]] = None


class PredicateAnswer(Struct, frozen=True, kw_only=True, tag_field="type", tag="predicate"):
    """How probable it is that the statement holds."""

    name: str | None
    probability: float


class ChoiceProbability(Struct, frozen=True, kw_only=True):
    """The probability of one choice."""

    value: str | bool
    probability: float


class DecisionsChoiceAnswer(Struct, frozen=True, kw_only=True, tag_field="type", tag="choice"):
    """The likeliest choice; probabilities are in the order of the choices."""

    name: str | None
    choice: str | bool
    probabilities: list[ChoiceProbability]
    confidence: float


class LevelProbability(Struct, frozen=True, kw_only=True):
    """The probability of one level; ``value`` is its place from 0."""

    value: int
    label: str
    probability: float


class DecisionsScoreAnswer(Struct, frozen=True, kw_only=True, tag_field="type", tag="score"):
    """The expected level, by place from 0."""

    name: str | None
    score: float
    probabilities: list[LevelProbability]
    confidence: float


Answer = PredicateAnswer | DecisionsChoiceAnswer | DecisionsScoreAnswer


class InputTokensDetails(Struct, frozen=True, kw_only=True):
    """Nothing is cached between requests here, so both are 0."""

    cached_tokens: int = 0
    cache_write_tokens: int = 0


class OutputTokensDetails(Struct, frozen=True, kw_only=True):
    """Tokens that judges wrote before they answered; no other model reasons in tokens."""

    reasoning_tokens: int = 0


class DecisionsUsage(Struct, frozen=True, kw_only=True):
    """The tokens of a request; ``output_tokens`` is one a question, and what judges wrote before."""

    input_tokens: int
    output_tokens: int
    total_tokens: int
    input_tokens_details: InputTokensDetails = InputTokensDetails()
    output_tokens_details: OutputTokensDetails = OutputTokensDetails()


class DecisionsResponse(Struct, frozen=True, kw_only=True):
    """The answers, in question order; ``timing_ms`` is in milliseconds by stage."""

    id: Annotated[str, doc("For feedback, in which a question's place from 0 is its decision id.")]
    model: str
    answers: list[Answer]
    usage: DecisionsUsage
    charge: wire.Charge
    timing_ms: dict[str, float]
    fallback: wire.FallbackReport | None = None
    warnings: list[wire.AnswerWarning] | UnsetType = UNSET
    decision: wire.NamedUse | UnsetType = UNSET
    actions: wire.NamedActions = UNSET
    rule: RuleResult | UnsetType = UNSET


class DecisionsErrorInfo(Struct, frozen=True, kw_only=True):
    """An error: OpenAI's ``type`` and ``param`` beside the fields of every other route."""

    message: str
    type: str
    param: str | None
    code: str
    retryable: bool
    request_id: str | None
    details: list[dict[str, Any]] | None = None


class DecisionsErrorBody(Struct, frozen=True, kw_only=True):
    """The body of a failed ``POST /v1/decisions``."""

    error: DecisionsErrorInfo
