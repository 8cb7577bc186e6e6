"""Taking a version's rows along, in any format, of one side or both."""

from __future__ import annotations

import re

import panel as pn
import panel_material_ui as pmui

from steelyard.client import Client
from steelyard.datasets.wire import Dataset, Partition
from steelyard.wire.queries import ExportFormat
from steelyard_workbench.kit.basics import Boxed
from steelyard_workbench.kit.components.dialogs import DrawnDialog
from steelyard_workbench.kit.components.files import Download, ExportButtons

_SIDES: dict[str, Partition] = {
    "both sides": "all",
    "training": "training",
    "evaluation": "evaluation",
}


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
