"""GET /v1/decisions/log, /summary and /series: answers and their outcomes."""

from __future__ import annotations

import dataclasses
import math
import time
from collections import Counter
from collections.abc import Iterator
from unittest.mock import ANY

import httpx
import msgspec
import numpy as np
import pytest
from sqlalchemy import delete

from steelyard.decision_log import series
from steelyard.decision_log.tables import decisions
from steelyard.ledger.money import from_usd
from support.api.error_shape import assert_canonical_error
from support.decisions.drifting import SHARES, answers, store
from support.decisions.drifting import tell as tell_outcomes
from support.servers.live_server import LiveServer, live_server

pytestmark = pytest.mark.usefixtures("every_response_is_checked")

LOG, SUMMARY = "/v1/decisions/log", "/v1/decisions/summary"
SERIES = "/v1/decisions/series"
URGENCY = {
    "id": "urgent",
    "kind": "binary",
    "question": "Is it urgent?",
    "policy": {"abstain_below": 1.0},
}
REFUND = {"id": "refund", "kind": "binary", "question": "Is money asked back?"}


@pytest.fixture(scope="module")
def own() -> Iterator[tuple[LiveServer, httpx.Client]]:
    """A server of this module alone, with its client."""
    with live_server() as server, httpx.Client(base_url=server.url, timeout=30) as client:
        yield server, client


@pytest.fixture
def client(own: tuple[LiveServer, httpx.Client]) -> httpx.Client:
    """A client of a server that has no stored answers."""
    server, client = own
    server.services.state.write_now(lambda connection: connection.execute(delete(decisions)))
    return client


def decide(client: httpx.Client, *asked: object, n: int = 0, **fields: object) -> dict:
    request = {"context": f"Ticket {n}: my card was charged twice.", "decisions": asked}
    response = client.post("/v1/decide", json={**request, **fields})
    assert response.status_code == 200, response.text
    return response.json()


def tell(client: httpx.Client, answer: dict, outcomes: dict) -> None:
    body = {"decision_id": answer["id"], "outcomes": outcomes}
    assert client.post("/v1/feedback", json=body).status_code == 200


def other(answer: dict, name: str) -> str:
    """The outcome that was not the top one."""
    result = answer["decisions"][name]
    return next(outcome for outcome in result["probabilities"] if outcome != result["top"])


def ids(client: httpx.Client, **params: object) -> list[str]:
    response = client.get(LOG, params=params)
    assert response.status_code == 200, response.text
    return [entry["id"] for entry in response.json()["data"]]


def test_stored_answers_are_listed_newest_first_with_feedback(client):
    first = decide(client, REFUND, URGENCY)
    second = decide(client, REFUND, n=1)
    decide(client, REFUND, n=2, store=False)
    tell(client, first, {"refund": {"yes": 0.75, "no": 0.25}})
    listed = client.get(LOG).json()
    assert [entry["id"] for entry in listed["data"]] == [second["id"], first["id"]]
    assert (listed["has_more"], listed["next_cursor"]) == (False, None)
    entry = listed["data"][1]
    assert entry["model"] == first["model"]
    assert entry["total_ms"] == first["timing_ms"]["total"]
    refund, urgent = entry["decisions"]["refund"], entry["decisions"]["urgent"]
    assert {name: refund[name] for name in ("top", "p_top", "action")} == {
        name: first["decisions"]["refund"][name] for name in ("top", "p_top", "action")
    }
    assert refund["feedback"] == {"yes": 0.75, "no": 0.25}
    assert (refund["abstained"], urgent["abstained"], urgent["feedback"]) == (False, True, None)
    assert entry["text"].startswith("Ticket 0")


@pytest.mark.parametrize(
    ("context", "text"),
    [
        ('a\n"b" \u00e9\u0001\\', 'a\n"b" \u00e9\u0001\\'),
        ("\u00e9" * 5_000, "\u00e9" * 200),
        ("\u0001" * 5_000, "\u0001" * 200),
        ({"mail": "\u00e9" * 5_000}, '{"mail":"' + "\u00e9" * 191),
        ({"a": 1}, '{"a":1}'),
    ],
)
def test_a_list_has_the_beginning_of_each_context(client, context, text):
    body = {"context": context, "decisions": [REFUND], "store": True}
    assert client.post("/v1/decide", json=body).status_code == 200
    assert client.get(LOG).json()["data"][0]["text"] == text


def test_pages_hold_every_answer_once(client):
    made = [decide(client, REFUND, n=n)["id"] for n in range(5)]
    seen, cursor = [], {}
    while True:
        page = client.get(LOG, params={"limit": 2, **cursor}).json()
        seen += [entry["id"] for entry in page["data"]]
        if not page["has_more"]:
            break
        cursor = {"cursor": page["next_cursor"]}
    assert seen == made[::-1]


