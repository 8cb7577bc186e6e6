"""``/v1/evaluations`` over HTTP: every answer is as the OpenAPI document declares."""

from __future__ import annotations

import threading

import httpx
import pytest

from steelyard.app.job_runtime import open_worker
from support.api.error_shape import assert_canonical_error
from support.datasets.dataset_rows import make_rows
from support.models.evaluated import settings_of
from support.servers.live_server import live_server

pytestmark = pytest.mark.usefixtures("every_response_is_checked")

TARGETS = make_rows(30)
REWARDS = [
    {
        "context": {"text": f"Case {number}", "tier": ["gold", "silver"][number % 2]},
        "decisions": [TARGETS[0]["decisions"][1]],
        "rewards": {"refund": {"yes": number, "no": 1}},
    }
    for number in range(6)
]


@pytest.fixture(scope="module")
def running_server(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    given = {"jobs": "off", "dataset_min_rows": 1, "base_models": "second=hashing"}
    with live_server(home=home, **given) as server:
        yield server


@pytest.fixture(scope="module")
def session_client(running_server):
    with httpx.Client(base_url=running_server.url, timeout=30) as client:
        yield client


@pytest.fixture(scope="module")
def scored(running_server, session_client):
    """Ids of two evaluations on one dataset and of one with rewards, all succeeded."""
    http = session_client
    ids = {}
    home = running_server.services.settings.home
    with open_worker(settings_of(home, base_models="second=hashing")):
        for name, rows in (("targets", TARGETS), ("rewards", REWARDS)):
            sent = http.post("/v1/datasets", json={"name": name, "evaluation": rows})
            dataset_id = sent.json()["id"]
            models = ["hashing", "second"]
            answer = http.post(
                "/v1/evaluations", json={"dataset_id": dataset_id, "models": models}
            ).json()
            assert (answer["queued"], answer["reused"]) == (2, 0)
            ids[name] = [one["id"] for one in answer["data"]]
            ids[f"{name}_dataset"] = dataset_id
        waiting = threading.Event()
        for evaluation_id in (*ids["targets"], *ids["rewards"]):
            while http.get(f"/v1/evaluations/{evaluation_id}").json()["status"] != "succeeded":
                assert not waiting.wait(0.05)
    return ids


def test_an_evaluation_that_succeeded(client, scored):
    one = client.get(f"/v1/evaluations/{scored['targets'][0]}").json()
    assert (one["status"], one["completed_rows"], one["evaluation_rows"]) == ("succeeded", 30, 30)
    assert set(one["metrics"]) == {"n", "accuracy", "loss", "brier", "ece", "latency_ms"}
    assert "named" not in one
    rewarded = client.get(f"/v1/evaluations/{scored['rewards'][0]}").json()
    assert set(rewarded["metrics"]) == {"n", "expected_reward", "latency_ms"}


def test_list(client, scored):
    query = {"dataset_id": scored["targets_dataset"], "status": ["succeeded", "queued"]}
    page = client.get("/v1/evaluations", params=query).json()
    assert [one["id"] for one in page["data"]] == scored["targets"][::-1]
    assert (page["has_more"], page["next_cursor"]) == (False, None)
    query["status"] = "failed,cancelled"
    assert client.get("/v1/evaluations", params=query).json()["data"] == []


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({}, "dataset_id"),
        ({"dataset_id": "x" * 65}, "dataset_id"),
        ({"dataset_id": "d", "limit": 0}, "limit"),
        ({"dataset_id": "d", "limit": 201}, "limit"),
        ({"cursor": "nobody"}, "cursor"),
        ({"dataset_id": "d", "status": "done"}, "status"),
        ({"dataset_id": "d", "page": 1}, "page"),
        ({"dataset_id": "d", "status": "zzz", "limit": 0}, "status limit"),
    ],
)
def test_wrong_queries(client, scored, query, field):
    if field == "cursor":
        query = {"dataset_id": scored["targets_dataset"], **query}
    answer = client.get("/v1/evaluations", params=query)
    assert answer.status_code == 422
    paths = [one["path"] for one in answer.json()["error"]["details"]]
    assert paths == [["query", name] for name in field.split()]


def test_evaluations_of_an_unknown_dataset(client):
    answer = client.get("/v1/evaluations", params={"dataset_id": "ds_nobody"})
    assert_canonical_error(answer, 404, "not_found", message="ds_nobody")


