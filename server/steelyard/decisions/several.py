"""Several labels at once: one yes/no decision for each label of a set, about one context."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class LabelSet:
    """Labels of which any number may fit, by the ids of their decisions."""

    name: str
    labels: Mapping[str, str]


def multi_label(
    id: str,  # noqa: A002  the field's name
    labels: Sequence[str] | Mapping[str, str | None],
    question: str | None = None,
) -> list[dict[str, Any]]:
    """Return a yes/no decision for each label, of which any number may be right.

    Parameters
    ----------
    id
        The beginning of the decisions' ids, such as ``"topics"``.
    labels
        The labels, each once; or the meaning of each, by label.
    question
        The wording of each question, with ``{}`` where the label goes, or the label at its end.

    Raises
    ------
    ValueError
        When a label is there twice, or there is none.

    Examples
    --------
    >>> multi_label("topics", ["late parcel", "refund"])[1]
    {'id': 'topics_refund', 'kind': 'binary', 'question': 'Does the topics "refund" fit?'}
    """
    names = list(labels)
    if not names or len(set(names)) < len(names):
        raise ValueError(f"The labels of {id!r} are {names}; give at least one, and each once.")
    words = question or f'Does the {id} "{{}}" fit?'
    words = words if "{}" in words else f"{words} {{}}"
    decisions: list[dict[str, Any]] = []
    for id_, name in zip(ids_of_labels(id, names), names, strict=True):
        made = {"id": id_, "kind": "binary", "question": words.replace("{}", name)}
        meaning = labels[name] if isinstance(labels, Mapping) else None
        decisions.append(made | ({"outcomes": {"yes": meaning, "no": None}} if meaning else {}))
    return decisions


def ids_of_labels(id: str, labels: Sequence[str]) -> tuple[str, ...]:  # noqa: A002
    """Return the id of each label's decision."""
    ids: list[str] = []
    for label in labels:
        made = base = f"{id[:32]}_{id_of(label)}"[:60]
        count = 1
        while made in ids:
            count += 1
            made = f"{base}_{count}"
        ids.append(made)
    return tuple(ids)


def id_of(text: str) -> str:
    """Return a text as the id of a decision, or a part of one."""
    return re.sub(r"[^A-Za-z0-9_-]+", "_", text).strip("_")[:64] or "label"


def label_sets(decisions: Sequence[Any]) -> list[LabelSet]:
    """Return the sets of labels of which ``multi_label`` made decisions.

    They are those that follow each other and differ by nothing but their label: two or more.

    Examples
    --------
    >>> label_sets(multi_label("topics", ["late parcel", "refund"]))
    [LabelSet(name='topics', labels={'topics_late_parcel': 'late parcel', 'topics_refund': 'refund'})]
    """
    sets: list[LabelSet] = []
    place = 0
    while place < len(decisions):
        longest = LabelSet("", {})
        for candidate in _sets_at(decisions[place:]):
            if len(candidate.labels) > len(longest.labels):
                longest = candidate
        if len(longest.labels) > 1:
            sets.append(longest)
        place += max(1, len(longest.labels))
    return sets


def _sets_at(decisions: Sequence[Any]) -> Iterator[LabelSet]:
    """Yield the sets that may begin with the first decision, those with the label in quotes first."""
    questions: list[tuple[str, str]] = []
    for decision in decisions:
        texts = decision.get("id"), decision.get("question")
        if decision.get("kind") != "binary" or not all(isinstance(text, str) for text in texts):
            break
        questions.append(texts)
    if len(questions) < 2:
        return
    splits = sorted(
        set(_splits(questions)), key=lambda split: (split[1][-1:] != '"', len(split[0]))
    )
    for name, head, tail in splits:
        labels: list[str] = []
        for _, question in questions:
            label = question[len(head) : len(question) - len(tail)]
            if head + label + tail != question or not label or label in labels:
                break
            labels.append(label)
        ids = ids_of_labels(name, labels)
        is_made = [id_ == made for (id_, _), made in zip(questions, ids, strict=False)]
        n = is_made.index(False) if False in is_made else len(is_made)
        yield LabelSet(name, dict(zip(ids[:n], labels, strict=False)))


def _splits(questions: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str, str]]:
    """Yield possible names of a set, with the text before and behind the first label."""
    (id_, question), (_, following) = questions[:2]
    begins = _n_alike(question, following)
    ends = len(question) - _n_alike(question[::-1], following[::-1])
    for underscore in re.finditer("_", id_[1:]):
        name, rest = id_[: underscore.start() + 1], id_[underscore.end() + 1 :]
        words = map(re.escape, filter(None, rest.split("_")))
        for match in re.finditer("[^A-Za-z0-9-]+".join(words) or "$.", question):
            start, end = min(match.start(), begins), max(match.end(), ends)
            if ids_of_labels(name, [question[start:end]]) == (id_,):
                yield name, question[:start], question[end:]


def _n_alike(text: str, other: str) -> int:
    """Return with how many equal characters two texts begin."""
    pairs = enumerate(zip(text, other, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(text), len(other)))