def test_filters_are_about_one_and_the_same_decision(client):
    both = decide(client, REFUND, URGENCY)
    refund = decide(client, REFUND, n=1)
    tell(client, both, {"refund": both["decisions"]["refund"]["top"]})
    tell(client, refund, {"refund": other(refund, "refund")})
    assert ids(client, decision="urgent") == [both["id"]]
    assert ids(client, decision="nobody") == []
    assert ids(client, abstained=True) == [both["id"]]
    assert ids(client, abstained=True, has_feedback=True) == []
    assert ids(client, has_feedback=True) == [refund["id"], both["id"]]
    assert ids(client, decision="urgent", has_feedback=False) == [both["id"]]
    assert ids(client, wrong=True) == [refund["id"]]
    assert ids(client, wrong=False) == [both["id"]]
    p_top = refund["decisions"]["refund"]["p_top"]
    assert refund["id"] in ids(client, p_from=p_top - 0.01, p_to=p_top)
    assert refund["id"] not in ids(client, p_from=p_top)
    assert ids(client, model="no-model") == []
    assert ids(client, model=refund["model"]) == [refund["id"], both["id"]]
    assert ids(client, until=1.0) == []
    assert ids(client, since=time.time() + 60) == []


def test_a_page_that_a_filter_leaves_short_goes_on(client, monkeypatch):
    monkeypatch.setattr("steelyard.decision_log.service._AT_A_TIME", 2)
    monkeypatch.setattr("steelyard.decision_log.service._MAX_LOOKED", 2)
    wanted = decide(client, URGENCY)["id"]
    for n in range(3):
        decide(client, REFUND, n=n)
    page = client.get(LOG, params={"abstained": True}).json()
    assert (page["data"], page["has_more"]) == ([], True)
    assert ids(client, abstained=True, cursor=page["next_cursor"]) == [wanted]


def test_one_answer_has_request_answer_and_feedback(client):
    answer = decide(client, REFUND, URGENCY, metadata={"queue": "tickets"})
    tell(client, answer, {"refund": "no"})
    stored = client.get(f"{LOG}/{answer['id']}").json()
    assert stored["request"]["context"] == "Ticket 0: my card was charged twice."
    assert [asked["id"] for asked in stored["request"]["decisions"]] == ["refund", "urgent"]
    assert stored["results"] == answer["decisions"]
    assert stored["metadata"] == {"queue": "tickets"}
    assert stored["feedback"] == {"refund": "no"}
    assert stored["expires_at"] - stored["created_at"] == pytest.approx(30 * 86_400)


def test_an_unknown_answer_is_not_found(client):
    assert_canonical_error(client.get(f"{LOG}/dec_nobody"), 404, "not_found")


@pytest.mark.parametrize(
    ("path", "params", "wrong"),
    [
        (LOG, {"since": 5, "until": 5}, ["until"]),
        (LOG, {"p_from": 0.5, "p_to": 0.4, "since": 2, "until": 1}, ["until", "p_to"]),
        (LOG, {"p_from": 1.5, "abstained": "maybe", "color": 1}, ["p_from", "abstained", "color"]),
        (LOG, {"since": "nan"}, ["since"]),
        (LOG, {"cursor": "dec_nobody"}, ["cursor"]),
        (LOG, {"cursor": "dec_nobody", "order": "chance"}, ["cursor"]),
        (LOG, {"order": "strata"}, ["decision"]),
        (LOG, {"limit": 201}, ["limit"]),
        (SUMMARY, {"since": 5, "until": 5}, ["until"]),
        (SUMMARY, {"since": 9e9}, ["since"]),
        (SUMMARY, {"since": 0, "until": 86_400, "bucket_s": 10}, ["bucket_s"]),
        (SUMMARY, {"bucket_s": 0}, ["bucket_s"]),
        (SERIES, {"bucket_s": 60, "since": 1, "until": 60 * 241}, ["bucket_s"]),
        (SERIES, {"since": 2, "until": 1}, ["until"]),
    ],
)
def test_invalid_queries_are_refused_with_their_problems(client, path, params, wrong):
    error = assert_canonical_error(client.get(path, params=params), 422, "invalid_request")
    assert [detail["path"] for detail in error["details"]] == [["query", name] for name in wrong]
    for detail in error["details"]:
        assert detail["message"].split()[0] in {*params, "until", "decision"}, "its subject"


def test_a_window_without_decisions_has_no_shares(client):
    summary = client.get(SUMMARY).json()
    assert (summary["answers"], summary["decisions"], summary["groups"]) == (0, 0, [])
    for name in ("abstain_rate", "feedback_share", "accuracy", "latency_p50_ms"):
        assert summary[name] is None
    assert {row["n"] for row in summary["reliability"]} == {0}


