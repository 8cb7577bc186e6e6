"""The dialect of OpenAI's decisions: reading its requests, answering and failing in its words.

A question becomes a decision whose id is its place, ``"0"`` and on, because names are optional here
and may repeat. It does so without the native reader: this dialect has no policies, so a choice
may be named ``abstain``.

=========  =======  ========================================================
type       kind     outcomes
=========  =======  ========================================================
predicate  binary   ``yes`` and ``no``
choice     single   the values; a boolean is read as ``true`` or ``false``
score      ordinal  the labels, described
=========  =======  ========================================================
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from steelyard.decisions.confidence import choice_confidence, score_confidence
from steelyard.decisions.kinds import BINARY_NAMES, Decision, Outcomes
from steelyard.decisions.named import NamedRequest, names_decision, read_named_model
from steelyard.decisions.rendering import render_value
from steelyard.decisions.validation import ValidRequest
from steelyard.decisions.wire import DecisionResult, Kind
from steelyard.dialects.openai import wire
from steelyard.errors import MAX_DETAILS, ImagesNotSupportedError, SteelyardError, Violation
from steelyard.wire.filling import filled
from steelyard.wire.limits import MAX_QUESTIONS
from steelyard.wire.payloads import open_payload
from steelyard.wire.violations import BODY, Path, Violations, label, show

KIND_OF_TYPE: dict[wire.QuestionType, Kind] = {
    "predicate": "binary",
    "choice": "single",
    "score": "ordinal",
}
_TYPE_OF_KIND = {kind: type_ for type_, kind in KIND_OF_TYPE.items()}
#: Between two messages, and between two parts of one.
_MESSAGE_BREAK, _PART_BREAK = "\n\n", "\n"


@dataclass(frozen=True, slots=True)
class Question:
    """One valid question."""

    name: str | None
    type: wire.QuestionType
    text: str
    values: tuple[str | bool, ...]
    outcomes: Outcomes

    def answer(self, probabilities: Sequence[float]) -> wire.Answer:
        """Return the answer in this dialect."""
        if self.type == "predicate":
            return wire.PredicateAnswer(name=self.name, probability=probabilities[0])
        pairs = list(zip(self.values, probabilities, strict=True))
        if self.type == "choice":
            return wire.DecisionsChoiceAnswer(
                name=self.name,
                choice=max(pairs, key=lambda pair: pair[1])[0],
                probabilities=[
                    wire.ChoiceProbability(value=value, probability=share) for value, share in pairs
                ],
                confidence=choice_confidence(probabilities),
            )
        return wire.DecisionsScoreAnswer(
            name=self.name,
            score=math.fsum(level * share for level, share in enumerate(probabilities)),
            probabilities=[
                wire.LevelProbability(value=level, label=str(value), probability=share)
                for level, (value, share) in enumerate(pairs)
            ],
            confidence=score_confidence(probabilities),
        )


@dataclass(frozen=True, slots=True)
class Questionnaire:
    """A valid request."""

    model: str
    context: str
    questions: tuple[Question, ...]

    def decide_request(self) -> ValidRequest:
        """Return the decide request that asks the same; ids are the questions' places."""
        return ValidRequest(
            context=self.context,
            decisions=tuple(
                Decision(
                    str(index),
                    KIND_OF_TYPE[question.type],
                    question.text,
                    question.outcomes,
                    index=index,
                )
                for index, question in enumerate(self.questions)
            ),
            model=self.model,
            context_path=(*BODY, "input"),
        )

    def answers(self, probabilities: Mapping[str, Sequence[float]]) -> list[wire.Answer]:
        """Return every answer in question order, from the probabilities by the question's place."""
        return [
            question.answer(probabilities[str(index)])
            for index, question in enumerate(self.questions)
        ]


