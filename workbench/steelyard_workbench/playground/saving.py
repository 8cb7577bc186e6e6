"""A question that was asked, kept as a row of a dataset with the right answer."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import panel as pn
import panel_material_ui as pmui
from panel.viewable import Viewable, Viewer

from steelyard.client.answers import DecideAnswer
from steelyard.datasets.wire import Dataset
from steelyard_workbench.loaded import Loaded
from steelyard_workbench.session import Session
from steelyard_workbench.states import empty, verdict
from steelyard_workbench.tasks import Scope, Write

_MOST_DATASETS = 200
_NONE = "—"
#: What of a request is part of a row.
_OF_ROW = ("context", "images", "decisions")


class SaveRow(Viewer):
    """Saves what was asked as a row, with the outcomes that the person says are right.

    Parameters
    ----------
    answers : sequence of DecideAnswer
        What models said: the outcome that most say is offered first.
    labels : mapping
        Decision to the outcome that is known to be right; that goes before what models say.
    """

    def __init__(
        self,
        session: Session,
        request: Mapping[str, Any],
        answers: Sequence[DecideAnswer],
        labels: Mapping[str, str],
        scope: Scope,
    ) -> None:
        super().__init__()
        self._session, self._request = session, request
        self._names: dict[str, str] = {}
        self.dataset = pmui.Select(label="Dataset", options=[], width=240, size="small")
        self.side = pmui.Select(
            label="Side", options=["training", "evaluation"], width=140, size="small"
        )
        self.right = {
            name: pmui.Select(
                label=f"Right for {name}",
                options=[_NONE, *answers[0].decisions[name].probabilities],
                value=labels.get(name, _most_said(name, answers)),
                width=200,
                size="small",
            )
            for name in answers[0].decisions
        }
        self._said = pn.Column(sizing_mode="stretch_width")
        self.save = Write(
            self._save, "Not saved:", self._said, refused="Save as a row", scope=scope
        )
        button = pmui.Button(label="Save as a row", variant="outlined", size="small")
        button.on_click(self.save.on_event)
        self._fields = pn.Column(
            pn.FlexBox(*self.right.values()),
            pn.FlexBox(self.dataset, self.side, button, align_items="center"),
            self._said,
            sizing_mode="stretch_width",
        )
        self.part: Loaded[list[Dataset]] = Loaded(
            "The datasets", self._fetch, self._show, n_lines=1
        )

    def __panel__(self) -> Viewable:
        return self.part.__panel__()

    def _fetch(self) -> list[Dataset]:
        return list(self._session.client.datasets.list(limit=_MOST_DATASETS).data)

    def _show(self, datasets: Sequence[Dataset]) -> Viewable:
        open_ones = [one for one in datasets if one.method == "sft"]
        if not open_ones:
            return empty("Import a dataset, and what was asked here can be saved as a row of it.")
        self._names = {one.id: one.name for one in open_ones}
        chosen = self._session.dataset
        self.dataset.param.update(
            options={_label(one, open_ones): one.id for one in open_ones},
            value=chosen if chosen in self._names else open_ones[0].id,
        )
        return self._fields

    async def _save(self) -> None:
        labels = {name: field.value for name, field in self.right.items() if field.value != _NONE}
        if not labels:
            self._said[:] = [empty("Say which outcome is right, of one decision at least.")]
            return
        row = {
            **{name: self._request[name] for name in _OF_ROW if name in self._request},
            "targets": {name: {outcome: 1.0} for name, outcome in labels.items()},
        }
        id_ = str(self.dataset.value)
        given: dict[str, Any] = {str(self.side.value): [row]}
        made = await asyncio.to_thread(self._session.client.datasets.add_rows, id_, **given)
        go = pmui.Button(label="Open the dataset", variant="text", size="small")
        go.on_click(lambda _: self._session.open("datasets", dataset=id_, version=0))
        text = f"version {made.version} of {self._names[id_]} has it."
        if not self.save.scope.say_if_ended(f"Saved: {text}"):
            self._said[:] = [verdict("good", f"Saved: {text}"), go]


def _most_said(name: str, answers: Sequence[DecideAnswer]) -> str:
    return Counter(answer.decisions[name].top for answer in answers).most_common(1)[0][0]


def _label(one: Dataset, among: Sequence[Dataset]) -> str:
    is_alone = sum(other.name == one.name for other in among) == 1
    return one.name if is_alone else f"{one.name} ({one.id})"
