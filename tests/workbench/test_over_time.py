"""Runs over time: a line a model, of runs on the same rows, and a mark opens its run."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("panel", reason="needs the workbench extra")

import panel as pn

from steelyard.evaluations.wire import Measures
from steelyard.wire.measures import Measure
from steelyard_workbench.kit.components.mark_table import MarkTable
from steelyard_workbench.pages.evaluations.over_time import MOST_MODELS, RunsOverTime
from support.browser.shown_parts import texts


def run(number: int, model: str, *, family: str | None = None, rows: str = "a") -> Any:
    return SimpleNamespace(
        id=f"eval_{number}",
        model_label=model,
        model_name=family,
        dataset_version=1 + number,
        created_at=1e9 + number,
        evaluation_sha256=rows,
        status="succeeded",
    )


def opened(runs: list[Any]) -> tuple[RunsOverTime, list[str], list[str]]:
    """The drawing of runs, the opened ids, and the ids whose figures were fetched."""
    told: list[str] = []
    asked: list[str] = []

    def detail(evaluation_id: str) -> Any:
        asked.append(evaluation_id)
        share = Measure(value=0.5, low=0.4, high=0.6, n=80)
        return SimpleNamespace(overall=Measures(n=80, contexts=40, accuracy=share, ece=share))

    evaluations = SimpleNamespace(list=lambda _: reversed(runs), detail=detail)
    shown = RunsOverTime(SimpleNamespace(evaluations=evaluations), "ds_1", told.append)  # type: ignore[arg-type]
    shown.part.start()
    return shown, told, asked


def chart_of(shown: RunsOverTime) -> Any:
    [chart] = shown.__panel__().select(pn.pane.Bokeh)
    return chart.object


def lines(chart: Any) -> int:
    return sum(type(one.glyph).__name__ == "Line" for one in chart.renderers)


def test_a_line_joins_the_numbers_of_a_family_on_the_rows_of_the_newest_run() -> None:
    runs = [
        run(1, "router@1", family="router", rows="b"),
        run(2, "base"),
        run(3, "router@2", family="router"),
        run(4, "router@3", family="router"),
        SimpleNamespace(id="eval_5", status="failed"),
    ]
    shown, told, asked = opened(runs)
    assert asked == ["eval_1", "eval_2", "eval_3", "eval_4"]
    shown.measure.value = "ece"
    chart = chart_of(shown)
    [source] = {one.data_source for one in chart.select(name="runs")}
    assert list(source.data["series"]) == ["base", "router", "router"]
    assert len(set(source.data["marker"])) == 2
    assert lines(chart) == 1  # from the second number to the third
    assert chart.y_range.start < 0.4
    assert chart.y_range.end > 0.6  # whole intervals are within
    source.selected.indices = [0]
    [data] = shown.__panel__().select(MarkTable)
    assert [row[0] for row in data.rows] == ["router@3", "router@2", "base", "router@1"]
    assert all("of 80)" in row[1] for row in data.rows)
    data.press(0)
    assert told == ["eval_2", "eval_4"]
    shown.part.start()  # what was measured is known
    assert len(asked) == 4


def test_runs_that_began_together_stand_beside_each_other_and_models_are_bounded() -> None:
    together = [run(0, f"model {number}") for number in range(MOST_MODELS + 2)]
    shown, _, _ = opened(together)
    [source] = {one.data_source for one in chart_of(shown).select(name="runs")}
    assert len(set(source.data["x"])) == len(source.data["x"]) == MOST_MODELS
    assert "2 more models" in texts(shown.__panel__())


def test_runs_on_other_rows_are_not_drawn_together() -> None:
    shown, _, _ = opened([run(1, "base"), run(2, "base", rows="b")])
    assert shown.__panel__().select(pn.pane.Bokeh) == []
    assert "nothing to compare" in texts(shown.__panel__())


def test_one_run_is_no_line() -> None:
    shown, _, _ = opened([run(1, "base")])
    assert "Once two evaluations have succeeded" in texts(shown.__panel__())
