"""Rows of a table as they are sent, by the meaning of its columns."""

from __future__ import annotations

import json
from array import array
from collections import Counter
from collections.abc import Mapping as Dict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from steelyard.client.tables.cells import plain, split_text, text_of
from steelyard.client.tables.converted import Converted, Mapping
from steelyard.client.tables.truths import with_single_truths
from steelyard.decisions.contexts import UNSEEN, plain_hash
from steelyard.decisions.words import name_parts, word_set
from steelyard.imports.items import NOT_LABELLED
from steelyard.imports.splits import Side, side_of
from steelyard.imports.table import Refused, Reply, Table
from steelyard.review.wire import MAX_REVIEWER

#: Characters of a value that a dataset keeps beside a row, and of its name.
_LONGEST_BESIDE, _LONGEST_NAME_BESIDE = 512, 64
#: Characters of a note beside an answer.
_LONGEST_NOTE = 2_000
#: Columns with the status of a row, and what one says of rows that somebody threw away.
_STATES = word_set("status state")
_DISCARDED = frozenset({"discarded", "rejected", "declined", "invalid"})
#: Reasons to leave a row out; the second is the end of one.
_EMPTY = "Its context is empty; fill it."
_LEAK = " on the evaluation side too; a model may not train on it."
#: Combinations of labels whose JSON is kept.
_MOST_KNOWN = 4_096


def convert(table: Table, mapping: Mapping, *, for_evaluation: bool = False) -> Converted:
    """Return the rows of a table; a row that lacks a context or every label is refused.

    A mapping without labels makes rows without decisions, as labeling takes them.

    Where the file has both sides, a row keeps its own, and one of training whose context is on the
    evaluation side too is refused; ``for_evaluation`` leaves the rows of training out.
    """
    made = Converted(table, mapping, refused=list(table.refused))
    at = {name: number for number, name in enumerate(table.columns)}
    splits, files = _splits(table, mapping)
    sides, made.notes[:] = _sides(splits)
    held_out = _held_out(table, mapping, at, sides) if sides is not None else {}
    questions = _Questions(mapping, at)
    hashes = array("q")
    n_training = 0
    row_sides: list[Side] = []
    for number, (line, cells) in enumerate(table.rows):
        side = None if sides is None else sides[splits[number]]
        if side == "training" and for_evaluation:
            n_training += 1
            continue
        copies = held_out if side == "training" else {}
        context, sent = _sent_row(table, mapping, cells, at, questions, copies)
        if isinstance(sent, str):
            is_open = bool(table.hints and context) and not questions.are_answered(cells)
            reason = NOT_LABELLED if is_open else sent
            file = files[number] if files else ""
            made.refused.append(Refused(line, reason, cells, file, by_program=is_open))
            continue
        if table.replies and (answers := _answers_of(table.replies[number], mapping)):
            made.replies[len(made.lines)] = answers
        hashes.append(hash(sent))
        made.places.append(number)
        made.lines.append(sent)
        if side is not None:
            row_sides.append(side)
    made.notes.extend([*_left_out(table, mapping, at), *discarded_notes(table, mapping)])
    n_leaks = sum(row.reason.endswith(_LEAK) for row in made.refused)
    if n_leaks:
        made.notes.append(f"{n_leaks:,} rows of training have a context of the evaluation side.")
    if n_training:
        made.notes.append(training_left_out(n_training))
    if len(set(row_sides)) < 2:
        row_sides, sides = [], None
    n_duplicates = len(hashes) - pc.count_distinct(pa.array(hashes, pa.int64())).as_py()
    n_empty = sum(row.reason == _EMPTY for row in made.refused)
    sided = None if sides is None else row_sides
    return with_single_truths(
        replace(made, n_empty=n_empty, n_duplicates=n_duplicates, sides=sided)
    )


