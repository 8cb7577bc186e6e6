"""One fine-tune in full."""

from __future__ import annotations

import panel_material_ui as pmui
from bokeh.models import ColumnDataSource
from panel.viewable import Viewable

from steelyard.client.display_families import job_facts, show_time
from steelyard.families.fine_tune_wire import Job, JobEvent
from steelyard_workbench.kit.basics import Boxed, stack
from steelyard_workbench.kit.components import figures
from steelyard_workbench.kit.components.facts import facts, heading, table
from steelyard_workbench.kit.components.progress_bar import ProgressBar
from steelyard_workbench.kit.escaping import escape_markdown
from steelyard_workbench.kit.theme import BLUE
from steelyard_workbench.pages.jobs.progress import Track, ended_text, percent_done, progress_text

_SHOWN_EVENTS = 25


class JobDetail(Boxed):
    """A fine-tune: its progress, its loss, its events, and a link to its model."""

    def __init__(self, job: Job, dataset: str, links: list[Viewable]) -> None:
        super().__init__()
        self._dataset = dataset
        self._text = pmui.Typography("", variant="body1")
        self.bar = ProgressBar(label=f"Progress of {job.id}", value=0, sizing_mode="stretch_width")
        self._facts = stack()
        self._events = stack()
        self._source = ColumnDataSource({"step": [], "loss": []})
        self.curve = stack()
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
        state = ended_text(work) or progress_text(work, track)
        self._text.object = escape_markdown(state)
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
