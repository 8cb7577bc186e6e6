"""Prompt tuning: jobs that rewrite a decision's wording, and the result of each."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice
from typing import Any

import msgspec
import panel as pn
import panel_material_ui as pmui
from msgspec import UNSET
from panel.viewable import Viewable, Viewer

from steelyard.client import Client
from steelyard.datasets.definitions import MIN_ROWS, MIN_ROWS_PER_OUTCOME
from steelyard.datasets.wire import Dataset, DecisionReadiness
from steelyard.prompt_tuning.wire import PromptTuningJob
from steelyard.wire.jobs import UNFINISHED
from steelyard_workbench.kit.basics import Boxed, action_button, stack
from steelyard_workbench.kit.components.mark_table import mark_table
from steelyard_workbench.kit.components.model_fields import offer_models
from steelyard_workbench.kit.page import Loaded, OnePartPage
from steelyard_workbench.kit.problems import not_loaded
from steelyard_workbench.kit.session import Session
from steelyard_workbench.kit.tasks import Scope, Task, Write
from steelyard_workbench.kit.views import behind_button, empty, facts, heading, table, verdict
from steelyard_workbench.kit.words import ago
from steelyard_workbench.pages.tuning.result import keyword_parts, show_result
from steelyard_workbench.parts.balance import AgreedPrice
from steelyard_workbench.parts.datasets.names import dataset_name, dataset_options
from steelyard_workbench.parts.datasets.row_pages import every_row

_MOST = 100
_NONE = "No wording was tuned yet. A tuned wording keeps the answers' names and changes the words around them."
_Listed = tuple[list[PromptTuningJob], list[Dataset]]
#: The most rows that are read here and sent again.
MAX_ROWS = 20_000
_PAGE = 500


class TuningPage(OnePartPage):
    """The prompt-tuning jobs, or the result of one of them."""

    slug = "tuning"
    title = "Prompt tuning"
    summary = "A decision's question and descriptions, rewritten on your rows and proved on others."
    watched = ("tuning",)
    look_ms = 2000

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.form: TuningForm | None = None

    async def look(self) -> None:
        """Bring the job that runs up to date."""
        part = self.shown
        if part is None or part.state != "shown" or not self.session.tuning:
            return
        if part.data is not None and part.data[0].status in UNFINISHED:
            await part.refresh(quietly=True)

    def content(self) -> list[Viewable]:
        """Return the list, or the selected item."""
        self.form = None
        if not self.session.tuning:
            self.shown = Loaded("The prompt-tuning jobs", self._fetch, self._show)
            return [self.part(self.shown)]
        self.shown = Loaded("The prompt-tuning job", self._fetch_opened, self._show_opened)
        return [self.part(self.shown)]

    def _fetch(self) -> _Listed:
        jobs = list(islice(self.client.prompt_tuning.list(), _MOST))
        datasets = list(islice(self.client.datasets.iterate(), _MOST))
        # Rows with rewards have no label that a wording could hit.
        return jobs, sorted(datasets, key=lambda dataset: dataset.method != "sft")

    def _show(self, listed: _Listed) -> Viewable:
        jobs, datasets = listed
        views: list[Viewable | Viewer] = []
        if datasets:
            self.form = TuningForm(
                self.client,
                datasets,
                self.session.dataset,
                lambda job: self.session.param.update(tuning=job.id),
                self.visit,
            )
            views += behind_button("Tune a wording", self.form) if jobs else [self.form]
        names = {dataset.id: dataset.name for dataset in datasets}
        views.append(self._table(jobs, names) if jobs else empty(_NONE))
        return stack(*views)

    def _table(self, jobs: list[PromptTuningJob], names: dict[str, str]) -> Viewable:
        return mark_table(
            ("wording", "state", "model", "began"),
            [
                (
                    f"{job.decision} of {names.get(job.dataset_id, job.dataset_id)}",
                    _state_of(job),
                    job.model,
                    ago(job.created_at),
                )
                for job in jobs
            ],
            label="Prompt-tuning jobs",
            open_=lambda place: self.session.param.update(tuning=jobs[place].id),
            opens="Open it",
            links=[self.session.address("tuning", tuning=job.id) for job in jobs],
        )

    def _fetch_opened(self) -> tuple[PromptTuningJob, str]:
        job = self.client.prompt_tuning.get(self.session.tuning)
        return job, dataset_name(self.client, job.dataset_id)

    def _show_opened(self, opened: tuple[PromptTuningJob, str]) -> Viewable:
        job, dataset = opened
        values = {
            "Status": _state_of(job),
            "Model": job.model,
            "Dataset": f"{dataset}, version {job.dataset_version}",
            "Price": f"{job.price_usd} USD, {job.charge}",
        }
        if job.progress is not None:
            now = job.progress
            phase = now.phase.replace("_", " ")
            values["Progress"] = f"{phase}, round {now.round} of at most {now.rounds}"
            if now.original_loss is not None and now.best_loss is not None:
                values["Loss so far"] = f"{now.original_loss:.4f} to {now.best_loss:.4f}"
        if job.error is not None:
            values["Why"] = f"{job.error} ({job.error_code})"
        place = stack()
        views: list[Viewable] = [facts(values)]
        if job.status in UNFINISHED:
            views.append(
                self.button("Cancel", partial(self.client.prompt_tuning.cancel, job.id), place)
            )
        if job.result is not None:
            views.append(show_result(job.result))
            if job.result.tuned is not None:
                views.append(self._use(job))
            views += self._issues(job, place)
        return stack(*views, place)

    def _use(self, job: PromptTuningJob) -> Viewable:
        # Of its own: the labels that contradict the wording are a long list below.
        place = stack()

        async def make() -> None:
            dataset = await asyncio.to_thread(reworded_dataset, self.client, job)
            open_ = action_button(
                "Open it",
                lambda _: self.session.open("datasets", dataset=dataset.id, version=0),
                variant="contained",
            )
            place[:] = [
                verdict("good", f"Made a dataset of {dataset.rows:,} rows.", "Train on it."),
                open_,
            ]

        # A list of keywords is there to be taken, and nothing that this page proposes.
        is_listed = job.result is not None and bool(keyword_parts(job.result))
        button = action_button(
            f"Make a dataset with {'these keywords anyway' if is_listed else 'this wording'}",
            Write(make, "Not made:", place, scope=self.visit).on_event,
            variant="text" if is_listed else "contained",
        )
        return stack(button, place)

    def _issues(self, job: PromptTuningJob, place: pn.Column) -> list[Viewable]:
        """Return the labels that contradict the wording, and the actions on them."""
        issues: Sequence[Any] = () if job.result is None else job.result.label_issues
        if not issues:
            return []
        review = action_button(
            "Review the dataset",
            lambda _: self.session.open("review", dataset=job.dataset_id, version=0, draft=""),
        )
        is_off = job.label_issues_dismissed_at is not None
        toggle = self.button(
            "List them again" if is_off else "Dismiss them",
            lambda: self.client.prompt_tuning.dismiss_label_issues(job.id, dismissed=not is_off),
            place,
        )
        rows = [(issue.row, issue.reason) for issue in issues]
        return [
            heading("Labels that contradict the wording"),
            table(("row", "why"), rows, label="Labels that contradict the wording"),
            pn.FlexBox(review, toggle),
        ]


def _state_of(job: PromptTuningJob) -> str:
    if job.result is not None:
        return f"{job.status}, {job.result.verdict.replace('_', ' ')}"
    return job.status


def reworded_dataset(client: Client, job: PromptTuningJob) -> Dataset:
    """Make a dataset of a job's rows in the tuned words; raise ``ValueError`` where there are none."""
    if job.result is None or job.result.tuned is None:
        raise ValueError("The job found no better wording, so there is none to use.")
    source = client.datasets.get(job.dataset_id)
    if source.rows > MAX_ROWS:
        raise ValueError(
            f"The dataset has {source.rows:,} rows, and up to {MAX_ROWS:,} are made anew here; "
            "download it, put the decision in, and upload it as a new one."
        )
    original, tuned = job.result.original, job.result.tuned
    of: dict[str, Any] = {"version": job.dataset_version, "limit": _PAGE}
    sides: dict[str, Any] = {
        side: [
            _reworded(msgspec.to_builtins(row), original, tuned)
            for row in every_row(client, source.id, partition=side, **of)
        ]
        for side in ("training", "evaluation")
    }
    return client.datasets.create(f"{source.name}, tuned wording"[:128], **sides)


