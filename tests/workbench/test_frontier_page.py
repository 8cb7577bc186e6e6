"""The horizontal axis of the frontier: prices, or times where all prices are equal."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

pytest.importorskip("panel", reason="needs the workbench extra")

from steelyard.wire.measures import Measure
from steelyard_workbench.pages.frontier.frontier import FrontierPanel


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
            latency_ms=latency_ms,
            dominated=False,
        )
        for n, price in enumerate(prices)
    ]
    panel = FrontierPanel(None, "ds_1", print)
    panel.show(SimpleNamespace(data=points, measure="accuracy", dataset_version=1))
    assert panel.axis.value == axis
