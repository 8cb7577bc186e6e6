"""A service over a Triton server that dies, comes back, lies, moves or has other weights."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from support.api.error_shape import assert_canonical_error
from support.waiting import wait_until

pytest.importorskip("tritonclient.grpc")

from steelyard.app.deployment import open_deployment
from steelyard.settings import read_settings
from support.triton.fake_triton import LIES, FakeTriton, serving
from support.triton.triton_service import (
    BODY,
    Service,
    probabilities,
    serving_service,
    shipped_model,
)


@pytest.fixture(scope="module", autouse=True)
def probes_are_quick() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("steelyard.scoring.remote.routed.PROBE_S", 0.05)
        patch.setattr("steelyard.scoring.remote.engine_host.WATCH_S", 0.05)
        yield


@pytest.fixture(scope="module")
def expected() -> np.ndarray:
    """This process's answers alone."""
    with open_deployment(read_settings({"threads": 1}, environ={})) as deployment:
        answer = deployment.answers.answer_dict(BODY)
    return np.array(
        [p for one in answer["decisions"].values() for p in one["probabilities"].values()]
    )


@pytest.fixture(scope="module")
def triton() -> Iterator[FakeTriton]:
    with serving(shipped_model()) as server:
        yield server


@pytest.fixture(scope="module")
def service(triton, tmp_path_factory) -> Iterator[Service]:
    home = tmp_path_factory.mktemp("home")
    (home / "scorer").write_text(triton.url)
    with serving_service(home, f"file://{home / 'scorer'}") as service:
        yield service


def is_there(service: Service) -> bool:
    return service.scorer().startswith("ok: ")


def test_it_answers_as_this_process_does_and_says_where(service, triton, expected):
    before = triton.calls["ModelInfer"]
    answer = service.ask()
    assert answer.status_code == 200
    np.testing.assert_allclose(probabilities(answer), expected, atol=1e-6)
    assert triton.calls["ModelInfer"] > before
    assert service.scorer() == f"ok: {triton.url}"
    name = answer.json()["model"]
    assert service.http.get("/v1/health").json()["engine"] == "triton-int8"
    assert service.http.get(f"/v1/models/{name}").json()["engine"] == "triton-int8"
    assert service.figure('steelyard_scorer_engines{place="triton"}') == 1
    assert service.figure('steelyard_scorer_passes_total{place="triton"}') >= 1


def test_killed_and_started_again_under_traffic(service, triton, expected, caplog):
    caplog.set_level(logging.INFO, "steelyard.scoring.remote.routed")
    wait_until(lambda: is_there(service))
    stop = threading.Event()

    def ask() -> int:
        n = 0
        while not stop.is_set():
            # Texts that were not asked before have passes of their own.
            answer = service.ask()
            assert answer.status_code == 200
            np.testing.assert_allclose(probabilities(answer), expected, atol=1e-6)
            n += 1
        return n

    with ThreadPoolExecutor(3) as threads:
        asking = [threads.submit(ask) for _ in range(3)]
        try:
            triton.stop()
            wait_until(lambda: service.scorer().startswith("in-process instead: "))
            assert "cannot be reached" in service.scorer()
            assert service.http.get("/v1/health").json()["engine"] == "onnxruntime-int8"
            assert service.figure('steelyard_scorer_engines{place="in-process"}') == 1
            triton.start()
            wait_until(lambda: is_there(service))
        finally:
            stop.set()
        assert all(one.result(60) > 0 for one in asking)
    assert service.figure('steelyard_scorer_passes_total{place="in-process"}') >= 1
    assert service.figure("steelyard_scorer_changes_total") >= 3
    routed = "steelyard.scoring.remote.routed"
    told = [(r.levelname, r.getMessage()) for r in caplog.records if r.name == routed]
    # A pass that the kill ended may be told before the server is found to be away.
    assert [level for level, _ in told] in (["WARNING", "INFO"], ["WARNING", "WARNING", "INFO"])
    assert len(set(told)) == len(told)


def test_a_lying_server_gives_no_wrong_answer(service, triton, expected):
    wait_until(lambda: is_there(service))
    model = next(iter(triton.models.values()))
    for lie in LIES.values():
        model.lie = lie
        np.testing.assert_allclose(probabilities(service.ask()), expected, atol=1e-6)
    model.lie = None
    assert service.figure('steelyard_scorer_faults_total{code="engine_unavailable"}') >= 1
    wait_until(lambda: is_there(service))


def test_it_moves_to_another_server_and_back_to_this_process(service, triton, expected):
    place = service.services.settings.home / "scorer"
    wait_until(lambda: is_there(service))
    with serving(shipped_model()) as other:
        place.write_text(f"{other.url}\n")
        wait_until(lambda: service.scorer() == f"ok: {other.url}")
        before = triton.calls["ModelInfer"], other.calls["ModelInfer"]
        np.testing.assert_allclose(probabilities(service.ask("It moved.")), expected, atol=1)
        assert triton.calls["ModelInfer"] == before[0]
        assert other.calls["ModelInfer"] > before[1]
        place.write_text("http://nowhere")
        place.write_text("")
        wait_until(lambda: not any(part.startswith("scorer:") for part in service.parts()))
        np.testing.assert_allclose(probabilities(service.ask()), expected, atol=1e-6)
    place.write_text(triton.url)
    wait_until(lambda: any(part.startswith("scorer:") for part in service.parts()))
    wait_until(lambda: is_there(service))


def test_without_fallback_the_contracts_errors_are_raised(tmp_path, expected):
    name, model = shipped_model()
    with serving((name, model)) as triton:
        model.load_gate.clear()
        triton.stop()
        with serving_service(tmp_path, triton.url, scorer_fallback="none") as service:
            for _ in range(2):  # no engine had it, so that the key stays free
                refused = service.ask(key="unreached")
                assert_canonical_error(refused, 503, "engine_unavailable", retryable=True)
                assert "cannot be reached" in refused.json()["error"]["message"]
                assert float(refused.headers["Retry-After"]) > 0
                assert "Idempotency-Status" not in refused.headers
            listed, *_ = service.http.get("/v1/models").json()["data"]
            told = listed["status"], listed["availability_reason"]
            assert told == ("unavailable", "engine_unavailable")
            assert not service.http.get(f"/v1/models/{name}/ready").json()["ready"]
            assert service.http.get("/v1/ready").status_code == 503
            triton.start()
            wait_until(lambda: triton.calls[f"load {name}"] > 0)
            warming = service.ask()
            assert_canonical_error(warming, 503, "model_warming", retryable=True)
            assert float(warming.headers["Retry-After"]) > 0
            model.load_gate.set()
            wait_until(lambda: service.ask().status_code == 200)
            answer = service.ask(key="unreached")
            np.testing.assert_allclose(probabilities(answer), expected, atol=1e-6)
            listed = service.http.get(f"/v1/models/{name}").json()
            assert listed["status"] == "ready"
            assert "availability_reason" not in listed
            model.lie = LIES["not a number"]
            assert_canonical_error(
                service.ask("Another text."), 503, "engine_unavailable", retryable=True
            )


def test_other_weights_answer_nothing(tmp_path, expected):
    name, model = shipped_model()
    model.parameters["steelyard_sha256"] = "0" * 64
    model.is_loaded = True
    with serving((name, model)) as triton, serving_service(tmp_path, triton.url) as service:
        assert "triton export" in service.scorer()
        np.testing.assert_allclose(probabilities(service.ask()), expected, atol=1e-6)
        assert triton.calls["ModelInfer"] == 0
