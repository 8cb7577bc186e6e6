"""Frontier: which of a dataset's evaluated models no other model beats."""

from __future__ import annotations

from collections.abc import Sequence

import panel as pn
import panel_material_ui as pmui
from panel.viewable import Viewable

from steelyard.datasets.wire import Dataset
from steelyard_workbench.kit.loaded import Loaded
from steelyard_workbench.kit.one_part_page import OnePartPage
from steelyard_workbench.kit.session import Session
from steelyard_workbench.kit.states import empty
from steelyard_workbench.pages.evaluations.page import dataset_select, no_dataset, offered_datasets
from steelyard_workbench.pages.frontier.frontier import FrontierPanel


class FrontierPage(OnePartPage):
    """The models that were evaluated on a dataset, against each other."""

    slug = "frontier"
    title = "Quality and price"
    summary = "Quality against price or latency, on the same rows: which model to take."
    watched = ("dataset",)

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.frontier: FrontierPanel | None = None

    def content(self) -> list[Viewable]:
        """Return the choice of a dataset, and its frontier."""
        self.frontier = None
        self.shown = Loaded("The datasets", self._fetch, self._show)
        return [self.part(self.shown)]

    def _fetch(self) -> Sequence[Dataset]:
        return offered_datasets(self.client, self.session.dataset)

    async def _show(self, datasets: Sequence[Dataset]) -> Viewable:
        if not datasets:
            go = pmui.Button(label="Go to Datasets", variant="contained")
            go.on_click(lambda _: self.session.open("datasets", dataset=""))
            return empty("No datasets yet. This page compares the models of one.", go)
        known = {dataset.id: dataset for dataset in datasets}
        labelled = [dataset.id for dataset in datasets if dataset.method == "sft"]
        chosen = self.session.dataset or (labelled or [datasets[0].id])[0]
        select = dataset_select(datasets, chosen)
        pn.bind(lambda id_: self.session.param.update(dataset=id_, version=0), select, watch=True)
        if chosen not in known:
            return pn.Column(select, no_dataset(chosen), sizing_mode="stretch_width")
        if known[chosen].method != "sft":
            text = "This dataset has rewards and no labels, which this page needs."
            go = pmui.Button(label="Compare two models", variant="contained")
            go.on_click(lambda _: self.session.open("compare", dataset=chosen))
            return pn.Column(select, empty(text, go), sizing_mode="stretch_width")
        self.frontier = FrontierPanel(self.client, chosen, self._open)
        self.part(self.frontier.part)
        await self.frontier.part.refresh()
        return pn.Column(select, self.frontier, sizing_mode="stretch_width")

    def _open(self, evaluation_id: str) -> None:
        self.session.open("evaluations", evaluation=evaluation_id)
