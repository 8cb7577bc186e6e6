"""sqwishai 0.5.0 grows a family, serves it, rolls it back and deletes it; nothing of it is changed.

The walkthrough is one test, because each step needs the results of the steps before it.
"""

from __future__ import annotations

import asyncio
from decimal import Decimal

import pytest
from sqwishai import APIError, AsyncOneHot, JobFailed, OneHot

from steelyard.app.job_runtime import open_worker
from support.families.learnable_rows import learnable_rows, one_request
from support.servers.live_server import live_server

GIVEN = {
    "jobs": "off",
    "accounts": "on",
    "live_limit": 2,
    "fine_tune_price": 1000,
    "keep_warm_price": 60_000_000,
    "prices": "hashing=1000",
}


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    with (
        live_server(home=home, **GIVEN) as server,
        open_worker(server.services.settings),
    ):
        yield server


@pytest.fixture(scope="module")
def account(running):
    entry = running.services.accounts.create_account("families")
    running.services.accounts.add_credit(entry.id, 10**13)
    return entry.id


@pytest.fixture(scope="module")
def key(running, account):
    return running.services.accounts.create_key(account=account, scope="full").secret


@pytest.fixture(scope="module")
def client(running, key):
    with OneHot(running.url, api_key=key, max_retries=2) as client:
        yield client


def refusal(call, *arguments, **named) -> APIError:
    with pytest.raises(APIError) as raised:
        call(*arguments, **named)
    return raised.value


def decide(client, model: str, batch: int = 0):
    asked = one_request(batch)
    return client.decide(asked["context"], asked["decisions"], model=model, fallback="none")


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_whole_walkthrough(client):
    dataset = client.datasets.create("tickets", learnable_rows(0), evaluation_fraction=0.3)
    started = start_at_its_price(client, dataset)
    first = first_model(client, started)
    serve_first(client, first)
    second = continue_on_new_rows(client, dataset, first)
    move_by_itself(client)
    call_a_number(client)
    roll_back(client, second)
    delete(client, dataset)


def start_at_its_price(client, dataset):
    estimate = client.families.estimate("router", dataset["id"])
    assert Decimal(estimate["price_usd"]) > 0
    assert estimate["rows"] == {"new": 112, "earlier": 0, "evaluation": 48}
    assert estimate["dataset_version"] == 1
    available = client.account.get()["wallet"]["available_usd"]
    dearer = refusal(client.families.create, "router", dataset["id"], max_price_usd="0.000001")
    assert (dearer.status, dearer.code) == (409, "price_changed")
    assert client.account.get()["wallet"]["available_usd"] == available
    job = client.families.create(
        "router",
        dataset["id"],
        hyperparameters={"seed": estimate["seed"]},
        dataset_version=estimate["dataset_version"],
        max_price_usd=estimate["price_usd"],
    )
    assert (job["family"], job["price_usd"]) == ("router", estimate["price_usd"])
    assert job["charge"] == "reserved"
    return job


def first_model(client, job):
    taken = refusal(client.families.create, "router", job["dataset_id"])
    assert (taken.status, taken.code) == (409, "family_exists")
    again = refusal(client.families.continue_, "router")
    assert (again.status, again.code) == (409, "family_training")
    empty = refusal(decide, client, "router")
    assert (empty.status, empty.code) == (409, "family_empty")
    job = client.fine_tuning.wait(job["id"], timeout=120, poll_interval=0.05)
    assert job["outcome"] == "joined", job
    assert job["charge"] == "charged"
    assert job["metrics"]["gate"]["passed"]
    assert job["metrics"]["gate"]["against"] == "base"
    assert job["curve"]
    events = client.fine_tuning.events(job["id"])["data"]
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert events[0]["type"] == "queued"
    assert {"started", "gate_passed", "joined", "succeeded"} <= {one["type"] for one in events}
    records = client.fine_tuning.records(job["id"], limit=10)
    assert (records["group"], records["total"]) == ("adapted", 48)
    assert "parent" not in records["groups"]
    return job


def serve_first(client, job):
    family = client.families.wait("router", job["output_model"], timeout=60, poll_interval=0.05)
    assert family["served"]["ref"] == family["latest"]["ref"] == "router@1"
    answer = decide(client, "router")
    assert (answer["model"], answer["version"]) == ("router", "router@1")
    assert answer["decisions"]["team"]["top"] == "billing"
    assert client.models.ready("router")["ready"]
    assert refusal(client.models.get, "router").code == "invalid_reference"
    assert client.models.get("router@1")["lora"] == job["output_model"]
    assert "router@1" in {model["id"] for model in client.models.list()}


def continue_on_new_rows(client, dataset, first):
    latest = first["output_model"]
    stale = refusal(client.families.continue_, "router", latest=latest)
    assert (stale.status, stale.code) == (409, "no_new_data")
    changed = refusal(client.families.continue_, "router", latest=None)
    assert (changed.status, changed.code) == (409, "family_changed")
    added = client.datasets.add_rows(dataset["id"], learnable_rows(1), evaluation_fraction=0.3)
    told = client.families.get("router")["continue"]
    assert (told["state"], told["version"]) == ("new_data", added["version"])
    assert told["evaluation_decisions"] == 48
    priced = client.families.estimate_continue("router")
    assert priced["rows"] == {"new": 112, "earlier": 112, "evaluation": 96}
    assert refusal(client.families.continue_, "router", max_price_usd="0").code == "price_changed"
    job = client.families.continue_(
        "router",
        latest=latest,
        hyperparameters={"seed": priced["seed"]},
        max_price_usd=priced["price_usd"],
    )
    assert job["parent"] == latest
    job = client.fine_tuning.wait(job["id"], timeout=120, poll_interval=0.05)
    assert job["outcome"] == "joined", job
    assert set(job["metrics"]["gate"]["groups"]) == {"new", "earlier"}
    assert "parent" in client.fine_tuning.records(job["id"], group="parent")["groups"]
    return job


