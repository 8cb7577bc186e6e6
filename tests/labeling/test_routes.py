"""``/v1/labeling`` over HTTP: every answer is as the OpenAPI document declares."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import httpx
import pytest

from steelyard.app.job_runtime import open_worker
from steelyard.caller import Caller
from steelyard.evaluations.judges import Judges
from steelyard.families.lineage.lineage import Lineage
from steelyard.families.lineage.switching import switch_family
from steelyard.labeling.teachers import Teachers
from support.api.error_shape import assert_canonical_error
from support.datasets.dataset_rows import make_rows, to_ndjson
from support.families.lineage_cases import at, grow
from support.models.teaching import SHARED, is_even, queries, taught_server
from support.servers.live_server import live_server
from support.waiting import wait_until

pytestmark = pytest.mark.usefixtures("every_response_is_checked")

ENDED = {"review_ready", "failed", "cancelled", "finalized", "discarded", "deleted"}


@pytest.fixture(scope="module")
def taught(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    with taught_server(home, {"even": is_even, "sure": lambda _: 0.9}) as found:
        yield found


@pytest.fixture(scope="module")
def http(taught):
    with httpx.Client(base_url=taught[0].url, timeout=30) as client:
        yield client


@pytest.fixture(scope="module")
def worker(taught):
    with open_worker(taught[0].services.settings):
        yield


def upload(http, content=None, *, name="queries", **headers):
    return http.post(
        "/v1/labeling/sources",
        params={"name": name},
        content=queries(6) if content is None else content,
        headers={"Content-Type": "application/x-ndjson", **headers},
    )


def start(http, source_id, **given):
    return http.post(
        "/v1/labeling/jobs", json={"source_id": source_id, "decisions": SHARED, **given}
    )


def label(http, **given):
    """A job whose labels are ready."""
    job = start(http, upload(http).json()["id"], **given).json()
    wait_until(lambda: get(http, job)["status"] in ENDED)
    return get(http, job)


def teachers_of(http):
    return http.get("/v1/labeling/teachers").json()["data"]


def get(http, job):
    return http.get(f"/v1/labeling/jobs/{job['id']}").json()


@pytest.fixture
def ready(http, worker):
    job = label(http)
    assert job["status"] == "review_ready"
    return job


def finalize(http, job, **given):
    return http.post(f"/v1/labeling/jobs/{job['id']}/finalize", json=given)


class TestTeachers:
    def test_those_that_an_operator_marked(self, http):
        found = http.get("/v1/labeling/teachers").json()
        assert found["available"]
        assert [one["id"] for one in found["data"]] == ["even", "sure"]
        assert found["defaults"] == {"default": ["even", "sure"]}
        assert found["limits"] == {"labeling_rows": 10_000, "teachers": 8}
        assert http.get("/v1/capabilities").json()["labeling_available"] is True

    def test_without_any_it_says_so_and_refuses_a_job(self):
        with (
            live_server(jobs="off") as server,
            httpx.Client(base_url=server.url, timeout=30) as http,
        ):
            found = http.get("/v1/labeling/teachers").json()
            assert (found["available"], found["data"]) == (False, [])
            assert "--teacher" in found["reason"]
            assert http.get("/v1/capabilities").json()["labeling_available"] is False
            source = upload(http).json()
            refused = start(http, source["id"])
            assert_canonical_error(refused, 503, "labeling_unavailable", message="--teacher")

    def test_one_that_has_not_qualified_is_warned_of_and_may_be_refused(self, http, taught, ready):
        doubt = "it has not been held to labels of people"
        assert [each["doubt"] for each in teachers_of(http)] == [doubt, doubt]
        source = upload(http).json()
        job = start(http, source["id"], teacher_models=["even"]).json()
        assert job["warnings"] == [f"even: {doubt}."]
        assert "warnings" not in get(http, job)
        judges = taught[0].services.get(Judges)
        assert not judges.must_qualify
        try:
            judges.must_qualify = True  # as the setting judges=qualified does
            refused = start(http, source["id"], teacher_models=["even"])
            waits = finalize(http, ready, row_indices=[0, 1, 2])
        finally:
            judges.must_qualify = False
        assert_canonical_error(waits, 422, "invalid_request", message=doubt)
        assert get(http, ready)["status"] == "review_ready"
        assert_canonical_error(refused, 422, "invalid_request")
        assert doubt in refused.json()["error"]["details"][0]["message"]

    def test_a_family_that_is_off_is_none(self):
        lineage = grow(grow(Lineage(), "ant", 1), "bee", 1)
        off = switch_family(lineage, "ant", at(), on=False).lineage

        class Lineages:
            async def read(self, account_id):
                return SimpleNamespace(lineage=off)

        teachers = Teachers(SimpleNamespace(hosted=[]), Lineages(), None, Judges(None))
        found = asyncio.run(teachers.available(Caller("local", None, "full", "")))
        assert found.defaults == {"default": ["bee"]}


class TestSources:
    def test_one_is_uploaded_listed_and_read(self, http):
        source = upload(http, name="März").json()
        assert (source["name"], source["rows"], source["input"]["format"]) == ("März", 6, "jsonl")
        assert http.get(f"/v1/labeling/sources/{source['id']}").json() == source
        rows = http.get(
            f"/v1/labeling/sources/{source['id']}/rows", params={"offset": 4, "limit": 1}
        ).json()
        assert [row["index"] for row in rows["data"]] == [4]
        assert (rows["data"][0]["context"], rows["total"], rows["has_more"]) == (
            "Invoice 4 was paid twice.",
            6,
            True,
        )
        page = http.get("/v1/labeling/sources", params={"limit": 1}).json()
        assert (page["data"], page["has_more"]) == ([source], page["next_cursor"] is not None)

    def test_a_key_uploads_once(self, http):
        first = upload(http, **{"Idempotency-Key": "once"}).json()
        assert upload(http, **{"Idempotency-Key": "once"}).json() == first
        other = upload(http, queries(2), **{"Idempotency-Key": "once"})
        assert_canonical_error(other, 409, "idempotency_conflict")

    @pytest.mark.parametrize(
        ("content", "code", "message"),
        [
            (b"", "no_rows", "no rows"),
            (b"{", "invalid_example", "Line 1"),
            (to_ndjson(make_rows(1)), "invalid_example", "Teachers find the targets"),
            (b'{"context": "a", "decisions": []}', "invalid_example", "decisions"),
            (b'{"context": "a"}\n{"contxt": "b"}', "invalid_example", "Line 2"),
            (b'{"context": "a", "images": [1]}', "invalid_example", "text alone"),
        ],
        ids=["empty", "no-json", "targets", "no-decisions", "unknown-field", "images"],
    )
    def test_problems_are_reported_by_line(self, http, content, code, message):
        assert_canonical_error(upload(http, content), 422, code, message=message)

    def test_bounds(self, http):
        many = b'{"context": "a"}\n' * 10_001
        assert_canonical_error(upload(http, many), 413, "too_many_lines", message="10000")
        assert_canonical_error(upload(http, name=" "), 422, "invalid_request", message="blank")
        unnamed = http.post(
            "/v1/labeling/sources",
            content=queries(1),
            headers={"Content-Type": "application/x-ndjson"},
        )
        assert_canonical_error(unnamed, 422, "invalid_request", message="name is missing")

    def test_deleting_one_deletes_the_teachers_answers(self, http, ready):
        dataset = finalize(http, ready, row_indices=[0, 1, 2]).json()
        path = f"/v1/labeling/sources/{ready['source_id']}"
        assert http.delete(path).json() == {"id": ready["source_id"], "deleted": True}
        assert_canonical_error(http.get(path), 410, "source_deleted")
        assert_canonical_error(http.delete(path), 410, "source_deleted")
        assert get(http, ready)["status"] == "deleted"
        results = http.get(f"/v1/labeling/jobs/{ready['id']}/results")
        assert_canonical_error(results, 410, "source_deleted")
        assert http.get(f"/v1/datasets/{dataset['id']}").status_code == 200
        listed = http.get("/v1/labeling/sources").json()["data"]
        assert ready["source_id"] not in [one["id"] for one in listed]


class TestJobs:
    def test_votes_agreement_and_figures(self, http, ready):
        counts = ("rows", "completed_rows", "valid_rows", "agreement_rows", "error_rows")
        assert [ready[name] for name in counts] == [6, 6, 6, 3, 0]
        assert (ready["teacher_models"], ready["charge"]) == (["even", "sure"], "free")
        [decision] = ready["decisions"]
        assert decision["decision_id"] == "refund"
        assert decision["agreement"]["value"] == 0.5
        assert decision["alpha"]["low"] <= decision["alpha"]["value"] <= decision["alpha"]["high"]
        even, sure = ready["teachers"]
        assert (even["model"], even["answered"], even["errors"]) == ("even", 6, 0)
        assert sure["with_others"]["value"] == even["with_others"]["value"] == 0.5
        assert sure["with_others"]["n"] == 6

    def test_results_are_paged(self, http, ready):
        path = f"/v1/labeling/jobs/{ready['id']}/results"
        page = http.get(path, params={"offset": 1, "limit": 2}).json()
        assert (page["total"], page["has_more"]) == (6, True)
        first, second = page["data"]
        assert (first["index"], first["agreement"], first["valid"]) == (1, False, True)
        assert first["targets"] == {"refund": {"yes": 0.5, "no": 0.5}}
        assert [one["labels"] for one in first["teachers"]] == [{"refund": "no"}, {"refund": "yes"}]
        assert (second["context"], second["agreement"]) == ("Invoice 2 was paid twice.", True)
        assert second["targets"] == {"refund": {"yes": 1.0}}
        assert http.get(path, params={"offset": 6}).json()["data"] == []
        assert http.get(path, params={"limit": 201}).status_code == 422

    def test_rows_may_bring_their_own_decisions(self, http, worker):
        source = upload(http, queries(2, is_open=False)).json()
        job = http.post("/v1/labeling/jobs", json={"source_id": source["id"]}).json()
        wait_until(lambda: get(http, job)["status"] in ENDED)
        results = http.get(f"/v1/labeling/jobs/{job['id']}/results").json()["data"]
        assert set(results[0]["targets"]) == {"route", "refund"}
        assert results[0]["targets"]["route"] == {"billing": 1.0}

    def test_weighting_by_calibrated_probabilities(self, http, worker):
        job = label(http, weighting="probabilities", teacher_models=["even", "sure"])
        results = http.get(f"/v1/labeling/jobs/{job['id']}/results").json()["data"]
        # The first teacher has no calibration and votes.
        assert results[1]["targets"]["refund"]["yes"] == pytest.approx(0.45, abs=0.01)

    @pytest.mark.parametrize(
        ("given", "path"),
        [
            ({"teacher_models": ["hashing"]}, ["teacher_models", 0]),
            ({"teacher_models": ["even", "even"]}, ["teacher_models", 1]),
            ({"teacher_models": []}, ["teacher_models"]),
            ({"decisions": [{"id": "a"}]}, ["decisions", 0, "question"]),
            ({"decisions": None}, ["decisions"]),
            ({"weighting": "most"}, ["weighting"]),
            ({"max_price_usd": "much"}, ["max_price_usd"]),
            ({"teachers": ["even"]}, ["teachers"]),
        ],
    )
    def test_jobs_that_cannot_be_started_are_refused(self, http, given, path):
        refused = start(http, upload(http).json()["id"], **given)
        assert refused.status_code == 422
        assert refused.json()["error"]["details"][0]["path"] == ["body", *path]

    def test_unknown_ones(self, http):
        assert_canonical_error(start(http, "src_none"), 404, "not_found", message="src_none")
        for call in ("", "/results"):
            answer = http.get(f"/v1/labeling/jobs/lab_none{call}")
            assert_canonical_error(answer, 404, "not_found", message="lab_none")

    def test_a_key_starts_once_and_the_list_has_it(self, http, worker):
        source, headers = upload(http).json(), {"Idempotency-Key": "job-once"}
        body = {"source_id": source["id"], "decisions": SHARED, "name": "mine"}
        first, again = (
            http.post("/v1/labeling/jobs", json=body, headers=headers).json() for _ in range(2)
        )
        assert first == again
        assert (first["name"], first["status"]) == ("mine", "queued")
        wait_until(lambda: get(http, first)["status"] == "review_ready")
        query = {"status": ["review_ready", "queued"], "limit": 200}
        page = http.get("/v1/labeling/jobs", params=query).json()
        assert [one["id"] for one in page["data"]].count(first["id"]) == 1


class TestFinalize:
    def test_accepted_rows_become_a_dataset(self, http, ready):
        dataset = finalize(http, ready, training_indices=[0, 2], evaluation_indices=[1]).json()
        assert (dataset["name"], dataset["rows"], dataset["split"]["evaluation"]) == (
            "queries",
            3,
            1,
        )
        lineage = dataset["labeling"]
        assert (lineage["job_id"], lineage["row_indices"]) == (ready["id"], [0, 1, 2])
        assert lineage["target_method"] == "mean_one_hot_teacher_votes"
        assert http.get(f"/v1/datasets/{dataset['id']}").json()["labeling"] == lineage
        [version] = http.get(f"/v1/datasets/{dataset['id']}/versions").json()["data"]
        assert version["added_via"] == "labeling"
        job = get(http, ready)
        assert (job["status"], job["dataset_id"]) == ("finalized", dataset["id"])
        rows = http.get(
            f"/v1/datasets/{dataset['id']}/rows", params={"partition": "evaluation"}
        ).json()["data"]
        assert rows[0]["targets"] == {"refund": {"yes": 0.5, "no": 0.5}}

    def test_the_same_selection_is_the_same_dataset(self, http, ready):
        first = finalize(http, ready, row_indices=[0, 1, 2, 3]).json()
        assert first["used_at"] == ready["created_at"]
        for given in ({}, {"evaluation_fraction": 0.2}):
            again = finalize(http, ready, row_indices=[3, 2, 1, 0], **given)
            assert (again.status_code, again.json()["id"]) == (200, first["id"])
        other = finalize(http, ready, row_indices=[0, 1])
        assert_canonical_error(other, 409, "job_finalized", message=first["id"])
        discarded = http.post(f"/v1/labeling/jobs/{ready['id']}/discard")
        assert_canonical_error(discarded, 409, "job_finalized")

    def test_teachers_are_held_against_people(self, http, ready):
        path = f"/v1/labeling/jobs/{ready['id']}/reviewed"
        assert http.get(path).json()["reviewed_rows"] == 0
        sides = {"training_indices": [0, 1, 2, 3], "evaluation_indices": []}
        dataset = finalize(http, ready, **sides).json()
        sides.popitem()
        assert finalize(http, ready, **sides).json()["id"] == dataset["id"]
        draft = http.post("/v1/drafts", json={"dataset_id": dataset["id"]}).json()
        edits = [
            {"row": 0, "action": "accept"},
            {"row": 1, "action": "relabel", "decision": "refund", "outcome": "no"},
            {"row": 2, "action": "exclude"},
        ]
        sent = http.post(f"/v1/drafts/{draft['id']}/edits", json={"edits": edits})
        assert sent.status_code == 200, sent.text
        found = http.get(path).json()
        assert found["reviewed_rows"] == 2
        assert [one["agreement"]["value"] for one in found["data"]] == [1.0, 0.5]
        assert [one["agreement"]["n"] for one in found["data"]] == [2, 2]

    @pytest.mark.parametrize(
        ("given", "path"),
        [
            ({}, ["row_indices"]),
            ({"row_indices": [6]}, ["row_indices", 0]),
            ({"row_indices": [1, 1]}, ["row_indices", 1]),
            ({"row_indices": [1], "training_indices": [2]}, ["training_indices"]),
            ({"training_indices": [1], "evaluation_indices": [1]}, ["evaluation_indices", 0]),
            ({"training_indices": [1], "evaluation_fraction": 0.5}, ["evaluation_fraction"]),
            ({"row_indices": []}, ["row_indices"]),
            ({"training_indices": [], "evaluation_indices": []}, ["row_indices"]),
        ],
    )
    def test_selections_that_cannot_be(self, http, ready, given, path):
        refused = finalize(http, ready, **given)
        assert refused.status_code == 422
        assert refused.json()["error"]["details"][0]["path"] == ["body", *path]
        assert get(http, ready)["status"] == "review_ready"

    def test_a_job_is_discarded_once(self, http, ready):
        path = f"/v1/labeling/jobs/{ready['id']}/discard"
        assert http.post(path).json()["status"] == "discarded"
        assert http.post(path).json()["status"] == "discarded"
        refused = finalize(http, ready, row_indices=[0])
        assert_canonical_error(refused, 409, "labeling_not_ready", message="discarded")


class TestQueued:
    """Jobs that no worker takes: this module's own is off here."""

    @pytest.fixture
    def http(self, tmp_path):
        with (
            taught_server(tmp_path, {"even": is_even}, job_queue_per_account=1) as (server, _),
            httpx.Client(base_url=server.url, timeout=30) as client,
        ):
            yield client

    def test_one_is_not_ready_then_cancelled(self, http):
        job = start(http, upload(http).json()["id"]).json()
        path = f"/v1/labeling/jobs/{job['id']}"
        results = http.get(f"{path}/results")
        assert_canonical_error(results, 409, "labeling_not_ready", message="queued")
        for call in ("finalize", "discard"):
            body = {"row_indices": [0]} if call == "finalize" else {}
            assert_canonical_error(
                http.post(f"{path}/{call}", json=body), 409, "labeling_not_ready"
            )
        full = start(http, job["source_id"])
        assert_canonical_error(full, 429, "tenant_queue_full", retryable=True)
        assert http.post(f"{path}/cancel", json={}).json()["status"] == "cancelled"
        assert http.post(f"{path}/cancel").json()["status"] == "cancelled"

    def test_one_goes_with_its_source(self, http):
        job = start(http, upload(http).json()["id"]).json()
        http.delete(f"/v1/labeling/sources/{job['source_id']}")
        assert get(http, job)["status"] == "deleted"
        assert_canonical_error(start(http, job["source_id"]), 410, "source_deleted")
