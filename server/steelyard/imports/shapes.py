"""Exports of labelling and evaluation tools, recognised by the names that their objects have.

Each becomes a table with a column for each question. Where several people answered a row, its cell has
the share of each answer; who said what is kept beside the rows.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from steelyard.imports.objects import Numbered
from steelyard.imports.table import Hints, Refused, Reply, Table, unique_names

#: Of a row of several files of doccano: the name of its file, which is who labelled it.
ANNOTATOR = "annotator of the file"
#: Columns that a dataset keeps beside a row, at most.
_MOST_METADATA = 16
_NOT_LABELLED = "Nobody has answered it; label it, or leave it out."


@dataclass(slots=True)
class Item:
    """A text with what people said of it."""

    fields: dict[str, Any]
    replies: list[Reply] = field(default_factory=list)
    metadata: dict[str, Any] = field(default_factory=dict)
    reason: str = ""

    @property
    def questions(self) -> list[str]:
        """What was answered."""
        return list(dict.fromkeys(name for reply in self.replies for name in reply.answers))

    def answers(self, question: str) -> list[Any]:
        """Return the answers to a question, one a person."""
        return [reply.answers[question] for reply in self.replies if question in reply.answers]

    def add(self, by: object, answers: Mapping[str, Any], notes: Sequence[object] = ()) -> None:
        """Add what somebody answered; values that are empty are no answers."""
        name = "" if by is None else str(by)
        reply = next((reply for reply in self.replies if name and reply.by == name), None)
        if reply is None:
            self.replies.append(reply := Reply(name))
        reply.answers.update(
            (question, value) for question, value in answers.items() if value not in (None, "", [])
        )
        reply.notes.extend(str(note) for note in notes if note not in (None, ""))


@dataclass(frozen=True, slots=True)
class Shape:
    """What a program exports: how its objects are read_as, what it is called, and its items."""

    title: str
    matches: Callable[[dict[str, Any]], bool]
    read: Callable[[Sequence[Numbered]], Iterator[tuple[int, Item]]]


def read_shape(
    rows: Sequence[Numbered], refused: list[Refused], read_as: str, name: str | None = None
) -> Table | None:
    """Return the rows of a known program as a table; ``None`` where no program is recognised.

    Raises
    ------
    ValueError
        When the program is named and the objects are not what it exports.
    """
    if name is not None and name not in SHAPES:
        raise ValueError(f"{name!r} is not a known program; use one of {', '.join(SHAPES)}.")
    if not rows:
        return None
    sample = [row for _, row in rows[:20]]
    program = program_of(sample, name)
    if program is None:
        if name is None:
            return None
        raise ValueError(
            f"The file is not an export of {SHAPES[name].title}: its objects have "
            f"{', '.join(map(str, sample[0]))}. Leave --from out to read it as a table."
        )
    shape = SHAPES[program]
    return _table(list(shape.read(rows)), refused, f"{read_as}, an export of {shape.title}")


def program_of(rows: Sequence[dict[str, Any]], name: str | None = None) -> str | None:
    """Return the program that exports such objects, of the known ones or the named one."""
    names = SHAPES if name is None else [name]
    return next((name for name in names if rows and all(map(SHAPES[name].matches, rows))), None)


def _table(items: Sequence[tuple[int, Item]], refused: list[Refused], read_as: str) -> Table:
    usable: list[tuple[int, Item]] = []
    left_out = list(refused)
    for number, item in items:
        if item.reason or not item.questions:
            reason = item.reason or _NOT_LABELLED
            cells = [json.dumps(item.fields, ensure_ascii=False, default=str)]
            left_out.append(Refused(number, reason, cells))
        else:
            usable.append((number, item))
    every = [item for _, item in usable]
    _settle_lists(every)
    fields = list(dict.fromkeys(name for item in every for name in item.fields))
    questions = list(dict.fromkeys(name for item in every for name in item.questions))
    metadata = list(dict.fromkeys(name for item in every for name in item.metadata))
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
    notes = _agreement(every, questions)
    beside = columns[n_labels:]
    if len(beside) > _MOST_METADATA:
        left = ", ".join(beside[_MOST_METADATA:])
        notes.append(f"A row keeps {_MOST_METADATA} values beside it; these are left out: {left}.")
    hints = Hints(columns[:n_fields], columns[n_fields:n_labels], beside[:_MOST_METADATA])
    return Table(columns, rows, left_out, read_as, notes, hints=hints, replies=replies)


def _settle_lists(items: Sequence[Item]) -> None:
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
    """Return what several people answered: the one answer, or the share of each.

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


