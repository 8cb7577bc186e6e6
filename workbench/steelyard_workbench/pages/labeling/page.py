"""Labeling: jobs of teachers, how far they agree, and the rows to accept."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice
from typing import Any

import panel as pn
import panel_material_ui as pmui
import param
from msgspec import UNSET
from panel.viewable import Viewable, Viewer

from steelyard.client import Client
from steelyard.datasets.wire import Dataset
from steelyard.labeling.wire import LabelingJob, LabelingResult, TeacherList
from steelyard.wire.jobs import UNFINISHED
from steelyard_workbench.kit.basics import Boxed, action_button, small_text, stack
from steelyard_workbench.kit.components.mark_table import MarkTable, mark_table
from steelyard_workbench.kit.components.side_by_side import number_fields
from steelyard_workbench.kit.page import Loaded, OnePartPage
from steelyard_workbench.kit.session import Session
from steelyard_workbench.kit.tasks import Scope, Write
from steelyard_workbench.kit.views import behind_button, empty, facts, heading, table, verdict
from steelyard_workbench.kit.words import ago, measure_text
from steelyard_workbench.pages.labeling.form import LabelingForm

#: Rows of a page of the queue.
PAGE = 50
_MOST_CHARACTERS = 300
_QUEUES = {"Teachers differ": "differ", "Teachers agree": "agree", "Every row": "all"}
_MOST = 100
_NONE = "No rows were labelled yet."
_NO_TEACHERS = (
    "**No model can label rows yet.** A model line that answers can, and so can a judge or a model of "
    "another server."
)
_Listed = tuple[list[LabelingJob], list[Dataset], TeacherList | None]
_Opened = tuple[LabelingJob, list[LabelingResult]]


class LabelQueue(Boxed):
    """The rows of a job whose labels are ready.

    Rows on which all teachers agree are accepted at first, and others are left out. Only who
    ``may_make`` one makes a dataset of them, which ``open_dataset`` opens by its id: reviewers look
    at the rows alone.
    """

    def __init__(
        self,
        client: Client,
        job: LabelingJob,
        results: Sequence[LabelingResult],
        open_dataset: Callable[[str], None],
        scope: Scope | None = None,
        *,
        may_make: bool = True,
    ) -> None:
        self._client, self._job, self._open_dataset = client, job, open_dataset
        self._results = results
        self._offset = 0
        self.accepted = {result.index for result in results if result.agreement}
        differs = any(result.valid and not result.agreement for result in results)
        self.queue = pmui.RadioButtonGroup(
            label="Queue", options=_QUEUES, value="differ" if differs else "agree"
        )
        self.before = action_button("Rows before", lambda _: self._turn(-PAGE), size="small")
        self.after = action_button("Next rows", lambda _: self._turn(PAGE), size="small")
        self.take = action_button(
            "Accept this page", self._take_page, size="small", visible=may_make
        )
        self.fraction = pmui.FloatInput(
            label="Share for the check", value=0.2, start=0.1, end=1.0, step=0.05, width=190
        )
        self.fraction.visible = may_make
        self.said, self._rows = stack(), stack()
        self._count = small_text("")
        self.finalize = Write(self._finalize, "Not made:", self.said, scope=scope)
        self.finish = action_button(
            "Make a dataset", self.finalize.on_event, variant="contained", visible=may_make
        )
        super().__init__()
        self._show()
        self._box = stack(
            heading("Rows to accept"),
            pn.FlexBox(self.queue, self.before, self.after, self.take, align_items="center"),
            self._count,
            self._rows,
            number_fields(self.fraction, self.finish, align_items="center"),
            self.said,
        )

    @property
    def shown(self) -> list[LabelingResult]:
        """The rows of the page."""
        return self._queued()[self._offset : self._offset + PAGE]

    def _queued(self) -> list[LabelingResult]:
        queue = self.queue.value
        if queue == "all":
            return list(self._results)
        return [
            result
            for result in self._results
            if result.valid and result.agreement == (queue == "agree")
        ]

    @param.depends("queue.value", watch=True)
    def _on_queue(self) -> None:
        self._offset = 0
        self._show()

    def _turn(self, by: int) -> None:
        self._offset = max(0, self._offset + by)
        self._show()

    def _take_page(self, _: Any) -> None:
        self.accepted |= {result.index for result in self.shown if result.valid}
        self._show()

    def _toggle(self, place: int) -> None:
        row = self.shown[place]
        if row.valid:
            self.accepted ^= {row.index}
            self._show()

    def _show(self) -> None:
        queued, shown = self._queued(), self.shown
        self.before.disabled = self._offset == 0
        self.after.disabled = self._offset + PAGE >= len(queued)
        self.take.disabled = not any(result.valid for result in shown)
        self.finish.disabled = not self.accepted or self._job.status != "review_ready"
        self.finish.label = f"Make a dataset of {len(self.accepted):,} rows"
        self._count.object = (
            f"{len(queued):,} rows in this queue; {len(self.accepted):,} of {self._job.rows:,} rows "
            "are accepted. Press a row's first cell to accept it or leave it out."
        )
        rows = [self._cells(result) for result in shown]
        if not rows:
            self._rows[:] = [empty("No rows in this queue.")]
        elif self._rows and isinstance(self._rows[0], MarkTable):
            self._rows[0].rows = rows
        else:
            self._rows[:] = [
                mark_table(
                    ("", "row", "text", *self._job.teacher_models),
                    rows,
                    label="Rows with what teachers said of them",
                    open_=self._toggle,
                    opens="Accept the row, or leave it out",
                )
            ]

    def _cells(self, result: LabelingResult) -> list[str]:
        state = "accepted" if result.index in self.accepted else "left out"
        return [
            state if result.valid else "no labels",
            f"{result.index:,}",
            str(result.context)[:_MOST_CHARACTERS],
            *(_labels(judgment.labels, judgment.error) for judgment in result.teachers),
        ]

    async def _finalize(self) -> None:
        dataset: Dataset = await asyncio.to_thread(
            self._client.labeling.finalize,
            self._job.id,
            sorted(self.accepted),
            evaluation_fraction=float(self.fraction.value or 0.2),
        )
        self.finish.disabled = True
        review = action_button(
            "Review its rows", lambda _: self._open_dataset(dataset.id), variant="contained"
        )
        self.said[:] = [verdict("good", f"Made a dataset of {dataset.rows:,} rows."), review]


def show_agreement(job: LabelingJob) -> Viewable:
    """Show how far teachers agree, by decision and by teacher."""
    views: list[Viewable] = []
    if job.decisions is not UNSET:
        rows = [
            (decision.decision_id, measure_text(decision.alpha), measure_text(decision.agreement))
            for decision in job.decisions
        ]
        of_decisions = ("decision", "Krippendorff's alpha", "rows on which all agree")
        views.append(table(of_decisions, rows, label="Agreement by decision"))
    if job.teachers is not UNSET:
        teacher_rows = [
            (
                teacher.model,
                f"{teacher.answered:,}",
                f"{teacher.errors:,}",
                measure_text(teacher.with_others),
            )
            for teacher in job.teachers
        ]
        of_teachers = ("teacher", "answered", "failed", "said what others said")
        views.append(table(of_teachers, teacher_rows, label="Teachers", numbers=(1, 2)))
    return stack(*views)


def _labels(labels: Any, error: Any) -> str:
    if labels is UNSET:
        return f"failed: {error}"
    if len(labels) == 1:
        return str(next(iter(labels.values())))
    return ", ".join(f"{name}: {label}" for name, label in labels.items())


class LabelingPage(OnePartPage):
    """The labeling jobs, or the rows of one of them."""

    slug = "labeling"
    title = "Labeling"
    summary = "Rows labelled by models: accept the right ones and make a dataset."
    watched = ("labeling",)
    look_ms = 2000

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.queue: LabelQueue | None = None
        self.form: LabelingForm | None = None

    async def look(self) -> None:
        """Refresh running work."""
        part = self.shown
        if part is None or part.state != "shown" or part.data is None:
            return
        jobs = part.data[:1] if self.session.labeling else part.data[0]
        if any(job.status in UNFINISHED for job in jobs):
            await part.refresh(quietly=True)

    def content(self) -> list[Viewable]:
        """Return the list, or the selected item."""
        self.queue = self.form = None
        self._starting: list[Viewable | Viewer] = []
        if not self.session.labeling:
            self.shown = Loaded("The labeling jobs", self._fetch, self._show)
            return [self.part(self.shown)]
        self.shown = Loaded("The labeling job", self._fetch_opened, self._show_opened)
        return [self.part(self.shown)]

    def _fetch(self) -> _Listed:
        jobs = list(islice(self.client.labeling.list(), _MOST))
        if not self.session.may_change:
            return jobs, [], None
        datasets = list(islice(self.client.datasets.iterate(), _MOST))
        return jobs, datasets, self.client.labeling.teachers()

    def _show(self, listed: _Listed) -> Viewable:
        jobs, datasets, teachers = listed
        if teachers is not None and not (teachers.available and teachers.data):
            get = action_button(
                "Get a model", lambda _: self.session.open("models"), variant="contained"
            )
            self._starting = [empty(_NO_TEACHERS, get)]
        elif teachers is not None and self.form is None:
            self.form = LabelingForm(
                self.client,
                datasets,
                teachers,
                lambda job: self.session.param.update(labeling=job.id),
                self.visit,
            )
            # A form that is being filled in stays while the jobs below it are fetched again.
            self._starting = behind_button("Label rows", self.form) if jobs else [self.form]
        return stack(*self._starting, self._table(jobs) if jobs else empty(_NONE))

    def _table(self, jobs: list[LabelingJob]) -> Viewable:
        return mark_table(
            ("job", "state", "rows", "began"),
            [
                (job.name, job.status.replace("_", " "), _progress_of(job), ago(job.created_at))
                for job in jobs
            ],
            label="Labeling jobs",
            open_=lambda place: self.session.param.update(labeling=jobs[place].id),
            opens="Open it",
            links=[self.session.address("labeling", labeling=job.id) for job in jobs],
        )

    def _fetch_opened(self) -> _Opened:
        job = self.client.labeling.get(self.session.labeling)
        if job.status not in {"review_ready", "finalized"}:
            return job, []
        return job, list(self.client.labeling.results(job.id))

    def _show_opened(self, opened: _Opened) -> Viewable:
        job, results = opened
        values = {
            "Status": job.status.replace("_", " "),
            "Rows": _progress_of(job),
            "Teachers": ", ".join(job.teacher_models),
            "Price": f"{job.price_usd} USD, {job.charge}",
        }
        if job.error is not UNSET:
            values["Why"] = f"{job.error} ({job.error_code})"
        views: list[Viewable] = [facts(values)]
        place = stack()
        may_change = self.session.may_change
        calls = self.client.labeling
        if may_change and job.status in UNFINISHED:
            views.append(self.button("Cancel", partial(calls.cancel, job.id), place))
        if results:
            self.queue = LabelQueue(
                self.client, job, results, self._review, self.visit, may_make=may_change
            )
            views += [show_agreement(job), self.queue]
        if may_change and job.status == "review_ready":
            views.append(self.button("Discard", partial(calls.discard, job.id), place))
        if job.dataset_id is not UNSET:
            review = partial(self._review, job.dataset_id)
            views.append(action_button("Review its dataset", lambda _: review()))
        return stack(*views, place)

    def _review(self, dataset_id: str) -> None:
        self.session.open("review", dataset=dataset_id, version=0, draft="")


def _progress_of(job: LabelingJob) -> str:
    if job.status in UNFINISHED:
        return f"{job.completed_rows:,} of {job.rows:,} rows"
    return (
        f"{job.rows:,} rows, {job.agreement_rows:,} on which all teachers agree, "
        f"{job.error_rows:,} with a failure"
    )
