"""A home with families whose fine-tunes run in a worker, with the real trainer or a stand-in."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from steelyard.app.services import ApiServices
from steelyard.datasets.service import DatasetService
from steelyard.datasets.uploads import Upload
from steelyard.datasets.wire import Dataset
from steelyard.families.fine_tune_wire import Job
from steelyard.families.fine_tuning.service import FineTuneJobs
from steelyard.families.service import FamilyService
from steelyard.operations.write import Write
from support.accounts.operating import Desk
from support.datasets.dataset_rows import make_rows
from support.models.evaluated import ENDED, ME
from support.servers.calling import send_now, upload_rows
from support.tree.repository import ROOT
from support.waiting import wait_until

#: Nano-USD of a fine-tune in tests that look at the money.
MINIMUM = 5_000_000


def make_tuning_dataset(
    services: ApiServices, rows: list[dict[str, Any]] | None = None, evaluation: Any = None
) -> Dataset:
    """A dataset with rows on both sides."""
    rows = make_rows(40) if rows is None else rows
    evaluation = make_rows(20, 1000) if evaluation is None else evaluation
    return _send(services, {"name": "tickets", "training": rows, "evaluation": evaluation})


def grow(services: ApiServices, dataset_id: str, rows: list[dict[str, Any]], evaluation: Any = ()):
    """Add rows to a dataset."""
    return _send(services, {"training": rows, "evaluation": list(evaluation)}, dataset_id)


def _send(services: ApiServices, body: dict[str, Any], dataset_id: str | None = None) -> Dataset:
    async def send() -> bytes:
        with Upload("json", {}, body=json.dumps(body).encode()) as upload:
            return (
                await upload_rows(services.get(DatasetService), upload, dataset_id, caller=ME)
            ).body

    return msgspec.json.decode(asyncio.run(send()), type=Dataset)


def start(services: ApiServices, dataset_id: str, family: str = "router", **fields: Any) -> Job:
    """Start a family."""
    body = {"family": family, "dataset_id": dataset_id, **fields}
    reply = send_now("POST /v1/families", services, body, caller=ME)
    return msgspec.json.decode(reply.body, type=Job)


def continue_(services: ApiServices, family: str = "router", **fields: Any) -> Job:
    """Start a family's next fine-tune."""
    route = "POST /v1/families/{family}/continue"
    reply = send_now(route, services, fields, caller=ME, family=family)
    return msgspec.json.decode(reply.body, type=Job)


def get_job(services: ApiServices, job_id: str) -> Job:
    """A fine-tune as it is now."""
    return asyncio.run(services.get(FineTuneJobs).get(ME, job_id))


def cancel_job(services: ApiServices, job_id: str) -> Job:
    """Cancel a fine-tune."""
    return asyncio.run(services.get(FineTuneJobs).cancel(Write(ME), job_id))


def event_types(services: ApiServices, job_id: str) -> list[str]:
    """The events of a fine-tune."""
    events = asyncio.run(services.get(FineTuneJobs).events(ME, job_id)).data
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    return [event.type for event in events]


def wait_for_job(
    services: ApiServices,
    job_id: str,
    is_there: Callable[[Job], bool] = lambda job: job.status in ENDED,
    *,
    timeout_s: float = 120.0,
) -> Job:
    """A fine-tune once it is where a test wants it."""

    def look() -> Job | None:
        job = get_job(services, job_id)
        return job if is_there(job) else None

    return wait_until(look, timeout_s, last=lambda: get_job(services, job_id))


def stand_in(monkeypatch: Any, home: Path, **asked: Any) -> None:
    """Put the stand-in trainer in place for workers of this process and those that it starts."""
    monkeypatch.setattr(
        "steelyard.families.fine_tuning.process.MODULE", "support.families.stand_in_trainer"
    )
    monkeypatch.setenv("PYTHONPATH", f"{ROOT / 'server'}:{ROOT / 'tests'}")
    ask_stand_in(home, **asked)


def ask_stand_in(home: Path, **asked: Any) -> None:
    """Write how the stand-in trainers of a home are to end."""
    home.mkdir(parents=True, exist_ok=True)
    (home / "stand_in.json").write_text(json.dumps(asked))


def starts(home: Path) -> list[int]:
    """Ids of the trainers that were started, in order."""
    path = home / "starts.txt"
    return [int(line) for line in path.read_text().splitlines()] if path.exists() else []


def follower_of(services: ApiServices, first: Job) -> Any:
    """The fine-tune after one whose model answers first, once it is queued."""

    def look() -> Any:
        jobs = asyncio.run(services.get(FamilyService).get(ME, first.family)).jobs
        return next((job for job in jobs if job.follows == first.id), None)

    return wait_until(look)


def check_charged_once(services: ApiServices, job: Job) -> None:
    """The fee was taken once or given back, and nothing is held."""
    desk = Desk(services.state)
    desk.check_ledger()
    charged = MINIMUM if job.status == "succeeded" else 0
    assert desk.books()["held"] == 0
    assert desk.books()["revenue"] == charged
    assert job.charge == ("charged" if charged else "released")


def models_of(services: ApiServices, family="router"):
    return asyncio.run(services.get(FamilyService).get(ME, family)).models