def _agreement(items: Sequence[Item], questions: Sequence[str]) -> list[str]:
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


# Argilla: records of version 2, of feedback datasets, and of text classification before.


def _is_argilla(row: dict[str, Any]) -> bool:
    if isinstance(row.get("fields"), Mapping):
        return "responses" in row or "suggestions" in row
    return any(name.endswith(".responses") for name in row) or (
        "annotation" in row and ("prediction" in row or "annotation_agent" in row)
    )


def _read_argilla(rows: Sequence[Numbered]) -> Iterator[tuple[int, Item]]:
    for number, row in rows:
        if isinstance(row.get("fields"), Mapping):
            item = Item(dict(row["fields"]), metadata=_metadata(row))
            responses = row.get("responses")
            if isinstance(responses, Mapping):
                _add_by_question(item, responses)
            else:
                for response in responses or []:
                    if response.get("status", "submitted") != "submitted":
                        continue
                    values = response.get("values") or {}
                    answers = {
                        name: response_value.get("value") for name, response_value in values.items()
                    }
                    item.add(response.get("user_id"), answers)
        elif "annotation" in row:
            inputs = row.get("inputs") or {"text": row.get("text")}
            item = Item(dict(inputs), metadata=_metadata(row))
            item.add(row.get("annotation_agent"), {"label": row["annotation"]})
        else:
            item = _flat_record(row)
        yield number, item


def _add_by_question(item: Item, responses: Mapping[str, Any]) -> None:
    by_person: dict[Any, dict[str, Any]] = {}
    for question, given in responses.items():
        for response in given or []:
            if response.get("status", "submitted") in {"submitted", None}:
                by_person.setdefault(response.get("user_id"), {})[question] = response.get("value")
    for person, answers in by_person.items():
        item.add(person, answers)


def _flat_record(row: dict[str, Any]) -> Item:
    questions = [name.removesuffix(".responses") for name in row if name.endswith(".responses")]
    beside = {"id", "_server_id", "status", "inserted_at", "updated_at"}
    item = Item(
        {name: value for name, value in row.items() if "." not in name and name not in beside},
        metadata={"id": row["id"]} if row.get("id") is not None else {},
    )
    by_person: dict[Any, dict[str, Any]] = {}
    for question in questions:
        values = row.get(f"{question}.responses") or []
        users = row.get(f"{question}.responses.users") or [None] * len(values)
        states = row.get(f"{question}.responses.status") or ["submitted"] * len(values)
        for value, user, status in zip(values, users, states, strict=False):
            if status in {"submitted", None}:
                by_person.setdefault(user, {})[question] = value
    for person, answers in by_person.items():
        item.add(person, answers)
    return item


def _metadata(row: Mapping[str, Any]) -> dict[str, Any]:
    identity = {"id": row["id"]} if row.get("id") is not None else {}
    metadata = row.get("metadata")
    return {**identity, **metadata} if isinstance(metadata, Mapping) else identity


# Label Studio: tasks with their annotations, and JSON-MIN with an annotation a row.


def _is_label_studio(row: dict[str, Any]) -> bool:
    if isinstance(row.get("data"), Mapping):
        return "annotations" in row or "completions" in row
    return {"annotation_id", "annotator", "lead_time"} <= row.keys()