def test_frontier(client, scored):
    path = "/v1/evaluations/frontier"
    found = client.get(path, params={"dataset": scored["targets_dataset"]}).json()
    assert {one["evaluation"] for one in found["data"]} == set(scored["targets"])
    assert found["dataset_version"] == 1
    costs = {"decision": "refund", "false_positive": 2, "false_negative": 1}
    query = {"dataset": scored["targets_dataset"], "measure": "expected_cost", **costs}
    assert client.get(path, params=query).json()["measure"] == "expected_cost"


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({}, "dataset"),
        ({"dataset": "d", "measure": "speed"}, "measure"),
        ({"dataset": "d", "dataset_id": "d"}, "dataset_id"),
        ({"dataset": "d", "version": 0}, "version"),
        ({"dataset": "d", "measure": "expected_cost", "decision": "r"}, "false_negative"),
    ],
)
def test_wrong_queries_of_the_frontier(client, query, field):
    answer = client.get("/v1/evaluations/frontier", params=query)
    assert answer.status_code == 422
    assert answer.json()["error"]["details"][0]["path"] == ["query", field]


def test_the_frontier_of_an_unknown_dataset(client):
    answer = client.get("/v1/evaluations/frontier", params={"dataset": "ds_nobody"})
    assert_canonical_error(answer, 404, "not_found", message="ds_nobody")


def test_the_frontier_of_rewards(client, scored):
    answer = client.get("/v1/evaluations/frontier", params={"dataset": scored["rewards_dataset"]})
    assert_canonical_error(answer, 422, "supervision_mismatch", message="need targets")


def test_detail(client, scored):
    detail = client.get(f"/v1/evaluations/{scored['targets'][0]}/detail").json()
    assert detail["overall"]["n"] == 60
    assert detail["overall"]["accuracy"]["low"] < detail["overall"]["accuracy"]["high"]
    assert {one["decision_id"] for one in detail["decisions"]} == {"route", "refund"}
    assert len(detail["reliability"]) == 10
    refund = next(one for one in detail["decisions"] if one["decision_id"] == "refund")
    assert refund["confusion"]["outcomes"] == ["yes", "no"]
    assert len(refund["yes_curve"]) == 101
    rewarded = client.get(f"/v1/evaluations/{scored['rewards'][0]}/detail").json()
    tables = {table["by"]: table for table in rewarded["slices"]}
    assert {one["value"] for one in tables["context.tier"]["slices"]} == {"gold", "silver"}
    assert set(tables) == {"kind", "context length", "context.tier", "context.text"}


def test_records(client, scored):
    path = f"/v1/evaluations/{scored['targets'][0]}/records"
    first = client.get(path, params={"limit": 50}).json()
    rest = client.get(path, params={"limit": 50, "offset": 50}).json()
    assert (first["total"], first["has_more"], rest["has_more"]) == (60, True, False)
    assert [one["decision_id"] for one in first["data"][:4]] == ["route", "refund"] * 2
    assert len(first["data"]) + len(rest["data"]) == 60
    every = first["data"] + rest["data"]
    query = {"decision": "refund", "wrong": "true", "limit": 500}
    wrong = client.get(path, params=query).json()
    expected = [one for one in every if one["decision_id"] == "refund" and one["accuracy"] == 0]
    assert wrong["data"] == expected
    assert client.get(path, params={"decision": "nobody"}).json()["total"] == 0


def test_records_behind_a_mark(client, scored):
    path = f"/v1/evaluations/{scored['targets'][0]}/records"
    detail = client.get(f"/v1/evaluations/{scored['targets'][0]}/detail").json()

    def found(**query):
        page = client.get(path, params={"limit": 500, **query}).json()
        assert page["total"] == len(page["data"])
        return page["data"]

    for row in detail["reliability"]:
        held = found(p_from=row["low"], p_to=row["high"])
        assert len(held) == row["n"]
        assert all(row["low"] < max(one["probabilities"].values()) <= row["high"] for one in held)
    matrix = next(one for one in detail["decisions"] if one["decision_id"] == "route")["confusion"]
    for target, counts in zip(matrix["outcomes"], matrix["counts"], strict=True):
        for top, count in zip(matrix["outcomes"], counts, strict=True):
            assert len(found(decision="route", target=target, top=top)) == count
    for table in detail["slices"]:
        for one in table["slices"]:
            held = found(slice_by=table["by"], slice=one["value"])
            assert len(held) == one["metrics"]["n"]
    assert found(slice_by="kind", slice="of no decision") == []
    assert found(top="nobody") == found(target="nobody") == []


