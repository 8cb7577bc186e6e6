"""Running tasks that set up judges and routes, and their note at the server's end."""

from __future__ import annotations

import threading

import pytest

from steelyard.errors import EngineUnavailableError
from steelyard.models.setup_tasks import SetupTasks
from support.waiting import wait_until


@pytest.fixture
def running(tmp_path):
    """Tasks of a home of which one goes on until it is let go."""
    tasks, may_end = SetupTasks(tmp_path, None, None), threading.Event()
    tasks.start("cheap-first", "fit", lambda _: may_end.wait(60))
    yield tasks
    may_end.set()
    wait_until(lambda: not tasks.is_running("cheap-first"))


def test_what_the_end_of_a_server_cut_short_has_failed_at_the_next(tmp_path, running):
    running.start("far", "check", lambda _: None)
    [note] = tmp_path.glob("setup-*.json")
    wait_until(lambda: note.read_text() == '{"cheap-first":"fit"}')
    assert running.get("far").status == "succeeded"
    found = SetupTasks(tmp_path, None, None)
    task = found.get("cheap-first")
    assert (task.kind, task.status) == ("fit", "failed")
    assert "start it again" in task.error
    assert found.names("check") == []
    # It is said once.
    assert SetupTasks(tmp_path, None, None).names("fit") == []


def test_what_ended_leaves_nothing(tmp_path):
    tasks = SetupTasks(tmp_path, None, None)

    def fail(_):
        raise EngineUnavailableError("The server of far is away.")

    tasks.start("far", "calibrate", fail)
    wait_until(lambda: tasks.get("far").status == "failed")
    wait_until(lambda: list(tmp_path.iterdir()) == [])


def test_what_fails_for_the_end_of_its_server_is_told_at_the_next(tmp_path, caplog):
    tasks, may_fail = SetupTasks(tmp_path, None, None), threading.Event()

    def fail(_):
        may_fail.wait(60)
        raise RuntimeError("Event loop is closed")

    tasks.start("far", "check", fail)
    tasks.close()
    may_fail.set()
    wait_until(lambda: tasks.get("far").status == "failed")
    assert caplog.records == []
    assert SetupTasks(tmp_path, None, None).get("far").status == "failed"


@pytest.mark.parametrize("content", [b"", b"[]", b'{"far": "dance"}'])
def test_a_spoilt_note_is_none(tmp_path, content):
    (tmp_path / "setup-999999999.json").write_bytes(content)
    (tmp_path / "setup-new.json").write_bytes(content)
    assert SetupTasks(tmp_path, None, None).names("check") == []
