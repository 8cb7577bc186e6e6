"""``/v1/families``, ``/v1/fine-tuning/jobs`` and models by number over HTTP, with trained models.

Every answer is held to the OpenAPI document. The effect of each command is tested with the families
themselves; here are the requests, answers and refusals of the routes.
"""

from __future__ import annotations

from unittest.mock import AsyncMock

import httpx
import pytest

from steelyard.app.job_runtime import open_worker
from steelyard.families.lineage_writes import LineageWrites
from support.api.error_shape import assert_canonical_error
from support.families.grown_family import ended, grow, post, served
from support.families.learnable_rows import learnable_rows, one_request
from support.servers.live_server import live_server

#: Models are really trained.
pytestmark = [pytest.mark.timeout(300), pytest.mark.usefixtures("every_response_is_checked")]


@pytest.fixture(scope="module")
def running_server(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    with live_server(home=home, jobs="off") as server:
        yield server


@pytest.fixture(scope="module")
def session_client(running_server):
    with httpx.Client(base_url=running_server.url, timeout=60) as client:
        yield client


@pytest.fixture(scope="module")
def worker(running_server):
    with open_worker(running_server.services.settings):
        yield


@pytest.fixture(scope="module")
def family(session_client, worker):
    """The family router with two models, of which it serves the second."""
    return grow(session_client, "router", 2)


@pytest.fixture(scope="module")
def dataset_id(session_client):
    body = {"name": "waiting", "examples": learnable_rows(2), "evaluation_fraction": 0.3}
    return post(session_client, "/v1/datasets", body)["id"]


@pytest.mark.slow
def test_one_family_has_its_jobs_and_its_continuation(client, family):
    told = client.get("/v1/families/router").json()
    assert [model["ref"] for model in told["models"]] == ["router@1", "router@2"]
    assert [job["outcome"] for job in told["jobs"]] == ["joined", "joined"]
    assert told["continue"]["state"] == "no_new_data"
    assert told["latest"]["parent"] == told["models"][0]["adapter"]
    assert told["latest"]["gate"]["against"] == "parent"
    assert told["moved"]["from"] == "router@1"


def test_a_bound_certifies_answers_or_they_abstain(client, family):
    path = "/v1/families/router/bound"
    refused = client.post(path, json={"error": 0.001})
    assert_canonical_error(
        refused, 409, "bound_not_certified", message="more evaluation rows would"
    )
    (detail,) = refused.json()["error"]["details"]
    assert detail["missing_rows"] > 500
    assert "bound" not in client.get("/v1/families/router").json()

    bound = client.post(path, json={"error": 0.2, "served": family["served"]["adapter"]}).json()[
        "bound"
    ]
    assert (bound["error"], bound["confidence"], bound["model"]) == (0.2, 0.95, "router@2")
    assert (bound["dataset_id"], bound["dataset_version"]) == (family["dataset_id"], 2)
    assert bound["measured_error"] <= 0.2

    def answer(**fields):
        sent = client.post("/v1/decide", json=one_request(1, model="router", **fields))
        return sent.json()["decisions"]["team"]

    assert answer()["certified"] == {"error": 0.2, "confidence": 0.95}
    assert answer(temperature=5)["certified"]
    # Another question is not what it was found on.
    (decision,) = one_request()["decisions"]
    other = answer(decisions=[{**decision, "question": "Which team should not own this?"}])
    assert other["action"] == "abstain"
    assert "certified" not in other
    assert "bound" not in client.delete(path).json()
    assert "certified" not in answer()


def test_a_model_without_vectors_cannot_measure_unlikeness(client, family):
    path = "/v1/families/router/novelty"
    refused = client.post(path, json={"false_alarms": 0.05})
    assert_canonical_error(refused, 409, "novelty_unknown", message="keeps no vectors")
    assert "novelty" not in client.get("/v1/families/router").json()
    assert "novelty" not in client.delete(path).json()


def test_the_list_leaves_jobs_out(client, family):
    (listed,) = (one for one in client.get("/v1/families").json()["data"] if one["id"] == "router")
    assert "jobs" not in listed
    assert listed["continue"]["price_usd"] is None


def test_models_by_number_are_listed_and_returned(client, family):
    body = client.get("/v1/models").json()
    assert {"hashing", "router@1", "router@2"} <= {model["id"] for model in body["data"]}
    assert {"router@1", "router@2"} <= {model["name"] for model in body["models"]}
    listed = next(model for model in body["data"] if model["id"] == "router@2")
    told = client.get("/v1/models/router%402").json()
    assert told == listed
    assert (told["model_name"], told["version"]) == ("router", 2)
    assert told["lora"] == family["served"]["adapter"]
    offered = client.get("/v1/capabilities").json()
    assert listed in offered["models"]
    refused = client.get("/v1/models/router")
    assert_canonical_error(refused, 422, "invalid_reference")


def test_readiness_by_every_name(client, family):
    assert client.get("/v1/models/router/ready").json()["ready"]
    assert client.get("/v1/models/hashing/ready").json()["ready"]
    assert_canonical_error(client.get("/v1/models/router%401/ready"), 409, "model_off")
    assert_canonical_error(client.get("/v1/models/router%409/ready"), 404, "not_found")


def test_a_number_is_switched_and_kept_warm(client, family):
    path = "/v1/models/router%401"
    wrong = client.post(f"{path}/switch", json={"on": True, "adapter": "ft-ftj_other"})
    assert_canonical_error(wrong, 409, "model_changed")
    assert_canonical_error(
        client.post(f"{path}/keep-warm", json={"enabled": True}), 409, "model_off"
    )
    assert post(client, f"{path}/switch", {"on": True})["on_at"] is not None
    answer = client.post("/v1/decide", json=one_request(model="router@1")).json()
    assert answer["model"] == "router@1"
    assert post(client, f"{path}/keep-warm", {"enabled": True})["keep_warm"]
    assert_canonical_error(client.delete(path), 409, "model_answers")
    off = post(client, f"{path}/switch", {"on": False})
    assert (off["on_at"], off["keep_warm"]) == (None, False)
    assert_canonical_error(client.delete("/v1/models/router%402"), 409, "latest_model")
    assert_canonical_error(client.delete("/v1/models/hashing"), 422, "invalid_reference")


def test_switch_and_keep_warm_of_a_family(client, family):
    seen = {"served": family["served"]["adapter"]}
    warm = post(client, "/v1/families/router/keep-warm", {"enabled": True, **seen})
    assert warm["keep_warm"]
    assert not {"jobs", "continue"} & warm.keys()
    off = post(client, "/v1/families/router/switch", {"on": False, **seen})
    assert (off["switched_on"], off["off_reason"], off["keep_warm"]) == (False, "owner", False)
    asked = client.post("/v1/decide", json=one_request(model="router", fallback="none"))
    assert_canonical_error(asked, 409, "family_off")
    stale = client.post("/v1/families/router/switch", json={"on": True, "served": None})
    assert_canonical_error(stale, 409, "served_changed")
    assert post(client, "/v1/families/router/switch", {"on": True})["switched_on"]


def test_a_job_that_succeeded(client, family):
    job_id = client.get("/v1/families/router").json()["jobs"][0]["id"]
    job = client.get(f"/v1/fine-tuning/jobs/{job_id}").json()
    assert (job["status"], job["outcome"], job["progress"]) == ("succeeded", "joined", None)
    assert job["curve"]
    assert job["lineage"]["new_training"] == 112
    events = client.get(f"/v1/fine-tuning/jobs/{job_id}/events").json()["data"]
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    path = f"/v1/fine-tuning/jobs/{job_id}/records"
    pages = {
        group: client.get(path, params={"group": group, "limit": 500}).json()
        for group in ("adapted", "base", "parent")
    }
    keys = [
        [(one["context_sha256"], one["decision_id"]) for one in page["data"]]
        for page in pages.values()
    ]
    assert keys[0] == keys[1] == keys[2]
    assert pages["adapted"]["total"] == 96
    assert set(pages["adapted"]["groups"]) == {"adapted", "base", "parent"}
    few = client.get(path, params={"offset": 90, "limit": 10}).json()
    assert (len(few["data"]), few["has_more"]) == (6, False)
    assert post(client, f"/v1/fine-tuning/jobs/{job_id}/cancel", {}) == job | {
        "curve": post(client, f"/v1/fine-tuning/jobs/{job_id}/cancel", {}).get("curve")
    }


def test_a_first_fine_tune_has_no_parent(client, family):
    job_id = client.get("/v1/families/router").json()["jobs"][1]["id"]
    refused = client.get(f"/v1/fine-tuning/jobs/{job_id}/records", params={"group": "parent"})
    assert_canonical_error(refused, 422, "invalid_request")
    assert refused.json()["error"]["details"][0]["path"] == ["query", "group"]


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"limit": 0}, "limit"),
        ({"cursor": "nobody"}, "cursor"),
        ({"status": "done"}, "status"),
        ({"status": "queued,done"}, "status"),
        ({"page": 1}, "page"),
    ],
)
def test_wrong_queries(client, query, field):
    answer = client.get("/v1/fine-tuning/jobs", params=query)
    assert answer.status_code == 422
    assert [one["path"] for one in answer.json()["error"]["details"]] == [["query", field]]


