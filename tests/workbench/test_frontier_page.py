"""The horizontal axis of the frontier: prices, or times where all prices are equal."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

pytest.importorskip("panel", reason="needs the workbench extra")

import panel as pn

from steelyard.wire.measures import Measure
from steelyard_workbench.pages.frontier.frontier_chart import frontier_chart
from steelyard_workbench.pages.frontier.page import FrontierPanel
from support.browser.shown_parts import press_in, texts


@pytest.mark.parametrize(
    ("prices", "times", "axis"),
    [
        (("0.0", "0.0"), (5.0, 6.0), "latency"),
        (("0.0", "0.0"), (5.0, None), "latency"),
        (("0.0", "0.1"), (5.0, 6.0), "price"),
        (("0.0", "0.0"), (None, None), "price"),
    ],
)
def test_times_stand_at_the_axis_where_all_cost_the_same(prices, times, axis):
    points = [
        SimpleNamespace(
            evaluation=f"eval_{n}",
            model=f"model {n}",
            estimate=Measure(value=0.5, low=0.4, high=0.6, n=80),
            price_usd_per_1000=price,
            latency_ms=latency_ms,
            dominated=False,
        )
        for n, (price, latency_ms) in enumerate(zip(prices, times, strict=True))
    ]
    panel = FrontierPanel(None, "ds_1", print, print)
    shown = panel.show(SimpleNamespace(data=points, measure="accuracy", dataset_version=1))
    assert panel.axis.value == axis
    # A model without a time is drawn all the same, and it is said why it has none.
    drawn = [each.object.select_one({"name": "models"}) for each in shown.select(pn.pane.Bokeh)]
    names = ["model 0", "model 1" if times[1] else "model 1, time not known"]
    assert [list(each.data_source.data["model"]) for each in drawn] == [names][: bool(times[0])]
    assert ("hollow" in texts(shown)) == (times == (5.0, None))
    assert "Not beaten by another: **model 0**" in texts(shown)
    # Several without a time stand beside each other, left of where the axis is drawn.
    if times == (5.0, None):
        chart = frontier_chart([*points, points[1]], "accuracy", axis, print)
        at, *left = chart.select_one({"name": "models"}).data_source.data["x"]
        assert max(left) < chart.xaxis.bounds[0] <= at
        assert len(set(left)) == 2
    # One alone, or none, leads to the evaluation of another.
    for few, text in ((points[:1], "Evaluate another model"), ([], "No model is evaluated")):
        pressed: list[str] = []
        panel = FrontierPanel(None, "ds_1", print, lambda pressed=pressed: pressed.append("go"))
        shown = panel.show(SimpleNamespace(data=few, measure="accuracy", dataset_version=1))
        assert text in texts(shown)
        press_in(shown, "Evaluate a model")
        assert pressed == ["go"]
