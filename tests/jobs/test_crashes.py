"""kill -9 of a worker at random moments: evaluations go on, and no kept row is scored again."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest

from jobs.workers import kill, running_worker, start_job_worker, start_worker
from steelyard.app.foundation import open_frames
from steelyard.app.services import ApiServices
from steelyard.datasets.service import DatasetService
from steelyard.evaluations import predictions
from steelyard.evaluations import store as rows
from steelyard.evaluations.prediction_columns import SCHEMA
from steelyard.evaluations.service import EvaluationService
from steelyard.evaluations.wire import EvaluationMetrics
from support.datasets.dataset_rows import make_rows
from support.kills import kills_and_seed
from support.models.evaluated import (
    ME,
    get,
    make_dataset,
    open_home,
    scored_contexts,
    submit,
    wait_for_evaluation,
)
from support.waiting import let_a_moment_pass, wait_until

N_ROWS = 160


def kept_contexts(services: ApiServices, evaluation_id: str, names: dict[str, str]) -> set[str]:
    """Contexts of the rows whose predictions the state names."""
    parts = services.state.read_now(lambda c: rows.parts_of(c, evaluation_id))
    store = open_frames(services.settings, "evaluations")
    hashes = predictions.read_table(store, parts, ["context_sha256"])["context_sha256"]
    return {names[sha256] for sha256 in hashes.to_pylist()}


def unbroken_metrics(home: Path, file: Path, rows_: list[dict[str, object]]):
    with open_home(home) as services, running_worker(home, file):
        (evaluation,) = submit(services, make_dataset(services, rows_).id).data
        return untimed(wait_for_evaluation(services, evaluation.id).metrics)


def untimed(metrics: EvaluationMetrics) -> EvaluationMetrics:
    """The measures without the time of an answer, which is another in each run."""
    return msgspec.structs.replace(metrics, latency_ms=msgspec.UNSET)


def crash_and_resume(home: Path, file: Path, rng: random.Random, n_kills: int):
    """Score a dataset through crashes; gives the evaluation and the rows it scored again."""
    scored_again: list[str] = []
    with open_home(home) as services:
        dataset = make_dataset(services, make_rows(N_ROWS))
        (evaluation,) = submit(services, dataset.id).data
        at = asyncio.run(services.get(DatasetService).dataset_at(ME, dataset.id))
        rows_of = services.get(DatasetService).evaluation_rows
        names = {row.context_sha256: row.context for row in rows_of(at)}
        for _ in range(n_kills):
            worker = start_worker(home, file, pause_s=0.01)
            if rng.random() < 0.8:
                wait_for_evaluation(services, evaluation.id, lambda e: e.status != "queued")
            let_a_moment_pass(rng, 0, 0.5)
            kill(worker)
            if get(services, evaluation.id).status == "succeeded":
                break  # its parts became one file: there is nothing left to do again
            kept = kept_contexts(services, evaluation.id, names)
            n_kept = len(kept)
            before = Counter(scored_contexts(file))
            assert get(services, evaluation.id).completed_rows == n_kept
            with running_worker(home, file, pause_s=0.002):
                wait_for_evaluation(
                    services,
                    evaluation.id,
                    lambda e, n=n_kept: e.completed_rows > n or e.status == "succeeded",
                )
            after = Counter(scored_contexts(file)) - before
            scored_again += [context for context in kept if after[context]]
        with running_worker(home, file):
            ended = wait_for_evaluation(services, evaluation.id)
    return ended, scored_again


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_killed_evaluation_resumes_and_scores_no_kept_row_again(tmp_path):
    expected = unbroken_metrics(tmp_path / "whole", tmp_path / "whole.txt", make_rows(N_ROWS))
    ended, scored_again = crash_and_resume(
        tmp_path / "home", tmp_path / "scored.txt", random.Random(1), n_kills=1
    )
    assert ended.status == "succeeded"
    assert ended.completed_rows == N_ROWS
    assert untimed(ended.metrics) == expected
    assert scored_again == []


def results(services: ApiServices, evaluation_id: str) -> pa.Table:
    """All predictions, without the time that each took."""
    row = services.state.read_now(lambda c: rows.EVALUATIONS.find(c, evaluation_id))
    store = open_frames(services.settings, "evaluations")
    columns = [name for name in SCHEMA.names if name != "latency_ms"]
    return predictions.read_table(store, [row.predictions_sha256], columns)


def begun(services: ApiServices, partition_rows: int) -> str:
    """An evaluation of rows in partitions that has not begun."""
    services.get(EvaluationService).partition_rows = partition_rows
    (evaluation,) = submit(services, make_dataset(services, make_rows(N_ROWS)).id).data
    return evaluation.id


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_two_workers_share_an_evaluation_and_one_that_is_killed_loses_nothing(tmp_path):
    home, files = tmp_path / "home", [tmp_path / "first.txt", tmp_path / "second.txt"]
    with (
        open_home(home) as services,
        running_worker(home, files[0], pause_s=0.04, commit_s=0.3) as killed,
        running_worker(home, files[1], pause_s=0.04, commit_s=0.3),
    ):
        shared = begun(services, 20)
        at = asyncio.run(
            services.get(DatasetService).dataset_at(ME, get(services, shared).dataset_id)
        )
        names = {
            row.context_sha256: row.context
            for row in services.get(DatasetService).evaluation_rows(at)
        }
        wait_until(lambda: all(len(scored_contexts(file)) > 15 for file in files))
        kill(killed)
        kept = kept_contexts(services, shared, names)
        ended = wait_for_evaluation(services, shared)
        scored = Counter(context for file in files for context in scored_contexts(file))
        # The same rows, by the one worker that is left.
        alone = begun(services, 20)
        wait_for_evaluation(services, alone)
        assert results(services, shared).equals(results(services, alone))
    assert (ended.status, ended.completed_rows, ended.generation) == ("succeeded", N_ROWS, 1)
    assert set(scored) == set(names.values())
    # Nothing that was kept is scored again, whoever scored it.
    assert [context for context in kept if scored[context] > 1] == []


@pytest.mark.slow
def test_on_postgresql_a_killed_evaluation_resumes_too(tmp_path, postgres):
    """State and queue are on the server: another process takes the evaluation up."""
    expected = unbroken_metrics(tmp_path / "whole", tmp_path / "whole.txt", make_rows(N_ROWS))
    given = {"state_url": postgres.new_database()}
    with open_home(tmp_path / "home", **given) as services:
        services.get(EvaluationService).partition_rows = 50
        (evaluation,) = submit(services, make_dataset(services, make_rows(N_ROWS)).id).data
        killed = start_job_worker(tmp_path / "home", **given)
        wait_for_evaluation(services, evaluation.id, lambda e: e.status != "queued")
        kill(killed)
        worker = start_job_worker(tmp_path / "home", **given)
        try:
            ended = wait_for_evaluation(services, evaluation.id)
        finally:
            kill(worker)
    assert (ended.status, ended.completed_rows) == ("succeeded", N_ROWS)
    assert untimed(ended.metrics) == expected


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_many_kills_lose_nothing(tmp_path):
    expected = unbroken_metrics(tmp_path / "whole", tmp_path / "whole.txt", make_rows(N_ROWS))
    rng = random.Random(7)
    n_kills = 0
    while n_kills < kills_and_seed()[0]:
        home = tmp_path / f"home-{n_kills}"
        ended, scored_again = crash_and_resume(home, tmp_path / f"{n_kills}.txt", rng, n_kills=4)
        n_kills += 4
        assert (ended.status, untimed(ended.metrics)) == ("succeeded", expected)
        assert scored_again == []
