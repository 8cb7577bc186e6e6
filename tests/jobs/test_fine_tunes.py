"""Fine-tunes from the queue to their end: followed, stopped at once, taken up after kills."""

from __future__ import annotations

import asyncio
import functools
import os
import signal
from contextlib import contextmanager, suppress

import pytest

from jobs.workers import is_gone
from steelyard import errors
from steelyard.accounts.store_owner import sweep_owned
from steelyard.app.job_runtime import open_worker
from steelyard.datasets.service import DatasetService
from steelyard.evaluations.figures import EvaluationFigures
from steelyard.evaluations.queries_wire import EvaluationsQuery
from steelyard.evaluations.service import EvaluationService
from steelyard.families import fine_tune_store as rows_of_jobs
from steelyard.families.fine_tune_wire import JobRecordsQuery, JobsQuery
from steelyard.families.fine_tuning.run import FineTuneRun, FineTuneRuns
from steelyard.families.fine_tuning.service import FineTuneJobs
from steelyard.families.service import FamilyService
from steelyard.jobs.runtime import JobRuntime
from steelyard.jobs.work import LostRunError
from steelyard.operations.write import Write
from steelyard.storage.artifacts import ArtifactStore
from steelyard.trainer.task import TaskBase
from support.datasets.dataset_rows import make_rows
from support.families.fine_tuned import (
    MINIMUM,
    ask_stand_in,
    cancel_job,
    check_charged_once,
    continue_,
    event_types,
    follower_of,
    get_job,
    grow,
    make_tuning_dataset,
    models_of,
    stand_in,
    start,
    starts,
    wait_for_job,
)
from support.models.evaluated import ME, claim, open_home, settings_of
from support.waiting import check_that_it_stays, wait_until

PAID = {"fine_tune_minimum": MINIMUM}


@contextmanager
def working(home, **given):
    """A worker in this process, and its runs of fine-tunes."""
    with open_worker(settings_of(home, **given)) as runtime:
        runs = runtime.work["fine_tune"]
        assert isinstance(runs, FineTuneRuns)
        yield runs


def records_page(services, job_id, group="adapted", offset=0, limit=15):
    query = JobRecordsQuery(group=group, offset=offset, limit=limit)
    return asyncio.run(services.get(FineTuneJobs).records(ME, job_id, query))


@pytest.mark.slow
def test_a_fine_tune_joins_and_tells_how_it_went(tmp_path, monkeypatch):
    stand_in(monkeypatch, tmp_path, pause_s=0.2)  # of ten steps: it runs while it is looked at
    with open_home(tmp_path, **PAID) as services:
        dataset = make_tuning_dataset(services)
        job = start(services, dataset.id)
        assert (job.status, job.charge, job.progress) == ("queued", "reserved", None)
        used_at = asyncio.run(services.get(DatasetService).get(ME, dataset.id)).used_at
        with working(tmp_path, **PAID):
            running = wait_for_job(services, job.id, lambda job: job.progress is not None)
            assert running.status == "running"
            assert running.progress.steps == 10
            with pytest.raises(errors.VersionInUseError):
                asyncio.run(services.get(DatasetService).delete(Write(ME), dataset.id))
            ended = wait_for_job(services, job.id)
        assert (ended.status, ended.outcome, ended.error) == ("succeeded", "joined", None)
        assert ended.output_model == f"ft-{job.id}"
        assert ended.progress is None
        assert [point.loss for point in ended.curve] == [0.5]
        types = event_types(services, job.id)
        assert types[:3] == ["queued", "started", "tokens_counted"]
        assert set(types[3:-5]) == {"step"}
        assert types[-5:] == ["trained", "scoring", "gate_passed", "joined", "succeeded"]
        assert 3 <= types.count("step") <= 19
        (model,) = models_of(services)
        assert (model.ref, model.adapter) == ("router@1", ended.output_model)
        assert len(starts(tmp_path)) == 1
        assert not (tmp_path / "fine_tunes" / job.id).exists()
        assert asyncio.run(services.get(DatasetService).get(ME, dataset.id)).used_at == used_at
        check_charged_once(services, ended)


