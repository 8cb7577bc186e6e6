"""A server killed while it checks a model: another takes the check up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from faults.processes import ServeProcess, serve_process
from steelyard.serving.connected.declared import ConnectedModel, write_models
from support.models.remote_models import remote_model
from support.waiting import wait_until


def _judge_at(server: ServeProcess) -> Any:
    listed = httpx.get(f"{server.url}/v1/judges", timeout=60).json()["data"]
    return next(judge for judge in listed if judge["name"] == "far")


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_check_goes_on_at_another_server(tmp_path: Path) -> None:
    with (
        remote_model(fault="hangs") as far,
        serve_process(tmp_path / "home", STEELYARD_JOBS="off") as dies,
        serve_process(tmp_path / "home", STEELYARD_JOBS="off") as stays,
    ):
        write_models(tmp_path / "home", {"far": ConnectedModel(wire="chat", url=far.url)})
        dies.start()
        begun = httpx.post(f"{dies.url}/v1/judges/far/check", timeout=60).json()
        assert begun["task"]["status"] == "running"
        wait_until(lambda: far.asked)
        dies.kill()
        far.fault = ""
        far.may_answer.set()
        stays.start()
        wait_until(lambda: _judge_at(stays)["task"]["status"] == "succeeded")
        assert _judge_at(stays)["check"]["answered"] == 32
        [job] = httpx.get(f"{stays.url}/v1/jobs", timeout=60).json()["data"]
        assert job["ended"] == "succeeded"
