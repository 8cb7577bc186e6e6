"""Marks of processes: which names were left behind, which are in use, and which are unknown."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from steelyard.scoring.remote import process_marks
from steelyard.scoring.remote.process_marks import is_left_behind, mark

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="marks are Linux's")


@pytest.fixture(scope="module")
def gone() -> str:
    """The mark of a process that ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return f"{mark().partition('-')[0]}-{process.pid}"


def test_a_name_of_a_process_that_is_gone_is_left_behind(gone):
    assert is_left_behind(f"steelyard-{gone}-0a", "steelyard-")


def test_a_name_of_one_that_runs_is_not(gone):
    assert not is_left_behind(f"steelyard-{mark()}-0a", "steelyard-")


@pytest.mark.parametrize("name", ["other-{}-0a", "steelyard-{}", "steelyard-x-{}-0a", "steelyard-"])
def test_other_names_are_not(gone, name):
    assert not is_left_behind(name.format(gone), "steelyard-")


def test_a_process_of_another_user_is_there(gone, monkeypatch):
    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "kill", refuse)
    assert not is_left_behind(f"steelyard-{gone}-0a", "steelyard-")


@pytest.mark.parametrize("file", ["_NAMESPACE", "_BOOT"])
def test_another_namespace_another_machine_and_an_unknown_one_are_left_alone(
    gone, monkeypatch, tmp_path, file
):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("another")
    before = mark()
    monkeypatch.setattr(process_marks, file, elsewhere)
    assert mark() != before
    assert not is_left_behind(f"steelyard-{gone}-0a", "steelyard-")
    monkeypatch.setattr(process_marks, file, tmp_path / "nothing")
    unknown = f"{mark().partition('-')[0]}-{gone.partition('-')[2]}"
    assert not is_left_behind(f"steelyard-{unknown}-0a", "steelyard-")