def test_its_own_held_out_rows_are_an_evaluation(tmp_path, monkeypatch):
    stand_in(monkeypatch, tmp_path)
    with open_home(tmp_path) as services:
        dataset = make_tuning_dataset(services)
        job = start(services, dataset.id)
        with working(tmp_path):
            ended = wait_for_job(services, job.id)
        evaluation = ended.dataset_evaluation
        assert evaluation.training_job_id == job.id
        assert (evaluation.model_id, evaluation.model_label) == (ended.output_model, "router@1")
        assert (evaluation.evaluation_rows, evaluation.decisions) == (20, 40)
        assert evaluation.metrics.n == 40
        listed = asyncio.run(
            services.get(EvaluationService).page(
                ME, EvaluationsQuery(dataset_id=dataset.id, limit=10)
            )
        )
        assert [one.id for one in listed.data] == [evaluation.id]
        detail = asyncio.run(services.get(EvaluationFigures).detail(ME, evaluation.id))
        assert b"context length" in bytes(detail)


def test_records_are_paged_by_group(tmp_path, monkeypatch):
    stand_in(monkeypatch, tmp_path)
    with open_home(tmp_path) as services:
        dataset = make_tuning_dataset(services)
        job = start(services, dataset.id)

        page = functools.partial(records_page, services, job.id)

        assert (page().groups, page().total) == ([], 0)
        with working(tmp_path):
            wait_for_job(services, job.id)
        first, last = page(), page("base", 30)
        assert first.groups == ["adapted", "base"]
        assert (first.total, len(first.data), first.has_more) == (40, 15, True)
        assert (len(last.data), last.has_more, last.group) == (10, False, "base")
        assert [record.decision_id for record in first.data[:2]] == ["route", "refund"]
        assert first.data[0].probabilities == pytest.approx(
            {"billing": 1 / 3, "support": 1 / 3, "other": 1 / 3}
        )
        with pytest.raises(errors.InvalidRequestError, match="adapted, base"):
            page("parent")
        asyncio.run(services.get(DatasetService).delete(Write(ME), dataset.id))
        with pytest.raises(errors.DatasetDeletedError):
            page()
        assert get_job(services, job.id).rows_deleted
        listed = asyncio.run(services.get(FineTuneJobs).page(ME, JobsQuery(limit=10)))
        assert [one.rows_deleted for one in listed.data] == [True]


def test_without_evaluation_rows_there_are_no_records(tmp_path, monkeypatch):
    stand_in(monkeypatch, tmp_path, passed=False)
    with open_home(tmp_path) as services, working(tmp_path):
        job = start(services, make_tuning_dataset(services, evaluation=[]).id)
        ended = wait_for_job(services, job.id)
        assert (ended.outcome, ended.split.validation_rows) == ("gate_failed", 0)
        for group in ("adapted", "base"):
            page = records_page(services, job.id, group, 3)
            assert (page.group, page.groups, page.data) == (group, [], [])
            assert (page.total, page.offset, page.has_more) == (0, 3, False)


def test_a_gate_that_does_not_pass_makes_no_model_and_is_charged(tmp_path, monkeypatch):
    stand_in(monkeypatch, tmp_path, passed=False)
    with open_home(tmp_path, **PAID) as services:
        job = start(services, make_tuning_dataset(services).id)
        with working(tmp_path, **PAID):
            ended = wait_for_job(services, job.id)
        assert (ended.status, ended.outcome) == ("succeeded", "gate_failed")
        assert ended.reason == "The new rows became no better: as asked."
        assert ended.metrics.gate.reasons == ["no_gain_on_new_rows"]
        assert models_of(services) == []
        assert event_types(services, job.id)[-2:] == ["gate_failed", "succeeded"]
        check_charged_once(services, ended)
        # What was refused is untrained: the next fine-tune takes every row.
        grow(services, ended.dataset_id, make_rows(3, 500), make_rows(2, 3000))
        again = continue_(services)
        with working(tmp_path, **PAID):
            again = wait_for_job(services, again.id)
        n_rows = ended.split.train_rows + 3
        assert (again.split.train_rows, again.lineage.new_training) == (n_rows, n_rows)
        assert again.lineage.earlier_evaluation == 0


