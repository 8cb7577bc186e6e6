"""Evaluations: those of a dataset, starting more, and one of them with the rows behind its figures."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Any

import panel as pn
import panel_material_ui as pmui
from panel.viewable import Viewable

from steelyard.client import Client
from steelyard.datasets.wire import Dataset
from steelyard.errors import DatasetDeletedError, NotFoundError
from steelyard.evaluations.wire import ENDED, Evaluation
from steelyard_workbench.kit.basics import action_button, small_text, stack
from steelyard_workbench.kit.page import Loaded, OnePartPage
from steelyard_workbench.kit.problems import leave_to_banner
from steelyard_workbench.kit.session import Session
from steelyard_workbench.kit.tasks import Task
from steelyard_workbench.kit.views import behind_button, empty
from steelyard_workbench.kit.words import escape_markdown
from steelyard_workbench.pages.evaluations.over_time import RunsOverTime
from steelyard_workbench.parts.datasets.names import dataset_name, dataset_options, no_datasets
from steelyard_workbench.parts.evaluations.listing import (
    EvaluationForm,
    EvaluationLine,
    EvaluationList,
    name_of,
    succeeded,
)
from steelyard_workbench.parts.evaluations.opened import OpenedEvaluation
from steelyard_workbench.parts.evaluations.scored import Scored

#: Datasets, and evaluations to compare with, that are offered.
MOST_CHOICES = 200


class EvaluationsPage(OnePartPage):
    """The evaluations of a dataset, or one of them."""

    slug = "evaluations"
    title = "Evaluations"
    summary = (
        "How often models are right on rows that they have never seen, and where they go wrong."
    )
    watched = ("dataset", "evaluation")
    look_ms = 2000

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.list: EvaluationList | None = None
        self.form: EvaluationForm | None = None
        self.over_time: RunsOverTime | None = None
        self.opened: OpenedEvaluation | None = None
        self.waiting: EvaluationLine | None = None

    def on_key(self, action: str, _: int) -> bool:
        """Go through the rows of the opened evaluation."""
        return self.opened is not None and self.opened.browser.on_key(action)

    async def look(self) -> None:
        """Refresh running work."""
        if self.list is not None:
            before = self.list.n_succeeded
            await self.list.look()
            if self.list.n_succeeded != before and self.over_time is not None:
                await self.over_time.part.refresh(quietly=True)
        if self.waiting is not None:
            await self._look_at(self.waiting)

    async def _look_at_line(self, line: EvaluationLine) -> None:
        evaluation = await asyncio.to_thread(self.client.evaluations.get, line.evaluation.id)
        line.update(evaluation, None)
        if evaluation.status == "succeeded":
            await self.parts[0].refresh()

    def on_session(self, *events: Any) -> None:
        """Show the present selection."""
        if self.session.evaluation and all(event.name == "dataset" for event in events):
            return  # an evaluation that is opened names its dataset
        self.session.selected = []
        super().on_session(*events)

    def content(self) -> list[Viewable]:
        """Return the list or the opened evaluation."""
        self.list, self.form, self.over_time = None, None, None
        self.opened, self.waiting = None, None
        self._look_at = Task(self._look_at_line, on_failure=leave_to_banner, scope=self.visit)
        if self.session.evaluation:
            return [self.part(Loaded("The evaluation", self._fetch_opened, self._show_opened))]
        return [self.part(Loaded("The datasets", self._fetch_datasets, self._show_datasets))]

    def _fetch_datasets(self) -> tuple[Sequence[Dataset], str]:
        return datasets_and_chosen(self.client, self.session.dataset)

    async def _show_datasets(self, offered: tuple[Sequence[Dataset], str]) -> Viewable:
        datasets, chosen = offered
        if not datasets:
            return no_datasets(self.session, "An evaluation scores a model on a dataset's rows.")
        known = {dataset.id: dataset for dataset in datasets}
        select = dataset_select(self.session, datasets, chosen, query="", view="")
        if chosen not in known:
            return stack(select, no_dataset(chosen))
        if known[chosen].split.evaluation == 0:
            text = "This dataset has no rows for the check, so nothing can be scored on it."
            return stack(select, empty(text))
        self.list = EvaluationList(self.session, chosen, self.visit)
        self.form = EvaluationForm(self.client, chosen, self.list.part.refresh)
        self.over_time = RunsOverTime(self.client, chosen, self._open_evaluation)
        parts: list[Loaded[Any]] = [self.form.part, self.list.part, self.over_time.part]
        for part in parts:
            self.part(part)
        await asyncio.gather(*(part.refresh() for part in parts))
        # Without a result the page begins with what makes one.
        evaluate, self.form_box = behind_button("Evaluate a model", self.form)
        self.form_box.visible = not self.list.lines
        return stack(
            pn.FlexBox(select, evaluate, align_items="center"),
            self.form_box,
            self.list,
            self.over_time,
        )

    def _open_evaluation(self, evaluation_id: str) -> None:
        self.session.param.update(evaluation=evaluation_id, query="", view="")

    def _fetch_opened(self) -> Scored | Evaluation:
        evaluation = self.client.evaluations.get(self.session.evaluation)
        if evaluation.status != "succeeded":
            return evaluation
        # Evaluations outlast their dataset.
        name = dataset_name(self.client, evaluation.dataset_id)
        newest = islice(self.client.evaluations.list(evaluation.dataset_id), MOST_CHOICES)
        others = [other for other in succeeded(list(newest)) if other.id != evaluation.id]
        detail = self.client.evaluations.detail(evaluation.id)
        try:
            people = self.client.drafts.people_agreement(
                evaluation.dataset_id, evaluation.dataset_version
            )
        except (NotFoundError, DatasetDeletedError):  # or a server before 0.4
            people = None
        return Scored(evaluation, detail, name, others, people)

    async def _show_opened(self, opened: Scored | Evaluation) -> Viewable:
        if isinstance(opened, Evaluation):
            line = EvaluationLine(self.session, opened, None, self.parts[0].refresh)
            self.waiting = line if opened.status not in ENDED else None
            text = (
                "Figures are here once it has succeeded."
                if self.waiting is not None
                else "It has no figures. Press *Retry* to go on from what was scored."
            )
            return stack(line, empty(text))
        self.waiting = None
        self.opened = OpenedEvaluation(
            self.session, opened, self.visit, verbs=self._comparing(opened)
        )
        of = opened.evaluation
        self.session.param.update(dataset=of.dataset_id, version=of.dataset_version, selected=[])
        await self.opened.refresh()
        return self.opened.__panel__()

    def _comparing(self, scored: Scored) -> list[Viewable]:
        if not scored.others:
            return [small_text("Evaluate another model on this dataset to compare the two.")]
        others = {name_of(evaluation): evaluation.id for evaluation in scored.others}
        select = pmui.Select(label="Compare with", options=others, width=340, size="small")
        button = action_button(
            "Compare",
            lambda _: self.session.open(
                "compare",
                dataset=scored.evaluation.dataset_id,
                before=select.value,
                after=scored.evaluation.id,
            ),
            size="small",
        )
        return [select, button]


def offered_datasets(client: Client, chosen: str) -> list[Dataset]:
    """Return the datasets that are offered: the first ones, and the chosen one if it is there."""
    offered: list[Dataset] = list(client.datasets.list(limit=MOST_CHOICES).data)
    if chosen and all(dataset.id != chosen for dataset in offered):
        with suppress(NotFoundError, DatasetDeletedError):
            offered.append(client.datasets.get(chosen))
    return offered


def datasets_and_chosen(client: Client, chosen: str, **of: Any) -> tuple[list[Dataset], str]:
    """Return the datasets that are offered, and the chosen one: by default that evaluated last."""
    datasets = offered_datasets(client, chosen)
    if datasets and not chosen:
        chosen = last_evaluated(client, datasets, **of)
    return datasets, chosen


def last_evaluated(
    client: Client, datasets: Sequence[Dataset], *, method: str | None = None, n: int = 1
) -> str:
    """Return the id of the dataset that was evaluated last, the first's where none was.

    Only of those with labels of ``method``, and with ``n`` successful evaluations at least.
    """
    fitting = [each.id for each in datasets if method in (None, each.method)]
    runs = islice(client.jobs.all(kind="evaluation", status="succeeded"), MOST_CHOICES)
    counts = Counter(run.dataset_id for run in runs if run.dataset_id in fitting)
    evaluated = (id_ for id_, n_runs in counts.items() if n_runs >= n)
    return next(evaluated, (fitting or [datasets[0].id])[0])


def no_dataset(dataset_id: str) -> Viewable:
    """Show that the chosen dataset is not there."""
    return empty(f"There is no dataset “{escape_markdown(dataset_id)}”. Choose another one.")


def dataset_select(
    session: Session, datasets: Sequence[Dataset], chosen: str, **cleared: str
) -> pmui.Select:
    """Return the field that chooses the session's dataset, by name, and clears other choices."""
    options = dataset_options(datasets)
    if chosen not in options.values():
        options[chosen] = chosen
    field = pmui.Select(
        label="Dataset", options=options, value=chosen, width=340, searchable=len(options) > 10
    )
    choose = partial(session.param.update, version=0, **cleared)
    pn.bind(lambda id_: choose(dataset=id_), field, watch=True)
    return field
