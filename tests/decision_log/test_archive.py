"""Closed days of stored decisions in files: the same answers from the same calls, whatever dies."""

from __future__ import annotations

import asyncio
import shutil
import signal
import subprocess
import sys
import time
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select

from steelyard.accounts.store_owner import sweep_owned
from steelyard.app.job_runtime import open_worker
from steelyard.app.rooms import names_of_decisions
from steelyard.app.stored_files import named_in
from steelyard.caller import Caller
from steelyard.decision_log import answers, series
from steelyard.decision_log.archive import files as archive_files
from steelyard.decision_log.archive import run
from steelyard.decision_log.archive.files import ArchiveFiles
from steelyard.decision_log.archive.service import Archiving
from steelyard.decision_log.archive.store import has_unfinished, live_files
from steelyard.decision_log.feedback import FeedbackService
from steelyard.decision_log.service import DecisionLog
from steelyard.decision_log.store import insert_decision
from steelyard.decision_log.tables import decision_files, decisions
from steelyard.decision_log.wire import DecisionLogQuery, DecisionSeriesQuery, FeedbackRequest
from steelyard.errors import DataDamagedError, InvalidRequestError, NotFoundError
from steelyard.operations.idempotency import KeyedWrites
from steelyard.operations.write import Write
from steelyard.people.removal import AccountRemoval
from steelyard.settings import child_environment
from steelyard.storage import State, open_state
from steelyard.storage.frame_store import open_store
from steelyard.storage.tables import metadata
from support.decisions.archived import (
    ACME,
    DAY_S,
    DAYS,
    LOCAL,
    N_A_DAY,
    NOW,
    RETENTION_DAYS,
    WINDOW,
    answer,
    end_account,
    everything_of,
    fill,
    ids_in_state,
    ids_of,
    log_of,
    move_all,
)
from support.models.evaluated import open_home, settings_of
from support.tree.repository import ROOT
from support.waiting import wait_until

ME = Caller(LOCAL, None, "full", "test")
#: Answers of the closed days that feedback or a shadow refers to, of each account.
N_REFERRED = 2 * 6


