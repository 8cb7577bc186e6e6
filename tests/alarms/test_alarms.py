"""Alarms over HTTP, by the client and by the command line, on a real server."""

from __future__ import annotations

import asyncio
import json
import re
import time

import httpx
import pytest
from click.testing import CliRunner
from msgspec import structs

import steelyard
from steelyard import errors
from steelyard.alarms import references as module_of_references
from steelyard.alarms.budget import WATCHES
from steelyard.alarms.service import Alarms
from steelyard.alarms.watching import Watcher
from steelyard.alarms.wire import ChosenReference, PutAlarmRule
from steelyard.app.job_runtime import open_worker
from steelyard.cli.main import main
from steelyard.operations.write import Write
from support.datasets.dataset_rows import make_rows
from support.decisions.drifting import DRIFTED, SHARES, answers, store, tell
from support.models.evaluated import (
    ME,
    make_dataset,
    open_home,
    settings_of,
    submit,
    wait_for_evaluation,
)
from support.servers.live_server import live_server

pytestmark = pytest.mark.usefixtures("every_response_is_checked")


@pytest.fixture(scope="module")
def server():
    with live_server() as found:
        yield found


@pytest.fixture(scope="module")
def drifted(server):
    """A model whose answers drifted, and were looked at."""
    state, start = server.services.state, time.time() - 3_600
    store(state, answers(1_500, SHARES, at=start, model="steady", version=None, seed=1))
    found = answers(2_000, SHARES, at=start, seed=2)
    store(state, found)
    tell(state, found[:400], start)
    watcher = server.services.get(Watcher)
    watcher.tick()
    watcher._now = lambda: time.time() + 60
    late = answers(600, DRIFTED, at=start + 2_100, seed=3)
    store(state, late)
    told = [(stored, "nobody's") for stored, _ in late[:300]]
    tell(state, told, time.time())
    watcher.tick()


@pytest.fixture
def client(server, drifted):
    with steelyard.connect(server.url) as found:
        yield found


def run(server, *arguments):
    found = CliRunner().invoke(main, [*arguments, "--url", server.url])
    assert found.exit_code == 0, found.output
    return found.output


@pytest.mark.slow
def test_an_alarm_has_its_evidence_and_the_decisions_behind_it(server, client):
    (alarm,) = [one for one in client.alarms.list(state="raised") if one.watch == "shares"]
    assert (alarm.model, alarm.version, alarm.decision) == ("router", "router@1", "team")
    assert list(client.alarms.list(model="steady")) == []
    behind = alarm.evidence.decisions
    page = client.decision_log(
        since=behind.since, until=behind.until, model=behind.model, decision=behind.decision
    )
    assert {one.version for one in page.data} == {"router@1"}
    detail = client.alarms.get(alarm.id)
    assert detail.alarm == alarm
    assert detail.now.value > alarm.evidence.reference_value + 0.1
    assert detail.selection is None
    assert alarm.message in run(server, "alarm", "list")
    shown = run(server, "alarm", "show", alarm.id)
    assert "Now: 0.4" in shown
    assert re.search(r"Reference: 0\.\d{3} \(0\.\d{3} to 0\.\d{3}, n = ", shown)
    assert 'steelyard_alarms{state="raised"}' in httpx.get(f"{server.url}/metrics").text


def test_feedback_tells_of_whose_decisions_it_came(server, client):
    (alarm,) = [one for one in client.alarms.list() if one.watch == "accuracy"]
    detail = client.alarms.get(alarm.id)
    assert detail.alarm.evidence.decisions.has_feedback is True
    assert 0 < detail.selection.with_feedback.value < 1
    assert detail.selection.mean_p_top == pytest.approx(0.8, abs=0.05)
    assert "Feedback came on" in run(server, "alarm", "show", alarm.id)


def test_an_alarm_is_acknowledged_once(server, client):
    alarm = next(one for one in client.alarms.list() if one.watch == "shares")
    known = client.alarms.acknowledge(alarm.id)
    assert (known.state, known.raised_at) == ("acknowledged", alarm.raised_at)
    assert client.alarms.acknowledge(alarm.id) == known
    assert "acknowledged" in run(server, "alarm", "acknowledge", alarm.id)
    with pytest.raises(errors.NotFoundError, match="GET /v1/alarms"):
        client.alarms.get("alarm_none")