def _read_label_studio(rows: Sequence[Numbered]) -> Iterator[tuple[int, Item]]:
    if not isinstance(rows[0][1].get("data"), Mapping):
        yield from _read_label_studio_min(rows)
        return
    for number, row in rows:
        item = Item(dict(row["data"]), metadata={"id": row["id"]} if "id" in row else {})
        for annotation in row.get("annotations") or row.get("completions") or []:
            by = annotation.get("completed_by")
            by = by.get("email") or by.get("id") if isinstance(by, Mapping) else by
            if annotation.get("was_cancelled"):
                item.add(by, {}, ["skipped"])
                continue
            answers: dict[str, Any] = {}
            notes: list[str] = []
            for result in annotation.get("result") or []:
                value = result.get("value") or {}
                if result.get("type") == "textarea":
                    notes += value.get("text") or []
                elif "start" not in value:
                    answers[str(result.get("from_name"))] = _choice(value)
            item.add(by, answers, notes)
        yield number, item


_MIN_BESIDE = {"id", "annotator", "annotation_id", "created_at", "updated_at", "lead_time"}


def _read_label_studio_min(rows: Sequence[Numbered]) -> Iterator[tuple[int, Item]]:
    by_task: dict[Any, tuple[int, Item]] = {}
    # A question is a name that only labelled rows have values of, and comes before the annotator.
    fields = _min_fields(rows)
    for number, row in rows:
        task = row.get("id")
        _, item = by_task.setdefault(
            number if task is None else task,
            (
                number,
                Item(
                    {name: row[name] for name in fields if name in row},
                    metadata={} if task is None else {"id": task},
                ),
            ),
        )
        answers = {
            name: _choice(value) if isinstance(value, Mapping) else value
            for name, value in row.items()
            if name not in _MIN_BESIDE and name not in fields
        }
        item.add(row.get("annotator"), answers)
    yield from by_task.values()


def _min_fields(rows: Sequence[Numbered]) -> list[str]:
    """Return the names that a task has: those before its ``id``, as the program writes them."""
    names = list(rows[0][1])
    return names[: names.index("id")] if "id" in names else names[:1]


def _choice(value: Mapping[str, Any]) -> Any:
    for name in ("choices", "taxonomy", "labels"):
        if isinstance(value.get(name), list):
            chosen = [
                choice[-1] if isinstance(choice, list) and choice else choice
                for choice in value[name]
            ]
            return chosen[0] if len(chosen) == 1 else chosen
    return next((value[name] for name in ("rating", "number") if name in value), None)


# doccano: a text with its labels, and comments.


def _is_doccano(row: dict[str, Any]) -> bool:
    text = row.get("text", row.get("data"))
    return (
        isinstance(text, str)
        and "id" in row
        and _has_label_list(row)
        and (
            "Comments" in row
            or "comments" in row
            or row.keys() <= {"id", "text", "data", "label", ANNOTATOR}
        )
    )


def _has_label_list(row: Mapping[str, Any]) -> bool:
    return isinstance(row.get("label", row.get("labels")), list)


def _read_doccano(rows: Sequence[Numbered]) -> Iterator[tuple[int, Item]]:
    by_text: dict[Any, tuple[int, Item]] = {}
    for number, row in rows:
        labels = row.get("label", row.get("labels")) or []
        text = row.get("text", row.get("data"))
        if any(isinstance(label, list) for label in labels):
            reason = "Its labels are of spans, not of the text; export a text classification."
            yield number, Item({"text": text}, reason=reason)
            continue
        # A project whose members label apart is exported as a file for each.
        by = row.get(ANNOTATOR) or row.get("annotation_approver")
        key = (row["id"], text) if ANNOTATOR in row else number
        item = Item({"text": text}, metadata={"id": row["id"]})
        _, item = by_text.setdefault(key, (number, item))
        comments = row.get("Comments", row.get("comments")) or []
        item.add(by, {"label": labels}, comments if isinstance(comments, list) else [comments])
    yield from by_text.values()


# Prodigy: accepted, rejected and ignored answers, one a person and text.


