"""A reader labels rows, is tuned, and is the base of a family, as a judge is."""

from __future__ import annotations

import time
from decimal import Decimal

import httpx
import pytest

from steelyard.app.foundation import open_frames
from steelyard.app.job_runtime import open_worker
from steelyard.client import Client, ClientOptions
from steelyard.datasets.service import DatasetService
from steelyard.evaluations.models import EvaluatedModels
from steelyard.growth.service import Growths
from steelyard.labeling.run import LabelingRuns
from steelyard.operations.idempotency import SECONDS_A_DAY
from steelyard.prompt_tuning.run import PromptTuningRuns
from steelyard.serving.connected.declared import write_models
from steelyard.serving.reader.declaring import reader_model
from support.datasets.dataset_rows import to_ndjson
from support.models.entailment_models import write_encoder
from support.models.evaluated import claim
from support.servers.live_server import live_server

NDJSON = {"Content-Type": "application/x-ndjson"}
HAPPY = {"id": "happy", "kind": "binary", "question": "Is the customer happy?"}


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    folder = write_encoder(tmp_path_factory.mktemp("nli"))
    write_models(home, {"nli": reader_model(folder, price_in="5")})
    with (
        live_server(home=str(home), jobs="off", dataset_min_rows=1) as server,
        httpx.Client(base_url=server.url, timeout=60) as http,
    ):
        yield server.services, http


def contexts(n):
    moods = ("happy", "angry")
    return [(f"The customer is {moods[i % 2]}. It was parcel {i}.", i % 2) for i in range(n)]


def end(services, work, job):
    running = claim(services.state, work, job["id"])
    while running.advance():
        pass


def test_it_labels_rows_and_its_tokens_are_priced(served):
    services, http = served
    teachers = http.get("/v1/labeling/teachers").json()
    assert "nli" in [teacher["id"] for teacher in teachers["data"]]
    source = http.post(
        "/v1/labeling/sources?name=mails",
        content=to_ndjson([{"context": text} for text, _ in contexts(6)]),
        headers=NDJSON,
    ).json()
    body = {"source_id": source["id"], "decisions": [HAPPY], "teacher_models": ["nli"]}
    job = http.post("/v1/labeling/jobs", json=body).json()
    frames = open_frames(services.settings, "labeling")
    end(services, LabelingRuns(services.state, frames, EvaluatedModels(services.models)), job)
    path = f"/v1/labeling/jobs/{job['id']}"
    ended = http.get(path).json()
    assert (ended["status"], ended["valid_rows"]) == ("review_ready", 6)
    labels = [row["targets"]["happy"] for row in http.get(f"{path}/results").json()["data"]]
    tops = [max(label, key=label.get) for label in labels]
    assert tops == [("yes", "no")[side] for _, side in contexts(6)]
    assert Decimal(ended["price_usd"]) > 0


@pytest.fixture(scope="module")
def dataset_id(served):
    rows = [
        {"context": text, "decisions": [HAPPY], "targets": {"happy": ("yes", "no")[side]}}
        for text, side in contexts(104)
    ]
    files = {
        side: (f"{side}.jsonl", to_ndjson(part), NDJSON["Content-Type"])
        for side, part in {"training": rows[:62], "evaluation": rows[62:]}.items()
    }
    made = served[1].post("/v1/datasets", files=files, data={"name": "moods"})
    assert made.status_code == 200, made.text
    return made.json()["id"]


@pytest.mark.slow
def test_a_family_begins_with_its_evidence(served, dataset_id):
    services, http = served
    with Client(ClientOptions(url=str(http.base_url), max_retries=0)) as client:
        with open_worker(services.settings):
            job = client.families.create("moods", dataset_id, start_from="nli")
            ended = client.jobs.wait(job, poll_s=0.1, progress=False)
        assert (ended.status, ended.outcome) == ("succeeded", "joined"), ended
        assert ended.dataset_evaluation.metrics.accuracy == 1
        client.families.wait("moods", ended, poll_s=0.1, progress=False)
        for context, top in (("The customer is furious.", "no"), ("It was pleased.", "yes")):
            answer = client.decide(context, [HAPPY], model="moods", fallback="none")
            assert answer.decisions["happy"].top == top


def test_its_sure_answers_become_rows_of_a_decision_that_grows(served, monkeypatch):
    services, http = served
    with Client(ClientOptions(url=str(http.base_url), max_retries=0)) as client:
        rows = [
            {"context": text, "decisions": [HAPPY], "targets": {"happy": ("yes", "no")[side]}}
            for text, side in contexts(8)
        ]
        named, dataset = client.named_decisions, client.datasets.create("grown", examples=rows)
        named.create("grown", [HAPPY], model="nli")
        named.change("grown", dataset_id=dataset.id)
        asked = {"The customer is pleased.": "yes", "The customer is furious.": "no"}
        answers = [client.decision("grown").decide(text) for text in asked]
        least = min(answer.decisions["happy"].p_top for answer in answers)
        unsure = client.decision("grown").decide("It was a parcel.")
        assert unsure.decisions["happy"].p_top < least
        named.grow("grown", "rows", judge_rows=least)
        monkeypatch.setattr(services.get(Growths), "_now", lambda: time.time() + 2 * SECONDS_A_DAY)
        named.turn_growth("grown")
        added = [
            row
            for row in client.datasets.rows(dataset.id, partition="training", limit=50).data
            if (row.metadata or {}).get("who") == "nli"
        ]
        assert {row.context: max(row.targets["happy"]) for row in added} == asked
        assert client.datasets.get(dataset.id).rows == len(rows) + len(asked)


def test_its_question_is_tuned(served, dataset_id):
    services, http = served
    body = {"dataset_id": dataset_id, "model": "nli"}
    job = http.post("/v1/prompt-tuning/jobs", json=body)
    assert job.status_code == 200, job.text
    work = PromptTuningRuns(
        services.state, services.get(DatasetService), EvaluatedModels(services.models)
    )
    end(services, work, job.json())
    ended = http.get(f"/v1/prompt-tuning/jobs/{job.json()['id']}").json()
    assert ended["status"] == "succeeded"
    assert ended["result"]["verdict"] == "no_improvement"
    assert ended["result"]["rounds"][0]["best_loss"] < 0.1
