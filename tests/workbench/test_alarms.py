"""Alarms on Live and Home: their text, the way to the decisions, and acknowledging."""

from __future__ import annotations

import asyncio
import time
from types import SimpleNamespace

import pytest

pytest.importorskip("panel", reason="needs the workbench extra")

from msgspec import structs

import steelyard
from steelyard.alarms.watching import Watcher
from steelyard.errors import KeyScopeError
from steelyard.wire.measures import Measure
from steelyard_workbench.kit.session import Session
from steelyard_workbench.pages.home.attention import alarm_needs
from steelyard_workbench.pages.home.page import HomePage
from steelyard_workbench.pages.live.page import LivePage
from steelyard_workbench.parts.live.alarms import AlarmBand, fetch_alarms, view_behind
from steelyard_workbench.parts.live.view import from_text
from support.browser.shown_parts import buttons, named, texts_of
from support.decisions.drifting import DRIFTED, SHARES, answers, store
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


def test_the_evidence_on_contexts_is_told_with_its_chance(client):
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
