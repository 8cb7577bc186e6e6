"""The form that starts a labeling job: the rows, their decisions, the teachers, and the price."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import panel as pn
import panel_material_ui as pmui
from msgspec import UNSET
from panel.viewable import Viewable

from steelyard.client import Client
from steelyard.client.packed_lines import PackedLines
from steelyard.client.stored_queries import unsure_queries
from steelyard.client.tables import (
    ENDINGS,
    Mapping,
    Refused,
    are_rows,
    convert,
    describe_refused,
    guess_mapping,
    read_lines,
    read_table,
)
from steelyard.datasets.wire import Dataset
from steelyard.imports.encodings import Source
from steelyard.labeling.wire import LabelingJob, LabelingSource, TeacherList
from steelyard_workbench.kit.basics import Boxed, action_button, small_text, stack
from steelyard_workbench.kit.components.files import FileChooser
from steelyard_workbench.kit.components.side_by_side import number_fields
from steelyard_workbench.kit.problems import LackingError
from steelyard_workbench.kit.tasks import Scope, Write
from steelyard_workbench.kit.views import card, heading, verdict
from steelyard_workbench.kit.words import escape_markdown
from steelyard_workbench.parts.balance import AgreedPrice
from steelyard_workbench.parts.datasets.files import name_of
from steelyard_workbench.parts.datasets.names import dataset_options
from steelyard_workbench.parts.datasets.row_pages import every_row

_FILE, _DATASET, _LIVE = "A file", "Rows of a dataset", "Unsure answers of Live"
_OWN = ""
_WEEK_S = 7 * 86_400.0
#: What rows of a file keep.
_FIELDS = ("context", "decisions", "metadata")
#: An answer whose top probability is at most this is unsure.
_UNSURE = 0.6
_WHAT = (
    "Models label every row, each for itself: connected models and model lines. You see the price first, "
    "accept the rows that are right, and make a dataset of them."
)


@dataclass(frozen=True, slots=True)
class _Uploaded:
    """Uploaded rows, with their selection: the same selection sends no rows again."""

    choice: tuple[Any, ...]
    source_id: str
    rows: int
    left_out: list[Refused]


class LabelingForm(Boxed):
    """The form; a price that is not nothing is shown first, and held on the next press."""

    def __init__(
        self,
        client: Client,
        datasets: Sequence[Dataset],
        teachers: TeacherList,
        open_job: Callable[[LabelingJob], None],
        scope: Scope | None = None,
    ) -> None:
        self._client, self._open_job = client, open_job
        self._data, self._filename = b"", ""
        self._price = AgreedPrice()
        self._uploaded: _Uploaded | None = None
        names = dataset_options(datasets, with_rows=True)
        sources = [_FILE, *([_DATASET] if datasets else []), _LIVE]
        self.source = pmui.RadioButtonGroup(label="Rows from", options=sources, value=_FILE)
        self.file = FileChooser(
            lambda: self._say_of_file("The file is empty."),
            label="Choose a file",
            accept=",".join(ENDINGS),
            variant="outlined",
        )
        self._file_text = small_text("")
        self.dataset = pmui.Select(label="Dataset", options=names, width=330)
        if names:
            self.dataset.value = next(iter(names.values()))
        self.n_rows = pmui.IntInput(label="At most rows", value=500, start=1, end=10_000, width=140)
        self.asked = pmui.Select(
            label="Ask",
            options={"Another question": _OWN} | {f"As in {n}": id_ for n, id_ in names.items()},
            value=_OWN,
            width=330,
        )
        self.question = pmui.TextInput(label="Question", max_length=1_000, width=340)
        self.outcomes = pmui.TextInput(label="Answers, with commas", max_length=4_000, width=340)
        self.teachers = pmui.MultiChoice(
            label="Teachers",
            options={teacher.name: teacher.id for teacher in teachers.data},
            value=list(teachers.defaults.get("default", []))[:8],
            width=340,
        )
        self._doubt_by_teacher = {each.id: each.doubt for each in teachers.data if each.doubt}
        self.doubts = stack()
        self.said = stack()
        super().__init__()
        fields = {
            "question": self.question,
            "outcomes": self.outcomes,
            "teacher_models": self.teachers,
        }
        self.begin = Write(self._begin, "Not started:", self.said, scope=scope, fields=fields)
        self.start = action_button(
            "Show the price and start", self.begin.on_event, variant="contained"
        )
        self._of_file = pn.Column(
            pn.FlexBox(self.file, self._file_text, align_items="center"), self.asked
        )
        self._own = pn.FlexBox(self.question, self.outcomes)
        self.file.param.watch(self._take, "value")
        for field in (self.source, self.asked):
            pn.bind(self._fit, field, watch=True)
        pn.bind(self._warn, self.teachers, watch=True)
        self._fit()
        self._warn()
        self._box = card(
            heading("Label rows"),
            small_text(_WHAT),
            self.source,
            self._of_file,
            self._own,
            number_fields(self.dataset, self.n_rows),
            self.teachers,
            self.doubts,
            self.start,
            self.said,
        )

    def take(self, filename: str, data: bytes) -> None:
        """Label the rows of a file."""
        self._filename, self._data = filename, data
        self._say_of_file(f"{filename}, {len(data):,} bytes")

    def _take(self, *_: Any) -> None:
        if self.file.value:
            self.take(str(self.file.filename), bytes(self.file.value))

    def _say_of_file(self, text: str) -> None:
        self._file_text.object = escape_markdown(text)

    def _fit(self, *_: Any) -> None:
        """Show the fields of the chosen source."""
        source = self.source.value
        self._of_file.visible = source == _FILE
        self._own.visible = source == _FILE and self.asked.value == _OWN
        self.dataset.visible = source == _DATASET
        self.n_rows.visible = source != _FILE

    def _warn(self, *_: Any) -> None:
        """Show why chosen teachers are not to be relied on."""
        doubts = self._doubt_by_teacher
        text = " ".join(
            f"{name}: {doubts[name]}." for name in self.teachers.value if name in doubts
        )
        self.doubts[:] = (
            [verdict("unsure", "Not qualified.", escape_markdown(text))] if text else []
        )

    async def _begin(self) -> None:
        self.said[:] = []
        try:
            decisions = await asyncio.to_thread(self._decisions)
            source = await asyncio.to_thread(self._upload)
        except ValueError as error:
            self.said[:] = [verdict("unsure", "Not started.", escape_markdown(str(error)))]
            return
        job = await asyncio.to_thread(
            self._price.start,
            lambda usd: self._client.labeling.create(
                source.source_id,
                teacher_models=list(self.teachers.value),
                decisions=decisions,
                max_price_usd=usd,
            ),
        )
        self.said[:] = _show_left_out(source.left_out)
        if job is not None:
            self._open_job(job)
            return
        sentence = f"Labeling {source.rows:,} rows costs {self._price.usd} USD."
        advice = "Press again to reserve that amount and start."
        self.said.insert(0, verdict("unsure", sentence, advice))

    def _decisions(self) -> list[dict[str, Any]] | None:
        """Return the decisions for a file's rows; ``None`` when rows carry their own."""
        if not self.teachers.value:
            raise LackingError(self.teachers, "Choose at least one teacher.")
        if self.source.value == _FILE and not self._data:
            raise LackingError(None, "Choose a file with the rows.")
        if self.source.value != _FILE or are_rows(self._data):
            return None
        if self.asked.value != _OWN:
            dataset = self._client.datasets.get(str(self.asked.value))
            if dataset.prompt_tuning is UNSET or not dataset.prompt_tuning.decisions:
                raise ValueError(f"{dataset.name} lists no decisions. Write a question instead.")
            return [dict(decision.decision) for decision in dataset.prompt_tuning.decisions]
        question = str(self.question.value).strip()
        outcomes = [text.strip() for text in str(self.outcomes.value).split(",") if text.strip()]
        if not question:
            raise LackingError(self.question, "Write the question that teachers answer.")
        if not outcomes:
            return [{"id": "label", "kind": "binary", "question": question}]
        return [{"id": "label", "question": question, "outcomes": outcomes}]

    def _upload(self) -> _Uploaded:
        source = self.source.value
        choice = (
            (source, self._filename, hash(self._data))
            if source == _FILE
            else (source, self.dataset.value, self.n_rows.value)
        )
        if self._uploaded is not None and self._uploaded.choice == choice and source != _LIVE:
            return self._uploaded
        if source == _FILE:
            made, left_out = self._send_file()
        else:
            made, left_out = self._client.labeling.upload(*self._rows()), []
        self._uploaded = _Uploaded(choice, made.id, made.rows, left_out)
        return self._uploaded

    def _rows(self) -> tuple[str, list[dict[str, Any]]]:
        """Return a name for the rows, and the rows without labels."""
        most = int(self.n_rows.value or 500)
        if self.source.value == _LIVE:
            rows = unsure_queries(self._client, window_s=_WEEK_S, unsure=_UNSURE, limit=most)
            if not rows:
                raise ValueError(
                    "Live has no unsure answer of the last 7 days without feedback. Ask with "
                    "store=true first, or choose other rows."
                )
            return "Unsure answers of Live", rows
        dataset = self._client.datasets.get(str(self.dataset.value))
        queries = [
            {"context": row.context, "decisions": row.decisions}
            for row in islice(every_row(self._client, dataset.id), most)
        ]
        return dataset.name, queries

    def _send_file(self) -> tuple[LabelingSource, list[Refused]]:
        """Upload the rows of the file without their labels; return the skipped ones too."""
        if are_rows(self._data):
            made = read_lines(Source(self._filename, self._data))
            lines = PackedLines()
            for line in made.lines:
                lines.append(_without_labels(line))
            made = replace(made, lines=lines)
        else:
            table = read_table(self._data, self._filename)
            made = convert(table, Mapping(guess_mapping(table).context)).without_sides()
        if not made.n_rows:
            raise ValueError(f"No row can be used. {describe_refused(made.refused)}")
        source = self._client.labeling.upload(name_of(self._filename), made.lines, on_refused=made)
        return source, [*made.refused, *made.refused_by_server]


def _show_left_out(refused: Sequence[Refused]) -> list[Viewable]:
    if not refused:
        return []
    text = escape_markdown(describe_refused(refused))
    return [verdict("unsure", f"{len(refused):,} left out:", text)]


def _without_labels(line: bytes) -> bytes:
    row = json.loads(line) if line.strip() else {}
    fields = {name: row[name] for name in _FIELDS if row.get(name) is not None}
    return json.dumps(fields, ensure_ascii=False).encode() + b"\n" if fields else b"\n"