@pytest.mark.parametrize("passed", [True, False])
def test_words_answer_first_and_the_rest_follows_for_one_fee(tmp_path, monkeypatch, passed):
    stand_in(monkeypatch, tmp_path)
    with open_home(tmp_path, **PAID) as services:
        dataset = make_tuning_dataset(services)
        first = start(services, dataset.id, hyperparameters={"first": "words", "heads": "ladder"})
        assert (first.price_usd, first.charge) == ("0.005", "reserved")
        with working(tmp_path, **PAID):
            words = wait_for_job(services, first.id)
            ask_stand_in(tmp_path, passed=passed)
            second = follower_of(services, first)
            ended = wait_for_job(services, second.id)
        assert (words.outcome, words.price_usd, words.charge) == ("joined", "0", "free")
        assert ended.outcome == ("joined" if passed else "gate_failed")
        # Both are trained and judged on the same rows, the second from the base model.
        assert (ended.split, ended.lineage) == (words.split, words.lineage)
        assert (ended.parent, ended.metrics.gate.against) == (words.output_model, "parent")
        assert ended.hyperparameters.heads == "ladder"
        refs = [model.ref for model in models_of(services)]
        assert refs == ["router@1", "router@2"][: 1 + passed]
        page = records_page(services, second.id, "parent", limit=500)
        assert page.total == 40
        check_charged_once(services, ended)


@pytest.mark.slow
def test_a_continuation_is_trained_from_the_latest_on_new_rows(tmp_path, monkeypatch):
    stand_in(monkeypatch, tmp_path)
    with open_home(tmp_path) as services, working(tmp_path):
        dataset = make_tuning_dataset(services)
        first = wait_for_job(services, start(services, dataset.id).id)
        grow(services, dataset.id, make_rows(10, 500), make_rows(15, 3000))
        second = continue_(services)
        ended = wait_for_job(services, second.id)
        assert ended.parent == first.output_model
        assert ended.lineage.new_training == ended.lineage.earlier_training == 10
        assert (ended.lineage.new_evaluation, ended.lineage.earlier_evaluation) == (15, 20)
        page = records_page(services, second.id, "parent", limit=500)
        assert (page.groups, page.total) == (["adapted", "base", "parent"], 70)
        assert [model.ref for model in models_of(services)] == ["router@1", "router@2"]
        assert ended.metrics.gate.against == "parent"


def test_cancelling_a_queued_one_ends_it_at_once(tmp_path, monkeypatch):
    stand_in(monkeypatch, tmp_path)
    with open_home(tmp_path, **PAID) as services:
        job = start(services, make_tuning_dataset(services).id)
        cancelled = cancel_job(services, job.id)
        assert (cancelled.status, cancelled.outcome) == ("cancelled", "cancelled")
        check_charged_once(services, cancelled)
        with working(tmp_path, **PAID):
            check_that_it_stays(lambda: starts(tmp_path) == [], 0.5)
        assert cancel_job(services, job.id) == cancelled
        with pytest.raises(errors.NotFoundError):
            cancel_job(services, "ftj_nothing")


@pytest.mark.slow
def test_cancelling_a_running_one_kills_its_trainer(tmp_path, monkeypatch):
    stand_in(monkeypatch, tmp_path, pause_s=0.5)
    with open_home(tmp_path, **PAID) as services, working(tmp_path, **PAID):
        job = start(services, make_tuning_dataset(services).id)
        wait_for_job(services, job.id, lambda job: job.progress is not None)
        (pid,) = starts(tmp_path)
        assert cancel_job(services, job.id).status == "cancelling"
        ended = wait_for_job(services, job.id)
        assert (ended.status, ended.outcome) == ("cancelled", "cancelled")
        assert is_gone(pid)
        assert event_types(services, job.id)[-2:] == ["cancelling", "cancelled"]
        check_charged_once(services, ended)
        # The next one runs.
        ask_stand_in(tmp_path)
        again = start(services, make_tuning_dataset(services, make_rows(30)).id, "other")
        assert wait_for_job(services, again.id).outcome == "joined"
        assert not (tmp_path / "fine_tunes" / job.id).exists()


