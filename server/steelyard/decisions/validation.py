"""The rules of a valid decide request, all of them checked before anything is refused.

Three passes over one value, each noting what it finds and none stopping at the first: is it strict
JSON, does it have the shape of the wire's struct, and do its fields agree with each other. A field that
failed one pass is left out of the next. Not here: rules of this server, such as which models it has
(``steelyard.serving.decide``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import msgspec

from steelyard.decisions.images import check_ids
from steelyard.decisions.kinds import BINARY_NAMES, Decision, Outcomes
from steelyard.decisions.policy import POLICY_FIELDS, read_policy
from steelyard.decisions.rendering import render_value
from steelyard.decisions.rules import Rulebook
from steelyard.decisions.wire import ABSTAIN, DecideRequest, Kind, NamedUse, Storing
from steelyard.wire.json_values import decode_json
from steelyard.wire.limits import MAX_DECISIONS, MAX_OUTCOMES, MIN_OUTCOMES
from steelyard.wire.payloads import HAS_NUL, INLINE_BYTES, open_payload
from steelyard.wire.storing import StoreSetting
from steelyard.wire.violations import BODY, Path, Violations, show

#: Past this many characters an outcome's name is shared by every decision that has such names.
MAX_OWN_NAME_CHARACTERS = 500

_CONTEXT: Path = (*BODY, "context")
_IMAGES: Path = (*BODY, "images")


@dataclass(frozen=True)
class ValidRequest:
    """A decide request with nothing wrong in it."""

    context: Any
    decisions: tuple[Decision, ...]
    model: str | None
    fallback: str | tuple[str, ...] = "auto"
    temperature: float | None = None
    has_images: bool = False
    store: Storing | None = None
    #: The most that is stored, by the named decision that it is of.
    store_limit: StoreSetting = "on"
    metadata: dict[str, Any] = field(default_factory=dict)
    #: Where the context stands in the body.
    context_path: Path = _CONTEXT
    #: The version of a named decision that it is of.
    named: NamedUse | None = None
    #: The fields and rules of that version, and the request's values of the fields.
    rulebook: Rulebook | None = None
    fields: dict[str, Any] = field(default_factory=dict)
    #: Whether it is answered without each sentence too.
    explain: bool = False
    #: Whether the fallbacks decide what the model abstains from, and texts unlike its training rows.
    escalates: bool = False

    @cached_property
    def is_long(self) -> bool:
        """Whether rendering or linting it is work for a thread."""
        n_characters = len(str(self.context))
        for decision in self.decisions:
            outcomes = decision.outcomes
            n_characters += len(str(decision.question)) + sum(map(len, outcomes.names))
            n_characters += sum(map(len, map(str, outcomes.descriptions)))
            if n_characters > INLINE_BYTES:
                return True
        return n_characters > INLINE_BYTES


def read_request(
    payload: bytes | bytearray | Mapping[str, Any] | object,
    *,
    shape: type[DecideRequest] = DecideRequest,
    most: int = MAX_DECISIONS,
) -> ValidRequest:
    """Read a decide request, or refuse it with everything that is wrong in it.

    >>> decision = {"id": "urgent", "kind": "binary", "question": "Is it urgent?"}
    >>> read_request({"context": "Hi", "decisions": [decision]}).decisions[0].outcomes.names
    ('yes', 'no')
    """
    violations = Violations()
    if isinstance(payload, bytes | bytearray):
        payload = decode_json(bytes(payload))
    if isinstance(payload, Mapping):
        # Before the shape, whose bound is that of any setting; anything but a list has the wrong type.
        items = payload.get("decisions")
        if isinstance(items, list | tuple):
            check_count(items, most, (*BODY, "decisions"), violations)
    value = open_payload(payload, shape, violations)
    decisions = read_decisions(value, violations, most)
    check_model_names(value, violations)
    images = value.get("images")
    if images is not None and _IMAGES not in violations.touched:
        check_ids(images, violations)
    if value.get("explain") and not isinstance(value.get("context"), str):
        violations.add((*BODY, "explain"), "takes a context that is text.", "not_allowed")
    fallback = value.get("fallback")
    if (
        value.get("escalate")
        and not isinstance(fallback, list | tuple)
        and (*BODY, "fallback") not in violations.touched
    ):
        predicate = "goes with a list of models in fallback; name those that decide then."
        violations.add((*BODY, "escalate"), predicate, "refused")
    if violations.listed:
        violations.raise_if_any()
    return ValidRequest(
        context=value["context"],
        decisions=tuple(decision for decision in decisions if decision is not None),
        model=value.get("model"),
        fallback=tuple(fallback) if isinstance(fallback, list | tuple) else fallback or "auto",
        temperature=value.get("temperature"),
        has_images=images is not None,
        store=value.get("store"),
        metadata=value.get("metadata") or {},
        explain=value.get("explain") or False,
        escalates=value.get("escalate") or False,
    )


def decisions_of(sent: object) -> tuple[Decision, ...]:
    """Return the decisions of a row or a version, which have no context: JSON, or its value."""
    value = msgspec.json.decode(sent) if isinstance(sent, bytes | str) else sent
    return read_request({"context": "", "decisions": value}).decisions


def check_model_names(value: Mapping[str, Any], violations: Violations) -> None:
    """Note names of models that are blank, in ``model`` and in ``fallback``."""
    named: list[tuple[Path, Any]] = [((*BODY, "model"), value.get("model"))]
    fallback = value.get("fallback")
    if isinstance(fallback, list | tuple):
        named += [((*BODY, "fallback", index), name) for index, name in enumerate(fallback)]
    for path, name in named:
        if isinstance(name, str) and name and not name.strip():
            violations.add(path, "is blank; name a model, or leave it out.", "blank")


def check_count(items: Any, most: int, path: Path, violations: Violations) -> None:
    """Note that there are no decisions, or more than a server's setting allows."""
    if not isinstance(items, list | tuple | dict):
        return
    if len(items) == 0:
        violations.add(path, f"is empty; give 1 to {most}.", "too_short")
    elif len(items) > most:
        violations.add(path, f"has {len(items)} entries; give 1 to {most}.", "too_long")