def _sent_row(
    table: Table,
    mapping: Mapping,
    cells: Sequence[Any],
    at: dict[str, int],
    questions: _Questions,
    copies: Dict[int, int],
) -> tuple[Any, bytes | str]:
    """Return the context of a row, and the row as it is sent, or why it cannot be."""
    context = None
    try:
        context = _context([cells[at[name]] for name in mapping.context], mapping.context)
        if context is None:
            return None, _EMPTY
        if copies and (copy := copies.get(plain_hash(context))) is not None:
            is_exact = copy == hash(_key(context))
            but = "" if is_exact else ", but for case, blanks, markup or quoted mail,"
            return context, f"Its context is{but}{_LEAK}"
        return context, _row(context, mapping, cells, at, questions)
    except UnicodeError:
        column = next((name for name in table.columns if _is_cut(cells[at[name]])), "It")
        return context, f"{column} has a lone UTF-16 surrogate; send whole characters."
    except (ValueError, TypeError) as error:
        return context, f"It has a value that JSON cannot say ({error}); change it."


def training_left_out(n_rows: int) -> str:
    """Return the note on rows of training in a file that is evaluated."""
    return f"{n_rows:,} rows of training are left out of the evaluation."


def _left_out(table: Table, mapping: Mapping, at: dict[str, int]) -> list[str]:
    """Return a note on values beside the rows that no row can hold; none where all fit."""
    n_long = sum(
        cells[at[name]] is not None and _beside(cells[at[name]]) is None
        for name in mapping.metadata
        for _, cells in table.rows
    )
    if not n_long:
        return []
    names = ", ".join(mapping.metadata)
    longest = f"longer than {_LONGEST_BESIDE} characters"
    return [f"{n_long:,} values of {names} are left out: they are not finite, or {longest}."]


def discarded_notes(table: Table, mapping: Mapping) -> list[str]:
    """Return a note on rows that an unused column calls rejected or discarded, and which is not read."""
    used = {*mapping.context, *(label.column for label in mapping.labels)}
    notes = []
    for name in table.columns:
        if name not in used and _STATES.intersection(name_parts(name)[-1:]):
            counts = Counter(text_of(cell).lower() for cell in table.column(name))
            values = [value for value in counts if value in _DISCARDED]
            notes += [
                f"{name}: {counts[value]:,} rows say {value}, and are used as others are; take them out "
                "of the file if their labels are wrong."
                for value in values
                if len(counts) > 1
            ]
    return notes


def _answers_of(replies: Sequence[Reply], mapping: Mapping) -> list[dict[str, Any]]:
    """Return people's answers to a row; an empty list without annotators or labels."""
    if not any(reply.by or reply.notes for reply in replies):
        return []
    answers = []
    for number, reply in enumerate(replies, 1):
        outcomes: dict[str, Any] = {}
        for label in mapping.labels:
            if label.column in reply.answers:
                outcomes |= label.targets(reply.answers[label.column]) or {}
        note = "\n".join(reply.notes)[:_LONGEST_NOTE].strip()
        if outcomes or note:
            unnamed = f"annotator {number}" if outcomes and len(replies) > 1 else None
            name = " ".join((reply.by or "").split())[:MAX_REVIEWER] or unnamed
            answer = {"reviewer": name, "outcomes": outcomes, "note": note or None}
            answers.append({key: value for key, value in answer.items() if value})
    return answers


class _Questions:
    """The decisions of rows, as JSON: written once for rows with the same labels."""

    def __init__(self, mapping: Mapping, at: dict[str, int]) -> None:
        self._mapping, self._at = mapping, at
        self._decisions = {
            decision["id"]: decision for label in mapping.labels for decision in label.decisions()
        }
        self._places = [at[label.column] for label in mapping.labels]
        self._known: dict[tuple[str | None, ...], tuple[str, str | None]] = {}

    def are_answered(self, cells: Sequence[Any]) -> bool:
        """Return whether a row has any label."""
        return any(
            label.names_in(cells[place])
            for label, place in zip(self._mapping.labels, self._places, strict=True)
        )

    def of(self, cells: Sequence[Any]) -> tuple[str, str | None]:
        """Return the fields of a row beside its context, or why it cannot be taken."""
        if not self._places:
            return "", None
        key = tuple([cells[place] for place in self._places])
        is_text = all(cell is None or isinstance(cell, str) for cell in key)
        if is_text and (known := self._known.get(key)) is not None:
            return known
        targets, reason = _targets(self._mapping, cells, self._at)
        fields = ""
        if reason is None:
            decisions = [self._decisions[id_] for id_ in targets]
            fields = _json({"decisions": decisions, "targets": targets})[1:-1]
        if is_text:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[key] = fields, reason
        return fields, reason


