"""Labeling and prompt tuning through sqwishai 0.5.0, unchanged; conftest has the checks of answers."""

from __future__ import annotations

import asyncio
import json

import pytest
from sqwishai import APIError, AsyncOneHot, JobFailed, OneHot

from steelyard.app.job_runtime import open_worker
from support.datasets.dataset_rows import make_rows
from support.decisions.wordings import TEAM, rows, tuned_server
from support.models.teaching import SHARED, is_even, queries, taught_server

QUICK = {"poll_interval": 0.02, "timeout": 60}
LINEAGE = "mean_one_hot_teacher_votes"


def refusal(call, *arguments, **given):
    with pytest.raises(APIError) as caught:
        call(*arguments, **given)
    return caught.value.status, caught.value.code


@pytest.fixture(scope="module")
def taught(tmp_path_factory):
    teachers = {"even": is_even, "sure": lambda _: 0.9}
    with taught_server(tmp_path_factory.mktemp("taught"), teachers) as (server, _):
        yield server


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("files") / "queries.jsonl"
    path.write_bytes(queries(6))
    return path


@pytest.fixture
def client(taught):
    with OneHot(taught.url, api_key="any-key", max_retries=0) as client:
        yield client


@pytest.fixture(scope="module")
def labels(taught):
    """The labeling group of a server whose jobs run."""
    with (
        open_worker(taught.services.settings),
        OneHot(taught.url, api_key="any-key", max_retries=0) as client,
    ):
        yield client.labeling


@pytest.fixture
def ready(labels, file):
    source = labels.sources.upload(file)
    job = labels.jobs.create(source["id"], decisions=SHARED)
    return labels.jobs.wait(job["id"], **QUICK)


class TestLabeling:
    def test_teachers_and_sources(self, client, file):
        catalog = client.labeling.teachers()
        assert catalog["available"]
        assert catalog["defaults"]["default"] == [one["id"] for one in catalog["data"]]
        sources = client.labeling.sources
        source = sources.upload(file, name="März", idempotency_key="up")
        assert (source["name"], source["rows"]) == ("März", 6)
        assert sources.upload(file, name="März", idempotency_key="up") == source
        assert refusal(sources.upload, file, name="other", idempotency_key="up") == (
            409,
            "idempotency_conflict",
        )
        second = sources.upload(file)
        assert second["name"] == "queries"
        assert second["sha256"] == source["sha256"]
        page = sources.list(limit=1)
        assert (page["data"], page["has_more"]) == ([second], True)
        assert sources.list(limit=1, cursor=page["next_cursor"])["data"] == [source]
        listed = [one["id"] for one in sources.iter(page_size=1)]
        assert listed[:2] == [second["id"], source["id"]]
        assert sources.get(source["id"]) == source
        assert sources.delete(source["id"]) == {"id": source["id"], "deleted": True}
        assert refusal(sources.get, source["id"])[0] == 410
        assert refusal(sources.get, "src_unknown") == (404, "not_found")

    def test_from_queries_to_a_dataset(self, labels, client, ready):
        job = ready
        assert (job["status"], job["charge"], job["price_usd"]) == ("review_ready", "free", "0")
        counts = ("rows", "completed_rows", "valid_rows", "agreement_rows", "error_rows")
        assert [job[name] for name in counts] == [6, 6, 6, 3, 0]
        page = labels.jobs.results(job["id"], offset=1, limit=2)
        assert [one["index"] for one in page["data"]] == [1, 2]
        assert page["data"][0]["targets"] == {"refund": {"yes": 0.5, "no": 0.5}}
        made = labels.jobs.finalize(job["id"], [0, 1, 2, 3])
        assert (made["rows"], made["version"]) == (4, 1)
        lineage = made["labeling"]
        assert (lineage["job_id"], lineage["target_method"]) == (job["id"], LINEAGE)
        assert lineage["row_indices"] == [0, 1, 2, 3]
        [version] = client.datasets.versions(made["id"])
        assert version["added_via"] == "labeling"
        assert labels.jobs.finalize(job["id"], [0, 1, 2, 3])["id"] == made["id"]
        assert refusal(labels.jobs.finalize, job["id"], [0, 1]) == (409, "job_finalized")
        ended = labels.jobs.wait(job["id"], **QUICK)
        assert (ended["status"], ended["dataset_id"]) == ("finalized", made["id"])
        assert labels.jobs.results(job["id"])["total"] == 6
        labels.sources.delete(job["source_id"])
        gone = labels.jobs.get(job["id"])
        assert gone["status"] == "deleted"
        assert refusal(labels.jobs.results, job["id"])[0] == 410
        with pytest.raises(JobFailed):
            labels.jobs.wait(job["id"], **QUICK)
        assert client.datasets.get(made["id"])["rows"] == 4

    def test_sides_by_index_and_pages_of_jobs(self, labels, ready):
        made = labels.jobs.finalize(
            ready["id"], training_indices=[0, 2, 4], evaluation_indices=[5], max_price_usd="0"
        )
        assert made["split"]["evaluation"] == 1
        page = labels.jobs.list(limit=1, status=["finalized", "queued"])
        assert [one["id"] for one in page["data"]] == [ready["id"]]
        assert ready["id"] in [one["id"] for one in labels.jobs.iter(status="finalized")]
        assert ready["id"] not in [one["id"] for one in labels.jobs.iter(status="failed")]

    def test_what_is_refused(self, client, file):
        jobs = client.labeling.jobs
        source = client.labeling.sources.upload(file)["id"]
        assert refusal(jobs.create, source) == (422, "invalid_request")
        assert refusal(jobs.create, "src_unknown", decisions=SHARED) == (404, "not_found")
        given = {"decisions": SHARED, "teacher_models": ["nobody"]}
        assert refusal(jobs.create, source, **given) == (422, "invalid_request")
        assert refusal(jobs.get, "lab_unknown") == (404, "not_found")

    def test_asynchronously(self, taught, file):
        async def ask():
            async with AsyncOneHot(taught.url, api_key="any-key", max_retries=0) as client:
                source = await client.labeling.sources.upload(file)
                job = await client.labeling.jobs.create(source["id"], decisions=SHARED)
                stopped = await client.labeling.jobs.cancel(job["id"])
                listed = [one["id"] async for one in client.labeling.jobs.iter()]
                await client.labeling.teachers()
                return stopped, job["id"] in listed

        stopped, is_listed = asyncio.run(ask())
        assert stopped["status"] in {"cancelled", "cancelling", "review_ready"}
        assert is_listed