def read_decisions(
    value: Mapping[str, Any], violations: Violations, most: int = MAX_DECISIONS
) -> list[Decision | None]:
    """Read the decisions of a request whose shape was looked at; ``None`` in place of an invalid one."""
    items = value.get("decisions")
    if not isinstance(items, list | tuple):
        return []
    path = (*BODY, "decisions")
    check_count(items, most, path, violations)
    places: dict[str, int] = {}
    decisions: list[Decision | None] = []
    for index, item in enumerate(items[:most]):
        if not isinstance(item, dict):
            continue
        fields = _sound_fields(item, (*path, index), violations)
        _check_id(fields.get("id"), index, places, (*path, index, "id"), violations)
        decisions.append(_read_decision(fields, index, (*path, index), violations))
    _check_long_names(decisions, path, violations)
    return decisions


def _sound_fields(item: dict[Any, Any], path: Path, violations: Violations) -> dict[str, Any]:
    """Return the fields in which nothing was found, or only something inside a field of objects.

    A field that holds several values of the caller's (costs, a policy) stays, so that its other parts
    are looked at too; the readers of those skip reported problems.
    """
    if not violations.listed:
        return item
    return {
        name: value
        for name, value in item.items()
        if (*path, name) not in violations.touched
        or (
            name in _PARTLY_READ
            and isinstance(value, dict)
            and (*path, name) not in violations.paths
        )
    }


_PARTLY_READ = frozenset(("policy", "weights", "costs", "abstain"))


def _check_id(
    id_: str | None, index: int, places: dict[str, int], path: Path, violations: Violations
) -> None:
    if id_ is None:
        return
    if not id_.strip():
        violations.add(path, "is blank; give the decision a name.", "blank")
    elif "\0" in id_:
        # Feedback could not name it: PostgreSQL holds no NUL.
        violations.add(path, *HAS_NUL)
    elif id_ in places:
        violations.add(
            path,
            f"repeats {show(id_)}, the id of decisions[{places[id_]}]; give each its own.",
            "duplicate",
        )
    else:
        places[id_] = index


#: The optional texts of a decision, in the order of its fields.
_WRITTEN = {"opposite": "a question", "statement": "a sentence", "guideline": "a text"}


