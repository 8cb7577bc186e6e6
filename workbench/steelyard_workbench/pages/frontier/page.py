"""Frontier: which of a dataset's evaluated models no other model beats."""

from __future__ import annotations

from collections.abc import Sequence

from panel.viewable import Viewable

from steelyard.datasets.wire import Dataset
from steelyard_workbench.kit.basics import action_button, stack
from steelyard_workbench.kit.loaded import Loaded
from steelyard_workbench.kit.one_part_page import OnePartPage
from steelyard_workbench.kit.session import Session
from steelyard_workbench.kit.states import empty
from steelyard_workbench.pages.evaluations.page import (
    dataset_select,
    last_evaluated,
    no_dataset,
    offered_datasets,
)
from steelyard_workbench.pages.frontier.frontier import FrontierPanel
from steelyard_workbench.parts.datasets.names import no_datasets


class FrontierPage(OnePartPage):
    """The models that were evaluated on a dataset, against each other."""

    slug = "frontier"
    title = "Quality and price"
    summary = (
        "How often each model is right on the same rows, against its price or the time it takes."
    )
    watched = ("dataset",)

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.frontier: FrontierPanel | None = None

    def content(self) -> list[Viewable]:
        """Return the choice of a dataset, and its frontier."""
        self.frontier = None
        self.shown = Loaded("The datasets", self._fetch, self._show)
        return [self.part(self.shown)]

    def _fetch(self) -> tuple[Sequence[Dataset], str]:
        chosen = self.session.dataset
        datasets = offered_datasets(self.client, chosen)
        if datasets and not chosen:
            chosen = last_evaluated(self.client, datasets, method="sft")
        return datasets, chosen

    async def _show(self, offered: tuple[Sequence[Dataset], str]) -> Viewable:
        datasets, chosen = offered
        if not datasets:
            return no_datasets(self.session, "This page compares the models of one.")
        known = {dataset.id: dataset for dataset in datasets}
        select = dataset_select(self.session, datasets, chosen)
        if chosen not in known:
            return stack(select, no_dataset(chosen))
        if known[chosen].method != "sft":
            text = "This dataset has rewards and no labels, which this page needs."
            go = action_button(
                "Compare two models",
                lambda _: self.session.open("compare", dataset=chosen),
                variant="contained",
            )
            return stack(select, empty(text, go))
        self.frontier = FrontierPanel(
            self.client,
            chosen,
            self._open,
            lambda: self.session.open("evaluations", dataset=chosen, evaluation=""),
        )
        self.part(self.frontier.part)
        await self.frontier.part.refresh()
        return stack(select, self.frontier)

    def _open(self, evaluation_id: str) -> None:
        self.session.open("evaluations", evaluation=evaluation_id)