def test_a_job_without_a_living_worker_is_cancelled_at_once(tmp_path, monkeypatch):
    stand_in(monkeypatch, tmp_path, pause_s=0.5)
    with open_home(tmp_path) as services:
        job = start(services, make_tuning_dataset(services).id)
        with working(tmp_path):
            wait_for_job(services, job.id, lambda job: job.progress is not None)
        (pid,) = starts(tmp_path)
        wait_until(lambda: is_gone(pid))
        assert get_job(services, job.id).status == "running"
        assert cancel_job(services, job.id).status == "cancelled"


def test_a_cancellation_as_it_is_taken_up_is_not_lost(tmp_path, monkeypatch):
    stand_in(monkeypatch, tmp_path)
    with open_home(tmp_path) as services:
        job = start(services, make_tuning_dataset(services).id)
        runs = runs_of(services, tmp_path)
        open_run = runs.open

        def cancelled_at_once(pending):
            cancel_job(services, job.id)
            return open_run(pending)

        monkeypatch.setattr(runs, "open", cancelled_at_once)
        with JobRuntime(services.state, [runs]):
            assert wait_for_job(services, job.id).status == "cancelled"
        assert all(is_gone(pid) for pid in starts(tmp_path))


def test_a_failure_says_why_and_costs_nothing(tmp_path, monkeypatch):
    stand_in(monkeypatch, tmp_path, fails="not_measurable")
    with open_home(tmp_path, **PAID) as services, working(tmp_path, **PAID):
        job = start(services, make_tuning_dataset(services).id)
        ended = wait_for_job(services, job.id)
        assert (ended.status, ended.outcome) == ("failed", "failed")
        assert (ended.error.code, ended.error.message) == ("not_measurable", "As asked.")
        assert len(starts(tmp_path)) == 1
        check_charged_once(services, ended)


def test_a_failure_that_passes_is_tried_again(tmp_path, monkeypatch):
    stand_in(monkeypatch, tmp_path, fails="storage_unavailable", n_fails=2)
    with open_home(tmp_path) as services, working(tmp_path):
        job = start(services, make_tuning_dataset(services).id)
        assert wait_for_job(services, job.id).outcome == "joined"
        assert len(starts(tmp_path)) == 3


@pytest.mark.slow
def test_a_trainer_that_dies_at_the_same_place_again_and_again_has_failed(tmp_path, monkeypatch):
    monkeypatch.setattr("steelyard.families.fine_tuning.run._RESTART_S", 0.0)
    stand_in(monkeypatch, tmp_path, dies_in="heads")
    with open_home(tmp_path, **PAID) as services, working(tmp_path, **PAID):
        job = start(services, make_tuning_dataset(services).id)
        ended = wait_for_job(services, job.id)
        assert (ended.status, ended.error.code) == ("failed", "internal_error")
        assert "memory" in ended.error.message
        assert len(starts(tmp_path)) == 5
        check_charged_once(services, ended)


@pytest.mark.slow
def test_a_killed_trainer_is_started_again_where_it_was(tmp_path, monkeypatch):
    stand_in(monkeypatch, tmp_path, pause_s=0.1)
    with open_home(tmp_path) as services, working(tmp_path):
        job = start(services, make_tuning_dataset(services).id)
        for phase in ("features", "heads"):
            wait_for_job(
                services,
                job.id,
                lambda job, phase=phase: job.progress and job.progress.phase == phase,
            )
            n_started = len(starts(tmp_path))
            os.kill(starts(tmp_path)[-1], signal.SIGKILL)
            wait_until(lambda n=n_started: len(starts(tmp_path)) > n)
        ask_stand_in(tmp_path)
        assert wait_for_job(services, job.id).outcome == "joined"
        types = event_types(services, job.id)
        assert all(types.count(once) == 1 for once in ("started", "trained", "scoring", "joined"))
        told = [
            int(event.message.split()[0])
            for event in asyncio.run(services.get(FineTuneJobs).events(ME, job.id)).data
            if event.type == "step"
        ]
        assert told == sorted(set(told))


