"""Switches of models: their budget before anything is asked, and the labels that settle them."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import pytest
from click.testing import CliRunner

import steelyard
from steelyard.cli import decision_compare
from steelyard.cli.decision_compare import measure_line
from steelyard.cli.main import main
from steelyard.client.switches import settle, version_with_model
from steelyard.errors import InvalidRequestError, NoRowsError, PriceChangedError
from steelyard.imports.recorded import read_recorded
from steelyard.ledger.money import from_usd
from steelyard.wire.measures import Measure
from support.servers.live_server import live_server
from support.waiting import wait_until

TEAM = {"id": "team", "question": "Which team?", "outcomes": ["billing", "shipping"]}
OTHER = {**TEAM, "question": "Whose is it, after all?"}


def test_the_budget_is_shown_before_anything_is_asked():
    with live_server(jobs="off", accounts="on", prices="hashing=1000") as running:
        accounts = running.services.accounts
        payer = accounts.create_account("payer")
        accounts.add_credit(payer.id, from_usd("50"))
        key = accounts.create_key(account=payer.id).secret
        with steelyard.connect(running.url, key) as client:
            named = client.named_decisions
            named.create("desk", [TEAM])
            named.add_version("desk", [OTHER])
            for number in range(3):
                client.decision("desk").decide(f"Ticket {number}")
            n_asked = running.scorer.n_requests
            estimate = named.estimate_comparison("desk", 2)
            assert running.scorer.n_requests == n_asked, "nothing was asked"
            assert (estimate.contexts, estimate.warnings) == (3, [])
            assert estimate.input_tokens_after > estimate.input_tokens_before > 0
            n_tokens = estimate.input_tokens_before + estimate.input_tokens_after
            assert from_usd(estimate.price_usd) == 1_000 * n_tokens
            assert named.estimate_comparison("desk", 2, traffic_s=1e-6).contexts == 0
            with pytest.raises(PriceChangedError):
                named.compare("desk", 2, max_price_usd="0")
            assert named.compare("desk", 2).price_usd == estimate.price_usd


def test_the_command_says_the_budget_and_asks_on_a_terminal(monkeypatch):
    monkeypatch.setattr(decision_compare, "is_on_terminal", lambda: True)
    with steelyard.embed(engine="hashing") as server:
        named = server.client.named_decisions
        named.create("desk", [TEAM])
        server.client.decision("desk").decide("Charged twice.")
        compare = ["decision", "compare", "desk", "--with", "hashing", "--url", server.url]
        left = CliRunner().invoke(main, compare, input="n\n")
        assert "Both are asked about 1 texts: some " in left.output
        assert (left.exit_code, list(named.comparisons("desk"))) == (1, [])
        done = CliRunner().invoke(main, [*compare, "--yes"])
        assert "Go on?" not in done.output
        assert "desk@2 against 1" in done.output
        settle_it = ["decision", "settle", "desk", "--url", server.url]
        assert "no label would settle it" in CliRunner().invoke(main, settle_it).output


def test_the_interval_of_a_share_has_no_sign():
    share = Measure(value=0.85, low=0.801, high=0.889, n=40)
    assert measure_line(share) == "85.0% [80.1%, 88.9%]"


def test_labels_of_a_sealed_review_settle_the_next_comparison():
    with steelyard.embed(engine="hashing") as server:
        client, named = server.client, server.client.named_decisions
        named.create("desk", [TEAM])
        named.add_version("desk", [OTHER])
        for number in range(12):
            client.decision("desk").decide(f"Ticket {number}")
        comparison = named.wait(named.compare("desk", 2))
        [switch] = comparison.result.switches
        assert 0 < len(switch.to_label) < 12
        settling = settle(client, comparison)
        draft = settling.draft
        assert (draft.rows, settling.n_labels) == (len(switch.to_label), 0)
        assert "texts wait in the review desk 2 against 1" in settling.summary
        assert settle(client, comparison).draft.id == draft.id, "there is one review of it"
        rows = client.drafts.rows(draft.id).data
        assert {row.metadata["decision_id"] for row in rows} == set(switch.to_label)
        assert {tuple(row.targets["team"].values()) for row in rows} == {(0.5, 0.5)}, "unlabelled"
        relabel = {"action": "relabel", "decision": "team", "outcome": "billing"}
        client.drafts.edit(draft.id, [{"row": row.row, **relabel} for row in rows[1:]])
        client.drafts.seal(draft.id, "version")
        settling = settle(client, comparison)
        assert settling.n_labels == len(rows) - 1, "one was not labelled"
        assert settling.summary.endswith("labels of the review are feedback now. Compare again.")
        labelled = {row.metadata["decision_id"] for row in rows[1:]}
        for stored_id in switch.to_label:
            feedback = client.stored_decision(stored_id).feedback
            assert feedback == ({"team": "billing"} if stored_id in labelled else {})
        again = named.wait(named.compare("desk", 2))
        assert again.result.stored.labelled == len(rows) - 1
        [switch] = again.result.switches
        assert labelled.isdisjoint(switch.to_label), "nothing labelled is asked for again"


SPANS = {
    "resourceSpans": [
        {
            "scopeSpans": [
                {
                    "spans": [
                        {
                            "name": "decide",
                            "attributes": [
                                {"key": "decision.text", "value": {"stringValue": "Late."}},
                                {"key": "decision.answer", "value": {"stringValue": "shipping"}},
                                {"key": "decision.probability", "value": {"doubleValue": 0.75}},
                            ],
                        },
                        {"name": "other", "attributes": []},
                    ]
                }
            ]
        }
    ]
}


#: A request to OpenAI's Decisions with its response, and a chat as Langfuse exports it.
LOGGED = {
    "request": {
        "model": "gpt",
        "input": [{"role": "user", "content": [{"type": "input_text", "text": "Late."}]}],
    },
    "response": {
        "answers": [
            {
                "type": "choice",
                "choice": "shipping",
                "probabilities": [
                    {"value": "billing", "probability": 0.25},
                    {"value": "shipping", "probability": 0.75},
                ],
            }
        ]
    },
}
CHAT = {
    "type": "GENERATION",
    "input": {
        "messages": [{"role": "system", "content": "?"}, {"role": "user", "content": "Late."}]
    },
    "output": {"role": "assistant", "content": "shipping\n"},
    "probability": 0.75,
}
PARTS = {
    "input": [{"from": "human", "value": [{"type": "text", "text": "Late.\n"}]}],
    "output": {"role": "model", "parts": [{"text": "shipping"}]},
    "confidence": 0.75,
}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("decisions.jsonl", json.dumps(LOGGED)),
        ("decisions.json", json.dumps([{**LOGGED["response"], "input": "Late."}])),
        ("langfuse.json", json.dumps({"data": [CHAT]})),
        ("parts.jsonl", json.dumps(PARTS)),
        ("answers.csv", 'text,answer,probability\n"Late.",shipping,0.75\n,billing,1\n'),
        ("answers.jsonl", '{"input": "Late.", "output": "shipping", "confidence": 0.75}\n{}\n'),
        ("answers.json", '[{"context": "Late.", "answer": "shipping", "probability": "0.75"}]'),
        ("spans.json", json.dumps(SPANS)),
    ],
)
def test_recorded_answers_are_read_from_tables_json_and_spans(name, text):
    [answer] = read_recorded(text.encode(), name)
    assert answer == {"context": "Late.", "answer": "shipping", "probability": 0.75}
    predicate = {"type": "predicate", "name": "late", "probability": 0.25}
    logged = json.dumps({"input": "Late.", "output": {"answers": [predicate]}})
    [answer] = read_recorded(logged.encode(), name)
    assert answer == {"context": "Late.", "answer": "no", "probability": 0.75, "decision": "late"}
    for refused, content, message in (
        ("none.csv", b"a,b\n1,2\n", "name the columns or fields"),
        ("none.csv", b"text,answer,probability\nLate.,shipping,high\n", "could not convert"),
        ("cut.json", b'{"input": "Late.", "answers": [{"type": "choice"}]}', r"cut\.json cannot"),
        ("deep.json", b"[" * 100_000, r"deep\.json cannot be read"),
        ("latin.csv", b"text,answer\n\xfc,shipping\n", r"latin\.csv cannot be read"),
    ):
        with pytest.raises(NoRowsError, match=message):
            read_recorded(content, refused)


def test_a_version_is_compared_with_answers_recorded_elsewhere(tmp_path):
    with steelyard.embed(tmp_path / "home", engine="hashing") as server:
        client, named = server.client, server.client.named_decisions
        named.create("desk", [TEAM])
        answers = [client.decide(f"Ticket {n}", [TEAM], store=False) for n in range(40)]
        tops = [answer.decisions["team"].top for answer in answers]
        other = {"billing": "shipping", "shipping": "billing"}
        lines = [
            f"Ticket {n},{other[top] if n % 10 == 0 else top},0.4" for n, top in enumerate(tops)
        ]
        file = tmp_path / "answers.csv"
        file.write_text("\n".join(["text,answer,probability", *lines]))
        recorded = read_recorded(file.read_bytes(), file.name)
        estimate = named.estimate_comparison("desk", 1, recorded=recorded)
        assert (estimate.contexts, estimate.input_tokens_before) == (40, 0)
        comparison = named.wait(named.compare("desk", "production", recorded=recorded))
        assert (comparison.recorded, comparison.contexts) == (True, 40)
        assert comparison.summary.name == "desk 1 with recorded answers"
        [switch] = comparison.result.switches
        assert (switch.agree.value, switch.agree.n, switch.to_label) == (0.9, 40, [])
        assert comparison.result.stored.contexts == 40
        stopped = named.compare("desk", 1, recorded=recorded)
        named.cancel_comparison(stopped.id)
        wait_until(lambda: named.comparison(stopped.id).status in {"cancelled", "succeeded"})
        with closing(sqlite3.connect(tmp_path / "home" / "state.sqlite")) as state:
            progress = state.execute("SELECT progress FROM named_comparisons").fetchall()
        assert progress == [(None,), (None,)], "no text stays that came with a comparison"
        for wrong in ({"answer": "nobody"}, {"answer": "billing", "decision": "urgency"}):
            with pytest.raises(InvalidRequestError) as refused:
                named.compare("desk", 1, recorded=[{"context": "Late.", **wrong}])
            assert refused.value.details[0]["path"][:3] == ["body", "recorded", 0]
        compare = ["decision", "compare", "desk", "--recorded", str(file), "--url", server.url]
        output = CliRunner().invoke(main, compare).output
        assert "production is asked about " in output
        assert "desk@1 against recorded answers: inconclusive" in output


def test_the_same_answers_leave_nothing_to_settle():
    with steelyard.embed(engine="hashing") as server:
        client, named = server.client, server.client.named_decisions
        named.create("desk", [TEAM])
        client.decision("desk").decide("Charged twice.")
        version = version_with_model(client, "desk", "production", "hashing")
        assert version_with_model(client, "desk", 1, "hashing").version == version.version == 2
        comparison = named.wait(named.compare("desk", version.version))
        with pytest.raises(NoRowsError, match="no label would settle it"):
            settle(client, comparison)
