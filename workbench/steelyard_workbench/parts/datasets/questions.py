"""The decisions of a row as they are asked of a person: names, words and outcomes in order."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from steelyard.decisions.several import LabelSet, label_sets
from steelyard.review.wire import DraftRow
from steelyard_workbench.kit.theme import outcome_colours


@dataclass(frozen=True, slots=True)
class Question:
    """One decision."""

    id: str
    text: str
    #: Names in order, and their descriptions; empty without one.
    outcomes: tuple[str, ...]
    descriptions: tuple[str, ...]


def questions_of(decisions: Sequence[Any]) -> tuple[Question, ...]:
    """Read the decisions of a row.

    >>> questions_of([{"id": "refund", "kind": "binary", "question": "Money back?"}])[0].outcomes
    ('yes', 'no')
    """
    return tuple(_question(decision) for decision in decisions if isinstance(decision, Mapping))


def _question(decision: Mapping[str, Any]) -> Question:
    question, outcomes = decision.get("question", ""), decision.get("outcomes")
    rubric = decision.get("rubric") or ()
    if decision.get("kind") == "binary":
        names: Sequence[Any] = ("yes", "no")
    elif outcomes:
        names = list(outcomes)
    else:
        names = range(len(rubric))
    if isinstance(outcomes, Mapping):
        texts = [outcomes.get(name) for name in names]
    else:
        texts = [*rubric, *(None for _ in names)][: len(names)]
    return Question(
        str(decision.get("id", "")),
        as_text(question),
        tuple(str(name) for name in names),
        tuple("" if text is None else as_text(text) for text in texts),
    )


def threshold_of(decision: Mapping[str, Any]) -> float | None:
    """Return the probability from which a decision acts, in either spelling; ``None`` without one."""
    policy, abstain = decision.get("policy") or {}, decision.get("abstain") or {}
    threshold = policy.get("abstain_below", abstain.get("min_probability"))
    return None if threshold is None else float(threshold)


def label_set_of(decisions: Sequence[Any], decision: str) -> LabelSet | None:
    """Return the set of labels that a decision of a row is of; ``None`` of any other."""
    return next((labels for labels in label_sets(decisions) if decision in labels.labels), None)


def digits_of(outcomes: Sequence[str]) -> tuple[str, ...]:
    """Return the digit that chooses each outcome, empty for one without.

    Levels that are numbers are chosen by their own digits, and others by their places from 1.

    >>> digits_of(("deny", "allow"))
    ('1', '2')
    >>> digits_of(("0", "1", "10"))
    ('0', '1', '')
    """
    if outcomes and all(name.isdecimal() and name.isascii() for name in outcomes):
        return tuple(name if len(name) == 1 else "" for name in outcomes)
    return tuple(str(place) if place <= 9 else "" for place in range(1, len(outcomes) + 1))


def as_text(value: object) -> str:
    """Return a text as it is, and any other value as JSON, indented."""
    return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)


def as_line(value: object) -> str:
    r"""Return a context in one line, as it is read: without the marks of JSON.

    >>> as_line(
    ...     [{"from": "customer", "text": "Hi,\nwhere is it?"}, {"from": "agent", "text": "Here."}]
    ... )
    'customer: Hi, where is it? · agent: Here.'
    >>> as_line({"subject": "Parcel", "tags": ["late", "lost"]})
    'subject: Parcel · tags: late, lost'
    """
    if isinstance(value, Mapping):
        role, words = value.get("from", value.get("role")), value.get("text", value.get("content"))
        if len(value) == 2 and isinstance(role, str) and isinstance(words, str):
            return f"{role}: {as_line(words)}"
        return " · ".join(f"{name}: {as_line(part)}" for name, part in value.items())
    if isinstance(value, list):
        return (" · " if any(isinstance(part, Mapping) for part in value) else ", ").join(
            map(as_line, value)
        )
    return " ".join(str(value).split())


def expected_of(row: DraftRow, decision: str) -> str | None:
    """Return the outcome that a row's label expects most now; ``None`` where none stands out."""
    label = row.now.labels.get(decision)
    if not label or (len(label) > 1 and len(set(label.values())) == 1):
        return None  # all as likely: nobody has labelled it
    return top_of(label)


def labels_text(labels: Mapping[str, Mapping[str, float]], decisions: Sequence[Any] = ()) -> str:
    """Return labels in one line; see ``label_texts``.

    >>> labels_text({"team": {"billing": 1.0}, "urgency": {"1": 0.6, "2": 0.4}})
    'team: billing; urgency: 1 (0.6)'
    """
    return "; ".join(label_texts(labels, decisions))


