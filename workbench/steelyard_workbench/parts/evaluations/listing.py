"""The evaluations of a dataset, the newest first, and starting more of them."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import islice
from typing import Any

import panel as pn
import panel_material_ui as pmui
import param
from panel.viewable import Viewable

from steelyard.client import Client
from steelyard.client.display_evaluations import measure_of
from steelyard.client.model_choices import ModelChoice
from steelyard.evaluations.wire import ENDED, Evaluation
from steelyard.wire.measures import Measure, interval_text
from steelyard_workbench.kit.basics import Boxed, action_button, html_pane, stack
from steelyard_workbench.kit.components.choices import Choice, Choices
from steelyard_workbench.kit.components.model_fields import able_models, unable_models
from steelyard_workbench.kit.components.progress_bar import ProgressBar
from steelyard_workbench.kit.look import CARD_CSS, level
from steelyard_workbench.kit.page import Loaded
from steelyard_workbench.kit.problems import Problem, problem_of
from steelyard_workbench.kit.session import Session
from steelyard_workbench.kit.tasks import Scope, Task, Write
from steelyard_workbench.kit.theme import Status
from steelyard_workbench.kit.views import FRAME, card, empty, failed, verdict
from steelyard_workbench.kit.words import SHARES, ago, percent_text

#: Evaluations that are listed at first, and how many more at a time.
_STEP = 20
_ICON = "display:inline-block;width:24px;vertical-align:-0.45em;margin-right:0.4em"
_STATUS: dict[str, tuple[Status, str]] = {
    "queued": ("running", "waits"),
    "running": ("running", "running"),
    "cancelling": ("off", "stopping"),
    "succeeded": ("good", "succeeded"),
    "failed": ("bad", "failed"),
    "cancelled": ("off", "cancelled"),
}
#: The measures of which the first that there is stands for an evaluation; and how each reads after its share.
LEADING = {"accuracy": "right", "scaled_reward": "of the best reward", "expected_reward": "reward"}
#: The name of the leading measure, and the measure; ``None`` where there is none.
Leading = tuple[str, Measure] | None
_SHAPES = {
    "good": '<path d="M4 13l5 5L20 6"/>',
    "bad": '<path d="M6 6l12 12M18 6L6 18"/>',
    "unsure": '<path d="M4 9c4-4 6 4 10 0 2-2 4-1 6 0M4 16c4-4 6 4 10 0 2-2 4-1 6 0"/>',
    "running": '<path d="M20 12a8 8 0 1 1-3-6.200M20 3v5h-5"/>',
    "off": '<path d="M12 3v8M7 6a8 8 0 1 0 10 0"/>',
}


@dataclass(frozen=True, slots=True)
class EvaluationListing:
    """The newest evaluations, the leading measure of succeeded ones, and whether there are more."""

    evaluations: list[Evaluation]
    measured: dict[str, Leading]
    has_more: bool

    @property
    def has_unfinished(self) -> bool:
        """Whether one of them has not ended."""
        return any(evaluation.status not in ENDED for evaluation in self.evaluations)


class EvaluationList(Boxed):
    """The evaluations of a dataset."""

    def __init__(self, session: Session, dataset_id: str, scope: Scope) -> None:
        super().__init__()
        self._session, self.client = session, session.client
        self._dataset_id = dataset_id
        self._n_wanted = _STEP
        self._measured: dict[str, Leading] = {}
        self.lines: dict[str, EvaluationLine] = {}
        self.part: Loaded[EvaluationListing] = Loaded("The evaluations", self._fetch, self._show)
        # After a failure the present figures stay: the next look may see new ones.
        self.look = Task(self._look, on_failure=lambda _: None, scope=scope)
        self._box = self.part

    @property
    def n_succeeded(self) -> int:
        """How many of those shown have figures."""
        return 0 if self.part.data is None else len(succeeded(self.part.data.evaluations))

    async def _look(self) -> None:
        shown = self.part.data
        if self.part.state != "shown" or shown is None or not shown.has_unfinished:
            return
        listed = await asyncio.to_thread(self._fetch)
        if [evaluation.id for evaluation in listed.evaluations] != [
            evaluation.id for evaluation in shown.evaluations
        ]:
            await self.part.refresh(quietly=True)
            return
        self.part.data = listed
        for evaluation in listed.evaluations:
            self.lines[evaluation.id].update(evaluation, listed.measured.get(evaluation.id))

    def _fetch(self) -> EvaluationListing:
        evaluations = list(
            islice(self.client.evaluations.list(self._dataset_id), self._n_wanted + 1)
        )
        shown = evaluations[: self._n_wanted]
        for evaluation in shown:
            if evaluation.status == "succeeded" and evaluation.id not in self._measured:
                overall = self.client.evaluations.detail(evaluation.id).overall
                measures = [(name, measure_of(overall, name)) for name in LEADING]
                self._measured[evaluation.id] = next(
                    ((name, measure) for name, measure in measures if measure), None
                )
        return EvaluationListing(shown, dict(self._measured), len(evaluations) > len(shown))

    def _show(self, listed: EvaluationListing) -> Viewable:
        if not listed.evaluations:
            return empty(
                "This dataset has no evaluations yet. Choose a model and press *Evaluate*: it is "
                "scored on rows that it has never seen."
            )
        self.lines = {
            evaluation.id: EvaluationLine(
                self._session, evaluation, listed.measured.get(evaluation.id), self.part.refresh
            )
            for evaluation in listed.evaluations
        }
        shown: list[Viewable] = list(self.lines.values())
        if listed.has_more:
            shown.append(action_button("Show more", self._show_more))
        return stack(*shown)

    async def _show_more(self, _: Any) -> None:
        self._n_wanted += _STEP
        await self.part.refresh(quietly=True)


class EvaluationLine(Boxed):
    """One evaluation in the list: model, status, progress, figures, and its actions."""

    def __init__(
        self,
        session: Session,
        evaluation: Evaluation,
        measured: Leading,
        refresh: Callable[..., Any],
    ) -> None:
        super().__init__()
        self._refresh = refresh
        self.evaluation = evaluation
        name = Choice(
            f"{evaluation.model_label}, version {evaluation.dataset_version}",
            lambda: session.param.update(evaluation=evaluation.id, query="", view=""),
            link=session.address("evaluations", evaluation=evaluation.id),
        )
        self.opener = Choices([name], width=300, sizing_mode="fixed", align="center")
        self._bar = ProgressBar(
            label="Progress of the evaluation", value=0, width=120, margin=(18, 10)
        )
        self._text = html_pane("", CARD_CSS, styles={"flex": "1 1 240px"}, margin=(5, 24, 5, 10))
        self._problem = stack()
        calls = session.client.evaluations
        self.cancel = Write(lambda: self._act(calls.cancel), "Not cancelled:", self._problem)
        self.retry = Write(lambda: self._act(calls.retry), "Not retried:", self._problem)
        self._cancel = action_button("Cancel", self.cancel.on_event, size="small")
        self._retry = action_button("Retry", self.retry.on_event, size="small")
        self._row = pn.Row(sizing_mode="stretch_width")
        self._box = stack(
            self._row, self._problem, margin=(3, 10), styles={**FRAME, "padding": "4px 14px"}
        )
        self.update(evaluation, measured)

    def update(self, evaluation: Evaluation, measured: Leading) -> None:
        """Show it as it is now."""
        self.evaluation = evaluation
        is_at_work = evaluation.status not in ENDED
        total = max(1, evaluation.evaluation_rows)
        self._bar.value = round(100 * evaluation.completed_rows / total)
        row = [self.opener, self._text]
        row += [self._bar, self._cancel] if is_at_work else []
        row += [self._retry] if evaluation.status in ("failed", "cancelled") else []
        if row != self._row.objects:
            self._row[:] = row
        self._text.object = _line_html(evaluation, measured)

    async def _act(self, act: Callable[[str], Evaluation]) -> None:
        evaluation = await asyncio.to_thread(act, self.evaluation.id)
        self._problem[:] = []
        self.update(evaluation, None)
        await self._refresh(quietly=True)


class EvaluationForm(Boxed):
    """Choosing models to evaluate."""

    def __init__(self, client: Client, dataset_id: str, on_start: Callable[[], Any]) -> None:
        self.client = client
        self._dataset_id = dataset_id
        self._on_start = on_start
        self.models = pmui.CheckBoxGroup(
            label="Models to evaluate", options=[], inline=True, sizing_mode="stretch_width"
        )
        self.button = pmui.Button(label="Evaluate", variant="contained", disabled=True)
        self.said = stack()
        self.start = Write(self._start, on_failure=self._show_failure)
        self.button.on_click(self.start.on_event)
        super().__init__()
        self.part = Loaded("The models", client.models.choices, self._show, n_lines=1)
        self._box = card(self.part)

    async def _start(self) -> None:
        submission = await asyncio.to_thread(
            self.client.evaluations.create, self._dataset_id, list(self.models.value)
        )
        text = f"{submission.queued} started" + (
            f", {submission.reused} scored on these rows before." if submission.reused else "."
        )
        self.said[:] = [verdict("running" if submission.queued else "good", text)]
        self.models.value = []
        await self._on_start()

    def _show_failure(self, error: Exception) -> Problem:
        problem = problem_of(error, "Not evaluated:")
        self.said[:] = [failed(problem, refused="Evaluate")]
        if problem.is_forbidden:
            self.models.disabled, self.button.visible = True, False
        return problem

    @param.depends("models.value", "start.is_running", watch=True)
    def _fit(self) -> None:
        self.button.disabled = self.start.is_running or not self.models.value

    def _show(self, choices: Sequence[ModelChoice]) -> Viewable:
        self.models.options = able_models(choices)
        return stack(self.models, unable_models(choices), self.button, self.said)


def options_of(
    evaluations: Sequence[Evaluation], name: Callable[[Evaluation], str]
) -> dict[str, str]:
    """Return evaluations' ids by their names, which have the end of the id where two are alike."""
    uses = Counter(map(name, evaluations))
    return {
        f"{name(each)} (…{each.id[-6:]})" if uses[name(each)] > 1 else name(each): each.id
        for each in evaluations
    }