def read_decisions(payload: bytes | bytearray | Mapping[str, Any]) -> Questionnaire | NamedRequest:
    """Read a request, or refuse it with everything that is wrong in it.

    One whose model is a named decision has no questions.

    >>> question = {"type": "predicate", "instructions": "It asks for money back."}
    >>> body = {"model": "m", "input": "Refund me.", "questions": [question]}
    >>> read_decisions(body).questions[0].outcomes.names
    ('yes', 'no')
    """
    if isinstance(payload, Mapping) and names_decision(payload):
        return _read_named(payload)
    violations = Violations()
    value = open_payload(payload, wire.DecisionsRequest, violations)
    model = value.get("model")
    if isinstance(model, str) and model and not model.strip():
        violations.add((*BODY, "model"), "is blank; name a model.", "blank")
    images: list[Path] = []
    context = _read_input(value.get("input"), violations, images)
    questions = _read_questions(value.get("questions"), violations, images)
    violations.raise_if_any()
    _refuse_images(images)
    return Questionnaire(value["model"], context, tuple(questions))


def named_answers(results: Mapping[str, DecisionResult]) -> list[wire.Answer]:
    """Return the answers of a named decision in this dialect, by the names of its decisions."""
    answers = []
    for name, result in results.items():
        outcomes = tuple(result.probabilities)
        described = Outcomes(outcomes, (None,) * len(outcomes))
        question = Question(name, _TYPE_OF_KIND[result.kind], "", outcomes, described)
        answers.append(question.answer(list(result.probabilities.values())))
    return answers


def _read_named(payload: Mapping[str, Any]) -> NamedRequest:
    request, value = read_named_model(payload, wire.NamedDecisionsRequest, "input")
    violations, images = Violations(), list[Path]()
    context = _read_input(value["input"], violations, images)
    violations.raise_if_any()
    _refuse_images(images)
    return replace(request, context=context)


def _refuse_images(images: Sequence[Path]) -> None:
    if images:
        refusals = [
            Violation(
                path,
                f"{label(path)} is an image, and the models here read text alone; describe it in "
                "a text part instead.",
                "refused",
            )
            for path in images
        ]
        raise ImagesNotSupportedError(
            refusals[0].message, details=[refusal.body() for refusal in refusals[:MAX_DETAILS]]
        )


def error_body(error: SteelyardError, request_id: str | None) -> wire.DecisionsErrorBody:
    """Return the body of a failed call: OpenAI's four fields and those of every other route.

    ``param`` is the first failed field in words, such as ``questions[0].choices``.

    >>> from steelyard.errors import RateLimitedError
    >>> error_body(RateLimitedError("Wait a second."), "req_1").error.type
    'rate_limit_error'
    """
    param = None
    first = error.details[0].get("path") if error.details else None
    if isinstance(first, list) and first[:1] == list(BODY) and len(first) > 1:
        param = label(tuple(first))
    return wire.DecisionsErrorBody(
        error=filled(
            wire.DecisionsErrorInfo,
            error,
            type=_error_type(error),
            param=param,
            request_id=request_id,
        )
    )


def _error_type(error: SteelyardError) -> str:
    if error.status >= 500:
        return "server_error"
    named = {
        401: "authentication_error",
        402: "insufficient_quota",
        403: "permission_error",
        429: "rate_limit_error",
    }
    return named.get(error.status, "invalid_request_error")


def _read_input(value: Any, violations: Violations, images: list[Path]) -> str:
    path = (*BODY, "input")
    if isinstance(value, str):
        return value
    if not isinstance(value, list | tuple):
        return ""
    messages: list[tuple[str, str]] = []
    for index, message in enumerate(value):
        if isinstance(message, dict):
            content = _read_content(
                message.get("content"), (*path, index, "content"), violations, images
            )
            messages.append((str(message.get("role")), content))
    if all(role == "user" for role, _ in messages):
        return _MESSAGE_BREAK.join(content for _, content in messages)
    # Who says what matters once more than one speaks.
    return _MESSAGE_BREAK.join(f"{role}: {content}" for role, content in messages)


