"""The meaning of a table's columns: guessed, changed by a person, with the first rows beside."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any

import panel as pn
import panel_material_ui as pmui
from panel.viewable import Viewable

from steelyard.client import Client
from steelyard.client.tables import (
    Converted,
    Label,
    Table,
    convert,
    count_values,
    edit_outcomes,
    guess_mapping,
    label_of,
    question_of,
    with_kind,
    with_raters,
)
from steelyard.client.tables import Mapping as Columns
from steelyard_workbench.kit.basics import Boxed, small_text, stack
from steelyard_workbench.kit.components.lint_warnings import show_warnings
from steelyard_workbench.kit.scheduling import schedule
from steelyard_workbench.kit.tasks import Scope, Task
from steelyard_workbench.kit.views import empty, loading, verdict
from steelyard_workbench.kit.words import escape_markdown
from steelyard_workbench.parts.datasets.files import show_left_out
from steelyard_workbench.parts.datasets.outcome_table import MOST_SHOWN, OutcomeEditor

_NO_LABEL = "Values of {} that mean no label"
_KINDS = {"one answer": "single", "several labels, a yes/no decision each": "several"}
#: Rows that are shown as they would be stored, of how many characters.
_SHOWN_ROWS, _SHOWN_CHARACTERS = 10, 120


@dataclass(frozen=True, slots=True)
class ReadTable:
    """A table, the guessed meaning of its columns, and the possible labels."""

    table: Table
    columns: Columns
    labels: Mapping[str, Label]


def read_columns(table: Table, decisions: Sequence[dict[str, Any]]) -> ReadTable:
    """Return the guessed meaning of a table's columns; raise ``ValueError`` when it has no texts."""
    table = with_raters(table, [str(decision["id"]) for decision in decisions])
    columns = guess_mapping(table, decisions)
    labels = {label.column: label for label in columns.labels}
    for name in table.columns:
        if name not in labels:
            try:
                labels[name] = label_of(table, name)
            except ValueError:
                continue  # of one value, or of too many
    return ReadTable(table, columns, labels)


def _question(name: str, label: Label) -> pmui.TextInput:
    return pmui.TextInput(
        label=f"What {name} answers",
        value=label.question,
        max_length=1_000,
        width=340,
        disabled=label.definition is not None,
    )


def _no_label(name: str, values: Iterable[str], counts: Iterable[str]) -> pmui.MultiChoice:
    return pmui.MultiChoice(
        label=_NO_LABEL.format(name),
        options=list(dict.fromkeys([*values, *counts]))[:MOST_SHOWN],
        value=sorted(values),
        width=340,
    )


