"""What the columns of a table mean: guessed, changed by whoever knows, and turned into rows."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from steelyard.client.tables.reading import Refused, Table
from steelyard.wire.limits import MAX_OUTCOMES

Kind = Literal["single", "binary", "ordinal"]

#: Names of columns that are usually the text, and of those that are usually its label.
_TEXTS = (
    "context", "text", "message", "body", "content", "sentence", "utterance", "ticket", "review",
    "query", "comment", "document", "email", "question", "description", "title",
)  # fmt: skip
_LABELS = ("label", "labels", "category", "class", "intent", "target", "topic", "sentiment", "tag")
#: Guessed labels: at most so many columns, of at most so many outcomes and so long names.
_MOST_LABELS, _MOST_GUESSED, _LONGEST_NAME = 8, 100, 80
_YES = frozenset({"yes", "y", "true", "t", "1"})
_NO = frozenset({"no", "n", "false", "f", "0"})
_LEVELS = range(3, 12)
#: What programs write for no value.
_NO_VALUES = frozenset({"nan", "null", "#n/a", "<na>"})
#: Cells that are seldom labels: days and times.
_DATE = re.compile(r"\d{4}[-/.]\d\d?[-/.]\d\d?([T ].*)?|\d\d?[-/.]\d\d?[-/.]\d{2,4}( .*)?")
#: Whole numbers as a program wrote them that had blanks among them.
_WHOLE = re.compile(r"-?\d{1,3}\.0")


@dataclass(frozen=True, slots=True)
class Label:
    """A column whose cells are the right outcomes of a decision.

    Attributes
    ----------
    column : str
        The column.
    id, question : str
        The decision's.
    kind : {"single", "binary", "ordinal"}
        The decision's.
    outcomes : tuple of str
        The decision's, in order; for ``binary`` yes and no.
    definition : dict, optional
        The decision whole, where a dataset has it already.
    """

    column: str
    id: str
    question: str
    kind: Kind
    outcomes: tuple[str, ...]
    definition: dict[str, Any] | None = None

    def decision(self) -> dict[str, Any]:
        """Return the decision as it is sent."""
        if self.definition is not None:
            return self.definition
        sent: dict[str, Any] = {"id": self.id, "kind": self.kind, "question": self.question}
        if self.kind != "binary":
            sent["outcomes"] = list(self.outcomes)
        if self.kind == "ordinal":
            sent["rubric"] = [f"{_words(self.column)}: {level}" for level in self.outcomes]
        return sent

    def outcome(self, cell: Any) -> str | None:
        """Return the outcome that a cell names; ``None`` where it names none."""
        text = _label_text(cell)
        if self.kind == "binary":
            lowered = text.lower().removesuffix(".0")
            return "yes" if lowered in _YES else "no" if lowered in _NO else None
        whole = text.removesuffix(".0")
        return next((one for one in (text, whole) if one in self.outcomes), None)


@dataclass(frozen=True, slots=True)
class Mapping:
    """Which columns are the context, which are labels, and which are kept as metadata."""

    context: tuple[str, ...]
    labels: tuple[Label, ...]
    metadata: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Name decisions apart whose columns differ only in what ids do not take."""
        taken: set[str] = set()
        labels = []
        for label in self.labels:
            id_, n = label.id, 1
            while id_ in taken:
                n += 1
                id_ = f"{label.id}_{n}"
            taken.add(id_)
            labels.append(replace(label, id=id_))
        object.__setattr__(self, "labels", tuple(labels))


@dataclass(frozen=True, slots=True)
class Converted:
    """The rows of a table.

    Attributes
    ----------
    lines : list of bytes
        JSON Lines, a row each, as ``datasets.create`` takes them.
    refused : list of Refused
        Rows that are left out, with the reason.
    n_empty, n_duplicates : int
        Rows left out for an empty context; rows that say the same as an earlier one, which a
        server leaves out itself.
    """

    lines: list[bytes]
    refused: list[Refused] = field(default_factory=list)
    n_empty: int = 0
    n_duplicates: int = 0

    @property
    def data(self) -> bytes:
        """The rows as one file."""
        return b"".join(self.lines)


def guess_mapping(table: Table, known: Sequence[dict[str, Any]] = ()) -> Mapping:
    """Return what the columns seem to mean.

    Parameters
    ----------
    table : Table
        A file.
    known : sequence of mapping
        Decisions of a dataset: a column that is named by the id of one is its label.

    Raises
    ------
    ValueError
        When no column has texts.
    """
    context = _guess_context(table)
    by_id = {str(one["id"]): one for one in known}
    labels = [
        _known_label(by_id[name]) for name in table.columns if name in by_id and name != context
    ]
    if not labels:
        found = [
            label_of(table, name)
            for name in table.columns
            if name != context and _may_be_label(table, name)
        ]
        named = [one for one in found if one.column.strip().lower() in _LABELS]
        labels = (named or found)[:_MOST_LABELS]
    return Mapping((context,), tuple(labels))


def label_of(table: Table, column: str, question: str | None = None) -> Label:
    """Return a column as the label of a decision whose outcomes are the column's values.

    Raises
    ------
    ValueError
        When its values cannot be outcomes.
    """
    values = {text for cell in table.column(column) if (text := _label_text(cell))}
    if all(map(_WHOLE.fullmatch, values)):
        values = {value.removesuffix(".0") for value in values}
    if not 2 <= len(values) <= MAX_OUTCOMES:
        raise ValueError(
            f"The column {column!r} has {len(values)} different values; outcomes are 2 to "
            f"{MAX_OUTCOMES}. Name another column as the label."
        )
    lowered = {value.lower() for value in values}
    kind: Kind = "single"
    outcomes = tuple(sorted(values))
    if lowered <= _YES | _NO and lowered & _YES and lowered & _NO:
        kind, outcomes = "binary", ("yes", "no")
    elif len(values) in _LEVELS and all(re.fullmatch(r"-?\d{1,3}", value) for value in values):
        kind, outcomes = "ordinal", tuple(sorted(values, key=int))
    return Label(column, _id_of(column), question or _question(column, kind), kind, outcomes)


