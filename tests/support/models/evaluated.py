"""A home with services, datasets in it, and a worker whose scorer records its requests."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from steelyard.app.bootstrap import open_service
from steelyard.app.services import ApiServices
from steelyard.caller import LOCAL_ACCOUNT, Caller
from steelyard.datasets.service import DatasetService
from steelyard.datasets.uploads import Upload
from steelyard.datasets.wire import Dataset
from steelyard.decisions.rendering import RenderedRequest
from steelyard.evaluations.service import EvaluationService
from steelyard.evaluations.wire import Evaluation, EvaluationSubmission
from steelyard.jobs.work import Run, Work
from steelyard.operations.write import Write
from steelyard.scoring.protocol import ScoredDecision, Scorer
from steelyard.serving.base import LoadedModel, load_named_model
from steelyard.settings import Settings, read_settings
from steelyard.storage import State
from support.datasets.dataset_rows import make_rows
from support.servers.calling import send_now, upload_rows
from support.waiting import wait_until

ME = Caller(LOCAL_ACCOUNT, None, "full", "test")
ENDED = {"succeeded", "failed", "cancelled"}


def settings_of(home: Path, **given: Any) -> Settings:
    """Settings of a server whose jobs another process runs."""
    return read_settings(
        {"home": home, "engine": "hashing", "jobs": "off", "dataset_min_rows": 1, **given},
        environ={},
    )


@contextmanager
def open_home(home: Path, *, prepares_jobs: bool = False, **given: Any) -> Iterator[ApiServices]:
    """The services of a server in a home."""
    with open_service(settings_of(home, **given), prepares_jobs=prepares_jobs) as services:
        yield services


def make_dataset(
    services: ApiServices, rows: Sequence[dict[str, Any]] | None = None, *, caller: Caller = ME
) -> Dataset:
    """A dataset whose rows are all for evaluation."""
    rows = make_rows(40) if rows is None else rows
    body = json.dumps({"name": "tickets", "evaluation": list(rows)}).encode()

    async def create() -> bytes:
        with Upload("json", {}, body=body) as upload:
            reply = await upload_rows(services.get(DatasetService), upload, caller=caller)
        return reply.body

    return msgspec.json.decode(asyncio.run(create()), type=Dataset)


def submit(
    services: ApiServices,
    dataset_id: str,
    models: Sequence[str] = ("hashing",),
    *,
    key: str | None = None,
    caller: Caller = ME,
) -> EvaluationSubmission:
    """Ask for evaluations."""
    body = {"dataset_id": dataset_id, "models": list(models)}
    reply = send_now("POST /v1/evaluations", services, body, caller=caller, key=key)
    return msgspec.json.decode(reply.body, type=EvaluationSubmission)


def get(services: ApiServices, evaluation_id: str, *, caller: Caller = ME) -> Evaluation:
    """An evaluation as it is now."""
    return asyncio.run(services.get(EvaluationService).get(caller, evaluation_id))


def act(services: ApiServices, name: str, evaluation_id: str) -> Evaluation:
    """Cancel or retry an evaluation."""
    method = getattr(services.get(EvaluationService), name)
    return asyncio.run(method(Write(ME), evaluation_id))


def wait_for_evaluation(
    services: ApiServices,
    evaluation_id: str,
    is_there: Callable[[Evaluation], bool] = lambda evaluation: evaluation.status in ENDED,
    *,
    timeout_s: float = 60.0,
) -> Evaluation:
    """An evaluation once it is where a test wants it."""

    def look() -> Evaluation | None:
        evaluation = get(services, evaluation_id)
        return evaluation if is_there(evaluation) else None

    return wait_until(look, timeout_s, last=lambda: get(services, evaluation_id))


class ScribblingScorer:
    """Appends the context of every request it scores to a file, and takes its time."""

    def __init__(self, inner: Scorer, path: Path, pause_s: float = 0.0) -> None:
        self._inner = inner
        self._path = path
        self._pause_s = pause_s
        self._is_closed = threading.Event()

    @property
    def name(self) -> str:
        return self._inner.name

    @property
    def engine(self) -> str:
        return self._inner.engine

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def score(self, requests: Sequence[RenderedRequest]) -> list[list[ScoredDecision]]:
        self._is_closed.wait(self._pause_s * len(requests))
        with self._path.open("a") as file:
            file.writelines(f"{request.context}\n" for request in requests)
        return self._inner.score(requests)

    def close(self) -> None:
        self._is_closed.set()
        self._inner.close()


def scribbling(path: Path, pause_s: float = 0.0) -> Callable[[str, int | None], LoadedModel]:
    """A loader of the hashing model that records its requests."""

    def load(engine: str, threads: int | None) -> LoadedModel:
        model = load_named_model(engine, threads)
        return replace(model, scorer=ScribblingScorer(model.scorer, path, pause_s))  # type: ignore[type-var]

    return load


def scored_contexts(path: Path) -> list[str]:
    """The requests recorded by such a scorer."""
    return path.read_text().splitlines() if path.exists() else []


def claim(state: State, work: Work, job_id: str) -> Run:
    """The run of a job that waits, claimed as the job runtime does."""
    (job,) = (one for one in state.read_now(work.pending) if one.id == job_id)
    job = replace(job, runner=state.instance)
    state.write_now(lambda connection: work.claim(connection, job))
    return work.open(job)