class TableColumns(Boxed):
    """Asks for the meaning of columns; ``on_converted`` gets the rows, and None while they are made."""

    def __init__(
        self,
        client: Client,
        read: ReadTable,
        on_converted: Callable[[Converted | None], None],
        scope: Scope | None = None,
    ) -> None:
        super().__init__()
        self._client, self._read, self._on_converted = client, read, on_converted
        table, columns = read.table, read.columns
        self.context = pmui.Select(
            label="Column with the text",
            options=list(table.columns),
            value=columns.context[0],
            width=260,
        )
        self.labels = pmui.CheckBoxGroup(
            label="Columns with the right answers",
            options=list(read.labels),
            value=[label.column for label in columns.labels],
            inline=True,
        )
        self.questions = {name: _question(name, label) for name, label in read.labels.items()}
        values = {
            name: count_values(table, name)
            for name, label in read.labels.items()
            if label.definition is None
        }
        self.outcomes = {
            name: OutcomeEditor(name, count_values(table, name, label.renamed), self._again)
            for name, label in read.labels.items()
            if name in values and label.kind == "single"
        }
        self.kinds = {
            name: pmui.Select(
                label=f"A row of {name} has", options=_KINDS, value=label.kind, width=320
            )
            for name, label in read.labels.items()
            if name in values and label.kind in _KINDS.values()
        }
        for name, kind in self.kinds.items():
            pn.bind(partial(self._ask_as, name), kind, watch=True)
        self.no_label = {
            name: _no_label(name, read.labels[name].no_label, counts)
            for name, counts in values.items()
        }
        self._labels: dict[tuple[str, ...], Label] = {}
        self._asked, self.shown, self._warned = stack(), stack(), stack()
        self._lint = Task(self._look, "Could not check the wording.", self._warned, scope=scope)
        self.convert = Task(
            self._convert, "Could not make rows of the table.", self.shown, scope=scope
        )
        fields = (self.questions, self.kinds, self.no_label)
        by_column = [widget for widgets in fields for widget in widgets.values()]
        for widget in (self.context, self.labels, *by_column):
            pn.bind(self._again, widget, watch=True)
        self._box = stack(
            verdict("good", "A table:", f"{escape_markdown(self._read.table.read_as)}."),
            *_show_notes("How it was read:", self._read.table.notes),
            pn.FlexBox(self.context, self.labels),
            self._asked,
            self._warned,
            self.shown,
        )

    @property
    def columns(self) -> Columns:
        """The selected meaning of the columns."""
        label_columns = []
        for name in self.labels.value:
            label, question = self._label(name), self.questions[name].value.strip()
            if name in self.kinds:
                label = with_kind(label, self.kinds[name].value)
            if label.definition is None and question:
                label = replace(label, question=question)
            if name in self.outcomes:
                label = edit_outcomes(label, self.outcomes[name].edits)
            label_columns.append(label)
        context = str(self.context.value)
        labels = tuple(one for one in label_columns if one.column != context)
        return Columns((context,), labels, split=self._read.columns.split)

    def _label(self, name: str) -> Label:
        """Return a column as a label without the values that mean none."""
        label = self._read.labels[name]
        if name not in self.no_label or label.no_label == set(self.no_label[name].value):
            return label
        key = (name, *sorted(self.no_label[name].value))
        if key not in self._labels:
            self._labels[key] = label_of(self._read.table, name, None, key[1:])
        return self._labels[key]

    def _ask_as(self, name: str, kind: Any) -> None:
        """Word the question for one outcome or several labels, unless a person worded it."""
        guesses = [question_of(name, kind_of) for kind_of in ("single", "several")]
        if self.questions[name].value in guesses:
            self.questions[name].value = question_of(name, kind)

    def _again(self, *_: Any) -> None:
        # At once: a press of *Import* that follows is of the rows that are made now.
        self._on_converted(None)
        schedule(self.convert)

    async def _convert(self) -> None:
        try:
            columns = self.columns
        except ValueError as error:
            self.shown[:] = [
                empty(f"**These answers are not valid.** {escape_markdown(str(error))}")
            ]
            self._on_converted(Converted(self._read.table))
            return
        fields: list[Viewable] = []
        for label in columns.labels:
            if label.column in self.kinds:
                fields.append(self.kinds[label.column])
            fields.append(self.questions[label.column])
            if label.column in self.no_label:
                fields.append(self.no_label[label.column])
            if label.column in self.outcomes and label.kind != "several":
                fields.append(self.outcomes[label.column].__panel__())
        if list(self._asked) != fields:
            self._asked[:] = fields
        self._warned[:] = []
        if not columns.labels:
            self.shown[:] = [empty("**No column has labels.** Choose at least one.")]
            self._on_converted(Converted(self._read.table))
            return
        self.shown[:] = [loading(3, "The first rows")]
        converted = await asyncio.to_thread(convert, self._read.table, columns)
        self._on_converted(converted)
        self.shown[:] = self._what_came(converted)
        if converted.lines:
            await self._lint(json.loads(converted.lines[0])["context"], columns)

    async def _look(self, context: Any, columns: Columns) -> None:
        decisions = [one for label in columns.labels for one in label.decisions()]
        warnings = await asyncio.to_thread(self._client.lint, context, decisions)
        self._warned[:] = show_warnings(warnings)

    def _what_came(self, converted: Converted) -> list[Viewable]:
        text = f"{converted.n_rows:,} row{'' if converted.n_rows == 1 else 's'} can be imported"
        if converted.n_duplicates:
            text += f"; {converted.n_duplicates:,} of them are repeated, and are left out"
        parts = [verdict("good" if converted.lines else "bad", f"{text}.")]
        parts += _show_notes("The sides of the file:", converted.notes)
        notes = [note for label in self.columns.labels if (note := _no_label_note(label))]
        parts += _show_notes("No label:", notes)
        joined = [note for label in self.columns.labels if (note := label.case_note)]
        parts += _show_notes("Capitals:", joined)
        several = [note for label in self.columns.labels if (note := label.joined_note)]
        parts += _show_notes("Several labels in one cell:", several)
        parts += show_left_out(converted, converted.refused)
        if converted.lines:
            rows = "\n".join(
                _shown_row(line)
                for line in islice(filter(bytes.strip, converted.lines), _SHOWN_ROWS)
            )
            parts.append(small_text(f"The first rows:\n\n{rows}"))
        return parts


def _no_label_note(label: Label) -> str:
    """Return a note on values that are not a label, or may be none."""
    if label.no_label:
        return f"{label.column}: rows with {', '.join(sorted(label.no_label))} have no label."
    if not label.like_none:
        return ""
    return (
        f"{label.column}: {', '.join(label.like_none)} is an answer. If it means that nobody labelled "
        f"the row, choose it under “{_NO_LABEL.format(label.column)}”."
    )


def _show_notes(title: str, notes: Sequence[str]) -> list[Viewable]:
    if not notes:
        return []
    lines = [escape_markdown(note) for note in notes]
    text = lines[0] if len(lines) == 1 else "\n\n" + "\n".join(f"- {line}" for line in lines)
    return [verdict("unsure", title, text)]


def _shown_row(line: bytes) -> str:
    row = json.loads(line)
    context = row["context"] if isinstance(row["context"], str) else json.dumps(row["context"])
    text = " ".join(context.split())
    if len(text) > _SHOWN_CHARACTERS:
        text = f"{text[:_SHOWN_CHARACTERS]}…"
    labels = ", ".join(f"{id_}: **{escape_markdown(one)}**" for id_, one in row["targets"].items())
    return f"- {escape_markdown(text)} → {labels}"