def test_rules_are_set_and_watches_listed(server, client):
    before = client.alarms.rules()
    assert [(one.model, one.enabled, one.watches) for one in before.data] == [
        (None, True, list(WATCHES))
    ]
    watched = {one.version or one.model: one for one in before.watched}
    assert watched["steady"].reference.n == 1_000
    assert watched["router@1"].answers == 2_600
    active = {one.id for one in client.alarms.list(state=["raised", "acknowledged"])}
    assert active
    client.alarms.set_rule("steady", watches=["shares"])
    assert {one.id for one in client.alarms.list(state=["raised", "acknowledged"])} == active
    after = json.loads(
        run(server, "alarm", "rules", "--set", "router", "--watch", "shares", "--json")
    )
    assert [one["model"] for one in after["data"]] == [None, "router", "steady"]
    assert list(client.alarms.list(state=["raised", "acknowledged"])) == []
    cleared = next(one for one in client.alarms.list() if one.id in active)
    assert (cleared.state, cleared.cleared_reason) == ("cleared", "rules_changed")
    client.alarms.set_rule(enabled=False)
    assert not client.alarms.rules().data[0].enabled
    assert "every other" in run(server, "alarm", "rules")
    client.alarms.remove_rule()
    assert client.alarms.rules().data[0].updated_at is None
    removed = json.loads(run(server, "alarm", "rules", "--remove", "router", "--json"))
    assert [one["model"] for one in removed["data"]] == [None, "steady"]
    assert client.alarms.get(cleared.id).alarm == cleared
    for model, told in (("router", "No rule of 'router'"), (None, "No general rule")):
        with pytest.raises(errors.NotFoundError, match=told):
            client.alarms.remove_rule(model)
    unknown = ["alarm", "rules", "--set", "unknown", "--url", server.url]
    assert "model is 'unknown', which is neither" in CliRunner().invoke(main, unknown).output
    for model in ("router@9", "decision:desk"):
        with pytest.raises(errors.InvalidRequestError, match=r"^model is ."):
            client.alarms.set_rule(model)
    assert client.alarms.set_rule("hashing").data[-1].model == "steady"
    for wrong in ({"evaluation_id": "eval_none"}, {"since": 2.0}, {"since": 2.0, "until": 1.0}):
        with pytest.raises(errors.InvalidRequestError, match=r"^reference "):
            client.alarms.set_rule("router", **wrong)


def test_an_evaluation_is_the_reference_of_a_model(tmp_path, monkeypatch):
    with open_home(tmp_path) as services:
        dataset = make_dataset(services, make_rows(150))
        (evaluation,) = submit(services, dataset.id).data
        with open_worker(settings_of(tmp_path)):
            wait_for_evaluation(services, evaluation.id)
        chosen = ChosenReference(evaluation_id=evaluation.id)
        rule = PutAlarmRule(model="hashing", reference=chosen)
        asyncio.run(services.get(Alarms).put_rule(Write(ME), rule))
        asked = answers(60, SHARES, at=time.time() - 200, model="hashing", version=None)
        store(services.state, asked)
        services.get(Watcher).tick()
        (watched,) = asyncio.run(services.get(Alarms).rules(ME)).watched
        assert watched.reference.evaluation_id == evaluation.id
        assert watched.reference.n == evaluation.decisions
        references, key = services.get(Watcher)._references, (ME.account_id, "hashing", "")
        sample, _ = references.of_evaluation(key, evaluation.id)
        assert len(sample.texts) == 150
        assert references.texts_of(key, watched.reference) == sample.texts
        # Of more rows than are looked at, evenly chosen ones: they may be in order of topic.
        monkeypatch.setattr(module_of_references, "MOST_REFERENCE", 50)
        assert references.texts_of(key, watched.reference) == sample.texts[::3]
        gone = structs.replace(watched.reference, evaluation_id="eval_gone")
        assert references.texts_of(key, gone) == []
        assert {len(values) for values in sample.feedback.values()} == {150}
