"""The evaluations of a dataset as they came: a line a model, with intervals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import panel_material_ui as pmui
import param
from bokeh.models import ColumnDataSource, NumeralTickFormatter
from panel.viewable import Viewable

from steelyard.client import Client
from steelyard.client.display_evaluations import MEASURES, measure_of
from steelyard.evaluations.wire import Evaluation, Measures
from steelyard_workbench.kit.basics import Boxed, small_text, stack
from steelyard_workbench.kit.components import figures
from steelyard_workbench.kit.components.mark_table import mark_table, show_data
from steelyard_workbench.kit.page import Loaded
from steelyard_workbench.kit.theme import SERIES
from steelyard_workbench.kit.views import empty, heading
from steelyard_workbench.kit.words import SHARES, ago, named_text
from steelyard_workbench.parts.evaluations.charts import TITLES
from steelyard_workbench.parts.evaluations.listing import succeeded
from steelyard_workbench.parts.evaluations.report import utc_text

#: The newest runs that are looked through and drawn, and the models that get a line.
MOST_RUNS, MOST_MODELS = 60, 12
_MARKERS = ("circle", "square", "triangle", "diamond", "inverted_triangle", "hex")
_CAPTION = (
    "Runs on the rows of the newest one, with 95 % intervals; numbers of a model line are one line. Those on "
    "other rows, which cannot be compared with it, stand in the table alone. Click a mark to open the run."
)


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """An evaluation that succeeded, and its measures."""

    evaluation: Evaluation
    measures: Measures

    @property
    def series(self) -> str:
        """The family of its model, or the model."""
        return self.evaluation.model_name or self.evaluation.model_label


class RunsOverTime(Boxed):
    """The runs of a dataset over time; ``open_`` is called with the id of an evaluation."""

    def __init__(self, client: Client, dataset_id: str, open_: Callable[[str], None]) -> None:
        self._client, self._dataset_id, self._open = client, dataset_id, open_
        self._measured: dict[str, Measures] = {}
        self.measure = pmui.Select(label="Measure", options=[], width=240, size="small")
        self._place = stack()
        super().__init__()
        self.part: Loaded[list[FinishedRun]] = Loaded("The runs over time", self._fetch, self._show)
        self._box = stack(heading("Runs over time"), self.part)

    def _fetch(self) -> list[FinishedRun]:
        """Return the newest runs, the oldest first; an evaluation's measures never change."""
        newest = islice(self._client.evaluations.list(self._dataset_id), MOST_RUNS)
        evaluations = succeeded(list(newest))[::-1]
        for evaluation in evaluations:
            if evaluation.id not in self._measured:
                self._measured[evaluation.id] = self._client.evaluations.detail(
                    evaluation.id
                ).overall
        return [
            FinishedRun(evaluation, self._measured[evaluation.id]) for evaluation in evaluations
        ]

    def _show(self, runs: list[FinishedRun]) -> Viewable:
        if len(runs) < 2:
            return empty("Once two evaluations have succeeded, they are drawn here as they came.")
        there = [name for name in MEASURES if any(measure_of(run.measures, name) for run in runs)]
        measure = self.measure.value
        self.measure.param.update(
            options={TITLES[name]: name for name in there},
            value=measure if measure in there else there[0],
        )
        self._draw(runs)
        return stack(self.measure, self._place)

    @param.depends("measure.value", watch=True)
    def _on_measure(self) -> None:
        if self.part.state == "shown" and self.part.data:
            self._draw(self.part.data)

    def _draw(self, runs: Sequence[FinishedRun]) -> None:
        name = str(self.measure.value)
        drawn = [run for run in runs if measure_of(run.measures, name) is not None]
        newest_first = list(dict.fromkeys(run.series for run in reversed(drawn)))
        shown = newest_first[:MOST_MODELS][::-1]
        shown_runs = [run for run in drawn if run.series in shown]
        text = _CAPTION
        if len(newest_first) > len(shown):
            text += f" {len(newest_first) - len(shown):,} more models, whose last runs are older, are not listed."
        data = mark_table(
            ("model", TITLES[name], "version", "when"),
            [
                (
                    run.evaluation.model_label,
                    named_text(name, measure_of(run.measures, name)),
                    f"{run.evaluation.dataset_version}",
                    ago(run.evaluation.created_at),
                )
                for run in reversed(shown_runs)
            ],
            label="Runs, newest first",
            open_=lambda place: self._open(shown_runs[len(shown_runs) - 1 - place].evaluation.id),
            opens="Open the run",
        )
        newest = _rows_of(shown_runs[-1])
        alike = [run for run in shown_runs if _rows_of(run) == newest]
        chart = (
            [figures.show(runs_chart(alike, name, shown, self._open))]
            if len(alike) > 1
            else [empty("The newest run is the only one of its rows: there is nothing to compare.")]
        )
        self._place[:] = [*chart, small_text(text), show_data(data)]


def runs_chart(
    runs: Sequence[FinishedRun], measure: str, series: Sequence[str], open_: Callable[[str], None]
) -> Any:
    """Draw runs in the order of time, a colour and a marker for each series."""
    times = places_of(runs, series)
    measures = [measure_of(run.measures, measure) for run in runs]
    estimates = [estimate for estimate in measures if estimate is not None]
    numbers = [series.index(run.series) for run in runs]
    source = ColumnDataSource(
        {
            "x": times,
            **figures.interval_columns(estimates),
            "series": [run.series for run in runs],
            "model": [run.evaluation.model_label for run in runs],
            "told": [named_text(measure, estimate) for estimate in estimates],
            "version": [run.evaluation.dataset_version for run in runs],
            "when": [utc_text(run.evaluation.created_at) for run in runs],
            "marker": [_MARKERS[place % len(_MARKERS)] for place in numbers],
            "color": [SERIES[place % len(SERIES)] for place in numbers],
        }
    )
    chart = figures.plot(
        TITLES[measure].capitalize(),
        "",
        "",
        height=340,
        x_axis_type="datetime",
        y_range=figures.room_for([*source.data["low"], *source.data["high"]]),
    )
    if measure in SHARES:
        chart.yaxis.formatter = NumeralTickFormatter(format="0 %")
    for place, name in enumerate(series):
        own = [at for at, run in enumerate(runs) if run.series == name]
        if len(own) > 1:
            values = [estimates[at].value for at in own]
            chart.line([times[at] for at in own], values, color=SERIES[place % len(SERIES)])
    figures.intervals(chart, source, base="x", low="low", high="high")
    look = {"marker": "marker", "color": "color", "size": 11, "legend_group": "series"}
    marks = chart.scatter("x", "value", source=source, name="runs", **look)
    figures.legend_below(chart, "horizontal")
    tooltips = [
        ("", "@model"),
        (TITLES[measure], "@told"),
        ("version", "@version"),
        ("run", "@when"),
    ]

    def open_run(place: int) -> None:
        open_(runs[place].evaluation.id)

    figures.explain(chart, tooltips, marks=marks, source=source, open_=open_run)
    return chart


def places_of(runs: Sequence[FinishedRun], series: Sequence[str]) -> list[float]:
    """Return where runs stand in milliseconds; those started together stand beside each other."""
    times = [run.evaluation.created_at * 1000 for run in runs]
    step = max(max(times) - min(times), 60_000.0) / 150
    return [at + step * series.index(run.series) for at, run in zip(times, runs, strict=True)]


def _rows_of(run: FinishedRun) -> str:
    return run.evaluation.evaluation_sha256
