"""Jobs of every kind that wait, run or have ended, of every dataset."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from functools import partial
from itertools import islice
from textwrap import shorten
from typing import Any

import panel as pn
import panel_material_ui as pmui
from bokeh.models import ColumnDataSource
from panel.viewable import Viewable

from steelyard.client.display_families import job_facts, show_time
from steelyard.errors import KeyScopeError
from steelyard.evaluations.wire import Evaluation
from steelyard.families.fine_tune_wire import Job, JobEvent
from steelyard.wire.jobs import UNFINISHED, JobSummary
from steelyard_workbench.kit.basics import Boxed, action_button, stack
from steelyard_workbench.kit.components import figures
from steelyard_workbench.kit.components.dialogs import Confirmation
from steelyard_workbench.kit.components.mark_table import mark_table
from steelyard_workbench.kit.components.progress_bar import ProgressBar
from steelyard_workbench.kit.page import Loaded, Page
from steelyard_workbench.kit.problems import leave_to_banner
from steelyard_workbench.kit.scheduling import schedule
from steelyard_workbench.kit.session import Session
from steelyard_workbench.kit.tasks import Task
from steelyard_workbench.kit.theme import BLUE
from steelyard_workbench.kit.views import empty, facts, heading, refused_button, table
from steelyard_workbench.kit.words import ago, escape_markdown
from steelyard_workbench.pages.jobs.progress import (
    ActiveRow,
    Track,
    ended_text,
    percent_done,
    progress_text,
    title_of,
)
from steelyard_workbench.parts.datasets.names import dataset_name
from steelyard_workbench.parts.named.naming import filter_row, name_of

#: Looks at running jobs between two looks at all, which find new ones.
_LOOKS_A_LIST = 5
_MOST_JOBS = 200
_SHOWN_ENDED = 20
#: Characters of a reason in the list; the fine-tune's own part has all of it.
_MOST_REASON = 140
_EVERY = "jobs of all kinds"
#: A fine-tune, its events, and the name of its dataset.
_Opened = tuple[Job, list[JobEvent], str]
#: The page that shows a job of a kind, and its field there; a fine-tune is shown here.
_PAGES: dict[str, Callable[[JobSummary], dict[str, Any]]] = {
    "evaluation": lambda job: {
        "page": "evaluations",
        "evaluation": job.id,
        "dataset": job.dataset_id,
    },
    "labeling": lambda job: {"page": "labeling", "labeling": job.id},
    "map": lambda job: {"page": "map", "dataset": job.dataset_id, "version": job.dataset_version},
    "model_setup": lambda job: {"page": "models" if job.models else "settings"},
    "named_comparison": lambda job: {"page": "decisions", "named": job.name.partition(" ")[0]},
    "prompt_tuning": lambda job: {"page": "tuning", "dataset": job.dataset_id, "tuning": job.id},
}
_SHOWN_EVENTS = 25


class JobsPage(Page):
    """Waiting, running and ended jobs."""

    slug = "jobs"
    title = "Jobs"
    summary = "Jobs live on the server: closing this page changes nothing."
    watched = ("job",)
    look_ms = 2000

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.dialog: Confirmation | None = None
        self.forbidden = ""
        self._tracks: dict[str, Track] = {}
        self.rows: dict[str, ActiveRow] = {}
        self._n_looks = 0
        self._n_ended = _SHOWN_ENDED
        self.detail: JobDetail | None = None

    @property
    def is_polling(self) -> bool:
        """Whether it looks again and again."""
        return self._poller.is_running

    def build(self) -> list[Viewable]:
        """Return the list, and the fine-tune that is looked at."""
        self._kind = pmui.Select(label="Show", options={_EVERY: ""}, value="", width=260)
        pn.bind(self._refill, self._kind, watch=True)
        self._dialog_place = pn.Column()
        self._detail_place = stack()
        self._notes = stack()
        self.place = stack()
        self.listed = Loaded("The jobs", self._fetch, self._show, n_lines=6)
        self.chosen = Loaded("The fine-tune", self._fetch_opened, self._show_detail)
        options: dict[str, Any] = {"on_failure": leave_to_banner, "scope": self.visit}
        self._look_at_all = Task(self._list_again, **options)
        self._look_at_active = Task(self._update_active, **options)
        self._look_at_chosen = Task(self._update_chosen, **options)
        views: list[Viewable] = [
            self._notes,
            filter_row(self.session, self.listed.refresh.start),
            self._kind,
            self._detail_place,
            self.part(self.listed),
            self._dialog_place,
        ]
        if self.session.job:
            self._detail_place[:] = [self.part(self.chosen)]
        return views

    def on_key(self, action: str, _: int) -> bool:
        """Close the question that is open."""
        if action == "close" and self.dialog is not None:
            self.dialog.close()
            return True
        return False

    async def look(self) -> None:
        """Refresh running jobs; at intervals, look for new ones."""
        if not self.session.is_connected or self.listed.state != "shown":
            return
        self._n_looks += 1
        jobs = self.listed.data or []
        if self._n_looks % _LOOKS_A_LIST == 0:
            await self._look_at_all()
        elif any(work.is_active for work in jobs):
            await self._look_at_active([work for work in jobs if work.is_active])
        await self._look_at_chosen()

    async def ask_cancel(self, work: JobSummary) -> None:
        """Ask whether something is to be cancelled."""
        self.dialog = Confirmation(
            f"Cancel the {title_of(work)}?",
            pmui.Markdown(work.lost),
            action=f"Cancel the {work.noun}",
            act=lambda: self._cancel(work),
            is_harmful=True,
        )
        self._dialog_place[:] = [self.dialog]

    def _fetch(self) -> list[JobSummary]:
        name = name_of(self.session)
        of = self.client.named_decisions.get(name).dataset_id if name else None
        if name and of is None:
            return []
        return list(islice(self.client.jobs.all(dataset_id=of), _MOST_JOBS))

    def _show(self, listed: list[JobSummary]) -> Viewable:
        self._fill(listed)
        return self.place

    def _fill(self, listed: list[JobSummary]) -> None:
        self._track(listed)
        kinds = {_EVERY: "", **{f"{work.noun}s": work.kind for work in listed}}
        if kinds != self._kind.options:
            value = self._kind.value if self._kind.value in kinds.values() else ""
            self._kind.param.update(options=kinds, value=value)
        kind = self._kind.value
        matching = [work for work in listed if kind in ("", work.kind)]
        if not matching:
            self.rows = {}
            self.place[:] = [self._none()]
            return
        active = [work for work in matching if work.is_active]
        ended = [work for work in matching if not work.is_active]
        self.rows = {
            work.id: ActiveRow(work, self._open, self._cancel_clicked, self.forbidden)
            for work in active
        }
        for work in active:
            self.rows[work.id].update(work, self._tracks[work.id])
        views: list[Viewable] = [heading("Queued and running")]
        views += list(self.rows.values()) or [empty("Nothing waits or runs.", is_good=True)]
        views.append(heading("Ended"))
        if ended:
            views.append(self._table(ended[: self._n_ended]))
        if len(ended) > self._n_ended:
            views.append(action_button(f"Show more of {len(ended):,}", lambda _: self._more()))
        elif not ended:
            views.append(empty("None has ended yet."))
        self.place[:] = views

    def _none(self) -> Viewable:
        start = action_button(
            "Start a model line",
            lambda _: self.session.open("families", family=""),
            variant="contained",
        )
        return empty(
            "No jobs yet. A job is a fine-tune of a model line, an evaluation of models on a dataset, "
            "labeling, a comparison, prompt tuning or a map.",
            start,
        )

    def _table(self, ended: list[JobSummary]) -> Viewable:
        return mark_table(
            ("job", "began", "ended"),
            [
                (
                    title_of(work),
                    ago(work.created_at),
                    shorten(ended_text(work), _MOST_REASON, placeholder=" …"),
                )
                for work in ended
            ],
            label="Ended jobs",
            open_=lambda place: self._open(ended[place]),
            opens="Open it",
            links=[self._address(work) for work in ended],
        )

    def _track(self, listed: Iterable[JobSummary]) -> None:
        now = time.monotonic()
        for work in listed:
            if work.is_active:
                self._tracks.setdefault(work.id, Track()).follow(now, work)

    def _more(self) -> None:
        self._n_ended += _SHOWN_ENDED
        self._refill()

    def _refill(self, *_: Any) -> None:
        if self.listed.data is not None:
            self._fill(self.listed.data)

    def _open(self, work: JobSummary) -> None:
        if work.kind in _PAGES:
            self.session.open(**_PAGES[work.kind](work))
        else:
            self.session.job = work.id

    def _address(self, work: JobSummary) -> str:
        page_of = _PAGES.get(work.kind)
        place = {"page": self.slug, "job": work.id} if page_of is None else page_of(work)
        return self.session.address(**place)

    def _cancel_clicked(self, work: JobSummary) -> None:
        schedule(lambda: self.ask_cancel(work))

    async def _cancel(self, work: JobSummary) -> bool:
        try:
            await asyncio.to_thread(self.client.jobs.cancel, work.id)
        except KeyScopeError as error:
            self.forbidden = error.message
            self._refill()
            raise
        await self.listed.refresh(quietly=True)
        return True

    async def _list_again(self) -> None:
        listed = await asyncio.to_thread(self._fetch)
        is_like, self.listed.data = self._is_like(listed), listed
        if is_like:
            self._update(listed)
        else:
            self._fill(listed)

    async def _update_active(self, active: list[JobSummary]) -> None:
        active_now = await asyncio.to_thread(self._again, active)
        if any(not work.is_active for work in active_now) or len(active_now) < len(active):
            await self._look_at_all()
            return
        self._update(active_now)

    def _again(self, active: list[JobSummary]) -> list[JobSummary]:
        """Fetch all running jobs in one call."""
        ids = {work.id for work in active}
        running = self.client.jobs.all(status=UNFINISHED)
        return [work for work in islice(running, _MOST_JOBS) if work.id in ids]

    def _update(self, summaries: Iterable[JobSummary]) -> None:
        """Show how far everything is, in the rows that are there."""
        listed = list(summaries)
        self._track(listed)
        for work in listed:
            if work.id in self.rows:
                self.rows[work.id].update(work, self._tracks[work.id])

    def _is_like(self, listed: list[JobSummary]) -> bool:
        """Whether the rows on the page are those of the list."""
        jobs = self.listed.data
        return jobs is not None and _outline(jobs) == _outline(listed)

    def on_session(self, *_: Any) -> None:
        """Show the fine-tune that is chosen now."""
        self._look_at_chosen.drop()
        self._detail_place[:] = [self.chosen] if self.session.job else []
        if self.session.job:
            if self.chosen not in self.parts:
                self.part(self.chosen)
            self.chosen.start()

    async def _update_chosen(self) -> None:
        shown = self.chosen.data
        if not self.session.job or shown is None or shown[0].status not in UNFINISHED:
            return
        job, events = await asyncio.to_thread(self._fetch_chosen)
        if job.status not in UNFINISHED or self.detail is None or job.id != shown[0].id:
            await self.chosen.refresh(quietly=True)
            return
        self.chosen.data = (job, events, shown[2])
        self.detail.update(job, events, self._track_of(job))

    def _fetch_chosen(self) -> tuple[Job, list[JobEvent]]:
        job_id = self.session.job
        return self.client.jobs.get(job_id), self.client.jobs.events(job_id).data

    def _fetch_opened(self) -> _Opened:
        job, events = self._fetch_chosen()
        return job, events, dataset_name(self.client, job.dataset_id)

    def _show_detail(self, fine_tune: _Opened) -> Viewable:
        job, events, dataset = fine_tune
        links: list[Viewable] = []
        if job.status in UNFINISHED and self.forbidden:
            links.append(refused_button("Cancel…", [self.forbidden]))
        elif job.status in UNFINISHED:
            stop = partial(self._cancel_clicked, job.summary)
            links.append(action_button("Cancel…", lambda _: stop(), color="danger"))
        if job.family is not None and not job.family_deleted:
            label = "Open its check" if job.gate is not None else "Open its model line"
            line = partial(self.session.open, "families", family=job.family, job=job.id)
            links.append(action_button(label, lambda _: line()))
        evaluation = job.dataset_evaluation
        if isinstance(evaluation, Evaluation):
            judged = partial(
                self.session.open,
                "evaluations",
                evaluation=evaluation.id,
                dataset=evaluation.dataset_id,
            )
            links.append(action_button("Open its evaluation", lambda _: judged()))
        close = partial(self.session.param.update, job="")
        links.append(action_button("Close", lambda _: close(), variant="text"))
        self.detail = JobDetail(job, dataset, links)
        self.detail.update(job, events, self._track_of(job))
        return self.detail.__panel__()

    def _track_of(self, job: Job) -> Track:
        self._track([job.summary])
        return self._tracks.get(job.id, Track())


def _outline(listed: list[JobSummary]) -> list[tuple[str, str, str | None]]:
    """Return the facts that decide which rows there are."""
    return [(work.id, work.status, work.ended) for work in listed]


class JobDetail(Boxed):
    """A fine-tune: its progress, its loss, its events, and a link to its model."""

    def __init__(self, job: Job, dataset: str, links: list[Viewable]) -> None:
        super().__init__()
        self._dataset = dataset
        self._text = pmui.Typography("", variant="body1")
        self.bar = ProgressBar(label=f"Progress of {job.id}", value=0, sizing_mode="stretch_width")
        self._facts, self._events, self.curve = stack(), stack(), stack()
        self._source = ColumnDataSource({"step": [], "loss": []})
        self._shown: Job | None = None
        self._box = stack(
            heading(f"Fine-tune of {job.family or 'a deleted model line'}"),
            self._text,
            self.bar,
            self._facts,
            pmui.FlexBox(*links),
            self.curve,
            heading("What happened", level=3),
            self._events,
        )

    @property
    def losses(self) -> list[tuple[int, float]]:
        """Steps and losses that are drawn."""
        return list(zip(self._source.data["step"], self._source.data["loss"], strict=True))

    def update(self, job: Job, events: list[JobEvent], track: Track) -> None:
        """Show how it is now."""
        work = job.summary
        self._text.object = escape_markdown(ended_text(work) or progress_text(work, track))
        if job != self._shown:
            # What it ends with says the reason.
            values = {name: text for name, text in job_facts(job) if name != "reason"}
            values["dataset"] = f"{self._dataset}, version {job.dataset_version}"
            self._facts[:] = [facts(values)]
        self._shown = job
        self.bar.visible = work.is_active
        self.bar.value = percent_done(work)
        points = track.losses
        if isinstance(job.curve, list) and job.curve:
            points = [(point.step, point.loss) for point in job.curve]
        if not job.hyperparameters.lora_rank:
            points = _heads_of(points)
        if points != self.losses and len(points) > 1:  # one point is no curve
            self._draw(points, is_curve=bool(job.hyperparameters.lora_rank))
        rows = [
            # A time stays on one line.
            (
                str(event.seq),
                show_time(event.created_at).replace(" ", "\u00a0"),
                event.type,
                event.message,
            )
            for event in reversed(events[-_SHOWN_EVENTS:])
        ]
        self._events[:] = [table(("", "at (UTC)", "what", ""), rows, label="Events, newest first")]

    def _draw(self, points: list[tuple[int, float]], *, is_curve: bool) -> None:
        self._source.data = {
            "step": [step for step, _ in points],
            "loss": [loss for _, loss in points],
        }
        if self.curve.objects:
            return
        # Heads are fitted one after the other, each to a decision of its own: no line joins them.
        title = "Training loss" if is_curve else "Loss of each head, in the order of their fits"
        chart = figures.plot(title, "step", "loss", height=260)
        if is_curve:
            chart.line(x="step", y="loss", source=self._source, color=BLUE, line_width=2)
        chart.scatter(x="step", y="loss", source=self._source, color=BLUE, size=6)
        chart.hover.tooltips = [("step", "@step"), ("loss", "@loss{0.0000}")]
        self.curve[:] = [figures.show(chart)]


def _heads_of(points: list[tuple[int, float]]) -> list[tuple[int, float]]:
    """Return the first point of each head: its loss is repeated until the next one is fitted."""
    before = [None, *(loss for _, loss in points)]
    return [point for point, last in zip(points, before, strict=False) if point[1] != last]
