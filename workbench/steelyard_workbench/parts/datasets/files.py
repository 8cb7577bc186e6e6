"""Files of rows: reading those that are imported, and the dialog that exports a version."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import panel as pn
import panel_material_ui as pmui
from panel.viewable import Viewable

from steelyard.client import Client
from steelyard.client.dataset_calls import check_rows
from steelyard.client.row_sources import pieces_of
from steelyard.client.tables import Converted, Refused, refused_csv
from steelyard.datasets.wire import Dataset, Partition
from steelyard.wire.queries import ExportFormat
from steelyard_workbench.kit.basics import Boxed
from steelyard_workbench.kit.components.dialogs import DrawnDialog
from steelyard_workbench.kit.components.files import Download, ExportButtons
from steelyard_workbench.kit.views import verdict
from steelyard_workbench.kit.words import escape_markdown

#: Reasons that are listed.
_SHOWN_REASONS = 5
_EMPTY_CONTEXT = re.compile(rb'"context"\s*:\s*"\s*"')
_SIDES: dict[str, Partition] = {
    "both sides": "all",
    "training": "training",
    "evaluation": "evaluation",
}


@dataclass(frozen=True, slots=True)
class RowCheck:
    """The server's check of rows: how many it takes, their labels, or a ``mistake`` of all together."""

    n_good: int
    n_refused: int
    method: str | None
    mistake: str = ""


def check_lines(client: Client, converted: Converted) -> RowCheck:
    """Check every row without storing any, and note in ``converted`` those that a server refuses."""
    n_good = n_refused = 0
    mistake = ""
    methods: set[str] = set()
    for piece in pieces_of(converted.lines):
        checked = client.send(check_rows({"examples": piece.data}))
        n_good += checked.rows
        n_refused += checked.lines - checked.rows
        if checked.method is not None:
            methods.add(checked.method)
        is_listed = False
        for detail in checked.details:
            path = detail.get("path", ())
            if len(path) > 2 and isinstance(path[2], int):
                converted("examples", path[2] + piece.start, detail)
                is_listed = True
        if checked.code is not None and not is_listed:
            mistake = checked.message or ""
    if len(methods) > 1:
        mistake = "Some rows have targets and others rewards; a dataset has one of them."
    return RowCheck(n_good, n_refused, methods.pop() if len(methods) == 1 else None, mistake)


def show_left_out(
    converted: Converted, refused: Sequence[Refused], n: int | None = None
) -> list[Viewable]:
    """Return the skipped rows of a file, ``n`` of which are listed, and a way to download them."""
    if not refused:
        return []
    listed = refused[:_SHOWN_REASONS]
    reasons = "\n".join(f"- {row.place}: {escape_markdown(row.reason)}" for row in listed)
    return [
        verdict("unsure", f"{n or len(refused):,} left out:", f"\n\n{reasons}"),
        Download(
            "Download the rows that are left out",
            lambda: refused_csv(converted.table.columns, refused),
            lambda: "left-out.csv",
        ),
    ]


def name_of(filename: str) -> str:
    """Return the name that a dataset of a file would have.

    >>> name_of("support_triage.jsonl")
    'support_triage'
    """
    return filename.rpartition(".")[0] or filename


def remarks_on(rows: Sequence[bytes]) -> str:
    """Return remarks on rows in words: repeated lines, empty contexts."""
    lines = [line for line in rows if line.strip()]
    remarks = []
    if n_twice := len(lines) - len(set(lines)):
        remarks.append(
            "1 line is repeated, and is left out."
            if n_twice == 1
            else f"{n_twice:,} lines are repeated, and are left out."
        )
    if n_empty := sum(_EMPTY_CONTEXT.search(line) is not None for line in lines):
        remarks.append(
            "1 row has an empty text." if n_empty == 1 else f"{n_empty:,} rows have an empty text."
        )
    return " ".join(remarks)


def export_dialog(client: Client, dataset: Dataset, version: int) -> DrawnDialog:
    """Return a dialog with the downloads of a version, which are made when it is opened."""
    return DrawnDialog(
        f"Export version {version}",
        draw=lambda: [ExportBar(client, dataset.id, dataset.name, version)],
        width=420,
    )


class ExportBar(Boxed):
    """Buttons that download a version."""

    def __init__(self, client: Client, dataset_id: str, name: str, version: int) -> None:
        super().__init__()
        self._client, self._dataset_id, self._version = client, dataset_id, version
        self._name = re.sub(r"[^\w.-]+", "_", name).strip("._") or "dataset"
        self.side = pmui.Select(
            label="Rows to export", options=_SIDES, value="all", width=170, size="small"
        )
        self.json_lines = Download(
            "Download JSON Lines", self._rows, lambda: self._filename("jsonl")
        )
        self.exports = ExportButtons(self._export, self._filename)
        self._box = pn.FlexBox(
            self.side, self.json_lines, *self.exports.downloads.values(), align_items="center"
        )

    def _rows(self) -> bytes:
        return self._client.datasets.download(
            self._dataset_id, partition=self.side.value, version=self._version
        )

    def _export(self, format_: ExportFormat) -> bytes:
        return self._client.datasets.export(
            self._dataset_id, format=format_, partition=self.side.value, version=self._version
        )

    def _filename(self, ending: str) -> str:
        side = "" if self.side.value == "all" else f"-{self.side.value}"
        return f"{self._name}-v{self._version}{side}.{ending}"