def _reworded(
    row: dict[str, Any], original: dict[str, Any], tuned: dict[str, Any]
) -> dict[str, Any]:
    decisions = [
        {**decision, **tuned} if _words(decision) == _words(original) else decision
        for decision in row["decisions"]
    ]
    return {
        name: value for name, value in {**row, "decisions": decisions}.items() if value is not None
    }


def _words(decision: dict[str, Any]) -> Any:
    """Return the words that a model reads of a decision."""
    outcomes = decision.get("outcomes")
    if isinstance(outcomes, list):
        outcomes = dict.fromkeys(outcomes)
    return (decision["id"], decision.get("question"), outcomes, decision.get("rubric"))


class TuningForm(Boxed):
    """The form; a price is shown first, and confirmed by the next press."""

    def __init__(
        self,
        client: Client,
        datasets: Sequence[Dataset],
        chosen: str,
        open_job: Callable[[PromptTuningJob], None],
        scope: Scope | None = None,
    ) -> None:
        self._client, self._open_job = client, open_job
        self._price = AgreedPrice()
        names = dataset_options(datasets, with_rows=True)
        first = chosen if chosen in names.values() else next(iter(names.values()))
        self.dataset = pmui.Select(label="Dataset", options=names, value=first, width=330)
        self.decision = pmui.Select(label="Decision", options=[], width=300)
        self.model = pmui.Select(label="Model", options=[], width=260)
        self.effort = pmui.RadioButtonGroup(
            label="Effort", options={"Standard": "standard", "Thorough": "thorough"}
        )
        self.said = stack()
        super().__init__()
        fields = {"dataset_id": self.dataset, "decision": self.decision, "model": self.model}
        self.begin = Write(self._begin, "Not started:", self.said, scope=scope, fields=fields)
        self.start = action_button("Tune the wording", self.begin.on_event, variant="contained")
        self.fill = Task(
            self._fill, not_loaded("Its decisions and the models"), self.said, scope=scope
        )
        pn.bind(self.fill.on_event, self.dataset, watch=True)
        self.fill.start()
        self._box = stack(
            heading("Tune a decision's wording"),
            pn.FlexBox(
                *(self.dataset, self.decision, self.model, self.effort, self.start),
                align_items="flex-end",
            ),
            self.said,
        )

    async def _fill(self) -> None:
        """Offer the dataset's decisions, those that cannot be tuned grey with why, and the models."""
        dataset, choices = await asyncio.gather(
            asyncio.to_thread(self._client.datasets.get, str(self.dataset.value)),
            asyncio.to_thread(self._client.models.choices),
        )
        decisions = [] if dataset.prompt_tuning is UNSET else dataset.prompt_tuning.decisions
        names = {_label(decision): str(decision.decision["id"]) for decision in decisions}
        able = [str(decision.decision["id"]) for decision in decisions if decision.reason is None]
        self.decision.param.update(
            options=names,
            # Panel refuses a field all of whose options are grey: it is grey itself then.
            disabled_options=[name for name in names.values() if name not in able] if able else [],
            disabled=not able,
            value=next(iter(able), None),
        )
        self.start.disabled = not able
        if not able:
            text = (
                f"That takes {MIN_ROWS} labelled rows to train on, {MIN_ROWS_PER_OUTCOME} of each answer. "
                "Choose another dataset, or label rows of this one."
            )
            self.said[:] = [verdict("unsure", "No decision here can be tuned.", text)]
        # A family's own models are tuned by rows, not by words.
        offer_models(
            self.model, [choice for choice in choices if choice.kind in {"base", "connected"}]
        )

    async def _begin(self) -> None:
        job = await asyncio.to_thread(
            self._price.start,
            lambda usd: self._client.prompt_tuning.create(
                self.dataset.value,
                decision=self.decision.value or None,
                model=self.model.value or None,
                effort=self.effort.value,
                max_price_usd=usd,
            ),
        )
        if job is not None:
            self._open_job(job)
            return
        sentence = f"It costs {self._price.usd} USD."
        self.said[:] = [
            verdict("unsure", sentence, "Press again to reserve that amount and start.")
        ]


def _label(readiness: DecisionReadiness) -> str:
    name = f"{readiness.decision['id']} ({readiness.rows:,} rows)"
    return name if readiness.reason is None else f"{name}, {readiness.reason.replace('_', ' ')}"