def test_figures_have_their_n_and_interval(client):
    before = client.get(SUMMARY).json()["server"]
    answers = [decide(client, REFUND, URGENCY, n=n) for n in range(4)]
    tell(client, answers[0], {"refund": answers[0]["decisions"]["refund"]["top"]})
    tell(client, answers[1], {"refund": other(answers[1], "refund")})
    assert client.post("/v1/decide", json={}).status_code == 422
    summary = client.get(SUMMARY).json()
    assert (summary["answers"], summary["decisions"]) == (4, 8)
    assert summary["abstain_rate"]["value"] == 0.5
    assert summary["feedback_share"]["value"] == 0.25
    accuracy = summary["accuracy"]
    assert (accuracy["value"], accuracy["n"]) == (0.5, 2)
    # Clopper and Pearson's interval of 1 in 2.
    assert (accuracy["low"], accuracy["high"]) == pytest.approx((0.0126, 0.9874), abs=1e-4)
    assert sum(row["n"] for row in summary["reliability"]) == 2
    rows = summary["top_probabilities"]
    assert [sum(row[name] for row in rows) for name in ("n", "with_feedback", "wrong")] == [8, 2, 1]
    for row in rows:  # what the filters of the log find
        limits = {"p_from": row["low"], "p_to": row["high"]}
        counts = [
            sum(
                row["low"] < result["p_top"] <= row["high"]
                for entry in client.get(LOG, params=limits).json()["data"]
                for result in entry["decisions"].values()
            )
        ]
        assert counts == [row["n"]]
    assert sum(bucket["decisions"] for bucket in summary["buckets"]) == 8
    assert sum(bucket["answers"] for bucket in summary["buckets"]) == 4
    assert summary["latency_p50_ms"]["n"] == 4
    groups = {group["decision"]: group for group in summary["groups"]}
    assert groups["urgent"]["abstain_rate"]["value"] == 1.0
    assert groups["urgent"]["accuracy"] is None
    assert groups["refund"]["accuracy"]["n"] == 2
    server = summary["server"]
    gained = {name: server[name] - before[name] for name in ("requests", "refused", "failed")}
    assert gained == {"requests": 5, "refused": 1, "failed": 0}
    assert (server["error_rate"]["value"], server["error_rate"]["n"]) == (0.0, server["requests"])


def test_a_summary_may_be_of_one_decision_and_of_a_window(client):
    answer = decide(client, REFUND, URGENCY)
    only = client.get(SUMMARY, params={"decision": "urgent"}).json()
    assert (only["answers"], only["decisions"], only["abstain_rate"]["value"]) == (1, 1, 1.0)
    none = client.get(SUMMARY, params={"decision": "nobody"}).json()
    assert (none["answers"], none["decisions"]) == (0, 0)
    before = client.get(SUMMARY, params={"until": answer_time(client) - 1}).json()
    assert before["answers"] == 0
    assert len(before["buckets"]) in {60, 61}
    assert client.get(SUMMARY, params={"model": answer["model"]}).json()["answers"] == 1


def told_at(found, start):
    """Of stored answers those of a point that has an hour, with top, probabilities and truth."""
    for stored, truth in found:
        if start <= stored.created_at < start + 3600:
            result = msgspec.json.decode(stored.results)["team"]
            yield result["top"], result["probabilities"], truth


def test_figures_over_time_have_a_point_for_each_stretch(own, client):
    state, hour = own[0].services.state, 3600.0
    now = math.floor(time.time() / hour) * hour
    found = []
    for place, shares in enumerate([SHARES, SHARES, {"billing": 0.2, "support": 0.8}]):
        at = now - (3 - place) * hour
        found += answers(120, shares, at=at + 10, seed=place, p_top=0.8 if place < 2 else 0.95)
    store(state, found)
    tell_outcomes(state, found[:100] + found[240:340], now)
    params = {"since": now - 4 * hour, "until": now + 1}
    told = client.get(SERIES, params=params).json()
    assert [point["answers"] for point in told["data"]] == [0, 120, 120, 120, 0]
    assert [point["start"] for point in told["data"]] == [now + n * hour for n in range(-4, 1)]
    assert (told["is_sampled"], told["outcomes_left_out"]) == (False, 0)
    empty, first, untold, last, _ = told["data"]
    assert {empty[name] for name in ("accuracy", "brier", "latency_p95_ms", "abstain_rate")} == {
        None
    }
    names = [one["outcome"] for one in told["outcomes"]]
    assert sorted(names) == sorted(SHARES)
    for point in (first, last):
        tops = Counter(top for top, _, _ in told_at(found, point["start"]))
        shares = [one["value"] for one in point["outcomes"]]
        assert shares == pytest.approx([tops[name] / 120 for name in names])
        observed = list(told_at(found[:100] + found[240:340], point["start"]))
        right = [top == truth for top, _, truth in observed]
        accuracy = point["accuracy"]
        assert (accuracy["value"], accuracy["n"]) == (sum(right) / 100, 100)
        assert accuracy["low"] < accuracy["value"] < accuracy["high"]
        brier = point["brier"]
        squares = [
            sum((p - (name == truth)) ** 2 for name, p in probabilities.items())
            for _, probabilities, truth in observed
        ]
        assert brier["value"] == pytest.approx(np.mean(squares))
        assert brier["low"] < brier["value"] < brier["high"]
        assert point["latency_p50_ms"]["value"] < point["latency_p95_ms"]["value"]
        assert point["latency_p50_ms"]["n"] == 120
        assert point["escalation_rate"] == {"value": 0.0, "low": 0.0, "high": ANY, "n": 120}
        assert point["cost_usd"] == "0"
    assert last["brier"]["value"] < first["brier"]["value"]
    assert (untold["accuracy"], untold["decisions"]) == (None, 120)
    of_number = client.get(SERIES, params={**params, "model": "router@1"}).json()["data"][1]
    assert (of_number["answers"], of_number["cost_usd"]) == (120, None)
    other = client.get(SERIES, params={**params, "decision": "nobody"}).json()
    assert (other["outcomes"], other["data"][1]["decisions"]) == ([], 0)