def test_records_in_other_orders(client, scored):
    path = f"/v1/evaluations/{scored['targets'][0]}/records"

    def found(order):
        return client.get(path, params={"order": order, "limit": 500}).json()["data"]

    def p_top(one):
        return max(one["probabilities"].values())

    every = found("row")
    assert [one["row"] for one in every] == [place for place in range(30) for _ in range(2)]
    assert found("loss") == sorted(every, key=lambda one: -one["loss"])
    assert found("surest") == sorted(every, key=lambda one: -p_top(one))
    assert found("least_sure") == sorted(every, key=p_top)
    path = f"/v1/evaluations/{scored['rewards'][0]}/records"
    rewarded = found("loss")
    assert [one.get("scaled_reward", 2) for one in rewarded] == sorted(
        one.get("scaled_reward", 2) for one in rewarded
    )
    assert "scaled_reward" not in rewarded[-1]


def test_records_with_their_contexts(client, scored):
    path = f"/v1/evaluations/{scored['targets'][0]}/records"
    shown = client.get(path, params={"context": "true", "order": "loss", "limit": 7}).json()
    for one in shown["data"]:
        assert one["context"] == TARGETS[one["row"]]["context"]
    wanted = shown["data"][0]["context_sha256"]
    same = client.get(path, params={"context_sha256": [wanted, "0" * 64]}).json()["data"]
    assert {one["context_sha256"] for one in same} == {wanted}
    assert "context" not in same[0]
    path = f"/v1/evaluations/{scored['rewards'][0]}/records"
    first = client.get(path, params={"context": "true", "limit": 1}).json()["data"][0]
    assert first["context"] == REWARDS[0]["context"]


def test_figures_of_a_deleted_dataset_are_gone_and_its_metrics_stay(client, running_server):
    body = {"name": "gone", "evaluation": make_rows(3, start=200)}
    dataset_id = client.post("/v1/datasets", json=body).json()["id"]
    asked = {"dataset_id": dataset_id, "models": ["hashing"]}
    evaluation = client.post("/v1/evaluations", json=asked).json()["data"][0]
    path = f"/v1/evaluations/{evaluation['id']}"
    waiting = threading.Event()
    with open_worker(settings_of(running_server.services.settings.home)):
        while client.get(path).json()["status"] != "succeeded":
            assert not waiting.wait(0.05)
    assert client.delete(f"/v1/datasets/{dataset_id}").status_code == 200
    assert client.get(path).json()["metrics"]["n"] == 6
    both = {"before": evaluation["id"], "after": evaluation["id"]}
    costs = {"decision_id": "refund", "false_positive": 1, "false_negative": 1}
    for refused in (
        client.get(f"{path}/detail"),
        client.get(f"{path}/records"),
        client.get(f"{path}/records", params={"context": "true"}),
        client.get("/v1/evaluations/compare", params=both),
        client.post(f"{path}/policy", json={"decision_id": "refund"}),
        client.post(f"{path}/costs", json=costs),
    ):
        assert (refused.status_code, refused.json()["error"]["code"]) == (410, "dataset_deleted")


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"slice_by": "kind"}, "slice"),
        ({"slice": "single"}, "slice_by"),
        ({"slice_by": "colour", "slice": "red"}, "slice_by"),
        ({"p_from": 1.5}, "p_from"),
        ({"p_to": "nan"}, "p_to"),
        ({"order": "beauty"}, "order"),
        ({"context_sha256": ["0" * 64] * 51}, "context_sha256"),
        ({"limit": 501}, "limit"),
    ],
)
def test_wrong_queries_of_records(client, scored, query, field):
    answer = client.get(f"/v1/evaluations/{scored['targets'][0]}/records", params=query)
    assert answer.status_code == 422
    assert [one["path"] for one in answer.json()["error"]["details"]] == [["query", field]]


def test_comparison(client, scored):
    before, after = scored["targets"]
    found = client.get("/v1/evaluations/compare", params={"before": before, "after": after}).json()
    flips = found["overall"]["flips"]
    assert found["flipped_total"] == flips["fixed"] + flips["broken"] == len(found["flipped"])
    assert {one["flip"] for one in found["flipped"]} <= {"fixed", "broken"}
    assert {one["flip"] for one in found["changed"]} <= {"changed"}
    assert found["changed_total"] == len(found["changed"]) <= flips["same_wrong"]
    turned = client.get("/v1/evaluations/compare", params={"before": after, "after": before}).json()
    change, back = (one["overall"]["accuracy"]["change"] for one in (found, turned))
    assert change == -back
    itself = {"before": before, "after": before}
    same = client.get("/v1/evaluations/compare", params=itself).json()
    assert (same["flipped_total"], same["overall"]["p_value"]) == (0, 1.0)
    other = {"before": before, "after": scored["rewards"][0]}
    refused = client.get("/v1/evaluations/compare", params=other)
    assert (refused.status_code, refused.json()["error"]["code"]) == (422, "supervision_mismatch")


