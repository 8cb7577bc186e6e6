"""One decision from its file to production and back: every place that knows of it says the same."""

from __future__ import annotations

from decimal import Decimal
from itertools import islice
from pathlib import Path

import httpx
import polars as pl
import pytest
from click.testing import CliRunner

pytest.importorskip("panel", reason="needs the workbench extra")

import steelyard
from steelyard.app.job_runtime import open_worker
from steelyard.cli.main import main
from steelyard.ledger.money import from_usd
from steelyard_workbench.named.looking import look_at
from support.learnable_rows import learnable_rows
from support.live_server import live_server

pytestmark = pytest.mark.slow

FILE = """\
name = "desk"
owner = "ann"
dataset = "desk rows"
MODEL
[[decisions]]
id = "team"
question = "Which team should own this?"
[decisions.outcomes]
billing = "money"
shipping = "parcels"
"""


@pytest.fixture(scope="module")
def server():
    with live_server(jobs="off", accounts="on", prices="hashing=1000") as running:
        yield running


@pytest.fixture(scope="module")
def key(server):
    accounts = server.services.accounts
    account = accounts.create_account("payer")
    accounts.add_credit(account.id, from_usd("50"))
    return accounts.create_key(account=account.id).secret


@pytest.fixture(scope="module")
def client(server, key):
    with steelyard.connect(server.url, key) as connected:
        yield connected


def ask_everywhere(client, key, rows):
    """Ask over every wire by turns, and report what came true; gives the ids of the answers."""
    ids = []
    headers = {"Authorization": f"Bearer {key}"}
    with httpx.Client(base_url=client.url, headers=headers) as http:
        for place, row in enumerate(rows):
            text = row["context"]
            if place % 3 == 0:
                ids.append(client.decision("desk").decide(text).id)
            else:
                path, field = (("/v1/decisions", "input"), ("/v1/systemone", "state"))[
                    place % 3 - 1
                ]
                answer = http.post(path, json={"model": "decision:desk", field: text})
                assert answer.status_code == 200, answer.text
                ids.append(answer.json()["id"])
    for place, row in zip(ids, rows, strict=True):
        client.feedback(place, row["targets"])
    return ids


def test_every_place_agrees_on_what_a_decision_did(server, client, key, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = Path("decisions/desk.toml")
    path.parent.mkdir()
    environment = {"STEELYARD_API_KEY": key, "STEELYARD_URL": client.url}

    def run(*arguments):
        result = CliRunner().invoke(main, ["decision", *arguments], env=environment)
        assert result.exit_code == 0, result.output
        return result.output

    first, rest = learnable_rows(n_rows=180)[:30], learnable_rows(n_rows=180)[30:]
    dataset = client.datasets.create("desk rows", examples=first)
    path.write_text(FILE.replace("MODEL\n", ""))
    run("push", "--note", "first")
    decision = client.named_decisions.get("desk")
    assert (decision.dataset_id, decision.owner) == (dataset.id, "ann")

    # Traffic over every wire, and what came true.
    ids = ask_everywhere(client, key, rest)
    frame = pl.DataFrame({"text": [row["context"] for row in first[:5]]})
    steelyard.decide_frame(frame, "desk", client=client, progress=False)
    client.decide("asked in full", rest[0]["decisions"])
    assert {logged.id for logged in client.decision_log(named="desk@1", limit=200).data} >= set(ids)
    stored = client.decision_summary(named="desk").answers
    assert sum(point.answers for point in client.decision_series(named="desk").data) == stored
    exported = client.export_decisions(named="desk", format="csv")
    assert exported.count(b"\n") == stored + 1

    # Rows: of this decision alone, each once.
    made = client.datasets.from_feedback(dataset_id=dataset.id, named="desk")
    assert (made.feedback.stored, made.feedback.added) == (stored, len(ids))
    assert made.rows == len(first) + len(ids)

    with open_worker(server.services.settings):
        # A family of its rows, which the gate passes.
        job = client.jobs.wait(client.families.create("desk", dataset.id), progress=False)
        assert job.outcome == "joined", job
        assert client.families.wait("desk", job, progress=False).dataset_id == dataset.id
        path.write_text(FILE.replace("MODEL", 'model = "desk"'))
        assert "staging 2" in run("push", "--alias", "staging")
        assert "desk@2 against 1: passed" in run("move", "desk", "production", "2")
    answer = client.decision("desk").decide(rest[0]["context"])
    assert (answer.decision.reference, answer.version) == ("desk@2", "desk@1")
    assert "production 1, staging 2" in run("rollback", "desk", "--reason", "a try")
    assert client.decision("desk").decide(rest[1]["context"]).decision.version == 1
    moves = list(islice(client.named_decisions.history("desk"), 2))
    assert [(move.to_version, move.verdict) for move in moves] == [(1, None), (2, "passed")]
    check_bill(client, answer.charge.amount_usd, [move.id for move in moves])


def test_a_decision_grows_with_leave_from_feedback_to_a_proposed_version(server, client, key):
    environment = {"STEELYARD_API_KEY": key, "STEELYARD_URL": client.url}

    def grow(*options):
        command = ["decision", "grow", "grown", *options]
        result = CliRunner().invoke(main, command, env=environment)
        return result.exit_code, " ".join(result.output.split())

    rows = learnable_rows(batch=1, n_rows=180)
    client.named_decisions.create("grown", rows[0]["decisions"])
    assert "has no dataset" in grow()[1]
    client.datasets.create("grown rows", examples=rows[:30])
    client.named_decisions.change("grown", dataset_id="grown rows")
    for row in rows[30:]:
        client.feedback(client.decision("grown").decide(row["context"]).id, row["targets"])
    code, shown = grow("--policy", "rows")
    assert (code, "150 added, 180 in version 2" in shown) == (0, True), shown
    code, shown = grow("--at-least", "1000")
    assert (code, "no new feedback" in shown, "waits" in shown) == (0, True, True), shown
    with open_worker(server.services.settings):
        code, shown = grow("--at-least", "100")
    assert (code, "proposed points to version 2" in shown) == (0, True), shown
    assert "grown@2 against 1: passed" in shown
    aliases = {alias.alias: alias.version for alias in client.named_decisions.get("grown").aliases}
    assert aliases == {"production": 1, "proposed": 2}
    assert client.named_decisions.version("grown", "proposed").model == "grown"
    assert "waits: 0 of 100 new training rows" in grow("--at-least", "100")[1]


def check_bill(client, cost_of_second, moves):
    """What each version cost is what its answers say, in the bill, over time and on its page."""
    lines = {line.name: line for line in client.account.usage(by="decision").data}
    by_version = {}
    for logged in client.decision_log(named="desk", limit=200).data:
        version = client.stored_decision(logged.id).named.reference
        by_version[version] = by_version.get(version, 0) + 1
    assert {name: lines[name].calls for name in ("desk@1", "desk@2")} == by_version
    assert Decimal(lines["desk@2"].cost_usd) == Decimal(cost_of_second)
    looked = look_at(client, "desk")
    assert looked.summary.answers == sum(by_version.values())
    assert {line.name: line.calls for line in looked.usage} == by_version
    assert [move.id for move in looked.moves[:2]] == moves
    series = client.decision_series(named="desk")
    cost = sum(Decimal(point.cost_usd) for point in series.data)
    assert cost == sum(Decimal(lines[name].cost_usd) for name in by_version)