def test_a_long_window_is_sampled_by_how_much_was_asked(own, client, monkeypatch):
    monkeypatch.setattr(series, "MOST_READ", 400)
    state, day = own[0].services.state, 86_400.0
    now = math.floor(time.time() / day) * day
    # Of the day before, a busy hour of one outcome and a quiet one of another.
    busy = answers(900, {"billing": 1.0, "other": 0.0}, at=now - day + 3_600, seed=1)
    quiet = answers(100, {"other": 1.0, "billing": 0.0}, at=now - day + 50_000, seed=2)
    few = answers(5, SHARES, at=now - 2 * day, seed=3)
    store(state, busy + quiet + few)
    tell_outcomes(state, busy[:3], now)
    params = {"since": now - 2 * day, "until": now, "bucket_s": int(day)}
    found = client.get(SERIES, params=params).json()
    first, last = found["data"]
    assert found["is_sampled"]
    assert (first["answers"], first["answers_read"]) == (5, 5)
    assert last["answers"] == 1_000
    assert 200 <= last["answers_read"] <= 210
    shares = {
        one["outcome"]: of for one, of in zip(found["outcomes"], last["outcomes"], strict=True)
    }
    assert shares["billing"]["value"] == pytest.approx(0.9, abs=0.02)
    # What was told is found though none of it is among the answers that are read.
    assert last["accuracy"]["n"] == 3


def test_decisions_over_time_have_costs_and_escalations():
    stored, _ = answers(1, SHARES, at=time.time() - 10)[0]
    results = msgspec.json.decode(stored.results)
    results["team"]["route"] = [{"model": "a"}, {"model": "b"}]
    with live_server(accounts="on", prices="hashing=7") as server:
        accounts = server.services.accounts
        account = accounts.create_account("acme").id
        accounts.add_credit(account, 10**9)
        secret = accounts.create_key(account=account, name="key").secret
        escalated = dataclasses.replace(
            stored, account_id=account, results=msgspec.json.encode(results)
        )
        store(server.services.state, [(escalated, "billing")])
        bearer = {"Authorization": f"Bearer {secret}"}
        with httpx.Client(base_url=server.url, headers=bearer) as client:
            answer = decide(client, REFUND)

            def told(**params):
                data = client.get(SERIES, params=params).json()["data"]
                rates = [one["escalation_rate"] for one in data if one["escalation_rate"]]
                return [(one["value"], one["n"]) for one in rates], [
                    one["cost_usd"] for one in data
                ]

            rates, costs = told()
            assert sum(value * n for value, n in rates) == 1
            assert sum(n for _, n in rates) == 2
            assert sum(map(from_usd, costs)) == from_usd(answer["charge"]["amount_usd"]) > 0
            assert sum(map(from_usd, told(model="router")[1])) == 0
            assert set(told(decision="refund")[1]) == {None}


def answer_time(client: httpx.Client) -> float:
    return client.get(LOG).json()["data"][0]["created_at"]


def test_rows_of_named_decisions_alone_become_a_dataset(client):
    answers = [decide(client, REFUND, n=n) for n in range(4)]
    for answer in answers:
        tell(client, answer, {"refund": "yes"})
    named = [answer["id"] for answer in answers[:3]]
    body = {"name": "Named", "decision_ids": named}
    made = client.post("/v1/datasets/from-feedback", json=body)
    assert made.status_code == 200, made.text
    assert (made.json()["rows"], made.json()["feedback"]["stored"]) == (3, 3)
