"""One row of a dataset: checked against every rule, normalised, and hashed.

Normalisation changes only this: JSON is compact; a target given as a name is that name with
probability 1; labels are floats, and targets whose sum is nearly 1 are divided by it; fields are in
the order context, decisions, images, targets or rewards, and then the fields that are kept and
ignored. A field that is ``null`` is as one left out, and is not kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from steelyard.datasets.canonical import canonical_json, compact_json, digest
from steelyard.datasets.labels import Labels, Supervision, read_labels
from steelyard.datasets.tasks import Task, make_task
from steelyard.datasets.wire import RowInput
from steelyard.decisions.images import check_images
from steelyard.decisions.validation import check_model_names, read_decisions
from steelyard.errors import InvalidRequestError, Violation
from steelyard.wire.json_values import check_json, decode_json
from steelyard.wire.payloads import check_shape
from steelyard.wire.violations import BODY, Path, Violations

#: Fields that are kept for the download and otherwise ignored, in the order they are written.
EXTRA_FIELDS = ("model", "fallback", "temperature", "independent", "store", "metadata")
_SUPERVISIONS: tuple[Supervision, ...] = ("targets", "rewards")
_WHOLE_BODY = "The request body"
_COUNTED = Violation((), "", "")


class Row(Struct, frozen=True, kw_only=True, gc=False):
    """One valid row."""

    line: int
    context: str
    is_text: bool
    task: Task
    labels: Labels
    images: str | None
    extra: str | None
    context_sha256: bytes
    row_sha256: bytes


def read_row(
    payload: bytes | Mapping[str, Any], line: int = 1, *, is_listed: bool = True
) -> Row | list[Violation]:
    """Read one row, or say everything that is wrong in it.

    Where it is not listed, it is only counted: each violation is the same empty one.
    """
    violations = Violations(is_only_counted=not is_listed)
    row: Row | None = None
    try:
        value = decode_json(payload) if isinstance(payload, bytes) else dict(payload)
        row = _read(value, line, violations)
    except InvalidRequestError as error:
        # Bytes that are no JSON: the one thing that stops the reading of a row.
        return [_of_row(violation) for violation in error.violations]
    if row is not None:
        return row
    if not is_listed:
        return [_COUNTED] * violations.n_unlisted
    return [_of_row(violation) for violation in violations.listed]


def _read(value: Any, line: int, violations: Violations) -> Row | None:
    check_json(value, violations)
    if BODY in violations.paths:
        return None
    check_shape(value, RowInput, violations, BODY)
    if not isinstance(value, dict):
        return None
    sent = {name: item for name, item in value.items() if item is not None}
    task, readable = read_task(sent, violations)
    supervision = choose_supervision(sent, violations)
    check_model_names(sent, violations)
    is_sound = (*BODY, "images") not in violations.touched and (
        *BODY,
        "context",
    ) not in violations.touched
    if is_sound and "images" in sent:
        check_images(sent["images"], sent["context"], violations)
    labels = None
    # Without decisions, every label would be of an unknown one.
    if readable and supervision is not None and isinstance(sent[supervision], dict):
        labels = read_labels(supervision, sent[supervision], readable, violations)
    if violations or task is None or labels is None:
        return None
    context, images = sent["context"], sent.get("images")
    extra = {name: sent[name] for name in EXTRA_FIELDS if name in sent}
    return make_row(line, context, task, labels, images=images, extra=extra)


def read_task(
    sent: Mapping[str, Any], violations: Violations
) -> tuple[Task | None, dict[str, tuple[str, ...] | None]]:
    """Read the decisions of a row whose shape was checked; ``None`` when one cannot be used."""
    decisions = read_decisions(sent, violations)
    good = [decision for decision in decisions if decision is not None]
    outcomes: dict[str, tuple[str, ...] | None] = {}
    items = sent.get("decisions")
    for item in items if isinstance(items, list | tuple) else ():
        if isinstance(item, dict) and isinstance(item.get("id"), str):
            outcomes[item["id"]] = None
    outcomes.update((decision.id, decision.outcomes.names) for decision in good)
    if (*BODY, "decisions") in violations.touched or not good:
        return None, outcomes
    return make_task(sent["decisions"], good), outcomes


def choose_supervision(sent: Mapping[str, Any], violations: Violations) -> Supervision | None:
    """Return whether a row has targets or rewards, and note when it has none or both."""
    given = [name for name in _SUPERVISIONS if name in sent]
    if len(given) == 1:
        return given[0]
    if given:
        violations.add(
            (*BODY, "rewards"), "is given beside targets; give one of the two.", "refused"
        )
    else:
        violations.add((*BODY, "targets"), "is missing; give targets or rewards.", "missing")
    return None


def make_row(
    line: int,
    context: Any,
    task: Task,
    labels: Labels,
    *,
    images: list[Any] | None = None,
    extra: Mapping[str, Any] | None = None,
) -> Row:
    """Make a row of parts that were checked, and hash it."""
    is_text = isinstance(context, str)
    context_sha256 = hash_context(context, images)
    return Row(
        line=line,
        context=context if is_text else compact_json(context),
        is_text=is_text,
        task=task,
        labels=labels,
        images=None if images is None else compact_json(images),
        extra=compact_json(dict(extra)) if extra else None,
        context_sha256=context_sha256,
        row_sha256=digest(context_sha256, task.digest, labels.digest),
    )


def hash_context(context: Any, images: list[Any] | None = None) -> bytes:
    """Return the SHA-256 of a context and its images, whose order does not count."""
    if not images:
        return digest(canonical_json(context))
    shown = sorted(images, key=lambda image: int(image["id"]))
    return digest(canonical_json(context), canonical_json(shown))


def _of_row(violation: Violation) -> Violation:
    path: Path = violation.path[1:]
    message = violation.message
    if not path:
        message = "The row" + message.removeprefix(_WHOLE_BODY)
    return Violation(path, message, violation.type)
