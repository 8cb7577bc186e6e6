"""Annotated texts as a table with a column for each question.

Where several people answered a row, its cell has the share of each answer; each person's answer is kept
beside the rows.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from steelyard.imports.table import Hints, Refused, Reply, Table, unique_names
from steelyard.imports.unpacked import check_size

#: Columns that a dataset keeps beside a row, at most.
_MOST_METADATA = 16
NOT_LABELLED = "Nobody has answered it; label it, or leave it out."


@dataclass(slots=True)
class AnnotatedText:
    """A text with people's answers."""

    fields: dict[str, Any]
    replies: list[Reply] = field(default_factory=list)
    metadata: dict[str, Any] = field(default_factory=dict)
    reason: str = ""
    #: What a question asks, where the program that wrote it says so.
    instructions: dict[str, str] = field(default_factory=dict)

    @property
    def questions(self) -> list[str]:
        """The names of the questions that have answers."""
        return list(dict.fromkeys(name for reply in self.replies for name in reply.answers))

    def answers(self, question: str) -> list[Any]:
        """Return the answers to a question, one a person."""
        return [reply.answers[question] for reply in self.replies if question in reply.answers]

    def add(self, by: object, answers: Mapping[str, Any], notes: Sequence[object] = ()) -> None:
        """Add the answers and notes of a person; empty ones are left out."""
        name = "" if by is None else str(by)
        reply = next((reply for reply in self.replies if name and reply.by == name), None)
        if reply is None:
            self.replies.append(reply := Reply(name))
        reply.answers.update(
            (question, value) for question, value in answers.items() if value not in (None, "", [])
        )
        reply.notes.extend(str(note) for note in notes if note not in (None, ""))


def table_of_items(
    items: Sequence[tuple[int, AnnotatedText]], refused: list[Refused], read_as: str
) -> Table:
    """Return items as a table; unanswered ones have no labels."""
    usable: list[tuple[int, AnnotatedText]] = []
    left_out = list(refused)
    for number, item in items:
        if item.reason:
            cells = [json.dumps(item.fields, ensure_ascii=False, default=str)]
            left_out.append(Refused(number, item.reason, cells, by_program=True))
        else:
            usable.append((number, item))
    every = [item for _, item in usable]
    _settle_lists(every)
    fields = list(dict.fromkeys(name for item in every for name in item.fields))
    questions = list(dict.fromkeys(name for item in every for name in item.questions))
    metadata = list(dict.fromkeys(name for item in every for name in item.metadata))
    check_size(len(fields) + len(questions) + len(metadata), len(usable))
    columns, _ = unique_names([*fields, *questions, *metadata])
    n_fields, n_labels = len(fields), len(fields) + len(questions)
    column_of = dict(zip(questions, columns[n_fields:n_labels], strict=True))
    rows = [
        (
            number,
            [
                *(item.fields.get(name) for name in fields),
                *(agreed(item.answers(name)) for name in questions),
                *(item.metadata.get(name) for name in metadata),
            ],
        )
        for number, item in usable
    ]
    replies = [
        [
            Reply(
                reply.by,
                {column_of[name]: value for name, value in reply.answers.items()},
                reply.notes,
            )
            for reply in item.replies
        ]
        for item in every
    ]
    notes = agreement_notes(every, questions)
    beside = columns[n_labels:]
    if len(beside) > _MOST_METADATA:
        left = ", ".join(beside[_MOST_METADATA:])
        notes.append(f"A row keeps {_MOST_METADATA} values beside it; these are left out: {left}.")
    instructions = {
        column_of[name]: text
        for item in every
        for name, text in item.instructions.items()
        if name in column_of
    }
    hints = Hints(
        columns[:n_fields], columns[n_fields:n_labels], beside[:_MOST_METADATA], instructions
    )
    return Table(columns, rows, left_out, read_as, notes, hints=hints, replies=replies)


def _settle_lists(items: Sequence[AnnotatedText]) -> None:
    """Make the answers to each question names, or lists of names where one has several."""
    answers = [reply.answers for item in items for reply in item.replies]
    is_several: dict[str, bool] = {}
    for given in answers:
        for question, value in given.items():
            several = isinstance(value, list) and len(value) != 1
            is_several[question] = is_several.get(question, False) or several
    for given in answers:
        for question, value in given.items():
            if is_several[question] != isinstance(value, list):
                given[question] = [value] if is_several[question] else value[0]


def agreed(answers: Sequence[Any]) -> Any:
    """Return the answer of several people: the one answer, or the share of each.

    >>> agreed(["a", "a"]), agreed(["a", "b", "b", "b"]), agreed([["a"], ["a", "b"]])
    ('a', {'a': 0.25, 'b': 0.75}, ['a', 'b'])
    """
    if not answers:
        return None
    if isinstance(answers[0], list):
        # Of several labels at once those that half of the people gave, or more.
        counts = Counter(name for names in answers for name in set(map(str, names)))
        return sorted(name for name, n in counts.items() if 2 * n >= len(answers))
    counts = Counter(_name(answer) for answer in answers)
    if len(counts) == 1:
        return answers[0]
    return {name: round(n / len(answers), 6) for name, n in sorted(counts.items())}


def _name(answer: Any) -> str:
    if isinstance(answer, bool):
        return "yes" if answer else "no"
    return str(answer)


def agreement_notes(items: Sequence[AnnotatedText], questions: Sequence[str]) -> list[str]:
    """Return how often several people gave the same answer, by question, with its exact interval."""
    from scipy.special import betaincinv  # noqa: PLC0415  slow to load, and seldom needed

    notes = []
    for name in questions:
        several = [given for item in items if len(given := item.answers(name)) > 1]
        if several:
            n_same = sum(
                len({json.dumps(answer, default=str) for answer in given}) == 1 for given in several
            )
            n_rows = len(several)
            low = betaincinv(n_same, n_rows - n_same + 1, 0.025) if n_same else 0.0
            high = betaincinv(n_same + 1, n_rows - n_same, 0.975) if n_same < n_rows else 1.0
            notes.append(
                f"{name}: several answers to {n_rows:,} rows, which agree on {n_same:,}; of such rows "
                f"that is {n_same / n_rows:.0%} (95 % interval {low:.0%} to {high:.0%}). Elsewhere the "
                "label is the share of each answer."
            )
    return notes
