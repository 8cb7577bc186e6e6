"""One decision from its file to production and back: every place that knows of it says the same."""

from __future__ import annotations

import time
from decimal import Decimal
from functools import partial
from itertools import islice
from pathlib import Path

import httpx
import polars as pl
import pytest
from click.testing import CliRunner

pytest.importorskip("panel", reason="needs the workbench extra")

import steelyard
from steelyard.alarms.store import insert_alarm
from steelyard.app.job_runtime import open_worker
from steelyard.cli.main import main
from steelyard.ledger.money import from_usd
from steelyard_workbench.parts.named.looking import look_at
from support.families.learnable_rows import learnable_rows
from support.servers.live_server import live_server
from support.servers.webhook_endpoint import webhook_endpoint
from support.waiting import wait_until

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
    with live_server(
        jobs="off",
        accounts="on",
        base_models="judge=hashing",
        prices="hashing=1000,judge=9000",
        webhook_hosts="127.0.0.1",
    ) as running:
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
    """Ask over every wire by turns, and report outcomes; return the ids of the answers."""
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


def test_every_place_agrees_on_the_figures_of_a_decision(
    server, client, key, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    path = Path("decisions/desk.toml")
    path.parent.mkdir()
    environment = {"STEELYARD_API_KEY": key, "STEELYARD_URL": client.url}

    def run(*arguments, exit_code=0):
        result = CliRunner().invoke(main, ["decision", *arguments], env=environment)
        assert result.exit_code == exit_code, result.output
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

        path.write_text(FILE.replace("MODEL\n", "").replace('id = "team"', 'id = "group"'))
        run("push")
        check_overruling(client, run)


def check_overruling(client, run):
    """A version that is refused moves only with a reason, which every place repeats."""
    with webhook_endpoint() as endpoint:
        webhook = client.webhooks.create(endpoint.url, ["decision.moved"])
        endpoint.secret = webhook.secret
        refused = run("move", "desk", "production", "3", exit_code=2)
        assert "It no longer asks team." in refused
        assert client.named_decisions.version("desk").version == 1
        run("move", "desk", "production", "3", "--overrule", "the team is asked elsewhere")
        assert "refused and overruled: the team is asked elsewhere" in run("show", "desk")
        assert "overruled: the team is asked elsewhere" in run("history", "desk")
        assert "production 1" in run("rollback", "desk", "--reason", "it was needed")
        messages = wait_until(lambda: endpoint.told[1:] and endpoint.told)
    events = [event["data"] for event in messages]
    assert [(event["to_version"], event["verdict"], event["overruled"]) for event in events] == [
        (3, "refused", "the team is asked elsewhere"),
        (1, None, None),
    ]
    assert [event["reason"] for event in events] == [None, "it was needed"]


@pytest.mark.timeout(500)
@pytest.mark.parametrize("policy", ["propose", "move"])
def test_a_decision_grows_with_leave_until_drift_sends_it_back(server, client, key, policy):
    name, family = f"{policy}_desk", f"{policy}-desk"
    environment = {"STEELYARD_API_KEY": key, "STEELYARD_URL": client.url}
    named = client.named_decisions

    def grow(*options):
        command = ["decision", "grow", name, *options]
        result = CliRunner().invoke(main, command, env=environment)
        return " ".join(result.output.split())

    def turn_until(stage):
        """Turn it until it is at a stage; a worker beside trains and compares."""
        give_up_at = time.monotonic() + 200
        while (growth := named.turn_growth(name)).stage != stage:
            assert time.monotonic() < give_up_at, growth
        return growth

    rows = learnable_rows(batch=1, n_rows=240)
    asks = [{**rows[0]["decisions"][0], "abstain": {"min_probability": 0.8}}]
    named.create(name, asks, model="judge")
    assert "has no dataset" in grow()
    client.datasets.create(f"{name} rows", examples=rows[:60])
    named.change(name, dataset_id=f"{name} rows")
    for row in rows[60:]:
        client.feedback(client.decision(name).decide(row["context"]).id, row["targets"])
    shown = grow("--policy", "rows")
    assert "180 rows of feedback were added, 240 in all" in shown, shown
    assert "waits" not in shown
    shown = grow("--policy", policy, "--at-least", "1000")
    assert "of 1000 new training rows are there" in shown, shown
    growth = named.grow(name, policy, at_least=100, shadow=4, margin=0.05)
    assert growth.policy.family == family
    with open_worker(server.services.settings):
        growth = turn_until("training")
        assert growth.estimate.error < growth.estimate.model_error.value
        assert "Growth: shadowing" in grow("--wait")
        for row in rows[:6]:
            client.decision(name).decide(row["context"])
        if policy == "propose":
            turn_until("proposed")
            assert named.version(name, "proposed").version == 2
            assert named.version(name).version == 1, "a person moves it"
            named.move(name, "production", 2, expected=1)
        growth = turn_until("moved")
    check_moved(named, name, growth.comparison)
    check_escalation(client, name, rows[0]["context"])

    # An alarm of drift moves production back, and says why.
    state = server.services.state
    state.write_now(partial(raise_alarm, account_id=named_account(server), family=family))
    shown = grow()
    assert "demoted" in shown, shown
    assert "Texts are others." in shown
    assert named.version(name).model == "judge"
    assert "It was stopped." in grow("--stop")


def named_account(server):
    """The account of the key, beside the server's own."""
    entries = server.services.accounts.list_accounts()
    return next(entry.id for entry in entries if entry.name == "payer")


def check_moved(named, name, judged):
    """Production asks the family, then the judge, because a comparison passed it."""
    assert (judged.is_as_right, judged.is_cheaper, judged.verdict) == (True, True, "passed")
    last = next(iter(named.history(name)))
    assert (last.alias, last.verdict, last.to_version) == ("production", "passed", 2)
    version = named.version(name)
    asked = (version.model, version.fallback, version.escalate)
    assert asked == (name.replace("_", "-"), ["judge"], True)


def check_escalation(client, name, known):
    """The family answers where it knows; where it abstains the judge decides, at the price of both."""
    sure = client.decision(name).decide(known)
    novel = client.decision(name).decide("Xylophon zwerg quark ypsilon jazz vamp.")
    assert (sure.model, sure.fallback) == (name.replace("_", "-"), None)
    assert (novel.model, novel.fallback.reason) == ("judge", "unsure")
    prices = [Decimal(each.charge.amount_usd) / each.usage.prompt_tokens for each in (sure, novel)]
    assert prices[1] > prices[0]


def raise_alarm(connection, *, account_id, family):
    insert_alarm(
        connection,
        {
            "id": f"alm_{family}",
            "account_id": account_id,
            "model": family,
            "version": "",
            "decision": "",
            "watch": "contexts",
            "state": "raised",
            "message": "Texts are others.",
            "created_at": time.time(),
            "evidence": b"{}",
        },
    )


def check_bill(client, cost_of_second, moves):
    """The cost of each version equals the sum of its answers, in the bill, over time and on its page."""
    lines = {line.name: line for line in client.account.usage(by="decision").data}
    by_version = {}
    for logged in client.decision_log(named="desk", limit=200).data:
        version = client.stored_decision(logged.id).named.reference
        by_version[version] = by_version.get(version, 0) + 1
    assert {name: lines[name].calls for name in ("desk@1", "desk@2")} == by_version
    assert Decimal(lines["desk@2"].cost_usd) == Decimal(cost_of_second)
    looked = look_at(client, "desk")
    assert looked.summary.answers == sum(by_version.values())
    assert looked.cost_usd == sum(Decimal(lines[name].cost_usd) for name in by_version)
    assert [move.id for move in looked.moves[:2]] == moves
    series = client.decision_series(named="desk")
    cost = sum(Decimal(point.cost_usd) for point in series.data)
    assert cost == sum(Decimal(lines[name].cost_usd) for name in by_version)