def _read_content(value: Any, path: Path, violations: Violations, images: list[Path]) -> str:
    if isinstance(value, str):
        return value
    if not isinstance(value, list | tuple):
        return ""
    texts: list[str] = []
    for index, part in enumerate(value):
        inner = (*path, index)
        if not isinstance(part, dict) or inner in violations.touched:
            continue
        if part["type"] == "input_image":
            images.append(inner)
            continue
        field = "data" if part["type"] == "input_json" else "text"
        if part.get(field) is None:
            violations.add(
                (*inner, field), f"is missing; a part {part['type']} needs it.", "missing"
            )
        else:
            texts.append(render_value(part[field]))
    return _PART_BREAK.join(texts)


def _read_questions(value: Any, violations: Violations, images: list[Path]) -> list[Question]:
    if not isinstance(value, list | tuple):
        return []
    questions = []
    for index, fields in enumerate(value[:MAX_QUESTIONS]):
        path = (*BODY, "questions", index)
        if isinstance(fields, dict):
            question = _read_question(fields, path, violations, images)
            if question is not None:
                questions.append(question)
    return questions


def _read_question(
    fields: Mapping[str, Any], path: Path, violations: Violations, images: list[Path]
) -> Question | None:
    n_images = len(images)
    text = _read_content(fields.get("instructions"), (*path, "instructions"), violations, images)
    is_blank = not text.strip() and len(images) == n_images
    # One that is there and wrong is noted already.
    if is_blank and (*path, "instructions") not in violations.touched:
        violations.add((*path, "instructions"), "is blank; ask something.", "blank")
    if (*path, "type") in violations.paths:
        return None
    type_: wire.QuestionType = fields["type"]
    values, outcomes = _read_outcomes(type_, fields, path, violations)
    if path in violations.touched:
        return None
    return Question(fields.get("name"), type_, text, values, outcomes)


_NO_OUTCOMES = Outcomes((), ())
_LIST_OF_TYPE = {"choice": "choices", "score": "levels"}
_NAME_OF_LIST = {"choices": "value", "levels": "label"}


def _read_outcomes(
    type_: wire.QuestionType, fields: Mapping[str, Any], path: Path, violations: Violations
) -> tuple[tuple[str | bool, ...], Outcomes]:
    own = _LIST_OF_TYPE.get(type_)
    for other in _LIST_OF_TYPE.values():
        if other != own and fields.get(other) is not None:
            violations.add(
                (*path, other), f"is given for a {type_} question; remove it.", "refused"
            )
    if own is None:
        return BINARY_NAMES, Outcomes(BINARY_NAMES, (None, None))
    entries = fields.get(own)
    if entries is None:
        violations.add((*path, own), f"is missing; a {type_} question needs them.", "missing")
    if entries is None or (*path, own) in violations.touched:
        return (), _NO_OUTCOMES
    key = _NAME_OF_LIST[own]
    values = tuple(entry[key] for entry in entries)
    _check_values(values, key, (*path, own), violations)
    if (*path, own) in violations.touched:
        return (), _NO_OUTCOMES
    return values, Outcomes(_names(values), tuple(entry.get("description") for entry in entries))


def _check_values(
    values: Sequence[str | bool], key: str, path: Path, violations: Violations
) -> None:
    places: dict[tuple[type, str | bool], int] = {}
    for index, value in enumerate(values):
        place = places.setdefault((type(value), value), index)
        if isinstance(value, str) and not value.strip():
            violations.add((*path, index, key), "is blank; give it a text.", "blank")
        elif place != index:
            violations.add(
                (*path, index, key),
                f"repeats {show(value)} of place {place}; give each once.",
                "duplicate",
            )


def _names(values: Sequence[str | bool]) -> tuple[str, ...]:
    """Return distinct names: a boolean is named by its JSON text, unless a text says the same."""
    taken = {value for value in values if isinstance(value, str)}
    names = []
    for value in values:
        name = value if isinstance(value, str) else render_value(value)
        while isinstance(value, bool) and name in taken:
            name = f"boolean {name}"
        names.append(name)
    return tuple(names)
