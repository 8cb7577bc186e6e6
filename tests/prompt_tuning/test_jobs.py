"""Prompt tuning over HTTP and in a worker: every answer is as the OpenAPI document declares."""

from __future__ import annotations

import base64

import pytest

from jobs.workers import kill, start_job_worker
from steelyard.app.job_runtime import open_worker
from steelyard.datasets.service import DatasetService
from steelyard.errors import ImagesNotSupportedError
from steelyard.evaluations.models import EvaluatedModels
from steelyard.ledger.money import from_usd
from steelyard.prompt_tuning.run import PromptTuningRuns
from support.api.error_shape import assert_canonical_error
from support.datasets.dataset_rows import to_ndjson
from support.decisions.wordings import SAID, TEAM, reads_nothing, rows, tuned_server
from support.models.evaluated import claim
from support.waiting import wait_until

pytestmark = pytest.mark.usefixtures("every_response_is_checked")

NDJSON = {"Content-Type": "application/x-ndjson"}


def upload(http, training, evaluation=None):
    """A dataset with both sides as given."""
    sides = {"training": training, "evaluation": evaluation}
    files = {
        side: (f"{side}.jsonl", to_ndjson(of), NDJSON["Content-Type"])
        for side, of in sides.items()
        if of
    }
    made = http.post("/v1/datasets", files=files, data={"name": "tickets"})
    assert made.status_code == 200, made.text
    return made.json()["id"]


def start(http, dataset_id, **given):
    return http.post(
        "/v1/prompt-tuning/jobs", json={"dataset_id": dataset_id, "model": "far", **given}
    )


def get(http, job):
    return http.get(f"/v1/prompt-tuning/jobs/{job['id']}").json()


def run(services, job):
    """Run a job in this process, to its end."""
    running = claim(services.state, runs_of(services), job["id"])
    while running.advance():
        pass


def runs_of(services):
    return PromptTuningRuns(
        services.state, services.get(DatasetService), EvaluatedModels(services.models)
    )


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with tuned_server(tmp_path_factory.mktemp("home")) as found:
        yield found


@pytest.fixture(scope="module")
def http(served):
    return served[1]


@pytest.fixture(scope="module")
def improved(served):
    """A dataset of which three labels are wrong, and a job on it that ended."""
    services, http, _ = served
    dataset_id = upload(http, rows(63, wrong={5, 33, 61}), rows(42, start=63))
    job = start(http, dataset_id).json()
    assert (job["status"], job["progress"], job["result"]) == ("queued", None, None)
    running = claim(services.state, runs_of(services), job["id"])
    phases = []
    while running.advance():
        phases.append(get(http, job)["progress"])
    assert phases[0]["phase"] == "searching"
    assert phases[-1]["phase"] == "testing"
    assert phases[-1]["best_loss"] < phases[0]["original_loss"]
    return get(http, job)


class TestAnImprovement:
    def test_it_is_proved_on_rows_that_the_search_never_saw(self, improved):
        result = improved["result"]
        assert improved["status"] == "succeeded"
        assert (result["verdict"], result["reasons"]) == ("improved", [])
        assert result["tuned"] == result["candidate"]
        assert result["tuned"]["id"] == "team"
        assert list(result["tuned"]["outcomes"]) == list(SAID)
        assert result["original"] == TEAM
        assert {change["part"] for change in result["changes"]} <= {
            "question",
            *(f"outcome:{name}" for name in SAID),
        }
        test = result["test"]
        assert test["rows"] == 42
        assert test["gain"] > result["noise_band"] > 0
        assert test["tuned_accuracy"] > test["original_accuracy"]
        assert [one["rows"] for one in test["recall"].values()] == [14, 14, 14]
        assert [one["round"] for one in result["rounds"]] == [
            number + 1 for number in range(len(result["rounds"]))
        ]

    def test_the_wrong_labels_are_doubted_until_dismissed(self, http, improved):
        dataset_id = improved["dataset_id"]
        path = f"/v1/datasets/{dataset_id}/labels-to-check"
        doubted = http.get(path).json()["data"]
        assert doubted
        assert {one["line"] for one in doubted} <= {6, 34, 62}
        for one in doubted:
            row = rows(63, wrong={5, 33, 61})[one["line"] - 1]
            assert (one["context"], one["targets"]) == (row["context"], row["targets"]["team"])
            assert (one["decision"], one["jobs"]) == ("team", [improved["id"]])
        told = http.get(f"/v1/datasets/{dataset_id}").json()["labels_to_check"]
        assert told == len(doubted) == len(improved["result"]["label_issues"])
        job = f"/v1/prompt-tuning/jobs/{improved['id']}"
        dismissed = http.patch(job, json={"label_issues_dismissed": True}).json()
        assert dismissed["label_issues_dismissed_at"] is not None
        assert dismissed["result"] == improved["result"]
        assert http.get(path).json()["data"] == []
        undone = http.patch(job, json={"label_issues_dismissed": False}).json()
        assert undone == improved
        assert http.get(path).json()["data"] == doubted

    def test_it_is_listed_by_dataset_and_status(self, http, improved):
        def page(**query):
            return http.get("/v1/prompt-tuning/jobs", params=query).json()["data"]

        assert page(dataset_id=improved["dataset_id"], status="succeeded") == [improved]
        assert page(dataset_id=improved["dataset_id"], status="failed,cancelled") == []
        assert page(dataset_id="ds_other") == []

    def test_its_wording_asked_again_is_no_improvement(self, served, improved):
        services, http, _ = served
        tuned = improved["result"]["tuned"]
        dataset_id = upload(http, rows(48, decision=tuned), rows(24, start=48, decision=tuned))
        job = start(http, dataset_id).json()
        run(services, job)
        assert get(http, job)["result"]["verdict"] != "improved"


