"""The horizontal axis of the frontier: prices, or times where all prices are equal."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

pytest.importorskip("panel", reason="needs the workbench extra")

from steelyard.wire.measures import Measure
from steelyard_workbench.pages.frontier.frontier import FrontierPanel
from support.browser.shown_parts import press_in, texts


@pytest.mark.parametrize(
    ("prices", "latency_ms", "axis"),
    [
        (("0.0", "0.0"), 5.0, "latency"),
        (("0.0", "0.1"), 5.0, "price"),
        (("0.0", "0.0"), None, "price"),
    ],
)
def test_times_stand_at_the_axis_where_all_cost_the_same(prices, latency_ms, axis):
    points = [
        SimpleNamespace(
            evaluation=f"eval_{n}",
            model=f"model {n}",
            estimate=Measure(value=0.5, low=0.4, high=0.6, n=80),
            price_usd_per_1000=price,
            latency_ms=latency_ms and latency_ms + n,
            dominated=False,
        )
        for n, price in enumerate(prices)
    ]
    panel = FrontierPanel(None, "ds_1", print, print)
    panel.show(SimpleNamespace(data=points, measure="accuracy", dataset_version=1))
    assert panel.axis.value == axis
    # One alone, or none, leads to the evaluation of another.
    for few, text in ((points[:1], "Evaluate another model"), ([], "No model is evaluated")):
        pressed: list[str] = []
        panel = FrontierPanel(None, "ds_1", print, lambda pressed=pressed: pressed.append("go"))
        shown = panel.show(SimpleNamespace(data=few, measure="accuracy", dataset_version=1))
        assert text in texts(shown)
        press_in(shown, "Evaluate a model")
        assert pressed == ["go"]
