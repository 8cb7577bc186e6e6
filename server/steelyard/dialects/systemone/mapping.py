"""The SystemOne dialect: reading its requests, asking them as decisions, answering in its words.

Every violation has the caller's own path, such as ``body.questions.tone.criteria``. A question
becomes a decision without the native reader, because this dialect allows a label named ``abstain``
(it has no policies) and questions with one label or level, which no model needs to answer.

========  ========  =====================================================
type      kind      outcomes
========  ========  =====================================================
noul      binary    ``yes`` and ``no``, described by ``true`` and ``false``
choice    single    the labels with their descriptions
score     ordinal   ``"0"`` to ``"n-1"``, described by the criteria
========  ========  =====================================================
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from steelyard.decisions.confidence import choice_confidence, score_confidence, top_probability_at
from steelyard.decisions.kinds import BINARY_NAMES, Decision, Outcomes
from steelyard.decisions.named import NamedRequest, names_decision, read_named_model
from steelyard.decisions.validation import ValidRequest, check_count, read_request
from steelyard.decisions.wire import DecisionResult, Kind
from steelyard.dialects.systemone import wire
from steelyard.errors import ImagesNotSupportedError, InvalidRequestError, SteelyardError, Violation
from steelyard.wire.decoding import convert
from steelyard.wire.errors import ErrorInfo
from steelyard.wire.limits import MAX_DECISIONS, MAX_OUTCOMES
from steelyard.wire.names import FOREIGN_PREFIX
from steelyard.wire.payloads import open_payload
from steelyard.wire.violations import BODY, Path, Violations, label, show

KIND_OF_TYPE: dict[wire.QuestionType, Kind] = {
    "noul": "binary",
    "choice": "single",
    "score": "ordinal",
}
#: What is asked where a question has no instructions.
DEFAULT_QUESTIONS: dict[wire.QuestionType, str] = {
    "noul": "Which answer fits the context?",
    "choice": "Which option fits best?",
    "score": "Which level fits best?",
}
_TYPE_OF_KIND = {kind: type_ for type_, kind in KIND_OF_TYPE.items()}
_CRITERIA_NOUNS: dict[wire.QuestionType, str] = {
    "noul": 'nothing, or an object with "true" and "false"',
    "choice": "an object from label to description",
    "score": "an array of descriptions, one per level from 0",
}
_NOUL_CRITERIA = ("true", "false")
#: The confidence at which translated thresholds are shown in numbers.
_EXAMPLE_CONFIDENCE = 0.5


@dataclass(frozen=True, slots=True)
class SystemOneQuestion:
    """One valid question."""

    name: str
    type: wire.QuestionType
    text: Any
    is_default_text: bool
    outcomes: Outcomes

    @property
    def is_settled(self) -> bool:
        """Whether there is only one outcome, so that no model is needed."""
        return len(self.outcomes.names) == 1

    def answer(self, probabilities: Sequence[float]) -> wire.Answer:
        """Return the answer in this dialect."""
        if self.type == "noul":
            return wire.NoulAnswer(noul=probabilities[0])
        by_name = dict(zip(self.outcomes.names, probabilities, strict=True))
        if self.type == "choice":
            return wire.ChoiceAnswer(
                choice=max(by_name, key=by_name.__getitem__),
                confidence=choice_confidence(probabilities),
                probabilities=by_name,
            )
        return wire.ScoreAnswer(
            score=math.fsum(level * share for level, share in enumerate(probabilities)),
            confidence=score_confidence(probabilities),
            legend=dict(zip(self.outcomes.names, self.outcomes.descriptions, strict=True)),
            probabilities=by_name,
        )


@dataclass(frozen=True, slots=True)
class SystemOneQuestionnaire:
    """A valid SystemOne request."""

    model: str
    state: Any
    questions: tuple[SystemOneQuestion, ...]

    @property
    def is_foreign_model(self) -> bool:
        """Whether the model is named as the other service names its own."""
        return self.model.startswith(FOREIGN_PREFIX)

    def decide_request(self, model: str | None) -> ValidRequest:
        """Return the decide request that a model must answer: the questions that are not settled."""
        questions = [question for question in self.questions if not question.is_settled]
        return ValidRequest(
            context=self.state,
            decisions=tuple(
                Decision(
                    question.name,
                    KIND_OF_TYPE[question.type],
                    question.text,
                    question.outcomes,
                    index=index,
                )
                for index, question in enumerate(questions)
            ),
            model=model,
            context_path=(*BODY, "state"),
        )

    def answers(self, probabilities: Mapping[str, Sequence[float]]) -> dict[str, wire.Answer]:
        """Return every answer, by question name in the request's order."""
        return {
            question.name: question.answer(
                (1.0,) if question.is_settled else probabilities[question.name]
            )
            for question in self.questions
        }