def test_a_model_that_reads_no_words_has_nothing_to_improve(tmp_path):
    with tuned_server(tmp_path, answer=reads_nothing) as (services, http, _):
        job = start(http, upload(http, rows(42), rows(9, start=42))).json()
        run(services, job)
        result = get(http, job)["result"]
        assert (result["verdict"], result["candidate"]) == ("no_improvement", None)
        test = result["test"]
        assert (test["rows"], test["gain"]) == (9, 0)
        assert test["original_loss"] == test["tuned_loss"]
        assert test["recall"].keys() == SAID.keys()
        assert "validation rows" in result["reasons"][0]
        assert result["label_issues"] == []


STRUCTURED = {**TEAM, "outcomes": {name: {"means": said} for name, said in SAID.items()}}
FEW = [row for row in rows(60) if row["targets"] != {"team": {"t3": 1.0}}] + rows(3)[2:]


@pytest.mark.parametrize(
    ("training", "evaluation", "given", "status", "code"),
    [
        (
            rows(60) + rows(60, decision={**TEAM, "question": "Who?"}, start=60),
            rows(9, start=120),
            {},
            422,
            "conflicting_decision",
        ),
        (
            rows(60, decision=STRUCTURED),
            rows(9, start=60, decision=STRUCTURED),
            {},
            422,
            "structured_wording",
        ),
        (rows(39), rows(9, start=60), {}, 422, "too_few_rows"),
        (rows(5_001), rows(9, start=6_000), {}, 422, "too_many_rows"),
        (FEW, rows(9, start=60), {}, 422, "too_few_per_outcome"),
        ([], rows(60), {}, 422, "unbalanced_split"),
        ([], rows(60), {"decision": "team"}, 422, "unbalanced_split"),
        (rows(60), rows(9, start=60), {"decision": "mood"}, 404, "not_found"),
        (rows(60), rows(9, start=60), {"model": "nowhere"}, 404, "not_found"),
    ],
    ids=[
        "conflicting",
        "structured",
        "few",
        "many",
        "few of one",
        "none to learn",
        "none to learn of",
        "unknown",
        "no model",
    ],
)
def test_decisions_that_cannot_be_tuned_are_refused(
    http, training, evaluation, given, status, code
):
    dataset_id = upload(http, training, evaluation)
    assert_canonical_error(start(http, dataset_id, **given), status, code)


def test_rows_with_images_are_refused_as_a_model_of_text_reads_them(served):
    services, http, _ = served
    shown = {"id": 1, "media_type": "image/png", "data": base64.b64encode(b"\x89PNG").decode()}
    made = rows(60)
    made[7] = {**made[7], "context": "See <image:1>.", "images": [shown]}
    job = start(http, upload(http, made, rows(9, start=60))).json()
    with pytest.raises(ImagesNotSupportedError, match="Row 7 has images"):
        run(services, job)