def test_fine_tunes_are_paged_and_filtered(client, family):
    query = {"dataset_id": family["dataset_id"], "status": ["succeeded", "failed"], "limit": 1}
    first = client.get("/v1/fine-tuning/jobs", params=query).json()
    assert first["has_more"]
    assert "curve" not in first["data"][0]
    rest = client.get(
        "/v1/fine-tuning/jobs", params={**query, "cursor": first["next_cursor"]}
    ).json()
    assert (len(rest["data"]), rest["next_cursor"]) == (1, None)
    assert first["data"][0]["created_at"] >= rest["data"][0]["created_at"]
    none = client.get("/v1/fine-tuning/jobs", params={**query, "status": "cancelled"}).json()
    assert none["data"] == []
    several = {**query, "status": ["cancelled,succeeded", "failed"]}
    assert client.get("/v1/fine-tuning/jobs", params=several).json() == first


@pytest.mark.parametrize("path", ["/v1/families", "/v1/fine-tuning/jobs"])
def test_estimate_start_cancel_and_delete_by_both_names(client, dataset_id, path, monkeypatch):
    name = f"by-{path.rpartition('/')[2]}"
    body = {"family": name, "dataset_id": dataset_id, "method": "sft", "hyperparameters": {}}
    told = post(client, f"{path}/estimate", body)
    assert (told["price_usd"], told["rows"]["new"]) == ("0", 112)
    keyed = {"Idempotency-Key": f"start-{name}"}
    sent = {**body, "max_price_usd": told["price_usd"]}
    made = client.post(path, json=sent, headers=keyed)
    assert made.is_success, made.text
    again = client.post(path, json=sent, headers=keyed)
    assert again.json() == made.json()
    assert again.headers["Idempotency-Replayed"] == "true"
    with monkeypatch.context() as patch:  # it looked while the first was under way
        patch.setattr(LineageWrites, "replay_known", AsyncMock())
        assert client.post(path, json=sent, headers=keyed).json() == made.json()
    other = client.post(path, json={**body, "hyperparameters": {"steps": 30}}, headers=keyed)
    assert_canonical_error(other, 409, "idempotency_conflict")
    job_id = made.json()["id"]
    cancelled = post(client, f"/v1/fine-tuning/jobs/{job_id}/cancel", {})
    assert cancelled["status"] in {"cancelled", "cancelling"}
    if cancelled["status"] == "cancelling":
        cancelled = ended(client, job_id)
    assert (cancelled["outcome"], cancelled["charge"]) in {
        ("cancelled", "free"),
        ("cancelled", "released"),
    }
    told = client.delete(f"/v1/families/{name}")
    assert told.json() == {"id": name, "object": "family", "deleted": True}
    assert client.get(f"/v1/families/{name}").status_code == 404


