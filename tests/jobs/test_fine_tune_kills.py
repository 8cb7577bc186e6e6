"""Fine-tunes through kills of the worker and the trainer."""

from __future__ import annotations

import asyncio
import os
import random
import signal
from math import ceil
from pathlib import Path

import msgspec
import pytest

from jobs.workers import is_gone, kill, start_job_worker
from steelyard.families.service import FamilyService
from support.families.fine_tuned import (
    MINIMUM,
    check_charged_once,
    event_types,
    follower_of,
    get_job,
    make_tuning_dataset,
    models_of,
    start,
    wait_for_job,
)
from support.families.learnable_rows import learnable_rows
from support.kills import kills_and_seed
from support.models.evaluated import ENDED, ME, open_home
from support.waiting import let_a_moment_pass, wait_until

PAID = {"fine_tune_minimum": MINIMUM}


def crash_through(home, rng, phases, *, kill_trainer):
    """Fine-tune with the real trainer through a kill in each of some phases."""
    with open_home(home, **PAID) as services:
        rows = learnable_rows(0)
        dataset = make_tuning_dataset(services, rows[:110], rows[110:])
        job = start(services, dataset.id)
        folder = home / "fine_tunes" / job.id
        for phase in phases:
            worker = start_job_worker(home, **PAID)
            wait_until(lambda phase=phase: has_reached(services, job.id, folder, phase))
            let_a_moment_pass(rng, 0, 0.1)
            trainer = trainer_of(worker.pid)
            if kill_trainer and trainer is not None:
                os.kill(trainer, signal.SIGKILL)
            kill(worker)
            if trainer is not None:
                wait_until(lambda trainer=trainer: is_gone(trainer))
        worker = start_job_worker(home, **PAID)
        try:
            ended = wait_for_job(services, job.id)
        finally:
            kill(worker)
        types = event_types(services, job.id)
        check_charged_once(services, ended)
        assert types.count("succeeded") == 1
        assert len(models_of(services)) == (ended.outcome == "joined")
        return ended


def has_reached(services, job_id, folder, phase):
    """Whether a fine-tune is in a phase, or past it."""
    job = get_job(services, job_id)
    if job.status in ENDED or phase == "queued":
        return True
    if phase == "join":
        return (folder / "result.json").exists()
    path = folder / "progress.jsonl"
    return path.exists() and f'"phase":"{phase}"'.encode() in path.read_bytes()


def trainer_of(worker_pid):
    """Id of the trainer that a worker started; ``None`` when there is none."""
    tasks = Path(f"/proc/{worker_pid}/task").iterdir()
    children = [int(pid) for task in tasks for pid in (task / "children").read_text().split()]
    return children[-1] if children else None


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_kills_of_worker_and_trainer_end_in_one_model_and_one_charge(tmp_path):
    ended = crash_through(
        tmp_path, random.Random(5), ("queued", "features", "scoring"), kill_trainer=True
    )
    assert ended.outcome == "joined"


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_kills_between_words_that_answer_first_and_the_rest(tmp_path):
    with open_home(tmp_path, **PAID) as services:
        rows = learnable_rows(0)
        dataset = make_tuning_dataset(services, rows[:110], rows[110:])
        first = start(services, dataset.id, hyperparameters={"first": "words"})
        worker = start_job_worker(tmp_path, **PAID)
        second = follower_of(services, first)
        kill(worker)
        worker = start_job_worker(tmp_path, **PAID)
        folder = tmp_path / "fine_tunes" / second.id
        wait_until(lambda: has_reached(services, second.id, folder, "heads"))
        kill(worker)
        worker = start_job_worker(tmp_path, **PAID)
        try:
            ended = wait_for_job(services, second.id)
        finally:
            kill(worker)
        assert get_job(services, first.id).outcome == "joined"
        assert ended.status == "succeeded"
        family = asyncio.run(services.get(FamilyService).get(ME, "router"))
        assert [job.id for job in family.jobs] == [second.id, first.id]
        assert len(family.models) == 1 + (ended.outcome == "joined")
        check_charged_once(services, ended)


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("phase", ["queued", "features", "heads", "scoring", "gate", "join"])
def test_kills_in_every_phase(tmp_path, phase):
    rng = random.Random(phase)
    found = []
    for number in range(ceil(kills_and_seed()[0] / 2)):
        ended = crash_through(tmp_path / str(number), rng, (phase,), kill_trainer=number % 2 == 0)
        assert ended.outcome == "joined"
        metrics = msgspec.to_builtins(ended.metrics)
        del metrics["gate"]["words"]["cpu_ms"]
        found.append(metrics)
    # What a trainer makes does not depend on where it was killed, but for the time that it took.
    assert all(metrics == found[0] for metrics in found)