def test_a_decision_is_named_where_there_are_several(http):
    other = {**TEAM, "id": "other"}
    made = [
        {
            **row,
            "decisions": [TEAM, other],
            "targets": dict.fromkeys(("team", "other"), row["targets"]["team"]),
        }
        for row in rows(60)
    ]
    dataset_id = upload(http, made[:45], made[45:])
    refused = start(http, dataset_id)
    assert_canonical_error(refused, 422, "invalid_request", message='"other", "team"')
    job = start(http, dataset_id, decision="other").json()
    assert job["decision"] == "other"
    assert http.post(f"/v1/prompt-tuning/jobs/{job['id']}/cancel").json()["status"] == "cancelled"


def test_a_dataset_that_is_read_is_not_deleted_and_a_job_ends_before_it_is_changed(http):
    dataset_id = upload(http, rows(60), rows(9, start=60))
    job = start(http, dataset_id).json()
    assert_canonical_error(http.delete(f"/v1/datasets/{dataset_id}"), 409, "version_in_use")
    path = f"/v1/prompt-tuning/jobs/{job['id']}"
    refused = http.patch(path, json={"label_issues_dismissed": True})
    assert_canonical_error(refused, 409, "tuning_not_succeeded")
    http.post(f"{path}/cancel")
    assert http.delete(f"/v1/datasets/{dataset_id}").status_code == 200
    assert_canonical_error(start(http, dataset_id), 410, "dataset_deleted")


class TestMoney:
    @pytest.fixture
    def paid(self, tmp_path):
        """Services and a client whose account has 1 USD, at 1 USD for a million tokens."""
        with tuned_server(tmp_path, answer=reads_nothing, price_in="1", accounts="on") as found:
            services, http, _ = found
            account = services.accounts.create_account("payer")
            key = services.accounts.create_key(account=account.id)
            services.accounts.add_credit(account.id, from_usd("1"))
            http.headers["Authorization"] = f"Bearer {key.secret}"
            yield services, http

    @pytest.mark.slow
    def test_only_an_improvement_or_a_rerun_is_charged(self, paid):
        services, http = paid
        dataset_id = upload(http, rows(42), rows(9, start=42))
        refused = start(http, dataset_id, max_price_usd="0.0001")
        assert_canonical_error(refused, 409, "price_changed")
        job = start(http, dataset_id).json()
        price = float(job["price_usd"])
        assert 0 < price < 1
        assert (job["charge"], float(balance(http)["reserved_usd"])) == ("reserved", price)
        run(services, job)
        assert get(http, job)["charge"] == "released"
        assert float(balance(http)["available_usd"]) == 1
        again = start(http, dataset_id).json()
        run(services, again)
        assert get(http, again)["charge"] == "charged"
        assert float(balance(http)["available_usd"]) == pytest.approx(1 - price)
        stopped = start(http, dataset_id).json()
        assert http.post(f"/v1/prompt-tuning/jobs/{stopped['id']}/cancel").json()["charge"] == (
            "released"
        )
        assert float(balance(http)["reserved_usd"]) == 0


def balance(http):
    return http.get("/v1/account").json()["wallet"]


@pytest.mark.slow
def test_a_killed_worker_is_resumed_where_it_was_and_charged_once(tmp_path):
    with tuned_server(tmp_path, price_in="1") as (services, http, remote):
        dataset_id = upload(http, rows(45), rows(24, start=45))
        whole, job = (
            start(http, dataset_id).json(),
            start(http, dataset_id, effort="thorough").json(),
        )
        run(services, whole)
        for phase in ("measuring_noise", "searching"):
            n_asked = len(remote.asked)
            worker = start_job_worker(tmp_path)
            try:
                wait_until(lambda n_asked=n_asked: len(remote.asked) > n_asked + 5, 30)
                if phase == "searching":
                    wait_until(lambda: (get(http, job)["progress"] or {}).get("round"), 60)
            finally:
                kill(worker)
        with open_worker(services.settings):
            wait_until(lambda: get(http, job)["status"] == "succeeded", 60)
        ended, alone = get(http, job), get(http, whole)
        assert ended["result"]["rounds"][:2] == alone["result"]["rounds"][:2]
        assert ended["charge"] == "charged"


def test_cancelling_a_running_one_stops_it_soon(tmp_path):
    with tuned_server(tmp_path) as (services, http, remote):
        remote.fault = "hangs"
        job = start(http, upload(http, rows(60), rows(9, start=60))).json()
        with open_worker(services.settings):
            wait_until(lambda: len(remote.asked) > 0, 30)
            asked = http.post(f"/v1/prompt-tuning/jobs/{job['id']}/cancel").json()
            assert asked["status"] == "cancelling"
            wait_until(lambda: get(http, job)["status"] == "cancelled", 10)
            remote.may_answer.set()
