"""Moving a family to another base model over HTTP: priced, trained anew, judged, and rolled back."""

from __future__ import annotations

import httpx
import pytest

from steelyard.app.job_runtime import open_worker
from steelyard.serving.connected.declared import ConnectedModel, write_models
from support.api.error_shape import assert_canonical_error
from support.families.grown_family import ended, grow, post, served
from support.families.learnable_rows import learnable_rows, one_request
from support.servers.live_server import live_server

#: Models are really trained.
pytestmark = [pytest.mark.timeout(300), pytest.mark.usefixtures("every_response_is_checked")]

PATH = "/v1/families/router/continue"


@pytest.fixture(scope="module")
def running_server(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    write_models(home, {"far": ConnectedModel(wire="chat", url="http://127.0.0.1:1", timeout_s=5)})
    with live_server(home=str(home), jobs="off", base_models="double=hashing") as server:
        yield server


@pytest.fixture(scope="module")
def session_client(running_server):
    with httpx.Client(base_url=running_server.url, timeout=60) as client:
        yield client


@pytest.fixture(scope="module")
def family(running_server, session_client):
    """The family router with a model on ``hashing``, and rows that it has not trained on."""
    with open_worker(running_server.services.settings):
        family = grow(session_client, "router")
        add_rows(session_client, family, learnable_rows(1))
        yield family


def add_rows(client, family, rows):
    body = {"examples": rows, "evaluation_fraction": 0.3}
    post(client, f"/v1/datasets/{family['dataset_id']}/versions", body)


@pytest.mark.slow
@pytest.mark.parametrize("base", ["nothing", "router@1", "jev-latest", "far", ""])
def test_a_base_that_it_cannot_have_is_refused_alike(client, family, base):
    for path in (PATH, f"{PATH}/estimate"):
        refused = client.post(path, json={"base": base})
        code = "invalid_reference" if base else "invalid_request"
        error = assert_canonical_error(refused, 422, code)
        assert [one["path"] for one in error["details"]] == [["body", "base"]]


@pytest.mark.slow
def test_a_family_moves_as_it_was_estimated_and_goes_on_there_until_a_rollback(client, family):
    stay = post(client, f"{PATH}/estimate", {})
    assert stay == post(client, f"{PATH}/estimate", {"base": "hashing"})
    assert stay["rows"] == {"new": 112, "earlier": 112, "evaluation": 96}
    add_rows(client, family, learnable_rows(2))
    first = family["latest"]["adapter"]
    told = post(client, f"{PATH}/estimate", {"base": "double", "latest": first})
    assert told["rows"] == {"new": 224, "earlier": 112, "evaluation": 144}
    body = {"base": "double", "latest": first, "max_price_usd": told["price_usd"]}
    job = post(client, PATH, body)
    assert (job["model"], job["parent"]) == ("double", first)
    assert job["split"]["train_rows"] == told["train_rows"] == 336
    assert job["split"]["trained_tokens"] == told["trained_tokens"]
    job = ended(client, job["id"])
    assert job["outcome"] == "joined", job
    assert job["metrics"]["gate"]["against"] == "parent"
    now = served(client, "router", "router@2")
    assert now["latest"]["parent"] == first
    assert client.get("/v1/models/router%402").json()["base"] == "double"
    assert client.get("/v1/models/router%401").json()["base"] == "hashing"
    answer = client.post("/v1/decide", json=one_request(2, model="router")).json()
    assert (answer["version"], answer["decisions"]["team"]["top"]) == ("router@2", "billing")

    # What the parent says of the held-out rows, it says on its own base.
    path = f"/v1/fine-tuning/jobs/{job['id']}/records"
    page = client.get(path, params={"group": "parent", "limit": 500}).json()
    assert page["total"] == 144
    post(client, "/v1/models/router%401/switch", {"on": True})
    answer = client.post("/v1/decide", json=one_request(0, model="router@1")).json()
    assert answer["decisions"]["team"]["top"] == "billing"
    post(client, "/v1/models/router%401/switch", {"on": False})

    others = [{**row, "context": f"{row['context']} Again."} for row in learnable_rows(0, 80)]
    add_rows(client, family, others)
    assert post(client, f"{PATH}/estimate", {})["rows"]["earlier"] == 56
    assert post(client, f"{PATH}/estimate", {"base": "hashing"})["rows"]["earlier"] == 336
    post(client, "/v1/families/router/rollback", {"to": "router@1", "discard": ["router@2"]})
    # The rows that only the discarded number had learnt are new again.
    rows = post(client, f"{PATH}/estimate", {"base": "double"})["rows"]
    assert (rows["new"], rows["earlier"]) == (280, 112)
    job = post(client, PATH, {})
    assert (job["model"], job["parent"]) == ("hashing", first)
    assert ended(client, job["id"])["status"] == "succeeded"
