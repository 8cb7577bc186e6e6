"""The evaluations of a dataset, the newest first, and starting more of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import islice
from typing import Any

import panel as pn
import panel_material_ui as pmui
from panel.viewable import Viewable, Viewer

from steelyard.client import Client
from steelyard.client.evaluation_answers import measure_of
from steelyard.wire.evaluations import ENDED, Evaluation, Measure
from steelyard.wire.models import ModelList
from steelyard_workbench.components.facts import heading
from steelyard_workbench.components.numbers import ago, measure_text
from steelyard_workbench.icons import icon
from steelyard_workbench.loaded import Loaded
from steelyard_workbench.problems import problem_of
from steelyard_workbench.states import empty, failed, refused_button, verdict
from steelyard_workbench.theme import Status

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


@dataclass(frozen=True, slots=True)
class Listed:
    """The newest evaluations, what was measured in those that succeeded, and whether there are more.

    Parameters
    ----------
    evaluations : list of Evaluation
    measured : dict of str to tuple
        By id: the leading measure and the calibration error, where there are such.
    has_more : bool
    """

    evaluations: list[Evaluation]
    measured: dict[str, tuple[Measure | None, Measure | None]]
    has_more: bool

    @property
    def has_unfinished(self) -> bool:
        """Whether one of them has not ended."""
        return any(one.status not in ENDED for one in self.evaluations)


class EvaluationList(Viewer):
    """The evaluations of a dataset.

    Parameters
    ----------
    client : steelyard.client.Client
    dataset_id : str
    open_ : callable
        Called with the id of the one to open.

    Attributes
    ----------
    part : Loaded
        What fetches them.
    """

    def __init__(self, client: Client, dataset_id: str, open_: Callable[[str], None]) -> None:
        super().__init__()
        self._client = client
        self._dataset_id = dataset_id
        self._open = open_
        self._n_wanted = _STEP
        self._measured: dict[str, tuple[Measure | None, Measure | None]] = {}
        self._lines: dict[str, EvaluationLine] = {}
        self.part: Loaded[Listed] = Loaded("The evaluations", self._fetch, self._show)

    def __panel__(self) -> Viewable:
        return self.part.__panel__()

    async def look(self) -> None:
        """Bring what has not ended up to date; lines that stay are changed where they are."""
        held = self.part.data
        if self.part.state != "shown" or held is None or not held.has_unfinished:
            return
        try:
            listed = await asyncio.to_thread(self._fetch)
        except Exception:  # noqa: BLE001  the next look may see it; what is shown stays
            return
        if [one.id for one in listed.evaluations] != [one.id for one in held.evaluations]:
            await self.part.refresh(quietly=True)
            return
        self.part.data = listed
        for one in listed.evaluations:
            self._lines[one.id].update(one, listed.measured.get(one.id))

    def _fetch(self) -> Listed:
        found = list(islice(self._client.evaluations.list(self._dataset_id), self._n_wanted + 1))
        shown = found[: self._n_wanted]
        for one in shown:
            if one.status == "succeeded" and one.id not in self._measured:
                overall = self._client.evaluations.detail(one.id).overall
                leading = next(filter(None, (measure_of(overall, name) for name in _LEADING)), None)
                self._measured[one.id] = (leading, measure_of(overall, "ece"))
        return Listed(shown, dict(self._measured), len(found) > len(shown))

    def _show(self, listed: Listed) -> Viewable:
        if not listed.evaluations:
            return empty(
                "This dataset has no evaluations yet. Choose a model above and press *Evaluate*: "
                "it is scored on the rows that were put aside for evaluation."
            )
        self._lines = {
            one.id: EvaluationLine(
                self._client, one, listed.measured.get(one.id), self._open, self.part.refresh
            )
            for one in listed.evaluations
        }
        shown: list[Viewable] = list(self._lines.values())
        if listed.has_more:
            more = pmui.Button(label="Show more", variant="outlined")
            more.on_click(self._show_more)
            shown.append(more)
        return pn.Column(*shown, sizing_mode="stretch_width")

    async def _show_more(self, _: Any) -> None:
        self._n_wanted += _STEP
        await self.part.refresh(quietly=True)


#: What an evaluation is told by first.
_LEADING = ("accuracy", "scaled_reward", "expected_reward")


class EvaluationLine(Viewer):
    """One evaluation in the list: model, status, progress, figures, and what may be done.

    Parameters
    ----------
    client : steelyard.client.Client
    evaluation : Evaluation
    measured : tuple or None
        The leading measure and the calibration error.
    open_ : callable
        Called with its id.
    refresh : callable
        Coroutine function that shows the list anew.
    """

    def __init__(
        self,
        client: Client,
        evaluation: Evaluation,
        measured: tuple[Measure | None, Measure | None] | None,
        open_: Callable[[str], None],
        refresh: Callable[..., Any],
    ) -> None:
        super().__init__()
        self._client = client
        self._refresh = refresh
        self.evaluation = evaluation
        self._name = pmui.Button(
            label=f"{evaluation.model_label}, version {evaluation.dataset_version}",
            variant="text",
            width=300,
            sx={"justifyContent": "flex-start", "textAlign": "left"},
        )
        self._name.on_click(lambda _: open_(evaluation.id))
        self._bar = pmui.LinearProgress(value=0, width=120, variant="determinate", margin=(18, 10))
        self._text = pn.pane.HTML("", sizing_mode="stretch_width", min_width=240)
        self._cancel = pmui.Button(label="Cancel", variant="outlined", size="small")
        self._retry = pmui.Button(label="Retry", variant="outlined", size="small")
        self._cancel.on_click(self.cancel)
        self._retry.on_click(self.retry)
        self._problem = pn.Column(sizing_mode="stretch_width")
        self._box = pmui.Paper(
            pn.Row(
                self._name, self._bar, self._text, self._cancel, self._retry,
                sizing_mode="stretch_width",
            ),
            self._problem,
            sizing_mode="stretch_width",
            margin=(3, 10),
            elevation=1,
        )  # fmt: skip
        self.update(evaluation, measured)

    def __panel__(self) -> Viewable:
        return self._box

    def update(
        self, evaluation: Evaluation, measured: tuple[Measure | None, Measure | None] | None
    ) -> None:
        """Show it as it is now."""
        self.evaluation = evaluation
        is_at_work = evaluation.status not in ENDED
        total = max(1, evaluation.evaluation_rows)
        self._bar.param.update(
            visible=is_at_work, value=round(100 * evaluation.completed_rows / total)
        )
        self._cancel.visible = is_at_work
        self._retry.visible = evaluation.status in ("failed", "cancelled")
        self._text.object = _line_html(evaluation, measured)

    async def cancel(self, *_: Any) -> None:
        """Stop it."""
        await self._act(self._client.evaluations.cancel, "Stopping it")

    async def retry(self, *_: Any) -> None:
        """Take it up again."""
        await self._act(self._client.evaluations.retry, "Another try")

    async def _act(self, act: Callable[[str], Evaluation], doing: str) -> None:
        try:
            evaluation = await asyncio.to_thread(act, self.evaluation.id)
        except Exception as error:  # noqa: BLE001  whatever it is, the person is told
            self._problem[:] = [failed(problem_of(error, doing))]
            return
        self._problem[:] = []
        self.update(evaluation, None)
        await self._refresh(quietly=True)


class StartForm(Viewer):
    """Choosing models to evaluate.

    Parameters
    ----------
    client : steelyard.client.Client
    dataset_id : str
    on_start : callable
        Coroutine function called once some were started or found.

    Attributes
    ----------
    part : Loaded
        What fetches the models.
    """

    def __init__(self, client: Client, dataset_id: str, on_start: Callable[[], Any]) -> None:
        super().__init__()
        self._client = client
        self._dataset_id = dataset_id
        self._on_start = on_start
        self._is_starting = False
        self.models = pmui.CheckBoxGroup(
            label="Models to evaluate", options=[], inline=True, sizing_mode="stretch_width"
        )
        self.button = pmui.Button(label="Evaluate", variant="contained", disabled=True)
        self.models.param.watch(lambda _: self._fit(), "value")
        self.button.on_click(self.start)
        self.said = pn.Column(sizing_mode="stretch_width")
        self.part: Loaded[ModelList] = Loaded(
            "The models", client.models.list, self._show, n_lines=1
        )

    def __panel__(self) -> Viewable:
        return self.part.__panel__()

    async def start(self, *_: Any) -> None:
        """Ask for the evaluations, unless that is under way."""
        if self._is_starting:
            return
        # A second click may have been on its way before the browser heard of the first.
        self._is_starting = self.button.disabled = True
        try:
            found = await asyncio.to_thread(
                self._client.evaluations.create, self._dataset_id, list(self.models.value)
            )
        except Exception as error:  # noqa: BLE001  whatever it is, the person is told
            problem = problem_of(error, "An evaluation")
            self.said[:] = [failed(problem)]
            if problem.is_forbidden:
                self.models.disabled = True
                self.said.append(refused_button("Evaluate", [problem.message]))
                self.button.visible = False
            return
        finally:
            self._is_starting = False
            self._fit()
        text = f"{found.queued} started" + (
            f", {found.reused} scored on these rows before." if found.reused else "."
        )
        self.said[:] = [verdict("running" if found.queued else "good", text)]
        self.models.value = []
        await self._on_start()

    def _fit(self) -> None:
        self.button.disabled = self._is_starting or not self.models.value

    def _show(self, models: ModelList) -> Viewable:
        self.models.options = model_names(models)
        return pn.Column(
            heading("Start an evaluation"),
            self.models,
            self.button,
            self.said,
            sizing_mode="stretch_width",
        )


def model_names(models: ModelList) -> list[str]:
    """Give the names that may be evaluated: models that are ready, then families and aliases."""
    names = [model.id for model in models.data if model.status == "ready"]
    return list(dict.fromkeys([*names, *(model.name for model in models.models)]))


def name_of(evaluation: Evaluation) -> str:
    """Give an evaluation in a few words."""
    return (
        f"{evaluation.model_label} on version {evaluation.dataset_version}, "
        f"{ago(evaluation.created_at)}"
    )


def succeeded(evaluations: Sequence[Evaluation]) -> list[Evaluation]:
    """Give those that have figures."""
    return [one for one in evaluations if one.status == "succeeded"]


def _line_html(
    evaluation: Evaluation, measured: tuple[Measure | None, Measure | None] | None
) -> str:
    """Tell how an evaluation stands: an icon and a word, then figures, progress or what is wrong."""
    status, word = _STATUS[evaluation.status]
    parts = [f'<span style="{_ICON}">{icon(status)}</span><strong>{word}</strong>']
    if evaluation.error is not None:
        error = evaluation.error
        parts.append(f"{escape(error.message)} (<code>{escape(error.code)}</code>)")
    elif evaluation.status != "succeeded":
        parts.append(f"{evaluation.completed_rows:,} of {evaluation.evaluation_rows:,} rows")
    else:
        leading, ece = measured or (None, None)
        name = "accuracy" if evaluation.method == "sft" else "scaled reward"
        parts.append(f"{name} {measure_text(leading)}")
        if ece is not None:
            parts.append(f"ECE {measure_text(ece)}")
    parts.append(ago(evaluation.created_at))
    return (
        f'<div style="font-size:0.875rem;line-height:1.6;padding:0.5em 0">{" · ".join(parts)}</div>'
    )
