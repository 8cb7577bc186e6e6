"""kill -9 while events are made and sent: each arrives, none is made up, subjects keep their order."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import select

from steelyard.outbox.tables import webhook_deliveries
from steelyard.settings import child_environment
from steelyard.storage import open_state
from steelyard.webhooks import store as rows
from steelyard.webhooks.signing import new_secret
from support.servers.webhook_endpoint import webhook_endpoint
from support.tree.repository import ROOT
from support.waiting import let_a_moment_pass, wait_until

SCRIPT = Path(__file__).parent / "killed_sender.py"


def start(url, which):
    process = subprocess.Popen(
        [sys.executable, str(SCRIPT), url, which],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=child_environment(PYTHONPATH=f"{ROOT / 'server'}:{ROOT / 'tests'}"),
    )
    assert process.stdout.readline() == "ready\n"
    return process


def run_and_kill(url, n, moments):
    """The committed and printed events of a process that was killed some time after ``n`` events."""
    with start(url, "one") as process:
        lines = [process.stdout.readline() for _ in range(n)]
        let_a_moment_pass(moments, 0, 0.1)
        process.kill()
        lines += process.stdout.read().splitlines(keepends=True)
    return [tuple(json.loads(line)) for line in lines if line.endswith("\n")]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_fifty_kills_lose_no_event_and_no_order(tmp_path):
    moments, url = random.Random(20261124), f"sqlite:///{tmp_path / 'state.sqlite'}"
    state = open_state(url)
    with webhook_endpoint() as endpoint:
        endpoint.secret = new_secret()
        values = {
            "id": "wh_1",
            "account_id": "local",
            "url": endpoint.url,
            "description": "",
            "events": "job.succeeded",
            "secret": endpoint.secret,
            "created_at": 0.0,
            "updated_at": 0.0,
        }
        state.write_now(lambda connection: rows.WEBHOOKS.insert(connection, values))
        committed = [
            one for _ in range(50) for one in run_and_kill(url, moments.randint(3, 30), moments)
        ]

        def stored():
            return state.read_now(lambda c: c.execute(select(webhook_deliveries)).all())

        with start(url, "last") as last:
            wait_until(lambda: all(one.status == "delivered" for one in stored()), 120)
            last.stdin.close()
        found, told = stored(), endpoint.received
    state.close()
    sent = [(one.told["subject"], one.told["data"]["stamp"]) for one in told]
    assert len(committed) >= 50 * 3
    assert set(committed) <= set(sent)
    assert {one.id for one in told} == {one.event_id for one in found}
    firsts = list(dict.fromkeys(sent))
    assert len(firsts) == len(found), "an event was told twice under two ids"
    for subject in {one[0] for one in firsts}:
        stamps = [stamp for of, stamp in firsts if of == subject]
        assert stamps == sorted(stamps)
