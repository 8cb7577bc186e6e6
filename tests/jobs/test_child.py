"""The process that a server starts for its jobs."""

from __future__ import annotations

import dataclasses
import os
import signal

import pytest

from jobs.workers import is_gone
from steelyard.jobs.child import WorkerChild
from support.models.evaluated import (
    get,
    make_dataset,
    open_home,
    settings_of,
    submit,
    wait_for_evaluation,
)
from support.waiting import wait_until


@pytest.fixture
def started(monkeypatch):
    """Every process that was started, by the order of starting."""
    found = []
    start = WorkerChild._start

    def note(self):
        start(self)
        found.append(self)

    monkeypatch.setattr(WorkerChild, "_start", note)
    return found


def test_nothing_is_started_before_there_is_work(tmp_path, started):
    with open_home(tmp_path, jobs="on") as services:
        make_dataset(services)
    assert started == []


def test_a_prepared_process_opens_nothing_before_it_is_started(tmp_path, started):
    child = WorkerChild(dataclasses.asdict(settings_of(tmp_path, jobs="on")))
    child.prepare()
    pid = child.pid
    child.close()
    assert is_gone(pid)
    assert not list(tmp_path.iterdir())


def test_a_process_starts_for_expected_work_and_its_lines_say_that_jobs_ended(started, monkeypatch):
    monkeypatch.setattr("steelyard.jobs.child.MODULE", "this")  # it prints lines, and ends
    ends = []
    child = WorkerChild({})
    child.start(lambda: False, lambda: ends.append(child))
    assert started == []
    child.expect()
    wait_until(lambda: ends)
    child.close()
    assert len(started) == 1


@pytest.mark.slow
def test_a_server_that_prepares_runs_jobs_in_that_process(tmp_path, started):
    with open_home(tmp_path, prepares_jobs=True, jobs="on") as services:
        (evaluation,) = submit(services, make_dataset(services).id).data
        assert wait_for_evaluation(services, evaluation.id).status == "succeeded"
    assert started == []


@pytest.mark.slow
def test_a_server_runs_its_evaluations_and_takes_its_process_along(tmp_path, started):
    with open_home(tmp_path, jobs="on") as services:
        (evaluation,) = submit(services, make_dataset(services).id).data
        assert wait_for_evaluation(services, evaluation.id).status == "succeeded"
        pid = started[0].pid
        assert pid is not None
    assert is_gone(pid)


@pytest.mark.slow
def test_a_killed_process_is_replaced_and_jobs_queued_before_a_restart_run(
    tmp_path, started, monkeypatch
):
    monkeypatch.setattr("steelyard.jobs.child._LOOK_S", 0.2)
    with open_home(tmp_path) as services:
        (evaluation,) = submit(services, make_dataset(services).id).data
    with open_home(tmp_path, jobs="on") as services:
        wait_until(lambda: started)
        os.kill(started[0].pid, signal.SIGKILL)
        assert wait_for_evaluation(services, evaluation.id).status == "succeeded"
        assert len(started) >= 2


def test_a_server_with_jobs_off_starts_nothing(tmp_path, started):
    with open_home(tmp_path) as services:
        (evaluation,) = submit(services, make_dataset(services).id).data
        assert get(services, evaluation.id).status == "queued"
    assert started == []
    assert settings_of(tmp_path).jobs == "off"