class UnsteadyKeeper:
    """Of three writes one fails and one is made and its answer lost."""

    def __init__(self, lineages):
        self._lineages = lineages
        self.n_asked = 0

    def __getattr__(self, name):
        return getattr(self._lineages, name)

    def apply_now(self, *given, **options):
        self.n_asked += 1
        if self.n_asked % 3 == 1:
            raise errors.StorageUnavailableError("The disk is full.")
        lines = self._lineages.apply_now(*given, **options)
        if self.n_asked % 3 == 2:
            raise errors.StorageUnavailableError("The answer was lost.")
        return lines


@pytest.mark.slow
def test_a_failed_write_is_reported_once_all_the_same(tmp_path, monkeypatch):
    stand_in(monkeypatch, tmp_path)
    told = []
    with open_home(tmp_path) as services:
        dataset = make_tuning_dataset(services)
        for family in ("router", "other"):
            job = start(services, dataset.id, family)
            runs = runs_of(services, tmp_path)
            run = claim(services.state, runs, job.id)
            lineages = runs.lineages
            runs.lineages = unsteady = UnsteadyKeeper(lineages)
            if family == "router":
                unsteady.apply_now = lineages.apply_now
            is_done = False
            while not is_done:
                with suppress(errors.StorageUnavailableError):
                    is_done = not run.advance()
            assert get_job(services, job.id).outcome == "joined"
            events = asyncio.run(services.get(FineTuneJobs).events(ME, job.id)).data
            told.append([(event.type, event.message) for event in events[1:-2]])
        assert unsteady.n_asked > len(told[0])
    assert told[1] == told[0]
    # A trainer works on while what it reports cannot be written.
    assert len(starts(tmp_path)) == 2


@pytest.mark.slow
def test_a_folder_that_is_gone_is_written_anew(tmp_path, monkeypatch):
    stand_in(monkeypatch, tmp_path, pause_s=0.3)
    with open_home(tmp_path) as services:
        job = start(services, make_tuning_dataset(services).id)
        with working(tmp_path):
            wait_for_job(services, job.id, lambda job: job.progress is not None)
        folder = tmp_path / "fine_tunes" / job.id
        folder.rename(tmp_path / "elsewhere")
        ask_stand_in(tmp_path)
        with working(tmp_path):
            assert wait_for_job(services, job.id).outcome == "joined"


def test_a_sweep_removes_unreferenced_files(tmp_path, monkeypatch):
    monkeypatch.setitem(sweep_owned.__kwdefaults__, "older_than_s", 0.0)
    stand_in(monkeypatch, tmp_path)
    with open_home(tmp_path) as services, working(tmp_path) as runs:
        job = start(services, make_tuning_dataset(services).id)
        wait_for_job(services, job.id)
        (live,) = services.state.read_now(rows_of_jobs.live_artifacts)
        folder = tmp_path / "fine_tunes" / "ftj_orphan"
        folder.mkdir(parents=True)
        (folder / "manifest.json").write_bytes(b'{"files": {}}')
        orphan = runs.artifacts.put(folder)
        record = runs.records.put(b"records", ".parquet")
        runs.sweep()
        assert not folder.exists()
        assert (runs.artifacts.holds(orphan), runs.artifacts.holds(live)) == (False, True)
        assert f"{record}.parquet" not in runs.records.names()
        assert records_page(services, job.id, "base").data