def _read_decision(
    fields: dict[str, Any], index: int, path: Path, violations: Violations
) -> Decision | None:
    question = fields.get("question")
    if isinstance(question, str) and not question.strip():
        violations.add((*path, "question"), "is blank; ask something.", "blank")
    kind: Kind = fields.get("kind") or "single"
    outcomes = None
    # Outcomes cannot be read for a kind that is unknown, nor read again when they were refused.
    if (*path, "kind") not in violations.touched and (*path, "outcomes") not in violations.touched:
        outcomes = read_outcomes(
            kind, fields.get("outcomes"), fields.get("rubric"), path, violations
        )
    for name, text in _WRITTEN.items():
        value = fields.get(name)
        if value and kind != "binary" and name != "guideline":
            violations.add(
                (*path, name), "belongs to binary decisions alone; leave it out.", "not_allowed"
            )
        elif value and not value.strip():
            violations.add((*path, name), f"is blank; write {text}, or leave it out.", "blank")
    policy = None
    if not POLICY_FIELDS.isdisjoint(fields):
        policy = read_policy(fields, outcomes.names if outcomes else None, path, violations)
    if outcomes is None or path in violations.touched:
        return None
    written = (fields.get(name) or "" for name in _WRITTEN)
    return Decision(fields["id"], kind, question, outcomes, policy, index, *written)


def _check_long_names(
    decisions: Sequence[Decision | None], path: Path, violations: Violations
) -> None:
    """Hold single decisions with very long names to one list of outcomes, the first one's."""
    first: Decision | None = None
    for decision in decisions:
        if decision is None or decision.kind != "single":
            continue
        if max(map(len, decision.outcomes.names)) <= MAX_OWN_NAME_CHARACTERS:
            continue
        if first is None:
            first = decision
        elif decision.outcomes.names != first.outcomes.names:
            violations.add(
                (*path, decision.index, "outcomes"),
                f"has a name over {MAX_OWN_NAME_CHARACTERS} characters and is not the list of "
                f"decisions[{first.index}], which has one too; give both the same list, or "
                "shorten the names and put the text in descriptions.",
                "too_long",
            )


def read_outcomes(
    kind: Kind, outcomes: Any, rubric: Sequence[Any] | None, path: Path, violations: Violations
) -> Outcomes | None:
    """Read the outcomes of one decision, from every form that callers may send.

    =======  ==============================================  ======================  =================
    kind     ``outcomes``                                    names                   descriptions
    =======  ==============================================  ======================  =================
    single   array, or object of name to description         entries, or keys        the values
    binary   left out, object of ``yes`` and ``no`` (either  ``yes``, ``no``         the values
             or both), or array of both
    ordinal  array of levels, or left out                    entries, or ``"0"``...  the rubric
    =======  ==============================================  ======================  =================

    An entry that is not text is named by its JSON text. There are 2 to 255 outcomes, with names that
    are distinct, not blank and not ``abstain``, which is an action's name.

    ``None`` when they could not be read; then ``violations`` says why.
    """
    if kind == "ordinal":
        return _read_ordinal(outcomes, rubric, path, violations)
    if rubric is not None:
        violations.add(
            (*path, "rubric"),
            f"is given for a {kind} decision; describe its outcomes in outcomes instead, or make "
            "the kind ordinal.",
            "refused",
        )
    if kind == "binary":
        return _read_binary(outcomes, (*path, "outcomes"), violations)
    return _read_single(outcomes, (*path, "outcomes"), violations)


def _read_single(outcomes: Any, path: Path, violations: Violations) -> Outcomes | None:
    if isinstance(outcomes, dict):
        names = tuple(name for name in outcomes if isinstance(name, str))
        descriptions = tuple(outcomes[name] for name in names)
        steps: Sequence[str | int] = names
    elif isinstance(outcomes, list | tuple):
        if not _has_allowed_count(len(outcomes), "outcomes", path, violations):
            return None
        names = tuple(render_value(entry) for entry in outcomes)
        descriptions = (None,) * len(names)
        steps = range(len(names))
    else:
        _refuse_form(
            outcomes,
            "an array of outcomes, or an object from name to description",
            path,
            violations,
        )
        return None
    if not _has_allowed_count(len(names), "outcomes", path, violations):
        return None
    return Outcomes(names, descriptions) if _check_names(names, steps, path, violations) else None


