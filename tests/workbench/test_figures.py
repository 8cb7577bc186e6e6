"""Charts: clicks on marks, bars with similar names, and the parts of all drawings."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("panel", reason="needs the workbench extra")

import panel_material_ui as pmui
from bokeh.model import util as of_bokeh
from bokeh.models import GlyphRenderer

from steelyard_workbench.frame.patches import _visit_parts
from steelyard_workbench.kit.components import figures
from steelyard_workbench.parts.datasets.overview import show_labels


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


def test_a_bar_opens_its_rows_though_outcomes_begin_alike() -> None:
    start = "The customer asks for money back"
    counts = {"no": 1, f"{start} at once": 3, f"{start} later": 3}
    clicked: list[tuple[str, str]] = []
    shown = show_labels(
        {"expected": {"team": {"a": 1}, "refund": counts}}, lambda *of: clicked.append(of)
    )
    bars = shown.charts[1]["bars"]
    assert [bar["name"] for bar in bars] == [f"{start} at once", f"{start} later", "no"]
    assert [bar["text"] for bar in bars] == ["3", "3", "1"]
    shown.press(1, 1)
    assert clicked == [("refund", f"{start} later")]


def test_the_parts_within_parts_are_those_that_bokeh_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    page = pmui.Column(pmui.Button(label="a", icon="b"), figures.bars(["a"], [1], title="", x=""))
    root = page.get_root()
    seen = [model.id for model in root.references()]
    monkeypatch.setattr(of_bokeh, "visit_immediate_value_references", _visit_parts)
    assert [model.id for model in root.references()] == seen
    fresh = page.get_root()
    n_quickly = len(fresh.references())
    monkeypatch.undo()
    assert len(fresh.references()) == n_quickly == len(seen)