def convert(table: Table, mapping: Mapping) -> Converted:
    """Return the rows of a table; a row that lacks a context or every label is refused."""
    made = Converted([], list(table.refused))
    at = {name: number for number, name in enumerate(table.columns)}
    decisions = {label.id: label.decision() for label in mapping.labels}
    seen: set[bytes] = set()
    n_empty = n_duplicates = 0
    for line, cells in table.rows:
        context = _context([cells[at[name]] for name in mapping.context], mapping.context)
        if context is None:
            n_empty += 1
            made.refused.append(Refused(line, "Its context is empty; fill it.", cells))
            continue
        targets, reason = _targets(mapping, cells, at)
        if reason is not None:
            made.refused.append(Refused(line, reason, cells))
            continue
        row: dict[str, Any] = {
            "context": context,
            "decisions": [decisions[id_] for id_ in targets],
            "targets": targets,
        }
        kept = {name: _plain(cells[at[name]]) for name in mapping.metadata}
        if kept := {name: value for name, value in kept.items() if value is not None}:
            row["metadata"] = kept
        sent = json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
        n_duplicates += sent in seen
        seen.add(sent)
        made.lines.append(sent)
    return Converted(made.lines, made.refused, n_empty, n_duplicates)


def refused_csv(table: Table, refused: Sequence[Refused]) -> str:
    """Return the rows that were left out as CSV, with their lines and reasons."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(["line", "reason", *table.columns])
    for one in refused:
        writer.writerow(
            [one.line, one.reason, *("" if cell is None else cell for cell in one.cells)]
        )
    return text.getvalue()


def _targets(
    mapping: Mapping, cells: Sequence[Any], at: dict[str, int]
) -> tuple[dict[str, str], str | None]:
    """Return the right outcomes of a row, or why it cannot be taken."""
    targets: dict[str, str] = {}
    for label in mapping.labels:
        cell = cells[at[label.column]]
        if not _label_text(cell):
            continue
        outcome = label.outcome(cell)
        if outcome is None:
            return {}, (
                f"{label.column} is {_label_text(cell)[:60]!r}, which is no outcome of {label.id}; "
                f"use one of {', '.join(label.outcomes[:8])}."
            )
        targets[label.id] = outcome
    if not targets:
        names = " or ".join(label.column for label in mapping.labels)
        return {}, f"It has no label; fill {names}."
    return targets, None


def _context(values: Sequence[Any], names: Sequence[str]) -> Any:
    if len(values) == 1:
        value = _plain(values[0])
        if isinstance(value, dict | list):
            return value or None
        return _text(value) or None
    named = {name: _plain(value) for name, value in zip(names, values, strict=True)}
    filled = {name: value for name, value in named.items() if _text(value)}
    return filled or None


def _guess_context(table: Table) -> str:
    lengths: dict[str, float] = {}
    of_json: dict[str, float] = {}
    for name in table.columns:
        texts = [cell for cell in table.column(name) if isinstance(cell, str) and cell.strip()]
        if texts:
            # Columns of JSON are long, and seldom what somebody wrote.
            is_json = all(text.lstrip().startswith(("{", "[")) for text in texts)
            (of_json if is_json else lengths)[name] = sum(map(len, texts)) / len(texts)
    lengths = lengths or of_json
    if not lengths:
        raise ValueError("No column has texts; name the one with the context.")
    named = [name for usual in _TEXTS for name in lengths if name.strip().lower() == usual]
    longest = max(lengths, key=lambda name: lengths[name])
    # A usual name wins unless its texts are far shorter: a title beside a body.
    return next((name for name in named if lengths[name] * 3 >= lengths[longest]), longest)


def _may_be_label(table: Table, column: str) -> bool:
    texts = [text for cell in table.column(column) if (text := _label_text(cell))]
    values = set(texts)
    return (
        not all(map(_DATE.fullmatch, values))
        and 2 <= len(values) <= min(_MOST_GUESSED, max(2, len(texts) // 2))
        and max(map(len, values)) <= _LONGEST_NAME
        and not any(isinstance(cell, dict | list) for cell in table.column(column))
    )


def _known_label(decision: dict[str, Any]) -> Label:
    outcomes = decision.get("outcomes") or ("yes", "no")
    return Label(
        str(decision["id"]),
        str(decision["id"]),
        str(decision["question"]),
        decision.get("kind", "single"),
        tuple(map(str, outcomes)),
        decision,
    )


def _question(column: str, kind: Kind) -> str:
    words = _words(column)
    if kind == "binary":
        return f"{words[:1].upper()}{words[1:]}?"
    if kind == "ordinal":
        return f"What is the {words}?"
    return f"Which {words} fits?"


def _words(column: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])|[_\-.]+", " ", column).strip().lower()


def _id_of(column: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "_", column).strip("_")[:64] or "label"


def _plain(value: Any) -> Any:
    """Return a cell as JSON has it."""
    if value is None or isinstance(value, str | bool | int | dict | list):
        return value
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else None  # noqa: PLR0124
    return str(value)


def _label_text(cell: Any) -> str:
    """Return a cell as an outcome's name; empty too where a program wrote that there is no value."""
    text = _text(cell)
    return "" if text.lower() in _NO_VALUES else text


def _text(cell: Any) -> str:
    """Return a cell as an outcome's name; empty where there is no value."""
    value = _plain(cell)
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return json.dumps(value) if isinstance(value, dict | list) else str(value).strip()
