"""The exports of labelling and evaluation tools: how their objects are recognised, and their items."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from steelyard.imports.chats import is_chat, read_chats
from steelyard.imports.items import AnnotatedText
from steelyard.imports.objects import Numbered

#: Of a row of several files of doccano: the name of its file, which is who labelled it.
ANNOTATOR = "annotator of the file"
_DISCARDED, _UNAPPROVED = "It was discarded.", "It is not approved, and other rows are."


@dataclass(frozen=True, slots=True)
class ExportShape:
    """An export of another program: its name, its items, and the reader of its objects."""

    title: str
    matches: Callable[[dict[str, Any]], bool]
    read: Callable[[Sequence[Numbered]], Iterator[tuple[int, AnnotatedText]]]


# Argilla: records of version 2, of feedback datasets, and of text classification before.


def _is_argilla(row: dict[str, Any]) -> bool:
    if isinstance(row.get("fields"), Mapping):
        return "responses" in row or "suggestions" in row
    return any(name.endswith(".responses") for name in row) or (
        "annotation" in row and ("prediction" in row or "annotation_agent" in row)
    )


def _read_argilla(rows: Sequence[Numbered]) -> Iterator[tuple[int, AnnotatedText]]:
    # Flat records have fields and metadata beside each other: the fields have texts.
    texts = {
        name
        for _, row in rows
        for name, value in row.items()
        if isinstance(value, str) and " " in value.strip()
    }
    for number, row in rows:
        if isinstance(row.get("fields"), Mapping):
            item = AnnotatedText(dict(row["fields"]), metadata=_metadata(row))
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
            item = AnnotatedText(dict(inputs), metadata=_metadata(row))
            item.add(row.get("annotation_agent"), {"label": row["annotation"]})
        else:
            item = _flat_record(row, texts)
        if str(row.get("status")).lower() == "discarded":
            item.reason = _DISCARDED
        yield number, item


def _add_by_question(item: AnnotatedText, responses: Mapping[str, Any]) -> None:
    by_person: dict[Any, dict[str, Any]] = {}
    for question, given in responses.items():
        for response in given or []:
            if response.get("status", "submitted") in ("submitted", None):
                by_person.setdefault(response.get("user_id"), {})[question] = response.get("value")
    for person, answers in by_person.items():
        item.add(person, answers)


def _flat_record(row: dict[str, Any], texts: set[str]) -> AnnotatedText:
    questions = [name.removesuffix(".responses") for name in row if name.endswith(".responses")]
    beside = {"id", "_server_id", "status", "inserted_at", "updated_at"}
    plain = {name: row[name] for name in row if "." not in name and name not in beside}
    fields = {name: value for name, value in plain.items() if name in texts} or plain
    metadata = {"id": row["id"]} if row.get("id") is not None else {}
    metadata |= {name: value for name, value in plain.items() if name not in fields}
    item = AnnotatedText(fields, metadata=metadata)
    by_person: dict[Any, dict[str, Any]] = {}
    for question in questions:
        values = row.get(f"{question}.responses") or []
        users = row.get(f"{question}.responses.users") or [None] * len(values)
        states = row.get(f"{question}.responses.status") or ["submitted"] * len(values)
        for value, user, status in zip(values, users, states, strict=False):
            if status in ("submitted", None):
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


def _read_label_studio(rows: Sequence[Numbered]) -> Iterator[tuple[int, AnnotatedText]]:
    if not isinstance(rows[0][1].get("data"), Mapping):
        yield from _read_label_studio_min(rows)
        return
    items: list[tuple[int, AnnotatedText]] = []
    for number, row in rows:
        item = AnnotatedText(dict(row["data"]), metadata={"id": row["id"]} if "id" in row else {})
        annotations = row.get("annotations") or row.get("completions") or []
        # A project's own truth is the measure of its people.
        truths = [each for each in annotations if each.get("ground_truth")]
        for annotation in truths or annotations:
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
        items.append((number, item))
    yield from _with_context(items)


def _with_context(
    items: Sequence[tuple[int, AnnotatedText]],
) -> Iterator[tuple[int, AnnotatedText]]:
    """Yield tasks with the fields that a person wrote; other data of a task is kept beside it."""
    texts: dict[str, list[int]] = {}
    for _, item in items:
        for name, value in item.fields.items():
            is_text = isinstance(value, str) and " " in value.strip()
            texts.setdefault(name, []).append(len(value) if is_text else 0)
    lengths = {name: sum(each) / len(each) for name, each in texts.items()}
    longest = max(lengths.values(), default=0)
    beside = [name for name, length in lengths.items() if length * 3 < longest]
    for number, item in items:
        item.metadata |= {name: item.fields.pop(name) for name in beside if name in item.fields}
        yield number, item


#: What the program has of an annotation beside its answers, in its exports of a row each.
_MIN_BESIDE = frozenset(
    {
        *("id", "annotator", "annotation_id", "created_at", "updated_at", "lead_time", "agreement"),
        *("was_cancelled", "ground_truth", "inner_id", "file_upload", "project", "history"),
    }
)


def _read_label_studio_min(rows: Sequence[Numbered]) -> Iterator[tuple[int, AnnotatedText]]:
    by_task: dict[Any, tuple[int, AnnotatedText]] = {}
    fields = _min_fields(rows)
    for number, row in rows:
        task = row.get("id")
        _, item = by_task.setdefault(
            number if task is None else task,
            (
                number,
                AnnotatedText(
                    {name: row[name] for name in row if name in fields and row[name] is not None},
                    metadata={} if task is None else {"id": task},
                ),
            ),
        )
        answers = {
            name: _min_answer(value)
            for name, value in row.items()
            if name not in _MIN_BESIDE and name not in fields
        }
        item.add(row.get("annotator"), answers)
    yield from _with_context(list(by_task.values()))


def _min_fields(rows: Sequence[Numbered]) -> set[str]:
    """Return the names that a task has; the others are its questions.

    The program writes a task's own names, its ``id``, the questions and the annotator in this order; a
    table has those that its first rows lack at its end, and older versions have all by the alphabet.
    There a question is a column that people of one task answered differently, or one of few different
    values.
    """
    fields: set[str] = set()
    inner: set[str] = set()
    unsure: set[str] = set()
    for _, row in rows:
        names = list(row)
        first, last = (names.index(name) if name in names else 0 for name in ("id", "annotator"))
        if 0 < first < last - 1:
            fields.update(names[:first])
            inner.update(names[first:last])
            names = names[last:]
        unsure.update(names)
    inner -= _MIN_BESIDE
    for name in unsure - fields - inner - _MIN_BESIDE:
        by_task: dict[Any, set[str]] = {}
        for _, row in rows:
            if row.get(name) not in (None, ""):
                by_task.setdefault(row.get("id"), set()).add(json.dumps(row[name], default=str))
        values = {value for of_task in by_task.values() for value in of_task}
        is_answer = any(len(of_task) > 1 or min(of_task)[:1] == "{" for of_task in by_task.values())
        if not is_answer and (inner or 2 * len(values) > len(by_task)):
            fields.add(name)
    return fields


def _min_answer(value: Any) -> Any:
    """Return an answer; ratings, numbers and paths of names are a list of results, as spans are."""
    results = value if isinstance(value, list) else [value]
    if not results or not all(isinstance(result, Mapping) for result in results):
        return value
    answers = [_choice(result) for result in results if "start" not in result]
    return answers[-1] if answers else None


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


#: Where it says that a label was looked at; who did not use this has it nowhere.
APPROVALS = ("is_confirmed", "annotation_approver")


def _is_doccano(row: dict[str, Any]) -> bool:
    text = row.get("text", row.get("data"))
    return (
        isinstance(text, str)
        and "id" in row
        and _has_label_list(row)
        and (
            "Comments" in row
            or "comments" in row
            or any(name in row for name in APPROVALS)
            or row.keys() <= {"id", "text", "data", "label", ANNOTATOR}
        )
    )


def _is_true(value: object) -> bool:
    """Return whether a value says yes, in CSV too."""
    return bool(value) and str(value).lower() not in {"false", "0"}


def _has_label_list(row: Mapping[str, Any]) -> bool:
    return isinstance(row.get("label", row.get("labels")), list)


def _read_doccano(rows: Sequence[Numbered]) -> Iterator[tuple[int, AnnotatedText]]:
    by_text: dict[Any, tuple[int, AnnotatedText]] = {}
    used = [name for name in APPROVALS if any(_is_true(row.get(name)) for _, row in rows)]
    for number, row in rows:
        labels = row.get("label", row.get("labels")) or []
        text = row.get("text", row.get("data"))
        if any(isinstance(label, list) for label in labels):
            reason = "Its labels are of spans, not of the text; export a text classification."
            yield number, AnnotatedText({"text": text}, reason=reason)
            continue
        # A project whose members label apart is exported as a file for each.
        by = row.get(ANNOTATOR) or row.get("annotation_approver")
        key = (row["id"], text) if ANNOTATOR in row else number
        item = AnnotatedText({"text": text}, metadata={"id": row["id"]})
        _, item = by_text.setdefault(key, (number, item))
        if any(name in row and not _is_true(row[name]) for name in used):
            item.reason = _UNAPPROVED
        comments = row.get("Comments", row.get("comments")) or []
        item.add(by, {"label": labels}, comments if isinstance(comments, list) else [comments])
    yield from by_text.values()


# Prodigy: accepted, rejected and ignored answers, one a person and text.


def _is_prodigy(row: dict[str, Any]) -> bool:
    return row.get("answer") in ("accept", "reject", "ignore") and "text" in row


def _read_prodigy(rows: Sequence[Numbered]) -> Iterator[tuple[int, AnnotatedText]]:
    by_text: dict[Any, tuple[int, AnnotatedText]] = {}
    # Who answers a question again means the last answer, also where it is to ignore it.
    last = {
        (row.get("_input_hash", row["text"]), _annotator(row) or number, row.get("label")): number
        for number, row in rows
    }
    for number, row in rows:
        text, answer, by = row["text"], row["answer"], _annotator(row)
        # Numbers of options say nothing without their texts.
        names = {
            option["id"]: option["text"]
            for option in row.get("options") or []
            if isinstance(option.get("id"), int) and option.get("text")
        }
        key = row.get("_input_hash", text)
        if last[key, by or number, row.get("label")] != number:
            continue
        if row.get("spans") and "label" not in row and "accept" not in row:
            yield (
                number,
                AnnotatedText({"text": text}, reason="Its labels are of spans, not of the text."),
            )
            continue
        metadata = row["meta"] if isinstance(row.get("meta"), Mapping) else {}
        _, item = by_text.setdefault(
            key, (number, AnnotatedText({"text": text}, metadata=dict(metadata)))
        )
        if answer == "ignore" or (answer == "reject" and "label" not in row):
            item.add(by, {}, [f"answered {answer}"])
            continue
        if "accept" in row:
            chosen = [names.get(option, option) for option in row["accept"]]
            if not chosen:
                item.add(by, {}, ["answered without a choice"])
                continue
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


def _annotator(row: Mapping[str, Any]) -> Any:
    return row.get("_annotator_id") or row.get("_session_id")


# Langfuse: items of a dataset with expected outputs.


def _is_langfuse(row: dict[str, Any]) -> bool:
    return "input" in row and ("expectedOutput" in row or "expected_output" in row)


def _read_langfuse(rows: Sequence[Numbered]) -> Iterator[tuple[int, AnnotatedText]]:
    for number, row in rows:
        fields = row["input"] if isinstance(row["input"], Mapping) else {"input": row["input"]}
        expected = row.get("expectedOutput", row.get("expected_output"))
        item = AnnotatedText(dict(fields), metadata=_metadata(row))
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


def _read_promptfoo(rows: Sequence[Numbered]) -> Iterator[tuple[int, AnnotatedText]]:
    for number, row in rows:
        item = AnnotatedText(dict(row["vars"]), metadata=_metadata(row))
        if row.get("description"):
            item.metadata["description"] = row["description"]
        expected = item.fields.pop("__expected", None)
        values = [] if expected is None else [_expected(str(expected))]
        values += [
            assertion.get("value")
            for assertion in row.get("assert") or []
            if isinstance(assertion, Mapping) and assertion.get("type") in ("equals", "iequals")
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


# Labelbox: a data row with the labels of each project; before 2024 a row for each label.


def _is_labelbox(row: dict[str, Any]) -> bool:
    if isinstance(row.get("data_row"), Mapping):
        return isinstance(row.get("projects"), Mapping)
    return {"Labeled Data", "Label"} <= row.keys()


def _read_labelbox(rows: Sequence[Numbered]) -> Iterator[tuple[int, AnnotatedText]]:
    by_text: dict[Any, tuple[int, AnnotatedText]] = {}
    done = any(
        _workflow_status(project) == "DONE"
        for _, row in rows
        for project in (row.get("projects") or {}).values()
    )
    for number, row in rows:
        if "data_row" not in row:
            key = row.get("DataRow ID") or number
            item = AnnotatedText({"text": row["Labeled Data"]}, metadata=_labelbox_ids(row))
            _, item = by_text.setdefault(key, (number, item))
            label = row["Label"] if isinstance(row["Label"], Mapping) else {}
            is_rejected = any(review.get("score") == -1 for review in row.get("Reviews") or [])
            _add_labelbox(item, row.get("Created By"), {} if is_rejected else label)
            continue
        data = row["data_row"]
        item = AnnotatedText({"text": data.get("row_data")}, metadata=_labelbox_ids(data))
        by_text[number] = number, item
        for project in row["projects"].values():
            status = _workflow_status(project)
            if not project.get("labels"):
                continue
            if status == "IN_REWORK" or (done and status not in ("DONE", None)):
                item.reason = item.reason or _UNAPPROVED
                continue
            for label in project["labels"]:
                by = (label.get("label_details") or {}).get("created_by")
                _add_labelbox(item, by, label.get("annotations") or {})
    for number, item in by_text.values():
        if item.questions:
            item.reason = ""
        if re.match(r"[a-z][a-z0-9+.-]*://\S*$", str(item.fields["text"])):
            item.reason = "Its text is behind a link; write the text in its place."
        yield number, item


def _workflow_status(project: Mapping[str, Any]) -> Any:
    return (project.get("project_details") or {}).get("workflow_status")


def _labelbox_ids(row: Mapping[str, Any]) -> dict[str, Any]:
    ids = {"id": row.get("id", row.get("DataRow ID")), "global_key": row.get("global_key")}
    ids["external_id"] = row.get("external_id", row.get("External ID"))
    return {name: value for name, value in ids.items() if value is not None}


def _add_labelbox(item: AnnotatedText, by: object, annotations: Mapping[str, Any]) -> None:
    answers: dict[str, Any] = {}
    notes: list[Any] = []
    pending = list(annotations.get("classifications") or [])
    while pending:
        each = pending.pop(0)
        name = each.get("name") or each.get("title") or each.get("value")
        answer = (
            each.get("radio_answer") or each.get("checklist_answers") or each.get("text_answer")
        )
        answer = answer or each.get("answer") or each.get("answers")
        chosen = answer if isinstance(answer, list) else [answer]
        if isinstance(answer, str) or (isinstance(answer, Mapping) and "content" in answer):
            notes.append(answer if isinstance(answer, str) else answer["content"])
            continue
        chosen = [option for option in chosen if isinstance(option, Mapping)]
        names = [
            option.get("name") or option.get("title") or option.get("value") for option in chosen
        ]
        answers[str(name)] = names if isinstance(answer, list) else next(iter(names), None)
        pending += [inner for option in chosen for inner in option.get("classifications") or []]
    item.add(by, answers, notes)


# SageMaker Ground Truth: a source, with the number of its label and, beside it, the label's name.

_BESIDE_LABEL = "-metadata"


def _is_ground_truth(row: dict[str, Any]) -> bool:
    return ("source" in row or "source-ref" in row) and bool(_labelling_jobs(row))


def _labelling_jobs(row: Mapping[str, Any]) -> list[str]:
    jobs = [name.removesuffix(_BESIDE_LABEL) for name in row if name.endswith(_BESIDE_LABEL)]
    return [job for job in jobs if job in row and isinstance(row[job + _BESIDE_LABEL], Mapping)]


def _read_ground_truth(rows: Sequence[Numbered]) -> Iterator[tuple[int, AnnotatedText]]:
    for number, row in rows:
        item = AnnotatedText({"text": row.get("source")})
        if "source" not in row:
            item.reason = "Its source-ref is a link; write the text as its source."
        for job in _labelling_jobs(row):
            beside = row[job + _BESIDE_LABEL]
            names = beside.get("class-map")
            answer = (
                list(names.values()) if isinstance(names, Mapping) else beside.get("class-name")
            )
            if "failure-reason" not in beside:
                item.add(None, {job: answer})
        yield number, item


#: What ``--from`` names.
SHAPES = {
    "argilla": ExportShape("Argilla", _is_argilla, _read_argilla),
    "label-studio": ExportShape("Label Studio", _is_label_studio, _read_label_studio),
    "prodigy": ExportShape("Prodigy", _is_prodigy, _read_prodigy),
    "doccano": ExportShape("doccano", _is_doccano, _read_doccano),
    "langfuse": ExportShape("Langfuse", _is_langfuse, _read_langfuse),
    "promptfoo": ExportShape("promptfoo", _is_promptfoo, _read_promptfoo),
    "labelbox": ExportShape("Labelbox", _is_labelbox, _read_labelbox),
    "openai-chat": ExportShape("OpenAI chat", is_chat, read_chats),
    "ground-truth": ExportShape("SageMaker Ground Truth", _is_ground_truth, _read_ground_truth),
}
