"""Alarms on Live and Home: their text, the way to the decisions, and acknowledging."""

from __future__ import annotations

import asyncio
import time
from types import SimpleNamespace

import pytest

pytest.importorskip("panel", reason="needs the workbench extra")

from msgspec import structs

import steelyard
from steelyard.alarms.golden_wire import GoldenCheck, GoldenResult, GoldenRows, GoldenState
from steelyard.alarms.watching import Watcher
from steelyard.errors import KeyScopeError
from steelyard.evaluations.wire import Change
from steelyard.wire.measures import Measure
from steelyard_workbench.kit.session import Session
from steelyard_workbench.pages.alarms.page import AlarmsPage
from steelyard_workbench.pages.alarms.rules import show_golden
from steelyard_workbench.pages.home.attention import alarm_needs
from steelyard_workbench.pages.home.page import HomePage
from steelyard_workbench.pages.live.page import LivePage
from steelyard_workbench.parts.live.alarms import AlarmBand, fetch_alarms, view_behind
from steelyard_workbench.parts.live.view import from_text
from support.browser.shown_parts import buttons, named, texts_of
from support.decisions.drifting import DRIFTED, SHARES, answers, store
from support.families.learnable_rows import learnable_rows
from support.servers.live_server import live_server


@pytest.fixture(scope="module")
def client():
    """A client of a server whose model drifted within the last hour."""
    with live_server() as server, steelyard.connect(server.url) as client:
        services, start = server.services, time.time() - 3_000
        store(services.state, answers(1_500, SHARES, at=start))
        store(services.state, answers(900, DRIFTED, at=start + 2_000, seed=1))
        services.get(Watcher).tick()
        yield client


def test_live_shows_an_alarm_with_its_evidence_and_leads_to_its_decisions(client):
    page = LivePage(Session(client, page="live"))
    page.open()
    alarm = next(one for one in fetch_alarms(client) if one.watch == "shares")
    said = texts_of(page.figures.__panel__())
    assert alarm.message in said
    assert f"n = {alarm.evidence.estimate.n:,}" in said
    assert 'role="img"' in said
    assert "Odds against no drift" in said
    assert "to 1; an alarm from" in said
    page.more.clicks += 1
    assert "Yellow bands" in texts_of(page.__panel__())
    named(page.figures.__panel__(), "Show the decisions")[0].clicks += 1
    assert page.view.rows.model == "router@1"
    assert page.feed.entries
    assert {one.version for one in page.feed.entries} == {"router@1"}
    assert fetch_alarms(client, "another") == []


def test_the_evidence_on_contexts_is_shown_with_its_chance(client):
    alarm = fetch_alarms(client)[0]
    evidence = structs.replace(
        alarm.evidence,
        figure="distance",
        p_value=3e-9,
        log_evidence=None,
        log_threshold=None,
        estimate=Measure(value=0.71, low=0.5, high=0.9, n=200),
        reference_value=0.54,
        reference_low=0.52,
        reference_high=0.57,
    )
    of_contexts = structs.replace(alarm, watch="contexts", evidence=evidence)
    band = AlarmBand(client, of_contexts, open_=lambda _: None, on_known=lambda: None)
    said = texts_of(band.__panel__())
    assert "3e-09" in said
    assert "0.710, 0.500 to 0.900 (n = 200)" in said
    assert "0.540, 0.520 to 0.570 (n = " in said
    assert "Odds against" not in said


def test_home_tells_of_an_alarm_with_the_way_to_it(client):
    alarms = fetch_alarms(client)
    needs = alarm_needs(alarms)
    assert {need.status for need in needs} == {"bad"}
    assert from_text(needs[0].chosen["query"]) == view_behind(alarms[0])
    page = HomePage(Session(client))
    page.open()
    assert [need.text for need in page.needs["Alarms"]] == [need.text for need in needs]


def test_an_alarm_is_acknowledged_and_one_that_cannot_be_says_why(client):
    alarm, known = fetch_alarms(client)[0], []

    def shown(by):
        return AlarmBand(by, alarm, open_=known.append, on_known=lambda: known.append(alarm.id))

    def refuse(_):
        raise KeyScopeError("The key may only read.")

    band = shown(SimpleNamespace(alarms=SimpleNamespace(acknowledge=refuse)))
    asyncio.run(band.acknowledge())
    assert "may only read" in texts_of(band.__panel__())
    assert known == []
    band = shown(client)
    assert "Acknowledge" in buttons(band.__panel__())
    asyncio.run(band.acknowledge())
    assert known == [alarm.id]
    again = fetch_alarms(client)[0]
    assert again.state == "acknowledged"
    assert {need.status for need in alarm_needs([again])} == {"unsure"}


def test_golden_rows_are_set_and_asked_on_the_page(client):
    rows = learnable_rows(n_rows=24)
    dataset = client.datasets.create("golden", training=rows[:20], evaluation=rows[20:])
    page = AlarmsPage(Session(client, page="alarms"))
    page.open()
    form = page.rules
    form.model.value, form.golden.value = client.models.list().data[0].id, dataset.id
    form.every_hours.value = 6.0
    named(form.__panel__(), "Save the rule")[0].clicks += 1
    [state] = client.alarms.rules().golden
    assert (state.golden.dataset_id, state.golden.every_hours) == (dataset.id, 6.0)
    assert "Golden rows of" in texts_of(form.__panel__())
    named(form.__panel__(), "Check now")[0].clicks += 1
    [state] = client.alarms.rules().golden
    assert state.checks[0].status == "running"


def test_golden_rows_say_when_they_were_checked_and_what_moved(client):
    right = Change(before=0.9, after=0.6, change=-0.3, low=-0.4, high=-0.2, n=40)
    result = GoldenResult(
        n=40,
        moved=0.3,
        moved_by_chance=0.05,
        beyond_chance=structs.replace(right, before=0.05, after=0.3, change=0.25),
        right=right,
        frozen_latency_ms=80.0,
        latency_ms=120.0,
        has_moved=True,
    )
    check = GoldenCheck(
        number=3,
        status="moved",
        evaluation_id="eval_1",
        started_at=time.time() - 3 * 3_600,
        ended_at=time.time() - 3 * 3_600,
        because="it was time",
        result=result,
        message="30.0% of 40 answers moved.",
    )
    state = GoldenState(
        model="far",
        golden=GoldenRows(dataset_id="ds_1"),
        checked_at=check.ended_at,
        is_stale=False,
        checks=[check],
    )
    said = texts_of(show_golden(state))
    for text in ("Checked 3 h ago.", "Every 24 h.", check.message, "30.0%", "80 ms → 120 ms"):
        assert text in said
    late = structs.replace(state, is_stale=True, checked_at=None, checks=[])
    assert "Not checked yet." in texts_of(show_golden(late))
    alarm = structs.replace(fetch_alarms(client)[0], watch="golden_stale")
    alarm = structs.replace(alarm, evidence=structs.replace(alarm.evidence, figure="stale"))
    band = AlarmBand(client, alarm, open_=print, on_known=print)
    assert not named(band.__panel__(), "Show the decisions")[0].visible