@pytest.fixture(scope="module")
def tuning(tmp_path_factory):
    """A server whose jobs run, a client of it, and a job that improved a wording."""
    with (
        tuned_server(tmp_path_factory.mktemp("tuned")) as (services, http, _),
        OneHot(str(http.base_url), api_key="any-key", max_retries=0) as client,
    ):
        dataset = client.datasets.create(
            "tickets", training=rows(45, wrong={5, 33}), evaluation=rows(30, start=45)
        )
        job = client.prompt_tuning.create(dataset["id"], model="far", idempotency_key="tune")
        assert job["status"] == "queued"
        with open_worker(services.settings):
            yield client, client.prompt_tuning.wait(job["id"], **QUICK)


class TestPromptTuning:
    def test_from_rows_to_a_proved_wording(self, tuning):
        client, job = tuning
        result = job["result"]
        assert (job["status"], job["effort"], result["verdict"]) == (
            "succeeded",
            "standard",
            "improved",
        )
        assert result["original"] == TEAM
        assert result["tuned"]["id"] == job["decision"] == result["decision"] == "team"
        assert (
            client.prompt_tuning.create(job["dataset_id"], model="far", idempotency_key="tune")[
                "id"
            ]
            == job["id"]
        )
        answer = client.decide("Parcel lost", [result["tuned"]], model="far")
        assert answer["decisions"]["team"]["top"] == "t2"

    def test_doubted_labels_are_dismissed_and_shown_again(self, tuning):
        client, job = tuning
        dataset = job["dataset_id"]
        doubted = client.datasets.labels_to_check(dataset)["data"]
        assert {one["line"] for one in doubted} <= {6, 34}
        assert doubted[0]["jobs"] == [job["id"]]
        assert client.datasets.get(dataset)["labels_to_check"] == len(doubted) > 0
        off = client.prompt_tuning.dismiss_label_issues(job["id"])
        assert off["label_issues_dismissed_at"] > 0
        assert off["result"]["label_issues"] == job["result"]["label_issues"]
        assert client.datasets.labels_to_check(dataset)["data"] == []
        on = client.prompt_tuning.dismiss_label_issues(job["id"], dismissed=False)
        assert "label_issues_dismissed_at" not in on
        assert client.datasets.labels_to_check(dataset)["data"] == doubted

    def test_listing(self, tuning):
        client, job = tuning
        page = client.prompt_tuning.list(limit=1, status="succeeded", dataset_id=job["dataset_id"])
        assert [one["id"] for one in page["data"]] == [job["id"]]
        found = client.prompt_tuning.iter(page_size=1, status=["queued", "failed"])
        assert job["id"] not in [one["id"] for one in found]
        assert client.prompt_tuning.get(job["id"])["id"] == job["id"]

    def test_an_ended_job_is_not_cancelled(self, tuning):
        client, job = tuning
        assert client.prompt_tuning.cancel(job["id"])["status"] == "succeeded"

    def test_asynchronously(self, tuning, monkeypatch):
        client, job = tuning

        async def ask():
            async with AsyncOneHot(
                client._http.base_url, api_key="any-key", max_retries=0
            ) as other:
                waited = await other.prompt_tuning.wait(job["id"], **QUICK)
                listed = [one["id"] async for one in other.prompt_tuning.iter()]
                return waited, listed, await other.prompt_tuning.cancel(job["id"])

        waited, listed, cancelled = asyncio.run(ask())
        assert waited["result"] == cancelled["result"] == job["result"]
        assert job["id"] in listed

    @pytest.mark.parametrize(
        ("made", "given", "code"),
        [
            (rows(30), {}, (422, "too_few_rows")),
            (rows(60), {"decision": "mood"}, (404, "not_found")),
            (rows(60), {"model": "nowhere"}, (404, "not_found")),
            (rows(60), {"max_price_usd": "much"}, (422, "invalid_request")),
            (rows(60), {"effort": "most"}, (422, "invalid_request")),
            (make_rows(60), {}, (422, "invalid_request")),
        ],
        ids=["few", "decision", "model", "price", "effort", "several decisions"],
    )
    def test_what_is_refused(self, tuning, made, given, code):
        client, _ = tuning
        dataset = client.datasets.create("few", training=made, evaluation=rows(9, start=90))
        create = client.prompt_tuning.create
        assert refusal(create, dataset["id"], **{"model": "far", **given}) == code

    def test_readiness_has_the_refusal_of_a_job(self, tuning):
        client, _ = tuning
        dataset = client.datasets.create("few", training=rows(30), evaluation=rows(9, start=90))
        [ready] = client.datasets.get(dataset["id"])["prompt_tuning"]["decisions"]
        assert (ready["decision"], ready["reason"]) == (TEAM, "too_few_rows")
        assert json.dumps(ready["labels"]) == '{"t1": 10, "t2": 10, "t3": 10}'