def label_texts(
    labels: Mapping[str, Mapping[str, float]], decisions: Sequence[Any] = ()
) -> list[str]:
    """Return labels, a text each; those of one set of labels together, where decisions are known.

    >>> from steelyard import multi_label
    >>> topics = multi_label("topics", ["parcel", "refund", "tax"])
    >>> sure = {"topics_parcel": {"yes": 1.0}, "topics_refund": {"yes": 0.6, "no": 0.4}}
    >>> label_texts({**sure, "topics_tax": {"no": 1.0}}, topics)
    ['topics: parcel, refund (0.6)']
    """
    sets = label_sets(decisions)
    together = {id_ for labels_of_set in sets for id_ in labels_of_set.labels}
    texts = [
        f"{decision}: {_with_share(top_of(label), label)}"
        for decision, label in labels.items()
        if label and decision not in together
    ]
    for labels_of_set in sets:
        answers = {name: labels.get(id_) for id_, name in labels_of_set.labels.items()}
        fitting = [
            _with_share(name, label)
            for name, label in answers.items()
            if label and top_of(label) == "yes"
        ]
        if any(answers.values()):
            texts.append(f"{labels_of_set.name}: {', '.join(fitting) or 'none'}")
    return texts


def label_chips(
    labels: Mapping[str, Mapping[str, float]], decisions: Sequence[Any] = ()
) -> list[dict[str, str]]:
    """Return labels as chips in the colours of their outcomes, each with its decision as title.

    An outcome that says nothing by itself, as ``yes`` or a level, has its decision before it.

    >>> [chip["text"] for chip in label_chips({"team": {"billing": 1.0}, "urgency": {"1": 1.0}})]
    ['billing', 'urgency: 1']
    """
    questions = {each.id: each for each in questions_of(decisions)}
    grouped = {id_ for labels_of_set in label_sets(decisions) for id_ in labels_of_set.labels}
    chips = []
    for decision, label in labels.items():
        if not label or decision in grouped:
            continue
        top, question = top_of(label), questions.get(decision)
        colours = outcome_colours([*(question.outcomes if question else ()), *label])
        is_plain = top.isdecimal() or top.lower() in {"yes", "no", "true", "false"}
        text = _with_share(top, label)
        title = f"{decision}: {text}"
        chips.append({"text": title if is_plain else text, "colour": colours[top], "title": title})
    sets = {decision: label for decision, label in labels.items() if decision in grouped}
    if sets:
        chips += [{"text": text, "title": text} for text in label_texts(sets, decisions)]
    return chips


def top_of(probabilities: Mapping[str, float]) -> str:
    """Return the likeliest outcome; empty for none.

    >>> top_of({"yes": 0.2, "no": 0.8}), top_of({})
    ('no', '')
    """
    return max(probabilities, key=lambda outcome: probabilities[outcome], default="")


def _with_share(name: str, label: Mapping[str, float]) -> str:
    """Return a name, with the share of the likeliest outcome where that is not sure."""
    share = max(label.values())
    return name if share == 1 else f"{name} ({share:g})"


def relabel_fields(row: DraftRow, question: Question, outcome: str) -> dict[str, Any]:
    """Return the request that makes an outcome the label.

    A row with rewards has one for every outcome: the chosen one takes the highest, and the one that
    had it takes the chosen one's. So no reward is made up.
    """
    if row.rewards is msgspec.UNSET:
        return {"outcome": outcome}
    label = row.now.labels.get(question.id)
    if not label:
        return {"rewards": {name: float(name == outcome) for name in question.outcomes}}
    best = top_of(label)
    return {"rewards": {**label, outcome: label[best], best: label.get(outcome, 0.0)}}


def with_label(row: DraftRow, question: Question, outcome: str) -> DraftRow:
    """Return a row as it is once an outcome of it was chosen."""
    fields = relabel_fields(row, question, outcome)
    label = fields.get("rewards") or {outcome: 1.0}
    relabelled = list(dict.fromkeys([*row.now.relabelled, question.id]))
    labels = {**row.now.labels, question.id: label}
    return with_now(row, labels=labels, relabelled=relabelled, state="relabelled")


def with_now(row: DraftRow, **changed: Any) -> DraftRow:
    """Return a row that stands otherwise."""
    return msgspec.structs.replace(row, now=msgspec.structs.replace(row.now, **changed))
