"""A service over the real Triton server: equal answers, killed, hung, and models taken from it."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from platformdirs import user_cache_path

from steelyard.decisions.rendering import RenderedDecision, RenderedRequest
from steelyard.errors import EngineUnavailableError
from steelyard.scoring.assets import load_base_model
from steelyard.scoring.protocol import Scorer
from steelyard.scoring.remote.engine_host import RemoteHost
from steelyard.scoring.remote.triton_address import parse_scorer
from support.models.random_model import make_words
from support.waiting import wait_until

pytest.importorskip("tritonclient.grpc")

from steelyard.triton.environment import build_environment
from steelyard.triton.host import TritonHost
from steelyard.triton.repository import ExportOptions, base_source, write_model
from support.triton.triton_service import Service, probabilities, serving_service

pytestmark = [pytest.mark.slow, pytest.mark.triton, pytest.mark.timeout(300)]

DECISIONS = (
    RenderedDecision("single", "Which team?", ("billing", "sales", "support")),
    RenderedDecision("binary", "Is money asked back?", ("yes", "no")),
    RenderedDecision("ordinal", "How urgent is it?", ("low", "middle", "high")),
)
REQUESTS = {
    "short": RenderedRequest("Invoice 118 was paid twice.", DECISIONS),
    "packed": RenderedRequest("It was paid twice. " * 30, DECISIONS * 3),
    "long": RenderedRequest(make_words(2_000), DECISIONS),
    "many outcomes": RenderedRequest(
        "Paid twice.",
        (
            RenderedDecision(
                "single", make_words(150, 1), tuple(make_words(9, i) for i in range(77))
            ),
        ),
    ),
}


@pytest.fixture(scope="module")
def triton(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TritonHost]:
    try:
        environment = build_environment(user_cache_path("steelyard") / "triton")
    except EngineUnavailableError as error:
        pytest.skip(f"Triton's environment cannot be built here: {error}")
    repository = tmp_path_factory.mktemp("repository")
    write_model(repository, base_source(), ExportOptions(threads=1))
    log = logging.getLogger("triton").info  # shown where a test fails
    with (
        pytest.MonkeyPatch.context() as patch,
        TritonHost(repository, environment, on_line=log) as host,
    ):
        patch.setattr("steelyard.scoring.remote.routed.PROBE_S", 0.1)
        patch.setattr("steelyard.scoring.remote.triton_engine.CHECK_S", 0.5)
        yield host


@pytest.fixture(scope="module")
def service(triton, tmp_path_factory) -> Iterator[Service]:
    with serving_service(tmp_path_factory.mktemp("home"), triton.url) as service:
        yield service


def softmax(logits: np.ndarray) -> np.ndarray:
    powers = np.exp(logits.astype(float) - logits.max())
    return powers / powers.sum()


def farthest(scorer: Scorer, expected: dict[str, list[np.ndarray]]) -> float:
    """The largest difference of a probability."""
    answers = scorer.score(list(REQUESTS.values()))
    return max(
        float(np.abs(softmax(one.logits) - right).max())
        for row, rights in zip(answers, expected.values(), strict=True)
        for one, right in zip(row, rights, strict=True)
    )


@pytest.fixture(scope="module")
def expected() -> dict[str, list[np.ndarray]]:
    """This process's answers."""
    scorer = load_base_model(threads=1).scorer
    answers = scorer.score(list(REQUESTS.values()))
    scorer.close()
    return {
        name: [softmax(one.logits) for one in row]
        for name, row in zip(REQUESTS, answers, strict=True)
    }


@contextmanager
def traffic(service: Service) -> Iterator[Callable[[], int]]:
    """Ask all the time; every answer must be 200 and right. Gives the number so far."""
    stop = threading.Event()
    right = probabilities(service.ask())
    answered: list[None] = []

    def ask() -> None:
        while not stop.is_set():
            answer = service.ask()
            assert answer.status_code == 200, answer.text
            np.testing.assert_allclose(probabilities(answer), right, atol=1e-3)
            answered.append(None)

    with ThreadPoolExecutor(3) as threads:
        asking = [threads.submit(ask) for _ in range(3)]
        try:
            yield lambda: len(answered)
        finally:
            stop.set()
        for one in asking:
            one.result(60)
    assert answered


def answered_more(n_answered: Callable[[], int]) -> None:
    """Wait for a few more answers."""
    before = n_answered()
    wait_until(lambda: n_answered() > before + 3)


def is_there(service: Service) -> bool:
    return service.scorer().startswith("ok: ")


def test_it_answers_as_this_process_does(triton, expected):
    host = RemoteHost(parse_scorer(triton.url), falls_back=False, timeout_s=60.0)
    scorer = load_base_model(threads=1, host=host).scorer
    assert farthest(scorer, expected) < 1e-3
    status = scorer.engine_status()
    assert status is not None
    assert (status.place, status.faults) == ("triton", {})
    scorer.close()
    host.close()


@pytest.mark.slow
def test_killed_and_started_again_under_traffic(service, triton):
    wait_until(lambda: is_there(service))
    for _ in range(2):
        with traffic(service) as n_answered:
            triton.kill()
            wait_until(lambda: service.scorer().startswith("in-process instead: "))
            answered_more(n_answered)
            triton.start()
            wait_until(lambda: is_there(service))
            answered_more(n_answered)


@pytest.mark.slow
def test_models_come_and_go_under_traffic(service, triton):
    wait_until(lambda: is_there(service))
    name = service.services.models.default.name
    changes = service.figure("steelyard_scorer_changes_total")
    with traffic(service):
        for _ in range(3):
            triton.unload(name)
            wait_until(lambda: triton.models().get(name) == "READY" and is_there(service))
    assert service.figure("steelyard_scorer_changes_total") > changes


def test_a_server_that_hangs(service, triton):
    wait_until(lambda: is_there(service))
    assert triton.pid is not None
    os.kill(triton.pid, signal.SIGSTOP)
    try:
        with traffic(service):
            wait_until(lambda: service.scorer().startswith("in-process instead: "))
    finally:
        os.kill(triton.pid, signal.SIGCONT)
    with traffic(service):
        wait_until(lambda: is_there(service))


@pytest.mark.slow
def test_nothing_is_left_in_shared_memory(service, triton):
    assert not [path for path in Path("/dev/shm").glob("steelyard-*") if "triton" not in path.name]
