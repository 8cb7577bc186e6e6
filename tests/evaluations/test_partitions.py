"""Large evaluations in partitions: which process takes which, and those that stop or fail."""

from __future__ import annotations

import asyncio
import io
import json

import pyarrow.parquet as pq
import pytest

from steelyard import errors
from steelyard.app.foundation import open_frames
from steelyard.datasets.service import DatasetService
from steelyard.evaluations.figures import EvaluationFigures
from steelyard.evaluations.models import EvaluatedModels
from steelyard.evaluations.queries_wire import ExportRecordsQuery, RecordsQuery
from steelyard.evaluations.run import EvaluationRuns
from steelyard.evaluations.service import EvaluationService
from steelyard.jobs.runtime import JobRuntime
from steelyard.jobs.work import LostRunError
from steelyard.storage import open_state
from support.datasets.dataset_rows import make_rows
from support.models.evaluated import (
    ME,
    act,
    get,
    make_dataset,
    open_home,
    submit,
    wait_for_evaluation,
)


@pytest.fixture
def services(tmp_path):
    with open_home(tmp_path) as services:
        yield services


class Process:
    """A process that takes evaluations of a home."""

    def __init__(self, services, state):
        self.state, self.services = state, services
        store, models = (
            open_frames(services.settings, "evaluations"),
            EvaluatedModels(services.models),
        )
        self.runs = EvaluationRuns(state, store, services.get(DatasetService), models, commit_s=0.0)
        self.runtime = JobRuntime(state, [self.runs])

    def take(self):
        """The run of its claim; ``None`` where there is nothing for it."""
        claimed = self.state.write_now(self.runtime.claim)
        return claimed and self.runs.open(claimed[1])

    def work(self):
        """Do all that it may."""
        while (run := self.take()) is not None:
            while run.advance():
                pass
            run.close()


@pytest.fixture
def split(services, tmp_path):
    """An evaluation of 25 rows in partitions of ten, and two processes."""
    services.get(EvaluationService).partition_rows = 10
    (evaluation,) = submit(services, make_dataset(services, make_rows(25)).id).data
    other = open_state(f"sqlite:///{tmp_path / 'state.sqlite'}")
    yield evaluation.id, Process(services, services.state), Process(services, other)
    other.close()


def test_partitions_have_the_figures_of_the_whole(services, split):
    evaluation_id, here, there = split
    first, second = here.take(), there.take()
    assert [run.job.partition for run in (first, second)] == [0, 1]
    while second.advance():
        pass
    assert get(services, evaluation_id).completed_rows == 10
    last = there.take()
    assert last.job.partition == 2
    while last.advance():
        pass
    # The figures wait for all partitions, and are made once.
    assert there.take() is None
    while first.advance():
        pass
    with pytest.raises(LostRunError):
        first.advance()
    measuring = there.take()
    assert (measuring.job.partition, here.take()) == (None, None)
    assert not measuring.advance()
    ended = get(services, evaluation_id)
    assert (ended.status, ended.completed_rows, ended.metrics.n) == ("succeeded", 25, 50)
    services.get(EvaluationService).partition_rows = 25
    whole = submit(services, make_dataset(services, make_rows(25)).id).data[0]
    Process(services, services.state).work()
    details = [
        json.loads(bytes(asyncio.run(services.get(EvaluationFigures).detail(ME, one))))
        for one in (evaluation_id, whole.id)
    ]
    for detail in details:
        assert detail.pop("latency_ms")["n"] > 0
        del detail["metrics"]["latency_ms"]
    assert details[0] == details[1]
    pages = [
        asyncio.run(services.get(EvaluationFigures).records(ME, one, RecordsQuery(limit=100))).data
        for one in (evaluation_id, whole.id)
    ]
    assert pages[0] == pages[1]


def test_of_more_than_are_held_in_memory_a_sample_is_shown_and_all_are_exported(
    services, split, monkeypatch
):
    evaluation_id, here, _ = split
    here.work()
    figures = services.get(EvaluationFigures)

    def exported(**query):
        asked = ExportRecordsQuery(format="parquet", **query)
        pieces = asyncio.run(figures.export(ME, evaluation_id, asked))
        return pq.read_table(io.BytesIO(b"".join(pieces))).to_pylist()

    whole = exported(wrong=True)
    monkeypatch.setattr("steelyard.evaluations.figures.MAX_MEASURED", 20)
    figures._load.cache_clear()
    page = asyncio.run(figures.records(ME, evaluation_id, RecordsQuery(limit=100)))
    assert 0 < page.total < 50
    assert exported(wrong=True) == whole
    assert len(exported()) == 50
    with pytest.raises(errors.InvalidRequestError, match="20 decisions"):
        exported(order="loss")


def test_a_partition_that_cannot_be_done_fails_the_evaluation_and_a_retry_keeps_the_others(
    services, split
):
    evaluation_id, here, there = split
    failing, other = here.take(), there.take()
    assert other.advance()  # all of its rows, but they are not one file yet
    here.runs.fail(failing.job, errors.EngineUnavailableError("The engine is gone."))
    failed = get(services, evaluation_id)
    assert (failed.status, failed.error.message) == ("failed", "The engine is gone.")
    with pytest.raises(LostRunError):
        other.advance()
    assert here.take() is there.take() is None
    assert act(services, "retry", evaluation_id).status == "queued"
    there.work()
    ended = get(services, evaluation_id)
    assert (ended.status, ended.completed_rows, ended.generation) == ("succeeded", 25, 2)


def test_partitions_that_are_to_stop_are_let_go_of_one_by_one(services, split):
    evaluation_id, here, there = split
    first, second = here.take(), there.take()
    assert first.advance()
    assert act(services, "cancel", evaluation_id).status == "cancelling"
    assert here.take() is None
    here.runs.cancel(first.job)
    assert get(services, evaluation_id).status == "cancelling"
    there.runs.cancel(second.job)
    stopped = get(services, evaluation_id)
    assert (stopped.status, stopped.completed_rows) == ("cancelled", 10)
    act(services, "retry", evaluation_id)
    here.work()
    assert get(services, evaluation_id).status == "succeeded"


def test_partitions_of_a_process_that_died_stop_too(services, split):
    evaluation_id, here, there = split
    here.take()
    there.take()
    there.state.close()
    act(services, "cancel", evaluation_id)
    with here.runtime:
        wait_for_evaluation(services, evaluation_id, lambda one: one.status == "cancelled")
