"""kill -9 of watchers, two at a time: every answer and feedback is counted once."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from sqlalchemy import func, select

from steelyard.alarms.tables import alarm_feedback, alarm_watches, alarms
from steelyard.alarms.watched import LEARNED, Watched
from steelyard.settings import child_environment
from steelyard.storage import open_state
from support.decisions.drifting import DRIFTED, SHARES, answers, store, tell
from support.tree.repository import ROOT
from support.waiting import let_a_moment_pass

SCRIPT = Path(__file__).parent / "killed_watcher.py"
START = 1e7 - 6_000


def start(url):
    process = subprocess.Popen(
        [sys.executable, str(SCRIPT), url],
        stdout=subprocess.PIPE,
        text=True,
        env=child_environment(PYTHONPATH=f"{ROOT / 'server'}:{ROOT / 'tests'}"),
    )
    assert process.stdout.readline() == "ready\n"
    return process


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_twenty_kills_count_nothing_twice_and_leave_nothing_out(tmp_path):
    moments, url = random.Random(8), f"sqlite:///{tmp_path / 'state.sqlite'}"
    state = open_state(url)
    found = answers(2_500, SHARES, at=START)
    store(state, found)
    tell(state, found, START + 5_000)
    store(state, answers(1_000, DRIFTED, at=START + 3_000, seed=1))
    n_ended = 0
    for _ in range(10):
        two = [start(url), start(url)]
        let_a_moment_pass(moments, 0.05, 0.5)
        for process in two:
            process.kill()
            n_ended += "done" in process.stdout.read()
            process.wait()
            process.stdout.close()
    with start(url) as last:
        assert last.stdout.read() == "done\n"
    (row,) = state.read_now(lambda c: c.execute(select(alarm_watches)).all())
    watched = msgspec.json.decode(row.body, type=Watched)
    assert watched.answers == 3_500
    assert watched.streams["answers/team"].counted == 3_500 - LEARNED
    counted = state.read_now(lambda c: c.scalar(select(func.count()).select_from(alarm_feedback)))
    assert counted == 2_500
    raised = state.read_now(lambda c: c.execute(select(alarms)).all())
    assert [one.watch for one in raised].count("shares") == 1
    assert n_ended < 20, "nothing was killed at work"
    state.close()