def _row(
    context: Any, mapping: Mapping, cells: Sequence[Any], at: dict[str, int], questions: _Questions
) -> bytes | str:
    """Return a row as it is sent, or why it cannot be."""
    fields, reason = questions.of(cells)
    if reason is not None:
        return reason
    metadata = {name[:_LONGEST_NAME_BESIDE]: _beside(cells[at[name]]) for name in mapping.metadata}
    metadata = {name: value for name, value in metadata.items() if value is not None}
    beside = f'"metadata":{_json(metadata)}' if metadata else ""
    parts = (f'"context":{_json(context)}', fields, beside)
    return f"{{{','.join(filter(None, parts))}}}\n".encode()


def _beside(cell: Any) -> Any:
    """Return a cell as metadata: lists and objects as JSON; ``None`` where it is too long."""
    value = plain(cell)
    if isinstance(value, dict | list):
        value = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
    return None if isinstance(value, str) and len(value) > _LONGEST_BESIDE else value


def _splits(table: Table, mapping: Mapping) -> tuple[list[str | None], list[str]]:
    """Return the split of each row, and its file where there are several; ``None`` where unnamed."""
    files = [part.file for part in table.row_parts()] if len(table.parts) > 1 else []
    if mapping.split is not None:
        return [split_text(cell) or None for cell in table.column(mapping.split)], files
    if any(part.split is not None for part in table.parts):
        return [part.split for part in table.row_parts()], files
    return [], files


def _sides(splits: Sequence[str | None]) -> tuple[dict[str | None, Side] | None, list[str]]:
    """Return the side of each split, where there are two, and a note for each."""
    counts = Counter(splits)
    sides: dict[str | None, Side] = {split: side_of(split) or "training" for split in counts}
    if set(sides.values()) != {"training", "evaluation"}:
        return None, []
    return sides, [
        f"{split or 'Rows of no split'}: {n:,} rows, the {sides[split]} side"
        + ("" if side_of(split) else " (its name says neither)")
        for split, n in counts.items()
    ]


def _held_out(
    table: Table, mapping: Mapping, at: dict[str, int], sides: Dict[str | None, Side]
) -> dict[int, int]:
    """Return the contexts of the evaluation side, by their normalised text."""
    splits, _ = _splits(table, mapping)
    contexts: dict[int, int] = {}
    for split, (_, cells) in zip(splits, table.rows, strict=True):
        if sides[split] == "evaluation":
            context = _context([cells[at[name]] for name in mapping.context], mapping.context)
            if context is not None:
                contexts[plain_hash(context)] = hash(_key(context))
    return contexts


_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


def _key(context: Any) -> str:
    return json.dumps(context, sort_keys=True, default=str)


def _is_cut(cell: Any) -> bool:
    try:
        json.dumps(plain(cell), ensure_ascii=False, default=str).encode()
    except UnicodeError:
        return True
    return False


def _targets(
    mapping: Mapping, cells: Sequence[Any], at: dict[str, int]
) -> tuple[dict[str, Any], str | None]:
    """Return the right outcomes of a row, or why it cannot be taken."""
    targets: dict[str, Any] = {}
    for label in mapping.labels:
        cell = cells[at[label.column]]
        if not label.names_in(cell):
            continue
        outcomes = label.targets(cell)
        if outcomes is None:
            return {}, (
                f"{label.column} is {text_of(cell)[:60]!r}, which is no outcome of {label.id}; "
                f"use one of {', '.join(label.outcomes[:8])}."
            )
        targets |= outcomes
    if not targets:
        names = " or ".join(label.column for label in mapping.labels)
        return {}, f"It has no label; fill {names}."
    return targets, None


def _context(values: Sequence[Any], names: Sequence[str]) -> Any:
    if len(values) == 1:
        value = plain(values[0])
        if isinstance(value, dict | list):
            return value or None
        if isinstance(value, str):
            return value if UNSEEN.sub("", value).strip() else None
        return text_of(value) or None
    named = {name: plain(value) for name, value in zip(names, values, strict=True)}
    filled = {name: value for name, value in named.items() if text_of(value)}
    return filled or None
