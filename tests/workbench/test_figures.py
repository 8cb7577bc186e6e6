"""Charts: what a click on a mark does, and bars whose names are alike."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

pytest.importorskip("panel", reason="needs the workbench extra")

from bokeh.models import GlyphRenderer

from steelyard_workbench.components import figures
from steelyard_workbench.datasets.overview import show_labels


def source_of(chart: Any) -> Any:
    (renderer,) = chart.select(type=GlyphRenderer)
    return renderer.data_source


def test_every_click_on_a_mark_opens_it_and_none_stays_selected() -> None:
    clicked: list[int] = []
    source = source_of(figures.bars(["a", "b"], [1, 2], title="", x="", open_=clicked.append))
    for place in (1, 1, 0):
        source.selected.indices = [place]
        assert source.selected.indices == []
    assert clicked == [1, 1, 0]


def test_a_chart_that_is_put_on_a_drawn_page_comes_with_its_room() -> None:
    async def put() -> int:
        return len(figures.show_late(figures.bars(["a"], [1], title="", x="")))

    assert asyncio.run(put()) == 1


def test_outcomes_that_begin_alike_have_a_bar_each(monkeypatch: pytest.MonkeyPatch) -> None:
    charts: list[Any] = []
    draw = figures.bars

    def kept(*given: Any, **options: Any) -> Any:
        charts.append(draw(*given, **options))
        return charts[-1]

    monkeypatch.setattr(figures, "bars", kept)
    start = "The customer asks for money back"
    counts = {f"{start} at once": 3, f"{start} later": 3, "no": 3}
    clicked: list[tuple[str, str]] = []
    show_labels({"expected": {"refund": counts}}, lambda *chosen: clicked.append(chosen))
    (chart,) = charts
    assert len(set(chart.y_range.factors)) == 3
    source = source_of(chart)
    assert set(source.data["name"]) == set(chart.y_range.factors)
    assert source.data["full"] == list(counts)
    assert ("", "@full") in chart.hover.tooltips
    source.selected.indices = [1]
    assert clicked == [("refund", f"{start} later")]