def test_policy_and_costs(client, scored):
    path = f"/v1/evaluations/{scored['targets'][0]}"
    costs = {"pay": {"yes": 0, "no": 10}, "wait": {"yes": 5, "no": 0}}
    trial = {"decision_id": "refund", "action_costs": costs, "abstain_below": 0.6}
    report = client.post(f"{path}/policy", json=trial).json()
    assert [one["action"] for one in report["actions"]] == ["pay", "wait", "abstain"]
    assert sum(one["share"]["value"] for one in report["actions"]) == pytest.approx(1)
    assert report["least_cost"]["value"] <= report["cost"]["value"]
    pair = {"decision_id": "refund", "false_positive": 1, "false_negative": 4}
    curve = client.post(f"{path}/costs", json=pair).json()
    assert curve["calibrated_threshold"] == pytest.approx(0.2)
    matrix = {"decision_id": "refund", "action_costs": costs, "abstain_cost": 1}
    assert len(client.post(f"{path}/costs", json=matrix).json()["points"]) == 101
    pair = {"decision_id": "refund", "outcome": "yes", "wrong_cost": 3, "abstain_cost": 1}
    found = client.post(f"{path}/threshold", json=pair).json()
    assert found["at_threshold"]["threshold"] == found["threshold"]
    assert len(found["points"]) == 101


@pytest.mark.parametrize(
    ("end", "trial", "code", "path"),
    [
        ("policy", {"decision_id": "nobody"}, "invalid_request", ["body", "decision_id"]),
        (
            "threshold",
            {"decision_id": "refund", "outcome": "perhaps"},
            "invalid_request",
            ["body", "outcome"],
        ),
        (
            "policy",
            {"decision_id": "refund", "action_costs": {"pay": {"yes": 1}}},
            "invalid_request",
            ["body", "action_costs", "pay", "no"],
        ),
        ("costs", {"decision_id": "refund"}, "invalid_request", ["body", "false_negative"]),
        (
            "costs",
            {"decision_id": "refund", "false_positive": 0, "false_negative": 0},
            "invalid_request",
            ["body", "false_positive"],
        ),
        (
            "costs",
            {"decision_id": "route", "false_positive": 1, "false_negative": 1},
            "supervision_mismatch",
            None,
        ),
    ],
)
def test_trials_that_do_not_fit(client, scored, end, trial, code, path):
    answer = client.post(f"/v1/evaluations/{scored['targets'][0]}/{end}", json=trial)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (422, code)
    assert path is None or error["details"][0]["path"] == path


def test_costs_need_targets(client, scored):
    trial = {"decision_id": "refund", "false_positive": 1, "false_negative": 1}
    answer = client.post(f"/v1/evaluations/{scored['rewards'][0]}/costs", json=trial)
    assert answer.json()["error"]["code"] == "supervision_mismatch"


def test_cancel_and_retry(client, scored):
    sent = {"name": "more", "evaluation": make_rows(4, start=90)}
    dataset_id = client.post("/v1/datasets", json=sent).json()["id"]
    asked = {"dataset_id": dataset_id, "models": ["hashing"]}
    evaluation = client.post("/v1/evaluations", json=asked).json()["data"][0]
    path = f"/v1/evaluations/{evaluation['id']}"
    for end in ("detail", "records"):
        answer = client.get(f"{path}/{end}")
        assert (answer.status_code, answer.json()["error"]["code"]) == (409, "evaluation_not_ready")
    keyed = {"Idempotency-Key": "cancel-1"}
    cancelled = client.post(f"{path}/cancel", json={}, headers=keyed)
    assert cancelled.json()["status"] == "cancelled"
    assert client.post(f"{path}/retry", json={}).json()["generation"] == 2
    assert client.post(f"{path}/cancel", json={}, headers=keyed).json() == cancelled.json()
    refused = client.post(f"/v1/evaluations/{scored['targets'][0]}/retry", json={})
    assert refused.status_code == 409
    assert client.post(f"{path}/cancel", json={}).json()["status"] == "cancelled"
    for verb in ("cancel", "retry"):
        assert client.post(f"/v1/evaluations/eval_none/{verb}", json={}).status_code == 404
