"""Killing a process in the middle of its writes: every acknowledged write is there, whole."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import select

from steelyard.storage import open_state
from steelyard.storage.tables import accounts, api_keys

# Each write makes an account and a key of it, and is named on the output once it is durable.
WRITER = """
import os
import sys
from sqlalchemy import insert
from steelyard.storage import open_state
from steelyard.storage.tables import accounts, api_keys

state = open_state(sys.argv[1])

def work(name):
    def write(connection):
        connection.execute(insert(accounts), {"id": name, "name": name, "created_at": 1.0})
        connection.execute(insert(api_keys), {
            "id": name, "account_id": name, "name": name, "prefix": name, "sha256": "",
            "scope": "read", "created_at": 1.0,
        })
        return name
    return write

def tell(future):
    # Called by two threads: one write is whole, a buffer's are not.
    os.write(1, future.result().encode() + b"\\n")

for index in range(100_000):
    future = state.submit(work(f"{sys.argv[2]}-{index}"))
    future.add_done_callback(tell)
    if index % 7 == 0:
        future.result()
"""


@pytest.mark.parametrize(
    "n_lines", [40, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 150))]
)
def test_acknowledged_writes_survive_kill_9_and_none_is_half_there(state_url: str, n_lines: int):
    open_state(state_url).close()
    command = [sys.executable, "-c", WRITER, state_url]
    writers = [
        subprocess.Popen([*command, name], stdout=subprocess.PIPE, text=True) for name in "ab"
    ]
    told: list[str] = []
    for writer in writers:
        assert writer.stdout is not None
        told += [writer.stdout.readline().strip() for _ in range(n_lines)]
    for writer in writers:
        writer.send_signal(signal.SIGKILL)
    for writer in writers:
        assert writer.stdout is not None
        # By the same reader: ``communicate`` would leave out what that has read ahead.
        with writer.stdout:
            rest = writer.stdout.read()
        writer.wait(60)
        # The last line may have been cut off.
        told += [line.strip() for line in rest.splitlines(keepends=True) if line.endswith("\n")]
        assert writer.returncode == -signal.SIGKILL
    state = open_state(state_url)
    try:
        made = set(state.read_now(lambda c: c.execute(select(accounts.c.id)).scalars().all()))
        keyed = set(state.read_now(lambda c: c.execute(select(api_keys.c.id)).scalars().all()))
    finally:
        state.close()
    assert len(told) >= 2 * n_lines
    assert set(told) <= made
    assert keyed == made - {"local"}


def test_a_process_that_was_killed_is_dead_and_one_that_lives_is_not(
    state_url: str, tmp_path: Path
):
    script = (
        "import sys\n"
        "from steelyard.storage import open_state\n"
        "state = open_state(sys.argv[1])\n"
        "state.write_now(lambda connection: None)\n"
        "print(state.instance, flush=True)\n"
        "sys.stdin.read()\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", script, state_url],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    instance = child.stdout.readline().strip()
    state = open_state(state_url)
    try:

        def lives() -> bool:
            return state.write_now(lambda connection: state.is_alive(connection, instance))

        assert lives()
        assert state.write_now(lambda connection: state.is_alive(connection, state.instance))
        child.kill()
        child.communicate(timeout=60)
        # PostgreSQL's server hears of the death from the closed socket, a moment later.
        for _ in range(1000):
            if not lives():
                break
        assert not lives()
        assert not state.write_now(lambda c: state.is_alive(c, "srv_" + "0" * 26))
        assert not state.write_now(lambda c: state.is_alive(c, "../../etc/passwd"))
    finally:
        state.close()


def test_the_files_of_the_dead_are_removed(tmp_path: Path):
    url = f"sqlite:///{tmp_path / 'state.sqlite'}"
    script = (
        "import os, signal, sys\n"
        "from steelyard.storage import open_state\n"
        "open_state(sys.argv[1])\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    subprocess.run([sys.executable, "-c", script, url], check=False, timeout=60)
    locks = tmp_path / "state.sqlite.locks"
    [left] = locks.glob("*.live")
    state = open_state(url)
    assert not left.exists()
    [own] = locks.glob("*.live")
    assert own.stem == state.instance
    state.close()
    assert list(locks.glob("*.live")) == []
