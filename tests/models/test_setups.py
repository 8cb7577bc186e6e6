"""Checks and other setups of models are jobs: every host follows them, stops them and takes them up."""

from __future__ import annotations

import asyncio
import threading
from contextlib import closing
from types import SimpleNamespace

import httpx
import pytest
from msgspec.structs import replace
from sqlalchemy import update

from steelyard.caller import Caller
from steelyard.errors import ModelUnavailableError, NotFoundError
from steelyard.jobs.runtime import JobRuntime
from steelyard.models.judge_setup import JudgeSetup
from steelyard.models.judge_wire import JudgeCheck, SetupTask
from steelyard.models.route_setup import RouteSetup
from steelyard.models.setup_run import Outcome, SetupRuns
from steelyard.models.setups import LastSetups, ModelSetups
from steelyard.models.tables import model_setups
from steelyard.serving.connected.declared import ConnectedModel, ModelsFile, write_models
from steelyard.storage import open_state
from support.api.error_shape import assert_canonical_error
from support.models.remote_models import remote_model
from support.servers.live_server import live_server
from support.waiting import wait_until

FAR = ConnectedModel(wire="chat", url="http://127.0.0.1:9/v1", timeout_s=5.0)
ROW = {
    "decisions": [{"id": "paid", "kind": "binary", "question": "Is it paid?"}],
    "targets": {"paid": {"yes": 1.0}},
}
CHECK = JudgeCheck(
    asked=32,
    answered=32,
    p50_ms=1.0,
    flips_when_reordered=0.0,
    flips_when_negated=1.0,
    share_of_yes=0.5,
)


class HeldChecks:
    """Checks that go on until they may end, or are stopped."""

    def __init__(self) -> None:
        self.begun, self.may_end = threading.Event(), threading.Event()

    def run(self, run: object) -> Outcome:
        run.report(1, 32)
        self.begun.set()
        while not self.may_end.wait(0.02):
            run.check()
        return Outcome(result=CHECK)


@pytest.fixture
def checks(monkeypatch):
    held = HeldChecks()
    monkeypatch.setattr(JudgeSetup, "run_check", held.run)
    yield held
    held.may_end.set()


def judge_at(server):
    """Return the judge ``far`` as a server has it."""
    listed = httpx.get(f"{server.url}/v1/judges").json()["data"]
    return next(judge for judge in listed if judge["name"] == "far")


def begin(server, step="check", **body):
    return httpx.post(f"{server.url}/v1/judges/far/{step}", json=body or None)


def test_a_route_that_was_removed_elsewhere_is_none():
    """A command or the home's file took ``gone`` away, and its fit stays among the jobs."""
    statuses = {"gone": "succeeded", "new": "running", "bad": "failed"}
    tasks = {name: SetupTask(kind="fit", status=status) for name, status in statuses.items()}
    setups = SimpleNamespace(
        last=lambda: LastSetups(tasks, {}),
        declared=ModelsFile,
        change=lambda change: change(ModelsFile()),
        forget=lambda name: None,
    )
    routes = RouteSetup(None, None, None, setups)
    assert [route.name for route in asyncio.run(routes.list()).data] == ["new", "bad"]
    assert asyncio.run(routes.remove("bad")).deleted
    with pytest.raises(NotFoundError):
        asyncio.run(routes.remove("gone"))


def test_one_that_is_being_stopped_is_not_gone_on_with(state):
    house = SimpleNamespace(
        state=state,
        writes=None,
        now=lambda: 1.0,
        wake=lambda: None,
        has_accounts=False,
        settings=SimpleNamespace(job_queue=9, job_queue_per_account=9),
    )
    setups, caller = ModelSetups(house, None), Caller("local", None, "full", "")

    def begin_download():
        asyncio.run(setups.begin(caller, "download", "far"))

    def become(status):
        stored = update(model_setups).values(status=status)
        state.write_now(lambda connection: connection.execute(stored))

    for status in ("running", "cancelled"):
        begin_download()
        become(status)
    begin_download()
    become("cancelling")
    with pytest.raises(ModelUnavailableError, match="wait until it has ended"):
        begin_download()