def move_by_itself(client):
    family = client.families.wait("router", "router@2", timeout=60, poll_interval=0.05)
    assert family["moved"]["from"] == "router@1"
    assert decide(client, "router", 1)["version"] == "router@2"
    seen = family["models"][0]["adapter"]
    stale = refusal(client.families.switch, "router", True, served=seen)
    assert (stale.status, stale.code) == (409, "served_changed")


def call_a_number(client):
    off = refusal(decide, client, "router@1")
    assert (off.status, off.code) == (409, "model_off")
    assert client.models.switch("router@1", True)["on_at"] is not None
    assert decide(client, "router@1")["model"] == "router@1"


def roll_back(client, second):
    unnamed = refusal(client.families.rollback, "router", "router@1", [])
    assert (unnamed.status, unnamed.code) == (409, "rollback_changed")
    assert unnamed.details == [{"discard": ["router@2"], "cancel": []}]
    back = client.families.rollback(
        "router", "router@1", ["router@2"], served=second["output_model"]
    )
    assert back["latest"]["ref"] == back["served"]["ref"] == "router@1"
    assert back["moved"] is None
    assert client.families.wait("router", "router@1", timeout=60, poll_interval=0.05)
    gone = refusal(decide, client, "router@2")
    assert (gone.status, gone.code) == (410, "model_discarded")
    with pytest.raises(RuntimeError, match="discarded"):
        client.families.wait("router", "router@2", timeout=5)
    assert client.fine_tuning.get(second["id"])["outcome"] == "rolled_back"
    nothing = refusal(client.families.rollback, "router", "router@1", [])
    assert nothing.code == "nothing_to_roll_back"


def delete(client, dataset):
    answers = refusal(client.families.delete, "router")
    assert (answers.status, answers.code) == (409, "family_answers")
    client.models.switch("router@1", False)
    client.families.switch("router", False)
    assert refusal(decide, client, "router").code == "family_off"
    with pytest.raises(RuntimeError, match="switched off"):
        client.families.wait("router", "router@1", timeout=5)
    assert refusal(client.families.delete, "router", latest=None).code == "family_changed"
    assert client.families.delete("router", dataset_id=dataset["id"])["deleted"]
    assert refusal(decide, client, "router").status == 410
    assert refusal(client.families.create, "router", dataset["id"]).code == "family_exists"
    assert client.families.list() == []


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_no_more_models_answer_than_may(client):
    dataset = client.datasets.create("limits", learnable_rows(0), evaluation_fraction=0.3)
    for name in ("ant", "bee", "cat"):
        job = client.families.create(name, dataset["id"])
        job = client.fine_tuning.wait(job["id"], timeout=120, poll_interval=0.05)
        assert job["outcome"] == "joined", job
    for name in ("ant", "bee"):
        client.families.wait(name, f"{name}@1", timeout=60, poll_interval=0.05)
    with pytest.raises(TimeoutError, match="live_limit"):
        client.families.wait("cat", "cat@1", timeout=1.5, poll_interval=0.1)
    family = client.families.get("cat")
    assert family["move"] == {"to": "cat@1", "waiting_for": "place", "reason": "live_limit"}
    full = refusal(client.models.switch, "cat@1", True)
    assert (full.status, full.code) == (409, "live_limit")
    (listed,) = full.details
    assert [one["model"] for one in listed["answering"]] == ["ant@1", "bee@1"]
    assert listed["answering"][0]["serves"] == ["ant"]
    client.models.switch("cat@1", True, switch_off=["ant"])
    assert not client.families.get("ant")["switched_on"]
    assert client.families.wait("cat", "cat@1", timeout=60, poll_interval=0.05)
    warm = client.families.keep_warm("cat", max_price_usd="1000")
    assert warm["keep_warm"]
    assert not client.families.keep_warm("cat", False)["keep_warm"]


@pytest.mark.timeout(300)
def test_asynchronous(running, key):
    async def use():
        async with AsyncOneHot(running.url, api_key=key, max_retries=2) as client:
            dataset = await client.datasets.create(
                "async", learnable_rows(2), evaluation_fraction=0.3
            )
            job = await client.families.create("later", dataset["id"])
            cancelled = await client.fine_tuning.cancel(job["id"])
            assert cancelled["status"] in {"cancelled", "cancelling"}
            with pytest.raises(JobFailed):
                await client.fine_tuning.wait(job["id"], timeout=60, poll_interval=0.05)
            page = await client.fine_tuning.list(status="cancelled", dataset_id=dataset["id"])
            assert [one["id"] for one in page["data"]] == [job["id"]]
            found = [one async for one in client.fine_tuning.iter(page_size=1)]
            assert job["id"] in {one["id"] for one in found}
            return await client.families.delete("later", latest=None)

    assert asyncio.run(use())["deleted"]