@pytest.mark.slow
def test_a_server_sweeps_leftovers_of_jobs_beside_a_working_worker(tmp_path, monkeypatch):
    stand_in(monkeypatch, tmp_path)
    with open_home(tmp_path) as services, working(tmp_path) as runs:
        gone, kept = (
            make_tuning_dataset(services, make_rows(30), make_rows(20, start)).id
            for start in (1000, 2000)
        )
        ended = [start(services, gone, "a"), start(services, kept, "b")]
        for job in ended:
            wait_for_job(services, job.id)
        asyncio.run(services.get(DatasetService).delete(Write(ME), gone))
        ask_stand_in(tmp_path, pause_s=0.5)
        under_way = start(services, kept, "c")
        wait_for_job(services, under_way.id, lambda job: job.progress is not None)
        folders = tmp_path / "fine_tunes"
        # As a worker leaves it that is killed when its fine-tune has just ended.
        (folders / ended[0].id).mkdir()
        (folders / ended[0].id / "rows.jsonl").write_bytes(b"{}")
        written = set(runs.records.names())
        live = services.state.read_now(rows_of_jobs.live_records)
        assert len(written) == 2
        monkeypatch.setitem(sweep_owned.__kwdefaults__, "older_than_s", 0.0)
        with open_home(tmp_path):
            wait_until(lambda: set(runs.records.names()) != written)
        assert runs.records.names() == [f"{sha256}.parquet" for sha256 in live]
        assert [folder.name for folder in folders.iterdir()] == [under_way.id]
        assert get_job(services, under_way.id).status == "running"
        for sha256 in services.state.read_now(rows_of_jobs.live_artifacts):
            assert runs.artifacts.holds(sha256)


def test_one_that_ends_too_often_without_a_result_has_failed(tmp_path, monkeypatch):
    with open_home(tmp_path, **PAID) as services:
        job = start(services, make_tuning_dataset(services).id)
        runs = runs_of(services, tmp_path)
        attempts = []

        def forget(run):
            attempts.append(run.job.attempt)
            raise LostRunError

        monkeypatch.setattr(FineTuneRun, "advance", forget)
        with JobRuntime(services.state, [runs]):
            ended = wait_for_job(services, job.id)
        assert attempts == [1, 2, 3, 4, 5]
        assert (ended.status, ended.error.code) == ("failed", "internal_error")
        check_charged_once(services, ended)


def test_a_job_of_another_living_process_is_left_to_it(tmp_path):
    with open_home(tmp_path) as services:
        job = start(services, make_tuning_dataset(services).id)
        mine = runs_of(services, tmp_path)
        run = claim(services.state, mine, job.id)
        with open_home(tmp_path) as others:
            theirs = runs_of(others, tmp_path)
            with JobRuntime(others.state, [theirs]):
                check_that_it_stays(lambda: get_job(services, job.id).status == "running", 0.2)
                assert cancel_job(others, job.id).status == "cancelling"
                check_that_it_stays(lambda: get_job(services, job.id).status == "cancelling", 0.6)
        with JobRuntime(services.state, [mine]):
            assert wait_for_job(services, job.id).status == "cancelled"
        with pytest.raises(LostRunError):
            run.advance()
        mine.fail(run.job, errors.StorageUnavailableError("late"))
        assert get_job(services, job.id).status == "cancelled"


def runs_of(services, home):
    """The runs of fine-tunes, without a job runtime."""
    return FineTuneRuns(
        services.state,
        services.get(FamilyService)._lineages,
        services.get(FamilyService)._plans,
        services.get(DatasetService),
        ArtifactStore(home / "frames" / "models", home / "models"),
        services.get(FineTuneJobs)._records,
        folder=home / "fine_tunes",
        bases=lambda name: TaskBase(name=name, engine="hashing", double="hashing"),
    )


def test_jobs_are_paged_by_status_and_dataset(tmp_path, monkeypatch):
    stand_in(monkeypatch, tmp_path)
    with open_home(tmp_path) as services:
        first, second = (make_tuning_dataset(services, make_rows(n)) for n in (30, 40))
        jobs = [start(services, first.id, "a").id, start(services, second.id, "b").id]
        cancel_job(services, jobs[0])

        def page(**given):
            given = {"limit": 10, "cursor": None, **given}
            return asyncio.run(services.get(FineTuneJobs).page(ME, JobsQuery(**given)))

        assert [job.id for job in page().data] == jobs[::-1]
        assert [job.id for job in page(status=["queued"]).data] == jobs[1:]
        assert [job.id for job in page(status=["cancelled", "queued"]).data] == jobs[::-1]
        assert [job.id for job in page(dataset_id=first.id).data] == jobs[:1]
        one = page(limit=1)
        assert one.has_more
        assert [job.id for job in page(limit=1, cursor=one.next_cursor).data] == jobs[:1]