def test_one_goes_on_and_is_stopped_as_a_job(checks, tmp_path):
    write_models(tmp_path, {"far": FAR})
    with live_server(home=str(tmp_path), jobs="off") as server:
        assert begin(server).json()["task"]["status"] == "running"
        assert checks.begun.wait(60)
        assert begin(server).status_code == 200
        rows = [{**ROW, "context": f"Invoice {number}."} for number in range(10)]
        made = httpx.post(
            f"{server.url}/v1/datasets", json={"name": "rows", "training": rows}
        ).json()
        refused = begin(server, "calibrate", dataset_id=made["id"])
        assert_canonical_error(
            refused, 409, "model_unavailable", message="The check of far goes on"
        )
        [job] = httpx.get(f"{server.url}/v1/jobs").json()["data"]
        assert (job["kind"], job["name"], job["models"]) == ("model_setup", "check of far", ["far"])
        wait_until(lambda: judge_at(server)["task"]["done"] == 1)
        assert httpx.get(f"{server.url}/v1/setups/{job['id']}").json()["total"] == 32
        stopped = httpx.post(f"{server.url}/v1/setups/{job['id']}/cancel").json()
        assert stopped["status"] == "cancelling"
        wait_until(lambda: judge_at(server)["task"]["status"] == "failed")
        judge = judge_at(server)
        assert judge["task"]["error"] == "Stopped. What was done so far stays; start it again."
        assert judge["check"] is None


def is_working():
    return any(thread.name == "steelyard-job" for thread in threading.enumerate())


@pytest.mark.parametrize("step", ["check", "calibrate", "fit"])
def test_one_is_stopped_while_its_model_thinks(step, tmp_path):
    rows = [{**ROW, "context": f"Invoice {number}."} for number in range(10)]
    sides = {"name": "rows", "training": rows[:5], "evaluation": rows[5:]}
    with remote_model(fault="hangs") as far:
        write_models(tmp_path, {"far": replace(FAR, url=f"{far.url}/v1", timeout_s=600.0)})
        with live_server(home=str(tmp_path), jobs="off") as server:
            dataset = httpx.post(f"{server.url}/v1/datasets", json=sides).json()["id"]
            if step == "fit":
                models = ["hashing", "far"]
                bound = {"bound": "share", "value": 0.5, "dataset_id": dataset}
                fit = {"name": "fitted", "models": models, **bound}
                begun = httpx.post(f"{server.url}/v1/routes", json=fit)
            else:
                begun = begin(server, step, **({"dataset_id": dataset} if step != "check" else {}))
            assert begun.status_code == 200, begun.text
            wait_until(lambda: far.asked)
            [job] = httpx.get(f"{server.url}/v1/jobs").json()["data"]
            httpx.post(f"{server.url}/v1/setups/{job['id']}/cancel")
            wait_until(lambda: not is_working())
            assert not far.may_answer.is_set()


def test_every_host_follows_one_and_stops_it(checks, postgres, tmp_path):
    url = postgres.new_state()
    homes = [str(tmp_path / name) for name in ("one", "two")]
    write_models(tmp_path / "one", {"far": FAR})
    with (
        live_server(home=homes[0], state_url=url, jobs="off") as one,
        live_server(home=homes[1], state_url=url, jobs="off") as two,
    ):
        for server, other in ((one, two), (two, one)):
            assert begin(server).status_code == 200
            assert checks.begun.wait(60)
            assert judge_at(other)["task"]["status"] == "running"
            assert begin(other, "stop").status_code == 200
            wait_until(lambda asked=server: judge_at(asked)["task"]["status"] == "failed")
            checks.begun.clear()
        checks.may_end.set()
        assert begin(two).status_code == 200
        wait_until(lambda: judge_at(one)["task"]["status"] == "succeeded")
        assert judge_at(one)["check"] == judge_at(two)["check"]
        assert judge_at(one)["check"]["answered"] == 32


def test_one_whose_host_died_is_taken_up(checks, state_url, tmp_path):
    write_models(tmp_path / "home", {"far": FAR})
    given = {"home": str(tmp_path / "home"), "state_url": state_url, "jobs": "off"}
    with live_server(**given) as server:
        begin(server)
        assert checks.begun.wait(60)
    # It ended in order, and left the check. The next host claims it and is gone before it ends.
    with closing(open_state(state_url)) as state:
        runs = SetupRuns(state, None, {"check": None})
        claimed = state.write_now(JobRuntime(state, [runs]).claim)
        assert claimed[1].attempt == 1
    checks.may_end.set()
    with live_server(**given) as server:
        wait_until(lambda: judge_at(server)["task"]["status"] == "succeeded")
        [job] = httpx.get(f"{server.url}/v1/jobs").json()["data"]
        assert (job["status"], judge_at(server)["check"]["asked"]) == ("succeeded", 32)