def _is_prodigy(row: dict[str, Any]) -> bool:
    return row.get("answer") in {"accept", "reject", "ignore"} and "text" in row


def _read_prodigy(rows: Sequence[Numbered]) -> Iterator[tuple[int, Item]]:
    by_text: dict[Any, tuple[int, Item]] = {}
    for number, row in rows:
        text, answer = row["text"], row["answer"]
        by = row.get("_annotator_id") or row.get("_session_id")
        key = row.get("_input_hash", text)
        if row.get("spans") and "label" not in row and "accept" not in row:
            yield number, Item({"text": text}, reason="Its labels are of spans, not of the text.")
            continue
        metadata = row["meta"] if isinstance(row.get("meta"), Mapping) else {}
        _, item = by_text.setdefault(key, (number, Item({"text": text}, metadata=dict(metadata))))
        if answer == "ignore" or (answer == "reject" and "label" not in row):
            item.add(by, {}, [f"answered {answer}"])
            continue
        if "accept" in row:
            chosen = list(row["accept"])
            is_single = row.get("config", {}).get("choice_style", "single") == "single"
            answers = {"label": chosen[0] if is_single and len(chosen) == 1 else chosen}
        else:
            answers = {str(row["label"]): answer == "accept"}
        item.add(by, answers)
    for number, item in by_text.values():
        if not item.questions:
            notes = [note for reply in item.replies for note in reply.notes]
            item.reason = f"It is {' and '.join(dict.fromkeys(notes))}, which names no label."
        yield number, item


# Langfuse: items of a dataset with what is expected.


def _is_langfuse(row: dict[str, Any]) -> bool:
    return "input" in row and ("expectedOutput" in row or "expected_output" in row)


def _read_langfuse(rows: Sequence[Numbered]) -> Iterator[tuple[int, Item]]:
    for number, row in rows:
        fields = row["input"] if isinstance(row["input"], Mapping) else {"input": row["input"]}
        expected = row.get("expectedOutput", row.get("expected_output"))
        item = Item(dict(fields), metadata=_metadata(row))
        if row.get("status") == "ARCHIVED":
            item.reason = "It is archived."
        elif isinstance(expected, Mapping):
            item.add(None, {str(name): value for name, value in expected.items()})
        else:
            item.add(None, {"expected": expected})
        yield number, item


# promptfoo: tests with variables and assertions.


def _is_promptfoo(row: dict[str, Any]) -> bool:
    return isinstance(row.get("vars"), Mapping)


def _read_promptfoo(rows: Sequence[Numbered]) -> Iterator[tuple[int, Item]]:
    for number, row in rows:
        item = Item(dict(row["vars"]), metadata=_metadata(row))
        if row.get("description"):
            item.metadata["description"] = row["description"]
        expected = item.fields.pop("__expected", None)
        values = [] if expected is None else [_expected(str(expected))]
        values += [
            assertion.get("value")
            for assertion in row.get("assert") or []
            if isinstance(assertion, Mapping) and assertion.get("type") in {"equals", "iequals"}
        ]
        values = [value for value in values if value not in (None, "")]
        if len(values) == 1:
            item.add(None, {"expected": values[0]})
        else:
            item.reason = "It has no one assertion 'equals', which names a label."
        yield number, item


def _expected(text: str) -> str | None:
    kind, separator, value = text.partition(":")
    if not separator or " " in kind.strip():
        return text
    return value.strip() if kind.strip() == "equals" else None


#: What ``--from`` names.
SHAPES = {
    "argilla": Shape("Argilla", _is_argilla, _read_argilla),
    "label-studio": Shape("Label Studio", _is_label_studio, _read_label_studio),
    "prodigy": Shape("Prodigy", _is_prodigy, _read_prodigy),
    "doccano": Shape("doccano", _is_doccano, _read_doccano),
    "langfuse": Shape("Langfuse", _is_langfuse, _read_langfuse),
    "promptfoo": Shape("promptfoo", _is_promptfoo, _read_promptfoo),
}