def named_answers(results: Mapping[str, DecisionResult]) -> dict[str, wire.Answer]:
    """Return the answers of a named decision in this dialect, by the names of its decisions.

    Levels are keyed by their place, and the legend has their names.
    """
    answers: dict[str, wire.Answer] = {}
    for name, result in results.items():
        names: tuple[str, ...] = tuple(result.probabilities)
        outcomes = Outcomes(names, (None,) * len(names))
        if result.kind == "ordinal":
            outcomes = Outcomes(tuple(map(str, range(len(names)))), names)
        question = SystemOneQuestion(name, _TYPE_OF_KIND[result.kind], "", False, outcomes)
        answers[name] = question.answer(list(result.probabilities.values()))
    return answers


def read_systemone(
    payload: bytes | bytearray | Mapping[str, Any], *, most: int = MAX_DECISIONS
) -> SystemOneQuestionnaire | NamedRequest:
    """Read a SystemOne request, or refuse it with everything that is wrong in it.

    One whose model is a named decision has no questions.

    >>> question = {"type": "score", "criteria": ["can wait", "today", "at once"]}
    >>> body = {"model": "jev-latest", "state": "Help!", "questions": {"urgency": question}}
    >>> read_systemone(body).questions[0].outcomes.names
    ('0', '1', '2')
    """
    if isinstance(payload, Mapping) and names_decision(payload):
        return read_named_model(payload, wire.NamedSystemOneRequest, "state")[0]
    violations = Violations()
    if isinstance(payload, Mapping):
        check_count(payload.get("questions"), most, (*BODY, "questions"), violations)
    value = open_payload(payload, wire.SystemOneRequest, violations)
    model = value.get("model")
    if isinstance(model, str) and model and not model.strip():
        violations.add((*BODY, "model"), "is blank; name a model.", "blank")
    questions = _read_questions(value.get("questions"), most, violations)
    violations.raise_if_any()
    if value.get("assets"):
        refusal = Violation(
            (*BODY, "assets"),
            "assets hold images, and the models here read text alone; describe them in state and "
            "remove assets.",
            "refused",
        )
        raise ImagesNotSupportedError(refusal.message, details=[refusal.body()])
    return SystemOneQuestionnaire(value["model"], value["state"], tuple(questions))


def translate_systemone(
    payload: bytes | bytearray | Mapping[str, Any], *, most: int = MAX_DECISIONS
) -> wire.TranslateResponse:
    """Return the decide request of a SystemOne request, with notes."""
    read = read_systemone(payload, most=most)
    if isinstance(read, NamedRequest):
        named = {"decision": str(read.reference), "context": read.context}
        if read.fields:
            named["fields"] = read.fields
        return wire.TranslateResponse(request=named, notes=["state is context."])
    request: dict[str, Any] = {
        "context": read.state,
        "decisions": list(map(_native, read.questions)),
    }
    notes = ["state is context, and each question is a decision whose id is the question's name."]
    if read.is_foreign_model:
        notes.append(
            f"The model {show(read.model)} belongs to another service; model is left out, so the "
            "default base model of this server answers."
        )
    else:
        request["model"] = read.model
    try:
        read_request(request, most=most)
    except InvalidRequestError as error:
        violations = [_restated(violation, read.questions) for violation in error.violations]
        raise InvalidRequestError(violations=violations) from None
    for question in read.questions:
        notes += _notes(question)
    return wire.TranslateResponse(request=request, notes=notes)


def error_body(error: SteelyardError, request_id: str | None) -> wire.SystemOneErrorBody:
    """Return the body of a failed call, with TypeSafe's ``detail`` beside it.

    >>> from steelyard.errors import RateLimitedError
    >>> error_body(RateLimitedError("Wait a second."), "req_1").detail
    Refusal(error_type='rate_limited', message='Wait a second.')
    """
    fields = [
        wire.FieldError(
            loc=entry["path"], msg=entry["message"], type=entry.get("type") or error.code
        )
        for entry in error.details or ()
        if "path" in entry
    ]
    return wire.SystemOneErrorBody(
        error=convert(error.body(request_id)["error"], ErrorInfo),
        detail=fields or wire.Refusal(error_type=_error_type(error), message=error.message),
    )


def _error_type(error: SteelyardError) -> str:
    return "authentication_error" if error.status in (401, 403) else error.code


def _read_questions(value: Any, most: int, violations: Violations) -> list[SystemOneQuestion]:
    if not isinstance(value, dict):
        return []
    check_count(value, most, (*BODY, "questions"), violations)
    questions: list[SystemOneQuestion] = []
    for name, fields in list(value.items())[:most]:
        path = (*BODY, "questions", name)
        # A question whose name is too long was not looked into.
        if not isinstance(name, str) or path in violations.paths:
            continue
        if not name.strip():
            violations.add(path, "is a blank name; name the question.", "blank")
        if not isinstance(fields, dict) or (*path, "type") in violations.paths:
            continue
        question = _read_question(name, fields, path, violations)
        if question is not None:
            questions.append(question)
    return questions


