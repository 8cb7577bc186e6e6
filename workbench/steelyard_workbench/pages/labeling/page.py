"""Labeling: jobs of teachers, how far they agree, and the rows to accept."""

from __future__ import annotations

from functools import partial
from itertools import islice

from msgspec import UNSET
from panel.viewable import Viewable, Viewer

from steelyard.datasets.wire import Dataset
from steelyard.labeling.wire import LabelingJob, LabelingResult, TeacherList
from steelyard.wire.jobs import UNFINISHED
from steelyard_workbench.kit.basics import action_button, stack
from steelyard_workbench.kit.components.mark_table import mark_table
from steelyard_workbench.kit.page import Loaded, OnePartPage
from steelyard_workbench.kit.session import Session
from steelyard_workbench.kit.views import behind_button, empty, facts
from steelyard_workbench.kit.words import ago
from steelyard_workbench.pages.labeling.form import LabelingForm
from steelyard_workbench.pages.labeling.queue import LabelQueue, show_agreement

_MOST = 100
_NONE = "No rows were labelled yet."
_NO_TEACHERS = (
    "**No model can label rows yet.** A model line that answers can, and so can a judge or a model of "
    "another server."
)

_Listed = tuple[list[LabelingJob], list[Dataset], TeacherList | None]
_Opened = tuple[LabelingJob, list[LabelingResult]]


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
