"""Answers whose text is stored nowhere."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
from sqlalchemy import Connection

import steelyard
from steelyard.app.backup import make_backup
from steelyard.client.stored_queries import unsure_queries
from steelyard.decision_log.store import StoredDecision, insert_decision
from steelyard.decision_log.withheld import WITHHELD, features_of, has_text
from steelyard.errors import NoRowsError
from steelyard.ids import new_id
from steelyard.ledger.money import NANO
from steelyard.named.cases import cases_of_stored
from steelyard.outbox.names import EVENTS
from steelyard.settings import read_settings
from steelyard.storage import State
from steelyard.wire.storing import STORE_SETTINGS
from support.servers.live_server import LiveServer, live_server
from support.servers.webhook_endpoint import webhook_endpoint
from support.waiting import wait_until

QUESTION = {"id": "team", "question": "Which team?", "outcomes": ["billing", "shipping"]}


@pytest.fixture(scope="module")
def payers() -> Iterator[LiveServer]:
    with live_server(jobs="off", accounts="on") as server:
        yield server


def plant(number: int) -> str:
    """Return a word that stands nowhere else."""
    return f"zq{number:03d}xylograph"


def found_in(folder: Path, words: list[str]) -> list[str]:
    """Return the words that some file below a folder has in its bytes."""
    contents = [path.read_bytes() for path in folder.rglob("*") if path.is_file()]
    return [word for word in words if any(word.encode() in content for content in contents)]


def test_no_planted_word_is_in_home_backup_export_log_or_webhook(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    words = [plant(number) for number in range(200)]
    home = tmp_path / "home"
    with (
        webhook_endpoint() as endpoint,
        steelyard.embed(home, engine="hashing", webhook_hosts="127.0.0.1") as server,
    ):
        client = server.client
        webhook = client.webhooks.create(endpoint.url, [*EVENTS])
        endpoint.secret = webhook.secret
        client.named_decisions.create(
            "triage",
            [QUESTION],
            store="features",
            fields={"note": {"type": "text"}},
            rules=[{"when": 'note == "late"', "action": "call"}],
            otherwise="person",
        )
        triage = client.decision("triage")

        def ask(number: int) -> str:
            text = f"The {words[number]} of parcel {number} is late. Who pays?"
            context = text if number % 3 else {"subject": words[number], "body": text}
            key = f"key-{number}"
            if number % 2:
                given = {"note": words[number]}
                return triage.decide(context, fields=given, idempotency_key=key).id
            return client.decide(
                context, [QUESTION], store="features", idempotency_key=key, explain=number % 3 > 0
            ).id

        with ThreadPoolExecutor(16) as pool:
            ids = list(pool.map(ask, range(199)))
        control = client.decide(words[199], [QUESTION], store=True).id
        for number in range(0, 199, 7):
            client.feedback(ids[number], {"team": "billing"})
        exported = client.export_decisions(format="parquet")
        replayed = ask(0)
        client.named_decisions.add_version("triage", [QUESTION | {"question": "Whose is it?"}])
        client.named_decisions.move("triage", "production", 2, overrule="It reads better.")
        wait_until(
            lambda: (
                [sent.status for sent in client.webhooks.deliveries(webhook)] == ["delivered"] * 2
            )
        )
        log = client.decision_log(limit=100)
        summary = client.decision_summary()
    assert replayed == ids[0]
    assert found_in(home, words) == [words[199]]  # the search finds what is there
    make_backup(read_settings({"home": str(home)}), tmp_path / "backups")
    assert found_in(tmp_path / "backups", words) == [words[199]]
    rows = pl.read_parquet(io.BytesIO(exported))
    assert rows.filter(pl.col("context").is_not_null())["id"].to_list() == [control]
    assert not [
        word for word in words[:199] if word in json.dumps(rows.drop("created_at").to_dicts())
    ]
    assert not [word for word in words if word in caplog.text]
    assert [sent["type"] for sent in endpoint.told] == ["decision.moved"] * 2
    assert not [word for word in words for sent in endpoint.received if word.encode() in sent.body]
    assert [answer.text for answer in log.data if answer.id != control] == [""] * 99
    assert summary.answers == 200


@pytest.mark.parametrize(
    ("account", "key", "decision", "asked", "stored"),
    [
        ("on", "on", "on", None, "on"),
        ("on", "features", "on", True, "features"),
        ("features", "on", "on", None, "features"),
        ("on", "on", "features", True, "features"),
        ("features", "off", "features", True, "off"),
        ("features", "on", "off", "features", "off"),
        ("on", "features", "features", False, "off"),
    ],
)
def test_the_strictest_of_account_key_decision_and_request_wins(
    payers: LiveServer, account: str, key: str, decision: str, asked: object, stored: str
) -> None:
    accounts = payers.services.accounts
    payer = accounts.create_account(new_id("a"))
    accounts.add_credit(payer.id, NANO)
    accounts.limit_storing(payer.id, account)  # type: ignore[arg-type]
    made = accounts.create_key(account=payer.id, store=key)  # type: ignore[arg-type]
    assert [each.store for _, each in accounts.list_keys(payer.id)] == [key]
    with steelyard.connect(payers.url, api_key=made.secret) as client:
        named = client.named_decisions.create("triage", [QUESTION], store=decision)
        assert named.store == client.named_decisions.get("triage").store == decision
        answer = client.decision("triage").decide("Who pays?", store=asked)
        assert answer.stored is (stored != "off")
        if answer.stored:
            request = client.stored_decision(answer.id).request
            assert ("context" in request, "text" in request) == (stored == "on", stored != "on")
        # What the named decision says is of its own answers alone.
        plain = client.decide("Who pays?", [QUESTION], store=asked)
        alone = max(
            account,
            key,
            {None: "on", True: "on", False: "off"}.get(asked, "on"),
            key=STORE_SETTINGS.index,
        )
        assert plain.stored is (alone != "off")
        changed = client.named_decisions.change("triage", store="on")
        assert (changed.store, client.account.get().store) == ("on", account)


def test_what_reads_texts_leaves_such_answers_out(tmp_path: Path) -> None:
    with steelyard.embed(tmp_path, engine="hashing") as server:
        client = server.client
        answer = client.decide("Who pays?", [QUESTION], store="features")
        client.feedback(answer.id, {"team": "billing"})
        with pytest.raises(NoRowsError, match="Of 1 stored answer no text is stored"):
            client.datasets.from_feedback(name="answers")
        for text in ("Paid twice.", "Lost."):
            client.feedback(client.decide(text, [QUESTION]).id, {"team": "billing"})
        dataset = client.datasets.from_feedback(name="answers")
        rows = client.datasets.rows(dataset.id).data
        assert {row.context for row in rows} == {"Paid twice.", "Lost."}
        assert dataset.feedback.without_text == 1

        named = client.named_decisions
        named.create("quiet", [QUESTION], store="features", dataset_id="answers")
        answers = [client.decision("quiet").decide(f"{n} lost.", store=True) for n in range(3)]
        for entry in client.decision_log(named="quiet", order="chance").data:
            client.feedback(entry.id, {"team": "billing"}, by="person")
        [share, *_] = client.decision_series(named="quiet").outcomes
        assert share.true_share.n == len(answers), "a check counts whether or not its text is there"
        sentence = "Of 3 stored answers no text is stored, so that they "
        named.add_version("quiet", [{**QUESTION, "question": "Whose is it?"}])
        compared = named.compare("quiet", 2)
        assert (compared.contexts, compared.warnings) == (0, [f"{sentence}are not compared."])
        named.grow("quiet", "rows")
        assert named.turn_growth("quiet").waits_for.endswith(f" {sentence}make no rows.")
        client.decision("quiet").decide("One more.")
        with pytest.raises(NoRowsError, match=r"without their texts \(1\)"):
            unsure_queries(client, window_s=3_600, unsure=1.0)


def test_cases_of_a_comparison_are_sought_among_answers_with_a_text(state: State) -> None:
    """The newest one has a text, and those before it none: they are not read one by one."""
    stored = StoredDecision(
        id="", account_id="local", created_at=0.0, model="hashing", request=b"", results=b"{}"
    )
    reads = 0

    def add(connection: Connection) -> None:
        for number in range(400):
            request = b'{"context":"Paid?"}' if number in {0, 399} else WITHHELD + b"{}}"
            values = {"id": f"dec_{number:026d}", "created_at": float(number), "request": request}
            insert_decision(connection, replace(stored, named="triage@1", **values))

    state.write_now(add)

    def read_now(work: Any) -> Any:
        nonlocal reads
        reads += 1
        return state.read_now(work)

    counted: Any = SimpleNamespace(read_now=read_now)
    cases = cases_of_stored(counted, "local", "triage", until=1e9, most=3)
    assert [case.source for case in cases] == ["dec_" + "0" * 23 + "399", "dec_" + "0" * 26]
    assert reads == 1


def test_features_are_those_of_the_text_or_of_its_json() -> None:
    german = "Ich möchte mein Geld zurück, bitte."
    assert features_of(german)["characters"] == len(german)
    assert features_of(german)["language"] == "German"
    assert features_of({"b": 1, "a": "x"}) == features_of({"a": "x", "b": 1})
    assert features_of("")["sha256"].startswith("e3b0c442")
    assert not has_text(b'{"text":{}}')
    assert has_text(b'{"context":"","decisions":[]}')