def name_of(evaluation: Evaluation) -> str:
    """Return an evaluation in a few words."""
    return (
        f"{evaluation.model_label} on version {evaluation.dataset_version}, "
        f"{ago(evaluation.created_at)}"
    )


def succeeded(evaluations: Sequence[Evaluation]) -> list[Evaluation]:
    """Return those that have figures."""
    return [evaluation for evaluation in evaluations if evaluation.status == "succeeded"]


def _line_html(evaluation: Evaluation, measured: Leading) -> str:
    """Return an evaluation's figure with its interval; else its state, progress or the failure."""
    when = ago(evaluation.created_at)
    if measured is not None:
        name, measure = measured
        low, high, drawn = measure.low, measure.high, ""
        figure, ends = f"{measure.value:.3f}", interval_text(low, high, form=".3f", to=" to ")
        if name in SHARES:
            figure = percent_text(measure.value)
            if low is not None and high is not None:
                ends = f"{low * 100:.0f} to {percent_text(high)}"
                drawn = level(measure.value, low, high)
        return (
            f'<div class="row"><span><span class="figure">{figure}</span>'
            f'{LEADING[name]}</span><div class="wide">{drawn}</div>'
            f'<span class="note">{ends} · {measure.n:,} answers · {when}</span></div>'
        )
    status, word = _STATUS[evaluation.status]
    parts = [f'<span style="{_ICON}">{icon(status)}</span><strong>{word}</strong>']
    if evaluation.error is not None:
        error = evaluation.error
        parts.append(f'<span title="{escape(error.code)}">{escape(error.message)}</span>')
    else:
        parts.append(f"{evaluation.completed_rows:,} of {evaluation.evaluation_rows:,} rows")
    return f"<div>{' · '.join([*parts, when])}</div>"


def icon(name: str) -> str:
    """Return an icon as SVG in the colour of the text around it; raise ``KeyError`` for an unknown name."""
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" width="24" height="24" viewBox="0 0 24 24" '
        'fill="none" stroke="currentColor" stroke-width="2" stroke-linecap="round" '
        f'stroke-linejoin="round" aria-hidden="true">{_SHAPES[name]}</svg>'
    )
