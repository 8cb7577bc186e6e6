"""Wire forms of the SystemOne calls: TypeSafe's request and answer, and their translation.

Clients of that service send these shapes unchanged; values that a field's type allows are checked
by ``steelyard.dialects.systemone.mapping``. An optional field may be left out or be ``null``.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from steelyard.decisions import wire
from steelyard.decisions.rules_wire import FieldValues, RuleResult
from steelyard.wire.errors import ErrorBody
from steelyard.wire.limits import MAX_QUESTIONS
from steelyard.wire.schemas import doc

#: What may describe or ask: text, or any JSON object or array.
Content = str | dict[str, Any] | list[Any]

QuestionType = Literal["noul", "choice", "score"]


class QuestionInput(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One question: yes or no (``noul``), one label of several, or a level of a scale."""

    type: QuestionType
    instructions: Annotated[
        Content | None,
        doc("What is asked. `noul` alone needs it, unless a criterion is described."),
    ] = None
    criteria: Annotated[
        dict[str, Content | None] | list[Content | None] | None,
        doc(
            "`noul`: left out, or an object with `true` and `false` (either or both). "
            "`choice`: an object from label to description (null for none), 1 to 255 of them. "
            "`score`: an array of descriptions, one per level from 0, 1 to 255 of them."
        ),
    ] = None


class SystemOneRequest(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One state and the questions asked on it, in TypeSafe's shape."""

    model: Annotated[
        wire.Name, doc("A model's name; names that start with `jev` mean the default base model.")
    ]
    state: Annotated[Content, doc("What the questions are about; may be empty.")]
    questions: Annotated[
        dict[wire.Name, QuestionInput],
        Meta(
            min_length=1,
            max_length=MAX_QUESTIONS,
            description="Question by name; the name is that of its answer.",
        ),
    ]
    assets: Annotated[dict[str, Any] | None, doc("Refused unless empty: the models read text.")] = (
        None
    )


class NamedSystemOneRequest(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One state for a named decision, whose version has the questions."""

    refused_fields: ClassVar[dict[str, str]] = {"questions": wire.OF_VERSION}

    model: wire.NamedModel
    state: Annotated[Content, doc("What the questions are about; may be empty.")]
    fields: FieldValues | None = None


class NoulAnswer(Struct, frozen=True, kw_only=True, tag_field="type", tag="noul"):
    """The answer to a yes/no question: the probability of yes."""

    noul: float


class ChoiceAnswer(Struct, frozen=True, kw_only=True, tag_field="type", tag="choice"):
    """The answer to a choice: the likeliest label; probabilities are by label, in order."""

    choice: str
    confidence: float
    probabilities: dict[str, float]


class ScoreAnswer(Struct, frozen=True, kw_only=True, tag_field="type", tag="score"):
    """The answer to a score: the expected level; both objects are keyed by level from ``"0"``."""

    score: float
    confidence: float
    legend: dict[str, Content]
    probabilities: dict[str, float]


Answer = NoulAnswer | ChoiceAnswer | ScoreAnswer


class SystemOneUsage(Struct, frozen=True, kw_only=True):
    """The tokens of a request; ``output_tokens`` is one a question, and what judges wrote before."""

    input_tokens: int
    output_tokens: int


class SystemOneResponse(Struct, frozen=True, kw_only=True):
    """The answer to a SystemOne request; ``timing_ms`` is in milliseconds by stage.

    Fields beyond TypeSafe's begin with ``x_`` where neither an account, an ``Idempotency-Key`` nor one
    of this server's models shows a caller of ours.
    """

    model: str
    answers: dict[str, Answer]
    usage: SystemOneUsage
    id: str | UnsetType = UNSET
    charge: wire.Charge | UnsetType = UNSET
    timing_ms: dict[str, float] | UnsetType = UNSET
    fallback: wire.FallbackReport | UnsetType | None = UNSET
    warnings: list[wire.AnswerWarning] | UnsetType = UNSET
    decision: wire.NamedUse | UnsetType = UNSET
    actions: wire.NamedActions = UNSET
    rule: RuleResult | UnsetType = UNSET
    x_id: str | UnsetType = UNSET
    x_charge: wire.Charge | UnsetType = UNSET
    x_timing_ms: dict[str, float] | UnsetType = UNSET
    x_fallback: wire.FallbackReport | UnsetType | None = UNSET
    x_warnings: list[wire.AnswerWarning] | UnsetType = UNSET


class FieldError(Struct, frozen=True, kw_only=True):
    """One failed field, as TypeSafe says it; ``loc`` leads to it from ``body``."""

    loc: list[str | int]
    msg: str
    type: str


class Refusal(Struct, frozen=True, kw_only=True):
    """A refusal of anything but a field, as TypeSafe says it."""

    error_type: str
    message: str


class SystemOneErrorBody(ErrorBody, frozen=True, kw_only=True):
    """The body of every failed call, and the same as TypeSafe says it."""

    detail: list[FieldError] | Refusal


class TranslateResponse(Struct, frozen=True, kw_only=True):
    """The equivalent decide request, and the changes made in translating."""

    request: Annotated[
        dict[str, Any], doc("A body of `POST /v1/decide`: `context`, `decisions`, perhaps `model`.")
    ]
    notes: Annotated[
        list[str], doc("What changed, such as how a confidence threshold is to be written.")
    ]