def test_rows_that_name_a_family_of_another_dataset_are_refused(client, family, dataset_id):
    body = {"examples": learnable_rows(0), "family": "router"}
    refused = client.post(f"/v1/datasets/{dataset_id}/versions", json=body)
    assert_canonical_error(refused, 422, "dataset_mismatch", message=family["dataset_id"])
    assert client.get(f"/v1/datasets/{dataset_id}").json()["version"] == 1


BAD = {"hyperparameters": {"steps": 1, "lora_rank": 99}, "max_price_usd": "a lot", "colour": "red"}


@pytest.mark.parametrize(
    ("path", "body", "paths"),
    [
        (
            "/v1/families",
            {**BAD, "method": "dpo", "dataset_version": 0},
            {
                ("family",),
                ("dataset_id",),
                ("method",),
                ("dataset_version",),
                ("hyperparameters", "steps"),
                ("hyperparameters", "lora_rank"),
                ("colour",),
            },
        ),
        (
            "/v1/families/router/continue",
            {**BAD, "latest": 3},
            {
                ("latest",),
                ("hyperparameters", "steps"),
                ("hyperparameters", "lora_rank"),
                ("colour",),
            },
        ),
        ("/v1/families/router/switch", {"served": 1}, {("on",), ("served",)}),
        (
            "/v1/families/router/keep-warm",
            {"enabled": "yes", "switch_off": "ant"},
            {("enabled",), ("switch_off",)},
        ),
        ("/v1/families/router/rollback", {"discard": [1]}, {("to",), ("discard", 0)}),
        ("/v1/models/router%401/switch", {"on": 1, "adapter": 2}, {("on",), ("adapter",)}),
        ("/v1/models/router%401/keep-warm", {}, {("enabled",)}),
    ],
)
def test_every_problem_is_reported_at_once(client, family, path, body, paths):
    answer = client.post(path, json=body)
    assert_canonical_error(answer, 422, "invalid_request")
    found = {tuple(one["path"][1:]) for one in answer.json()["error"]["details"]}
    assert paths <= found


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/v1/families/nobody", None),
        ("DELETE", "/v1/families/nobody", {}),
        ("POST", "/v1/families/nobody/switch", {"on": True}),
        ("POST", "/v1/families/nobody/keep-warm", {"enabled": False}),
        ("POST", "/v1/families/nobody/rollback", {"to": "nobody@1", "discard": []}),
        ("POST", "/v1/families/nobody/continue", {}),
        ("POST", "/v1/families/nobody/continue/estimate", {}),
        ("POST", "/v1/families", {"family": "new", "dataset_id": "ds_none"}),
        ("POST", "/v1/models/nobody%401/switch", {"on": False}),
        ("POST", "/v1/models/nobody%401/keep-warm", {"enabled": False}),
        ("DELETE", "/v1/models/nobody%401", None),
        ("GET", "/v1/fine-tuning/jobs/ftj_none", None),
        ("GET", "/v1/fine-tuning/jobs/ftj_none/events", None),
        ("GET", "/v1/fine-tuning/jobs/ftj_none/records", None),
        ("POST", "/v1/fine-tuning/jobs/ftj_none/cancel", {}),
    ],
)
def test_what_is_not_there(client, method, path, body):
    answer = client.request(method, path, json=body)
    assert_canonical_error(answer, 404, "not_found")