def _read_question(
    name: str, fields: Mapping[str, Any], path: Path, violations: Violations
) -> SystemOneQuestion | None:
    type_: wire.QuestionType = fields["type"]
    criteria_path = (*path, "criteria")
    instructions = fields.get("instructions")
    is_default = instructions is None or (
        isinstance(instructions, str) and not instructions.strip()
    )
    outcomes = None
    if criteria_path not in violations.paths:
        outcomes = _read_criteria(type_, fields.get("criteria"), criteria_path, violations)
    if (
        type_ == "noul"
        and is_default
        and outcomes is not None
        and all(description is None for description in outcomes.descriptions)
    ):
        violations.add(
            (*path, "instructions"),
            "is missing; ask something, or describe a criterion.",
            "missing",
        )
    if outcomes is None or path in violations.touched:
        return None
    text = DEFAULT_QUESTIONS[type_] if is_default else instructions
    return SystemOneQuestion(name, type_, text, is_default, outcomes)


def _read_criteria(
    type_: wire.QuestionType, criteria: Any, path: Path, violations: Violations
) -> Outcomes | None:
    if criteria is None and type_ == "noul":
        return Outcomes(BINARY_NAMES, (None, None))
    expected = _CRITERIA_NOUNS[type_]
    if criteria is None:
        violations.add(path, f"is missing; give {expected}.", "missing")
        return None
    if isinstance(criteria, dict) is (type_ == "score"):
        noun = "an object" if isinstance(criteria, dict) else "an array"
        violations.add(path, f"is {noun}; give {expected}.", "wrong_type")
        return None
    if type_ == "noul":
        return _read_noul(criteria, path, violations)
    if not 1 <= len(criteria) <= MAX_OUTCOMES:
        noun = "levels" if type_ == "score" else "labels"
        violations.add(
            path,
            f"has {len(criteria)} {noun}; give 1 to {MAX_OUTCOMES}.",
            "too_long" if criteria else "too_short",
        )
        return None
    return _read_levels(criteria) if type_ == "score" else _read_labels(criteria, path, violations)


def _read_levels(criteria: Sequence[Any]) -> Outcomes:
    names = tuple(str(level) for level in range(len(criteria)))
    return Outcomes(names, tuple("" if text is None else text for text in criteria))


def _read_labels(criteria: Mapping[Any, Any], path: Path, violations: Violations) -> Outcomes:
    for name in criteria:
        if isinstance(name, str) and not name.strip():
            violations.add((*path, name), "is a blank label; give it a name.", "blank")
    return Outcomes(tuple(criteria), tuple(criteria.values()))


def _read_noul(criteria: Mapping[str, Any], path: Path, violations: Violations) -> Outcomes | None:
    unknown = [name for name in criteria if name not in _NOUL_CRITERIA and isinstance(name, str)]
    for name in unknown:
        violations.add(
            (*path, name),
            'is no criterion of a noul question; describe "true" and "false" alone.',
            "not_allowed",
        )
    if unknown:
        return None
    return Outcomes(BINARY_NAMES, tuple(criteria.get(name) for name in _NOUL_CRITERIA))


def _native(question: SystemOneQuestion) -> dict[str, Any]:
    names, descriptions = question.outcomes.names, question.outcomes.descriptions
    kind = KIND_OF_TYPE[question.type]
    decision: dict[str, Any] = {"id": question.name, "kind": kind, "question": question.text}
    if question.type == "score":
        return {**decision, "outcomes": list(names), "rubric": list(descriptions)}
    described = dict(zip(names, descriptions, strict=True))
    if question.type == "noul":
        described = {name: text for name, text in described.items() if text is not None}
        return {**decision, "outcomes": described} if described else decision
    return {**decision, "outcomes": described}


_FIELD_OF: dict[str | int, str] = {
    "question": "instructions",
    "outcomes": "criteria",
    "rubric": "criteria",
}


def _restated(violation: Violation, questions: Sequence[SystemOneQuestion]) -> Violation:
    """Return a violation of the native request at its place in the caller's request."""
    path: Path = violation.path
    if path[:2] == (*BODY, "context"):
        restated: Path = (*BODY, "state", *path[2:])
    elif path[:2] == (*BODY, "decisions") and len(path) > 2:
        restated = (*BODY, "questions", questions[int(path[2])].name)
        if len(path) > 3:
            field = _FIELD_OF.get(path[3])
            restated = (*restated, *(() if field is None else (field,)), *path[4:])
    else:
        restated = path
    predicate = violation.message.removeprefix(label(path))
    return Violation(restated, f"{label(restated)}{predicate}", violation.type)


def _notes(question: SystemOneQuestion) -> list[str]:
    name = show(question.name)
    notes = []
    if question.is_default_text:
        notes.append(
            f"{name}: it has no instructions; the question asked is {show(question.text)}."
        )
    if question.type == "noul":
        notes.append(
            f'{name}: noul is probabilities["yes"]; a threshold on noul stays the same number, '
            "compared with it."
        )
    elif question.type == "choice":
        k = len(question.outcomes.names)
        p_top = top_probability_at(_EXAMPLE_CONFIDENCE, k)
        notes.append(
            f"{name}: choice is top; a threshold c on confidence over {k} labels is a threshold "
            f"(1 + c * {k - 1}) / {k} on p_top: {_EXAMPLE_CONFIDENCE:g} becomes {p_top:.4g}."
        )
    else:
        notes.append(
            f"{name}: score is expected_level; a threshold on confidence has no exact equivalent, "
            "so compare p_top, or compute the confidence from probabilities."
        )
    return notes
