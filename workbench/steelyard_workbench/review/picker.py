"""Choosing what to review: a dataset, and one of its open drafts or a new one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from typing import Any

import panel as pn
import panel_material_ui as pmui
from panel.viewable import Viewable, Viewer

from steelyard.client import Client
from steelyard.client.answers import DatasetAnswer
from steelyard.wire.drafts import Draft
from steelyard_workbench.components.facts import heading, table
from steelyard_workbench.components.numbers import ago
from steelyard_workbench.later import later
from steelyard_workbench.loaded import Loaded
from steelyard_workbench.problems import problem_of
from steelyard_workbench.session import Session
from steelyard_workbench.states import empty, failed, refused_button

#: Datasets that are offered, and drafts that are listed with their counts.
MOST_DATASETS, MOST_DRAFTS = 500, 20


@dataclass(frozen=True, slots=True)
class Choices:
    """What can be reviewed.

    Parameters
    ----------
    datasets : list
        The most recently used first.
    drafts : list of Draft
        Open ones of the chosen dataset, or of all while none is chosen; newest first.
    """

    datasets: list[DatasetAnswer]
    drafts: list[Draft]


class Picker(Viewer):
    """Asks which draft.

    Parameters
    ----------
    session : Session
        Has the dataset, and gets the draft.
    on_draft : callable
        Called once the session has a draft.
    """

    def __init__(self, session: Session, on_draft: Callable[[], None]) -> None:
        super().__init__()
        self._session, self._on_draft = session, on_draft
        self._client: Client = session.client
        self._said = pn.Column(sizing_mode="stretch_width")
        self.part = Loaded("The drafts", self._fetch, self._show)
        self._box = pn.Column(self.part, self._said, sizing_mode="stretch_width")

    def __panel__(self) -> Viewable:
        return self._box

    def choose(self, draft_id: str) -> None:
        """Review a draft."""
        self._session.param.update(draft=draft_id, query="")
        self._on_draft()

    async def start(self, *_: Any) -> None:
        """Begin a review of the chosen dataset's version."""
        dataset, version = self._session.dataset, self._session.version
        try:
            draft = await asyncio.to_thread(self._client.drafts.create, dataset, version or None)
        except Exception as error:  # noqa: BLE001  whatever it is, the person is told
            problem = problem_of(error, "A review")
            self._said[:] = [failed(problem)]
            if problem.is_forbidden:
                self._said.append(refused_button("Start a review", [problem.message]))
            return
        self.choose(draft.id)

    def _fetch(self) -> Choices:
        datasets = list(islice(self._client.datasets.iterate(), MOST_DATASETS))
        found = self._client.drafts.list(
            dataset_id=self._session.dataset or None, status="open", limit=MOST_DRAFTS
        )
        return Choices(datasets, [self._client.drafts.get(draft.id) for draft in found.data])

    def _show(self, choices: Choices) -> Viewable:
        if not choices.datasets:
            go = pmui.Button(label="Import a dataset", variant="contained")
            go.on_click(lambda _: self._session.open("datasets"))
            return empty(
                "A review goes through the rows of a dataset and sets their labels right. "
                "**There are no datasets yet.**",
                go,
            )
        names = {f"{one.name} ({one.rows:,} rows)": one.id for one in choices.datasets}
        if len(names) < len(choices.datasets):
            names = {
                f"{one.name} ({one.rows:,} rows, {one.id})": one.id for one in choices.datasets
            }
        known = self._session.dataset in names.values()
        # Where no choice is empty, Panel takes the first.
        dataset = pmui.Select(
            label="Dataset",
            options=names if known else {"": "", **names},
            value=self._session.dataset if known else "",
            width=380,
        )
        dataset.param.watch(self._on_dataset, "value")
        start = pmui.Button(label="Start a review", variant="contained", disabled=not known)
        start.on_click(lambda _: later(self.start))
        said = "" if known else "Choose the dataset to review."
        if known and self._session.version:
            said = f"Of version {self._session.version}."
        parts: list[Viewable] = [
            pn.Row(dataset, start, pmui.Typography(said, variant="body2")),
            heading("Open drafts"),
        ]
        if not choices.drafts:
            parts.append(empty("No review is open. **Start a review** begins one."))
        names_by_id = {one.id: one.name for one in choices.datasets}
        parts += [self._line(draft, names_by_id) for draft in choices.drafts]
        return pn.Column(*parts, sizing_mode="stretch_width")

    def _line(self, draft: Draft, names: dict[str, str]) -> Viewable:
        go = pmui.Button(label=f"Open {draft.name}", variant="outlined", size="small")
        go.on_click(lambda _: self.choose(draft.id))
        states = draft.states
        n_done = sum(states.get(name, 0) for name in ("accepted", "relabelled", "excluded"))
        of = f"{names.get(draft.dataset_id, draft.dataset_id)}, version {draft.dataset_version}"
        counts = (
            of,
            f"{n_done:,} of {draft.rows:,}",
            f"{states.get('relabelled', 0):,}",
            f"{states.get('excluded', 0):,}",
            f"{draft.noted:,}",
            ago(draft.updated_at),
        )
        columns = ("dataset", "decided", "relabelled", "excluded", "noted", "last edit")
        return pn.Column(
            table(columns, [counts], label=f"Draft {draft.name}"), go, sizing_mode="stretch_width"
        )

    def _on_dataset(self, event: Any) -> None:
        self._session.param.update(dataset=event.new or "", version=0)
        self.part.start()