@pytest.mark.parametrize("name", ["Router", "hashing", "estimate", "", "a" * 129])
def test_names_that_no_family_may_have(client, dataset_id, name):
    answer = client.post("/v1/families", json={"family": name, "dataset_id": dataset_id})
    assert_canonical_error(answer, 422, "invalid_name", path=["body", "family"])


@pytest.mark.parametrize("version", [2, 2**63])
def test_versions_that_are_not_there(client, dataset_id, version):
    body = {"family": "new", "dataset_id": dataset_id, "dataset_version": version}
    for path in ("/v1/families/estimate", "/v1/families"):
        assert_canonical_error(client.post(path, json=body), 404, "not_found")


@pytest.mark.slow
def test_rolling_back_discards_the_named_models(client, worker):
    family = grow(client, "ant", 2)
    path = "/v1/families/ant/rollback"
    unnamed = client.post(path, json={"to": "ant@1", "discard": []})
    error = assert_canonical_error(unnamed, 409, "rollback_changed", message="ant@2")
    assert error["details"] == [{"discard": ["ant@2"], "cancel": []}]
    seen = family["served"]["adapter"]
    back = post(client, path, {"to": "ant@1", "discard": ["ant@2"], "served": seen})
    assert [model["status"] for model in back["models"]] == ["ready", "discarded"]
    served(client, "ant", "ant@1")
    gone = client.post("/v1/decide", json=one_request(model="ant@2", fallback="none"))
    assert_canonical_error(gone, 410, "model_discarded")
    listed = client.get("/v1/models").json()
    assert next(one for one in listed["data"] if one["id"] == "ant@2")["status"] == "discarded"
    assert "ant@2" not in {one["name"] for one in listed["models"]}
    answers = client.request("DELETE", "/v1/families/ant", json={"latest": None})
    assert_canonical_error(answers, 409, "family_changed")
    post(client, "/v1/families/ant/switch", {"on": False})
    assert client.delete("/v1/families/ant").json()["deleted"]
    assert_canonical_error(client.get("/v1/families/ant"), 410, "family_deleted")