def _read_binary(outcomes: Any, path: Path, violations: Violations) -> Outcomes | None:
    if outcomes is None:
        return Outcomes(BINARY_NAMES, (None, None))
    if isinstance(outcomes, list | tuple):
        if len(outcomes) == len(BINARY_NAMES) and all(name in outcomes for name in BINARY_NAMES):
            return Outcomes(BINARY_NAMES, (None, None))
        violations.add(
            path,
            'names other outcomes than the "yes" and "no" of a binary decision; leave it out, or '
            "make the kind single.",
            "not_allowed",
        )
        return None
    if not isinstance(outcomes, dict):
        _refuse_form(outcomes, 'nothing, or an object with "yes" and "no"', path, violations)
        return None
    unknown = [name for name in outcomes if name not in BINARY_NAMES and isinstance(name, str)]
    for name in unknown:
        violations.add(
            (*path, name),
            'is no outcome of a binary decision; describe "yes" and "no" alone, or make the kind '
            "single.",
            "not_allowed",
        )
    if unknown:
        return None
    return Outcomes(BINARY_NAMES, tuple(outcomes.get(name) for name in BINARY_NAMES))


def _read_ordinal(
    outcomes: Any, rubric: Sequence[Any] | None, path: Path, violations: Violations
) -> Outcomes | None:
    rubric_path = (*path, "rubric")
    if outcomes is None and rubric is not None:
        if not _has_allowed_count(len(rubric), "levels", rubric_path, violations):
            return None
        return Outcomes(tuple(str(level) for level in range(len(rubric))), tuple(rubric))
    names = None if outcomes is None else _read_levels(outcomes, (*path, "outcomes"), violations)
    if rubric is None:
        # One that is there and of the wrong type is noted already.
        if rubric_path not in violations.touched:
            violations.add(
                rubric_path,
                "is missing; an ordinal decision needs one description per level.",
                "missing",
            )
        return None
    if names is not None and len(rubric) != len(names):
        violations.add(
            rubric_path,
            f"has {len(rubric)} entries for {len(names)} levels; give one per level.",
            "length_mismatch",
        )
        return None
    return None if names is None else Outcomes(names, tuple(rubric))


def _read_levels(outcomes: Any, path: Path, violations: Violations) -> tuple[str, ...] | None:
    if not isinstance(outcomes, list | tuple):
        _refuse_form(
            outcomes, "an array of levels in order (describe them in rubric)", path, violations
        )
        return None
    if not _has_allowed_count(len(outcomes), "levels", path, violations):
        return None
    names = tuple(render_value(entry) for entry in outcomes)
    return names if _check_names(names, range(len(names)), path, violations) else None


def _check_names(
    names: Sequence[str], steps: Sequence[str | int], path: Path, violations: Violations
) -> bool:
    """Note names that are blank, reserved or repeated; return whether there were none."""
    places: dict[str, str | int] = {}
    are_good = True
    for name, step in zip(names, steps, strict=True):
        if not name.strip():
            predicate, type_ = "is a blank outcome; give it a name.", "blank"
        elif "\0" in name:
            predicate, type_ = HAS_NUL
        elif name == ABSTAIN:
            predicate, type_ = (
                (
                    f"is named {ABSTAIN!r}, which is the action of an answer sent to a person; name "
                    "the outcome otherwise."
                ),
                "reserved",
            )
        elif name in places:
            predicate, type_ = (
                (f"repeats the outcome {show(name)} of place {places[name]}; name each once."),
                "duplicate",
            )
        else:
            places[name] = step
            continue
        violations.add((*path, step), predicate, type_)
        are_good = False
    return are_good


def _has_allowed_count(n_outcomes: int, noun: str, path: Path, violations: Violations) -> bool:
    if MIN_OUTCOMES <= n_outcomes <= MAX_OUTCOMES:
        return True
    violations.add(
        path,
        f"has {n_outcomes} {noun[:-1] if n_outcomes == 1 else noun}; give {MIN_OUTCOMES} to {MAX_OUTCOMES}.",
        "too_short" if n_outcomes < MIN_OUTCOMES else "too_long",
    )
    return False


def _refuse_form(outcomes: Any, expected: str, path: Path, violations: Violations) -> None:
    if outcomes is None:
        violations.add(path, f"is missing; give {expected}.", "missing")
    else:
        violations.add(path, f"is {show(outcomes)}; give {expected}.", "wrong_type")