@pytest.fixture(autouse=True)
def small_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of few rows, so that a day has several and a file several groups."""
    monkeypatch.setattr(archive_files, "FILE_ROWS", 24)
    monkeypatch.setattr(run, "GROUP_ROWS", 12)
    monkeypatch.setattr(run, "_AT_ONCE", 10)
    monkeypatch.setattr(answers, "_AT_A_TIME", 3)


@pytest.fixture
def files(tmp_path: Path) -> ArchiveFiles:
    return ArchiveFiles(open_store(tmp_path / "frames", "decision_log"))


def nothing() -> None:
    """Look at nothing."""


def test_every_read_answers_the_same_before_while_and_after_a_move(
    state: State, files: ArchiveFiles, monkeypatch: pytest.MonkeyPatch
):
    state.write_now(fill)
    expected = everything_of(state, None)
    of_acme = everything_of(state, None, ACME)
    assert expected["counts"] == [len(DAYS) * N_A_DAY, 0, 15, 0]
    n_looked = 0
    keep = run.ArchiveRun._keep

    def keep_and_look(self: Any, *args: Any, **given: Any) -> None:
        nonlocal n_looked
        keep(self, *args, **given)
        n_looked += self.job.account_id == LOCAL
        if self.job.account_id == LOCAL and n_looked <= 4:  # the first file's: named to cleared
            assert everything_of(state, files) == expected

    monkeypatch.setattr(run.ArchiveRun, "_keep", keep_and_look)
    move_all(state, files, nothing)
    assert everything_of(state, files) == expected
    assert everything_of(state, files, ACME) == of_acme
    # Of the closed days the state has what is referred to, and of today all.
    assert len(ids_in_state(state)) == N_REFERRED + N_A_DAY
    n_rows = state.read_now(lambda c: c.scalar(select(func.sum(decision_files.c.rows))))
    assert n_rows == 2 * (2 * N_A_DAY - N_REFERRED)
    monkeypatch.setattr(series, "MOST_READ", 10)
    query = DecisionSeriesQuery(**WINDOW)
    sampled = asyncio.run(log_of(state, files).series(ME, query))
    assert sampled.is_sampled
    whole = expected["series None"]["data"]
    assert [point.answers for point in sampled.data] == [point["answers"] for point in whole]
    # Another look finds nothing to move.
    move_all(state, files, lambda: pytest.fail("there is nothing to move"))


@pytest.mark.slow
def test_feedback_brings_a_decision_back(state: State, files: ArchiveFiles):
    state.write_now(fill)
    move_all(state, files, nothing)
    log = log_of(state, files)
    service = FeedbackService(
        KeyedWrites(state, now=lambda: NOW),
        retention_days=RETENTION_DAYS,
        find_archived=log.find_archived,
        now=lambda: NOW,
    )
    moved = next(one for one in ids_of(LOCAL) if one not in ids_in_state(state))

    def report(id_: str, outcome: str, caller: Caller = ME, key: str | None = None) -> None:
        request = FeedbackRequest(decision_id=id_, outcomes={"team": outcome})
        asyncio.run(service.record(Write(caller, "POST /v1/feedback", key), request))

    for caller, id_ in ((Caller(ACME, None, "full", "test"), moved), (ME, "dec_none")):
        with pytest.raises(NotFoundError):
            report(id_, "other", caller)
    with pytest.raises(InvalidRequestError):
        report(moved, "no outcome")
    assert moved not in ids_in_state(state)
    report(moved, "other", key="k")
    report(moved, "billing")
    assert moved in ids_in_state(state)
    told = everything_of(state, files)
    ids = [one["id"] for page in told["log {}"] for one in page["data"]]
    assert ids == ids_of(LOCAL)[::-1]
    assert told["counts"] == [len(DAYS) * N_A_DAY, 0, 15, 0]
    observed = [one["id"] for page in told["log {'has_feedback': True}"] for one in page["data"]]
    assert moved in observed
    assert asyncio.run(log.get(ME, moved)).feedback == {"team": "billing"}
    move_all(state, files, nothing)
    assert moved in ids_in_state(state)


def test_referenced_decisions_stay():
    referring = {
        key.parent
        for table in metadata.sorted_tables
        for key in table.foreign_keys
        if key.column is decisions.c.id
    }
    assert referring == set(names_of_decisions())


def test_files_go_with_their_time_and_their_account(state: State, files: ArchiveFiles):
    state.write_now(fill)
    move_all(state, files, nothing)
    sweep = partial(sweep_owned, state, files.store, live_files, older_than_s=0)
    assert sweep() == []
    before = set(files.store.contents())
    end_account(state, ACME)
    AccountRemoval(state, now=lambda: NOW).tick()
    of_acme = {name.partition(".")[0] for name in sweep()}
    assert len(of_acme) == len(before) / 2
    mine = asyncio.run(log_of(state, files).page(ME, DecisionLogQuery())).data
    assert len(mine) == len(DAYS) * N_A_DAY
    acme = Caller(ACME, None, "full", "test")
    assert asyncio.run(log_of(state, files).page(acme, DecisionLogQuery())).data == []

    def look_at(day: int) -> set[str]:
        now = (20_000 + day + RETENTION_DAYS) * DAY_S + 2 * 3600
        Archiving(state, after_days=1, retention_days=RETENTION_DAYS, now=lambda: now).tick()
        sweep()
        return set(files.store.contents())

    assert look_at(0) < before - of_acme
    assert look_at(1) == set()
    assert state.read_now(live_files) == set()


@pytest.mark.slow
def test_no_row_leaves_the_state_for_a_file_that_is_damaged(state: State, files: ArchiveFiles):
    state.write_now(fill)
    expected = everything_of(state, None)

    def damage() -> None:
        for path in Path(files.store.root).glob("*.parquet"):
            path.write_bytes(path.read_bytes()[:-1] + b"?")

    with pytest.raises(DataDamagedError):
        move_all(state, files, damage)
    assert everything_of(state, None) == expected


# Once a file is written and not named, and once some of its rows have left.
KILLS = [9, 13, *(pytest.param(one, marks=pytest.mark.slow) for one in range(2, 80, 3))]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="kills as POSIX does")
@pytest.mark.parametrize("moment", KILLS)
def test_a_killed_move_loses_nothing_and_lists_nothing_twice(tmp_path: Path, moment: int):
    url = f"sqlite:///{tmp_path / 'state.sqlite'}"
    with closing(open_state(url)) as state:
        state.write_now(fill)
        expected = everything_of(state, None)
    folder = tmp_path / "decision_log"
    command = [
        sys.executable,
        "-m",
        "support.decisions.archiving_process",
        url,
        str(folder),
        str(moment),
    ]
    paths = f"{ROOT / 'server'}:{ROOT / 'tests'}"
    ended = subprocess.run(
        command, env=child_environment(PYTHONPATH=paths), check=False, capture_output=True
    )
    assert ended.returncode in {-signal.SIGKILL, 0}, ended.stderr
    files = ArchiveFiles(open_store(folder))
    with closing(open_state(url)) as state:
        assert everything_of(state, files) == expected
        move_all(state, files, nothing)
        assert len(ids_in_state(state)) == N_REFERRED + N_A_DAY
        sweep_owned(state, files.store, live_files, older_than_s=0)
        assert set(files.store.contents()) == state.read_now(live_files)
        assert everything_of(state, files) == expected
    shutil.rmtree(folder)


def test_a_server_and_its_worker_move_days_that_are_over(tmp_path: Path):
    now = time.time()
    given = {"archive_after_days": 2.0}
    made = [answer(f"dec_{n}", LOCAL, now - (9 - n) * DAY_S, n) for n in range(10)]
    with closing(open_state(f"sqlite:///{tmp_path / 'state.sqlite'}")) as state:
        for one in made:
            state.write_now(partial(insert_decision, decision=one))
    with open_home(tmp_path, **given) as services, open_worker(settings_of(tmp_path, **given)):
        wait_until(lambda: len(ids_in_state(services.state)) <= 3)
        wait_until(lambda: not services.state.read_now(has_unfinished))
        page = asyncio.run(services.get(DecisionLog).page(ME, DecisionLogQuery(limit=4)))
        rest = asyncio.run(
            services.get(DecisionLog).page(ME, DecisionLogQuery(cursor=page.next_cursor))
        )
        listed = [one.id for one in (*page.data, *rest.data)]
        assert listed == [one.id for one in reversed(made)]
        report = FeedbackRequest(decision_id="dec_1", outcomes={"team": "billing"})
        asyncio.run(services.get(FeedbackService).record(Write(ME), report))
        assert asyncio.run(services.get(DecisionLog).get(ME, "dec_1")).feedback == {
            "team": "billing"
        }
        named = services.state.read_now(named_in)
        assert {one.room for one in named} == {"decision_log"}
        assert len(named) >= 7
