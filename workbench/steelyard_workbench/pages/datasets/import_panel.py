"""Importing a file: chosen, looked at whole, then kept as a dataset or as the next version."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import panel_material_ui as pmui
import param

from steelyard.client import Client
from steelyard.client.tables import (
    ENDINGS,
    Converted,
    Recorded,
    are_rows,
    describe_refused,
    is_exported,
    known_decisions,
    read_exported,
    read_lines,
    read_table,
    record_answers,
    with_single_truths,
    with_truths_of,
)
from steelyard.datasets.wire import DEFAULT_FRACTION, MAX_FRACTION, MIN_FRACTION, Dataset
from steelyard.imports.encodings import Source
from steelyard_workbench.kit.basics import Boxed, action_button, stack
from steelyard_workbench.kit.components.files import FileChooser
from steelyard_workbench.kit.components.progress_bar import ProgressBar
from steelyard_workbench.kit.components.side_by_side import number_fields
from steelyard_workbench.kit.problems import Problem, problem_of
from steelyard_workbench.kit.scheduling import schedule, until_shown
from steelyard_workbench.kit.tasks import Scope, Task, Write
from steelyard_workbench.kit.views import empty, failed, loading, verdict
from steelyard_workbench.kit.words import counted, escape_markdown
from steelyard_workbench.pages.datasets.table_columns import TableColumns, read_columns
from steelyard_workbench.parts.datasets.files import (
    RowCheck,
    check_lines,
    name_of,
    remarks_on,
    show_left_out,
)

_NEW, _NEXT = "A new dataset", "The next version of this one"
_LABELLED = {"sft": "targets", "reward": "rewards"}
_ABOUT = (
    "A table, that is CSV, TSV, Excel, Parquet or "
    "JSON Lines, with a column of texts and columns of labels, or rows as a dataset is exported. You see every problem before anything is stored."
)
_ABOUT_CSV = (
    " A table adds rows to this dataset where columns are named by the ids of its decisions: their "
    "cells are the right answers."
)


class ImportPanel(Boxed):
    """Takes a file and makes rows of it.

    ``on_done`` is called with the dataset and the result of the import, in words. ``send`` keeps
    the rows; a refusal is shown: then none were kept, or those that it names.
    """

    def __init__(
        self,
        client: Client,
        dataset: Dataset | None,
        on_done: Callable[[Dataset, str], None],
        scope: Scope | None = None,
    ) -> None:
        self._client, self._dataset, self._on_done = client, dataset, on_done
        self._data, self._filename = b"", ""
        self._looking = Task(self._look, on_failure=self._show_unread, scope=scope)
        self.made: Converted | None = None
        self._recorded: Recorded | None = None
        self.columns: TableColumns | None = None
        self._reading = Task(self._read, on_failure=self._show_unread, scope=scope)
        self.send = Write(self._send, on_failure=self._show_failure, scope=scope)
        self.file = FileChooser(
            self._show_empty, label="Choose a file", accept=",".join(ENDINGS), variant="contained"
        )
        self.kept_as = pmui.RadioBoxGroup(
            label="Keep it as",
            options=[_NEXT, _NEW] if dataset else [_NEW],
            value=_NEW,
            inline=True,
        )
        super().__init__()
        self.name_field = pmui.TextInput(label="Name of the dataset", max_length=128, width=320)
        self.fraction = pmui.FloatInput(
            label="Share of texts for the check",
            value=DEFAULT_FRACTION,
            start=MIN_FRACTION,
            end=MAX_FRACTION,
            step=0.05,
            width=260,
        )
        self.button = action_button("Import", self.send.on_event, variant="contained")
        self._progress = ProgressBar(label="Bytes sent", value=0, visible=False, width=320)
        # Drawn once there is a file.
        self.form = stack(visible=False)
        self.found, self.said = stack(), stack()
        self._box = stack(
            empty(_ABOUT + (_ABOUT_CSV if dataset else "")),
            self.file,
            self.found,
            self.form,
            self.said,
        )

    async def take(self, filename: str, data: bytes) -> None:
        """Look at a file; show its problems, or ask for its name."""
        await until_shown()
        self._looking.drop()
        self._reading.drop()
        self._filename, self._data = filename, data
        self.made = self.columns = self._recorded = None
        self.form.visible = False
        self.said[:] = []
        if not data.strip():
            self._show_empty()
            return
        self.found[:] = [loading(2, "Looking at the file")]
        await (self._looking() if are_rows(data) else self._reading())

    async def _read(self) -> None:
        """Read the file as a table, whose columns are asked for."""
        decisions: list[dict[str, Any]] = []
        if self._dataset is not None:
            decisions = await asyncio.to_thread(known_decisions, self._client, self._dataset)
        table = await asyncio.to_thread(read_table, self._data, self._filename)
        if is_exported(table):
            self._show_exported(await asyncio.to_thread(read_exported, table))
            return
        read = await asyncio.to_thread(read_columns, table, decisions)
        self.columns = TableColumns(self._client, read, self._on_converted, self._reading.scope)
        self.found[:] = [self.columns]
        is_known = any(label.definition is not None for label in read.columns.labels)
        if self._dataset is not None:
            self.kept_as.options = [_NEXT, _NEW] if is_known else [_NEW]
            self.kept_as.value = _NEXT if is_known else _NEW
        self._open_form()
        await self.columns.convert()

    def _show_exported(self, converted: Converted) -> None:
        """Show that the rows are as they were, with their sides, so that nothing is asked of them."""
        text = f"{converted.n_rows:,} rows of an exported dataset, with their questions, labels and sides."
        self.found[:] = [
            verdict("good" if converted.n_rows else "bad", text),
            *show_left_out(converted, converted.refused),
        ]
        if self._dataset is not None:
            self.kept_as.options = [_NEXT, _NEW]
        self._open_form()
        self._on_converted(converted)

    def _on_converted(self, converted: Converted | None) -> None:
        self.made = converted
        self.button.disabled = converted is None or not converted.n_rows or self.send.is_running

    def _show_unread(self, error: Exception) -> None:
        if isinstance(error, ValueError):
            text = escape_markdown(str(error))
            shown = empty(f"**The file cannot be imported.** {text} Nothing was stored.")
        else:
            shown = failed(problem_of(error, "Could not read the file."), self._again)
        self.found[:] = [shown]

    async def _look(self) -> None:
        converted = await asyncio.to_thread(
            lambda: with_single_truths(read_lines(Source(self._filename, self._data)))
        )
        check = await asyncio.to_thread(check_lines, self._client, converted)
        self._show_check(converted, check, await asyncio.to_thread(remarks_on, converted.lines))

    async def _send(self) -> None:
        if self.made is None and self.columns is not None:
            await self.columns.convert()
            while self.made is None and self.columns.convert.is_running:
                await self.columns.convert()  # another change was on its way
        if self.made is None or not self.made.n_rows:
            return  # pressed while another file was on its way
        self.button.disabled = True
        self.said[:] = []
        self._progress.param.update(value=0, visible=True)
        try:
            dataset = await asyncio.to_thread(self._keep)
            if self.made is not None:
                self._recorded = await asyncio.to_thread(
                    record_answers, self._client, dataset, self.made
                )
        finally:
            self._progress.visible = False
        self.button.disabled = False
        self.form.visible = False
        self.found[:] = []
        message = f"{dataset.name}, {self._what_came(dataset)}"
        self.said[:] = [verdict("good", "Imported:", escape_markdown(message))]
        self._on_done(dataset, f"Imported: {message}")

    def _what_came(self, dataset: Dataset) -> str:
        """Return the result of sending the file, in words."""
        before = self._dataset if self.is_next_version else None
        first = 1 if before is None else before.version + 1
        n_rows = dataset.rows - (0 if before is None else before.rows)
        n_left = dataset.duplicates_removed - (0 if before is None else before.duplicates_removed)
        text = counted(n_rows, "row")
        if dataset.version > first:
            text += (
                f". The file was sent in {dataset.version - first + 1} parts, each a version: "
                f"{first} to {dataset.version}"
            )
        else:
            text += f", version {dataset.version}"
        if n_left > 0:
            text += f". {n_left:,} duplicate{' was' if n_left == 1 else 's were'} left out"
        if self.made is not None and (refused := self.made.refused_by_server):
            text += f". {len(refused):,} that the server refused are left out. "
            text += describe_refused(refused)
            text = text.removesuffix(".")
        if self.made is not None and before is not None:
            text = ". ".join([text, *(note.removesuffix(".") for note in self.made.table.notes)])
        return f"{text}." if self._recorded is None else f"{text}. {self._recorded.summary}"

    def _show_failure(self, error: Exception) -> Problem:
        problem = problem_of(error, "Not imported:")
        # Without the permission, trying again would be refused again.
        self.button.disabled = problem.is_forbidden
        self.said[:] = [failed(problem)]
        notes = " ".join(getattr(error, "__notes__", ()))
        if not notes:
            return problem
        self.said.append(verdict("unsure", "Some rows are in:", notes))
        return replace(problem, message=f"{problem.message} Some rows are in: {notes}")

    @property
    def is_next_version(self) -> bool:
        """Whether the rows go to the open dataset."""
        return self._dataset is not None and self.kept_as.value == _NEXT

    def _keep(self) -> Dataset:
        assert self.made is not None  # noqa: S101  the button is there once rows are
        converted = self.made
        parts = converted.parts.values() if isinstance(converted.parts, dict) else [converted.parts]
        n_bytes = max(1, sum(part.n_bytes for part in parts))

        def show_sent(n_sent: int) -> None:
            self._progress.value = round(100 * n_sent / n_bytes)

        sending: dict[str, Any] = {
            "evaluation_fraction": float(self.fraction.value or DEFAULT_FRACTION),
            "progress": show_sent,
            "on_refused": converted,
        }
        if self._dataset is None or not self.is_next_version:
            name = self.name_field.value_input or name_of(self._filename)
            return self._client.datasets.create(name, converted.parts, **sending)
        self.made = converted = with_truths_of(converted, self._client, self._dataset)
        if not converted.n_rows:
            raise ValueError(converted.refused[-1].reason)
        sending["on_refused"] = converted
        return self._client.datasets.add_rows(self._dataset.id, converted.parts, **sending)

    def _show_empty(self) -> None:
        self._looking.drop()
        self._reading.drop()
        self._data, self.made = b"", None
        self.form.visible = False
        self.said[:] = []
        self.found[:] = [empty("**The file is empty.** Nothing was stored; choose another.")]

    def _show_check(self, converted: Converted, check: RowCheck, remarks: str) -> None:
        n_left = len(converted.refused) + check.n_refused
        left_out = show_left_out(
            converted, [*converted.refused, *converted.refused_by_server], n_left
        )
        if check.mistake or not check.n_good:
            text = (
                f"**No row can be imported.** {escape_markdown(check.mistake)} Nothing was stored."
            )
            self.found[:] = [empty(text), *left_out]
            return
        word = _LABELLED.get(check.method or "", "labels")
        self.found[:] = [verdict("good", f"{check.n_good:,} rows", f"with {word}."), *left_out]
        if remarks:
            self.found.append(verdict("unsure", "Look at the file:", remarks))
        if self._dataset is not None:
            self.kept_as.options = [_NEXT, _NEW]
            self.kept_as.value = _NEXT if self._dataset.method == check.method else _NEW
        self._open_form()
        self._on_converted(converted)

    def _open_form(self) -> None:
        self.name_field.value = self.name_field.value_input = name_of(self._filename)[:128]
        self.button.disabled = True
        self._fit()
        if not self.form.objects:
            self.form[:] = [
                *([self.kept_as] if self._dataset else []),
                number_fields(self.name_field, self.fraction),
                pmui.Row(self.button, self._progress),
            ]
        self.form.visible = True

    @param.depends("kept_as.value", watch=True)
    def _fit(self) -> None:
        self.name_field.visible = not self.is_next_version
        name = self._dataset.name if self._dataset else ""
        self.button.label = f"Add to {name}" if self.is_next_version else "Import"

    # The value comes last of the fields that the browser sends together, and may be the same twice.
    @param.depends("file.value", "file.filename", watch=True)
    def _on_file(self) -> None:
        if self.file.value and self.file.filename:
            schedule(self._again)

    async def _again(self, *_: Any) -> None:
        await self.take(self.file.filename or self._filename, self.file.value or self._data)
