"""Switches of models: their budget before anything is asked, and the labels that settle them."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

import steelyard
from steelyard.cli import decision_compare
from steelyard.cli.main import main
from steelyard.client.switches import settle, version_with_model
from steelyard.errors import NoRowsError, PriceChangedError
from steelyard.ledger.money import from_usd
from support.servers.live_server import live_server

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
