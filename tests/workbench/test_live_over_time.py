"""Live over time: a chart for each figure, the promise of the evaluation, and the rows behind a point."""

from __future__ import annotations

import math
import time
from types import SimpleNamespace

import pytest

pytest.importorskip("panel", reason="needs the workbench extra")

import panel as pn
from bokeh.models import BoxAnnotation, LayoutDOM, Span
from msgspec import structs

import steelyard
from steelyard.errors import NotFoundError
from steelyard.evaluations.wire import Measures
from steelyard.wire.measures import Measure
from steelyard_workbench.kit.session import Session
from steelyard_workbench.pages.live.over_time import (
    Fetched,
    OverTime,
    Promise,
    fetch_promise,
    show_charts,
)
from steelyard_workbench.pages.live.page import LivePage
from steelyard_workbench.parts.live.view import View
from support.browser.shown_parts import named, texts_of
from support.decisions.drifting import DRIFTED, SHARES, answers, store, tell
from support.servers.live_server import live_server


@pytest.fixture(scope="module")
def client():
    """A client of a server that answered three hours and ten hours ago, and knows of the first."""
    with live_server() as server, steelyard.connect(server.url) as client:
        hour = math.floor(time.time() / 3600) * 3600.0
        early = answers(40, SHARES, at=hour - 10 * 3600 + 60)
        late = answers(60, DRIFTED, at=hour - 3 * 3600 + 60, seed=1)
        store(server.services.state, early + late)
        tell(server.services.state, early[:30], hour)
        yield client


def charts_of(shown: pn.Column) -> dict[str, LayoutDOM]:
    found = [one.object for one in shown.select(pn.pane.Bokeh)]
    return {one.title.text: one for one in found}


def marks_of(chart):
    return [one for one in chart.renderers if type(one.glyph).__name__ == "Scatter"]


def opened(client):
    page = LivePage(Session(client, page="live"))
    page.open()
    page.show_more()
    return page


def test_every_figure_has_a_chart_whose_points_open_their_decisions(client):
    page = opened(client)
    charts = charts_of(page.over_time.__panel__())
    right, calibration = "Right on feedback", "Squared miss on feedback, less is better"
    assert list(charts) == [
        right,
        calibration,
        "Shares of the answers",
        "Abstained or went on",
        "Time to answer",
    ]
    assert {len(marks_of(charts[name])) for name in (right, calibration)} == {1}
    assert len(marks_of(charts["Shares of the answers"])) == 3
    assert len(marks_of(charts["Time to answer"])) == 2
    # No route answered, and nothing was charged: there is nothing to draw of these.
    assert len(marks_of(charts["Abstained or went on"])) == 1
    [told] = marks_of(charts[right])
    assert [one.split()[-1] for one in told.data_source.data["told"]] == ["30)"]
    assert told.data_source.data["low"][0] < told.data_source.data["value"][0]
    [line] = [one for one in charts[right].renderers if type(one.glyph).__name__ == "Line"]
    assert len(line.data_source.data["y"]) == 24
    assert sum(not math.isnan(one) for one in line.data_source.data["y"]) == 1

    told.data_source.selected.indices = [0]
    assert page.view.rows.has_feedback
    assert len(page.feed.entries) == 30
    shares = marks_of(charts["Shares of the answers"])[0].data_source
    shares.selected.indices = [1]
    assert len(page.feed.entries) == 60
    assert not page.view.rows.has_feedback


def test_the_points_are_a_table_too_and_other_spans_have_other_points(client):
    page = opened(client)
    named(page.over_time.__panel__(), "Show the figures over time as a table")[0].clicks += 1
    said = texts_of(page.over_time.__panel__())
    assert "A point for each hour" in said
    page.over_time.span.value = 2_592_000
    assert "A point for each 24 hours" in texts_of(page.over_time.__panel__())
    assert len(page.over_time.part.data.series.data) == 30
    page.over_time.span.value = 604_800
    assert len(page.over_time.part.data.series.data) == 28
    page.decision.value = "team"
    assert page.over_time.part.data.series.outcomes[0].decision == "team"


def test_a_span_without_decisions_says_so():
    with steelyard.embed(engine="hashing") as server:
        shown = OverTime(server.client, View, lambda _: None)
        shown.part.start()
        assert "No decision was stored in the last 24 hours." in texts_of(shown.__panel__())


def test_the_promise_of_the_evaluation_is_a_band(client):
    series = OverTime(client, View, lambda _: None)._fetch().series
    share = Measure(value=0.8, low=0.7, high=0.9, n=80)
    costly = structs.replace(
        series, data=[structs.replace(one, cost_usd="0.25") for one in series.data]
    )
    shown = show_charts(Fetched(costly, Promise("eval_1", share, None)), lambda _: None)
    charts = charts_of(pn.Column(*shown))
    [band] = charts["Right on feedback"].select(BoxAnnotation)[:1]
    assert (band.bottom, band.top) == (0.7, 0.9)
    assert [one.location for one in charts["Right on feedback"].select(Span)] == [0.8]
    assert not list(charts["Shares of the answers"].select(Span))
    assert "Cost" in charts


def test_the_promise_is_that_of_the_one_model_that_answers():
    measures = Measures(n=1, contexts=1, accuracy=Measure(value=0.5, low=0.4, high=0.6, n=9))
    detail = SimpleNamespace(
        overall=measures, decisions=[SimpleNamespace(decision_id="team", metrics=measures)]
    )

    def watched(model, version, evaluation_id):
        of = evaluation_id and SimpleNamespace(evaluation_id=evaluation_id)
        return SimpleNamespace(model=model, version=version, reference=of)

    every = [
        watched("router", "router@2", "eval_2"),
        watched("router", "router@1", "eval_1"),
        watched("base", None, None),
    ]

    def client(found, detail=lambda _: detail):
        return SimpleNamespace(
            alarms=SimpleNamespace(rules=lambda: SimpleNamespace(watched=found)),
            evaluations=SimpleNamespace(detail=detail),
        )

    def gone(_):
        raise NotFoundError("It is gone.")

    assert fetch_promise(client(every), View()).evaluation_id == "eval_2"
    of_number = fetch_promise(client(every), View(model="router@1", decision="team"))
    assert (of_number.evaluation_id, of_number.brier) == ("eval_1", None)
    assert of_number.accuracy.value == 0.5
    assert fetch_promise(client(every), View(decision="nobody")) is None
    assert fetch_promise(client(every), View(model="base")) is None
    assert fetch_promise(client([*every, watched("other", "other@1", "e")]), View()) is None
    assert fetch_promise(client(every, gone), View()) is None
