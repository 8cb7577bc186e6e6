"""Passes over gRPC: deadlines, tries, shared memory, the contract's errors, and answers checked."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import trustme

from steelyard import errors
from steelyard.scoring.passes import HEAD, N_HEADS, N_LAYERS, PAST_OUTPUTS, Past
from steelyard.scoring.remote.routed import RoutedEngine, probe_inputs
from steelyard.scoring.remote.triton_address import TlsFiles, parse_address
from support.models.remote_engines import LocalEngine, run_pass
from support.waiting import wait_until

grpc = pytest.importorskip("grpc")

from steelyard.scoring.remote.triton_engine import RetryBudget, TritonEngine  # noqa: E402
from support.triton.fake_triton import LIES, FakeModel, FakeTriton, serving  # noqa: E402

SMALL = ("logits", "marker_vectors", "pooled")
WEIGHTS = {"steelyard_sha256": "ab" * 32, "precision": "int8"}
SHARED = Path("/dev/shm")


@pytest.fixture
def model() -> FakeModel:
    return FakeModel(run_pass, dict(WEIGHTS))


@pytest.fixture
def server(model: FakeModel) -> Iterator[FakeTriton]:
    with serving(("base", model)) as server:
        yield server


def connect(server: FakeTriton, *, tls: TlsFiles | None = None, **options: Any) -> TritonEngine:
    address = parse_address(server.url, tls or TlsFiles())
    assert address is not None
    given = {"sha256": "ab" * 32, "precision": "int8", "timeout_s": 20.0, **options}
    return TritonEngine(address, "base", **given)


@contextmanager
def opened(server: FakeTriton, **options: Any) -> Iterator[TritonEngine]:
    engine = connect(server, **options)
    engine.open()
    yield engine
    engine.close()


@pytest.fixture
def engine(server: FakeTriton) -> Iterator[TritonEngine]:
    with opened(server) as engine:
        yield engine


def large_inputs(n_past: int = 256) -> dict[str, np.ndarray]:
    """A pass of a long context's later stage: 9 kB a past token, in and out."""
    inputs = probe_inputs()
    past = Past(
        np.ones(n_past, np.int32),
        *((np.ones((N_HEADS, n_past, HEAD), np.float32),) * N_LAYERS,) * 2,
    )
    return {**inputs, **past.tensors()}


def check(engine: TritonEngine, inputs: dict[str, np.ndarray], outputs=SMALL) -> None:
    found = engine.run(inputs, outputs)
    assert list(found) == list(outputs)
    for name, value in run_pass(inputs, outputs).items():
        np.testing.assert_array_equal(found[name], value)
        assert found[name].dtype == np.float32


def test_a_pass_returns_the_outputs_of_the_model(engine, server):
    check(engine, probe_inputs())
    check(engine, probe_inputs(), ("pooled", *PAST_OUTPUTS))
    assert server.calls["register"] == 0


def test_the_model_is_loaded_once(server, engine):
    engine.open()
    assert server.calls["load base"] == 1
    assert not engine.is_loading
    engine.check()


def test_large_tensors_go_through_shared_memory_and_nothing_is_left(engine, server):
    before = set(SHARED.iterdir())
    for _ in range(3):
        check(engine, large_inputs(), (*SMALL, *PAST_OUTPUTS))
    check(engine, large_inputs(128))
    assert server.calls["register"] == 1
    assert set(SHARED.iterdir()) == before
    engine.close()
    assert server.calls["unregister"] == 1


#: A service that has a region in a server, says so, and waits to be killed.
SERVICE = """
import sys
from steelyard.scoring.remote.shared_region import SharedRegion
from tritonclient.grpc import InferenceServerClient
client = InferenceServerClient(sys.argv[1])
def register(name, size):
    client.register_system_shared_memory(name, f"/{name}", size)
region = SharedRegion(1, register)
print(region.name, flush=True)
sys.stdin.read()
"""


def test_memory_of_a_service_that_was_killed_is_let_go_of_by_the_next_that_opens_it(server, engine):
    check(engine, large_inputs())
    [ours] = server.regions
    target = server.url.removeprefix("triton://")
    with subprocess.Popen(
        [sys.executable, "-c", SERVICE, target],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as service:
        theirs = service.stdout.readline().strip()
        assert server.regions == {ours, theirs}
        engine.open()
        assert server.regions == {ours, theirs}
        service.kill()
        service.wait()
    engine.open(loads=False)  # only looks
    other = connect(server, shares_memory=False)
    other.open()
    other.close()
    assert server.regions == {ours, theirs}
    engine.open()
    assert server.regions == {ours}
    check(engine, large_inputs())
    assert server.calls["register"] == 2


def test_a_region_that_is_too_small_is_followed_by_another(engine, server):
    check(engine, large_inputs())
    check(engine, large_inputs(1024))
    assert server.calls["register"] == 2


def test_memory_that_is_not_shared_is_sent(model):
    with serving(("base", model), shares_memory=False) as server, opened(server) as engine:
        check(engine, large_inputs())
        check(engine, large_inputs())
        assert server.calls["register"] == 1


def test_no_room_is_no_fault(engine, server, monkeypatch):
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.posix_fallocate", full)
    check(engine, large_inputs())
    assert server.calls["register"] == 0


def test_a_server_started_again_knows_no_region(engine, server, model):
    check(engine, large_inputs())
    server._regions.clear()
    check(engine, large_inputs())
    assert server.calls["register"] == 2


def test_a_server_that_lost_a_region_is_sent_tensors(model, caplog):
    with serving(("base", model), loses_memory=True) as server, opened(server) as engine:
        check(engine, large_inputs())
        check(engine, large_inputs())
        assert server.calls["register"] == 2
        assert server.calls["ModelInfer"] == 2 + 2
        assert [record.levelname for record in caplog.records] == ["WARNING"]
        assert "several servers behind one address" in caplog.text


def test_passes_of_several_threads_do_not_mix(engine):
    sizes = [100, 200, 300, 400] * 3
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda n: check(engine, large_inputs(n)), sizes))


@pytest.mark.parametrize("size", ["sent", "shared"])
@pytest.mark.parametrize("lie", LIES)
def test_lies_are_errors(engine, model, lie, size):
    model.lie = LIES[lie]
    inputs = probe_inputs() if size == "sent" else large_inputs()
    outputs = SMALL if size == "sent" else (*SMALL, *PAST_OUTPUTS)
    with pytest.raises(errors.EngineUnavailableError, match="no answer is made of it"):
        engine.run(inputs, outputs)
    model.lie = None
    check(engine, inputs, outputs)


@pytest.mark.parametrize(
    ("status", "error", "n_tries", "message"),
    [
        ("UNAVAILABLE", errors.EngineUnavailableError, 3, "cannot be reached"),
        ("RESOURCE_EXHAUSTED", errors.EngineUnavailableError, 3, "no room"),
        ("ABORTED", errors.EngineUnavailableError, 3, "ABORTED"),
        ("DEADLINE_EXCEEDED", errors.DeadlineExceededError, 1, "in time"),
        ("INVALID_ARGUMENT", errors.EngineUnavailableError, 1, "triton export"),
        ("NOT_FOUND", errors.EngineUnavailableError, 1, "triton export"),
        ("UNIMPLEMENTED", errors.EngineUnavailableError, 1, "not a Triton server"),
        ("UNAUTHENTICATED", errors.EngineUnavailableError, 1, "credentials"),
        ("PERMISSION_DENIED", errors.EngineUnavailableError, 1, "not allowed"),
        ("CANCELLED", errors.EngineUnavailableError, 1, "was ended"),
        ("INTERNAL", errors.EngineUnavailableError, 1, "INTERNAL"),
        ("UNKNOWN", errors.EngineUnavailableError, 1, "UNKNOWN"),
        ("DATA_LOSS", errors.EngineUnavailableError, 1, "DATA_LOSS"),
    ],
)
def test_every_status_is_an_error_of_the_contract(
    engine, server, model, status, error, n_tries, message
):
    model.fault, model.message = getattr(grpc.StatusCode, status), "secret"
    before = server.calls["ModelInfer"]
    with pytest.raises(error, match=message) as failure:
        engine.run(probe_inputs(), SMALL)
    assert server.calls["ModelInfer"] - before == n_tries
    assert "secret" not in str(failure.value)
    assert failure.value.retryable
    if error is errors.EngineUnavailableError:
        assert failure.value.retry_after_s > 0


def test_every_status_of_grpc_is_foreseen():
    from tritonclient.utils import InferenceServerException

    from steelyard.scoring.remote.triton_failures import failure_of

    for status in grpc.StatusCode:
        error = InferenceServerException("what it says", status=str(status))
        assert failure_of(error, "triton://h:1", "m").retryable
    assert failure_of(InferenceServerException("no status"), "triton://h:1", "m").retryable


def test_passing_failures_are_tried_again(engine, model):
    model.fault, model.n_faults = grpc.StatusCode.UNAVAILABLE, 2
    check(engine, probe_inputs())


def test_tries_have_a_budget(engine, server, model):
    model.fault = grpc.StatusCode.UNAVAILABLE
    engine._budget = RetryBudget(most=3)
    before = server.calls["ModelInfer"]
    for _ in range(4):
        with pytest.raises(errors.EngineUnavailableError):
            engine.run(probe_inputs(), SMALL)
    assert server.calls["ModelInfer"] - before == 4 + 3


def test_a_success_gives_back_part_of_a_try():
    budget = RetryBudget(most=1, share=0.5)
    assert budget.take()
    budget.give()
    assert not budget.take()
    budget.give()
    assert budget.take()


def test_a_slow_server_has_a_deadline(server, model):
    with opened(server, timeout_s=0.2) as engine:
        model.gate.clear()
        with pytest.raises(errors.DeadlineExceededError, match="STEELYARD_SCORER_TIMEOUT_S"):
            engine.run(probe_inputs(), SMALL)
        model.gate.set()


def test_memory_of_a_late_pass_is_not_used_again(server, model):
    with opened(server, timeout_s=1.5) as engine:
        check(engine, large_inputs())
        model.gate.clear()
        with pytest.raises(errors.DeadlineExceededError):
            engine.run(large_inputs(), SMALL)
        model.gate.set()
        check(engine, large_inputs())
        assert server.calls["register"] == 2


def _end_a_pass(engine: TritonEngine, server: FakeTriton, model: FakeModel) -> None:
    """End a pass with shared memory that the server goes on with."""
    model.gate.clear()
    with ThreadPoolExecutor(1) as threads:
        running = threads.submit(engine.run, large_inputs(), SMALL)
        wait_until(server.used.total)
        engine.interrupt()
        with pytest.raises(errors.EngineUnavailableError, match="was ended"):
            running.result(30)


@pytest.mark.parametrize("how", ["pass", "check", "close"])
def test_memory_of_a_pass_that_was_ended_is_unmapped_once_the_server_is_done(
    engine, server, model, how
):
    _end_a_pass(engine, server, model)
    [left] = server.regions
    engine.check()
    assert server.regions == {left}
    model.gate.set()
    wait_until(lambda: not server.used.total())
    if how == "pass":
        asked = server.calls["unregister"]
        check(engine, probe_inputs())
        assert server.calls["unregister"] == asked  # nothing was shared
        check(engine, large_inputs())
        assert left not in server.regions
    elif how == "check":
        engine.check()
        assert not server.regions
    asked = server.calls["unregister"]
    if how != "close":
        engine.check()
        check(engine, large_inputs())
        assert server.calls["unregister"] == asked
    engine.close()
    assert not server.regions


def test_passes_on_their_way_can_be_ended(engine, server, model):
    model.gate.clear()
    before = server.calls["ModelInfer"]
    with ThreadPoolExecutor(1) as threads:
        running = threads.submit(engine.run, probe_inputs(), SMALL)
        wait_until(lambda: server.calls["ModelInfer"] > before)
        engine.interrupt()
        with pytest.raises(errors.EngineUnavailableError, match="was ended"):
            running.result(30)
    model.gate.set()
    check(engine, probe_inputs())


def test_a_new_connection_reads_its_certificates_again_and_the_old_one_stays_without(
    model, tmp_path, caplog
):
    authority, roots = trustme.CA(), tmp_path / "roots.pem"
    authority.cert_pem.write_to_path(roots)
    issued = authority.issue_cert("127.0.0.1")
    chain = b"".join(pem.bytes() for pem in issued.cert_chain_pems)
    credentials = grpc.ssl_server_credentials([(issued.private_key_pem.bytes(), chain)])
    with (
        serving(("base", model), credentials=credentials) as server,
        opened(server, tls=TlsFiles(roots)) as engine,
    ):
        check(engine, probe_inputs())
        kept = roots.read_bytes()
        roots.unlink()
        engine.interrupt()
        assert "cannot be read now" in caplog.text
        check(engine, probe_inputs())
        trustme.CA().cert_pem.write_to_path(roots)
        engine.interrupt()  # onto a connection that trusts another authority
        with pytest.raises(errors.EngineUnavailableError, match="cannot be reached"):
            engine.check()
        roots.write_bytes(kept)
        engine.interrupt()
        check(engine, probe_inputs())


def test_a_server_that_dies_and_is_started_again(engine, server):
    server.stop()
    for call in (engine.check, engine.open, lambda: engine.run(probe_inputs(), SMALL)):
        with pytest.raises(errors.EngineUnavailableError, match="cannot be reached"):
            call()
    server.start()
    with pytest.raises(errors.EngineUnavailableError, match="no longer has the model base loaded"):
        _until_reached(engine)
    with pytest.raises(errors.ModelWarmingError):
        engine.run(probe_inputs(), SMALL)
    engine.open()
    check(engine, large_inputs())


def _until_reached(engine: TritonEngine) -> None:
    def check() -> None:
        try:
            engine.check()
        except errors.EngineUnavailableError as error:
            if "cannot be reached" not in str(error):
                raise

    wait_until(check)


@pytest.mark.parametrize(
    ("spoil", "message", "least_wait_s"),
    [
        *(
            pytest.param(
                lambda model, server, given=given: model.parameters.update(given),
                r"other weights.*triton export",
                15,
                id=f"{name}={given[name] or 'none'}",
            )
            for name in WEIGHTS
            for given in ({name: "other"}, {name: ""})
        ),
        pytest.param(
            lambda model, _: model.parameters.clear(),
            r"\(steelyard_sha256 unknown,",
            15,
            id="untold",
        ),
        pytest.param(
            lambda model, _: setattr(model, "load_fault", "failed to poll from model repository"),
            "not in its repository",
            15,
            id="not-loadable",
        ),
        pytest.param(
            lambda _, server: setattr(server, "is_live", False), "is not live", 1, id="dead"
        ),
    ],
)
def test_unusable_servers_are_refused_when_opened(server, model, spoil, message, least_wait_s):
    spoil(model, server)
    engine = connect(server)
    with pytest.raises(errors.EngineUnavailableError, match=message) as failure:
        engine.open()
    assert failure.value.retry_after_s >= least_wait_s
    engine.close()


@pytest.mark.parametrize("parameter", WEIGHTS)
def test_weights_that_become_others_while_it_is_used_are_seen_by_the_next_check(
    engine, model, parameter
):
    ours = model.parameters[parameter]
    engine.check()
    model.parameters[parameter] = "other"  # exported by another service, and loaded in place
    with pytest.raises(errors.EngineUnavailableError, match=r"other weights.*triton export"):
        engine.check()
    model.parameters[parameter] = ours
    engine.check()


@pytest.mark.parametrize("falls_back", [True, False])
def test_passes_leave_a_model_that_becomes_another_until_it_is_theirs_again(
    server, model, falls_back
):
    now = 1000.0
    routed = RoutedEngine(
        "base", LocalEngine, connect(server), falls_back=falls_back, clock=lambda: now
    )
    routed.step()
    assert routed.status.place == "triton"
    model.parameters["steelyard_sha256"] = "cd" * 32
    routed.step()
    assert "other weights" in routed.status.reason
    before = model.n_passes
    if falls_back:
        routed.run(probe_inputs(), SMALL)
    else:
        with pytest.raises(errors.EngineUnavailableError, match="other weights"):
            routed.run(probe_inputs(), SMALL)
    now += 60
    routed.step()
    assert (routed.status.place == "triton", model.n_passes) == (False, before)
    model.parameters["steelyard_sha256"] = "ab" * 32
    now += 60
    routed.step()
    assert routed.status.place == "triton"
    routed.close()


def test_loading_is_reported_and_has_a_deadline(server, model):
    model.load_gate.clear()
    engine = connect(server, load_s=0.2)
    seen = threading.Event()

    def watch() -> None:
        wait_until(lambda: engine.is_loading)
        seen.set()

    watcher = threading.Thread(target=watch)
    watcher.start()
    with pytest.raises(errors.EngineUnavailableError, match=r"did not load base in 0\.2 s"):
        engine.open()
    watcher.join(30)
    assert seen.is_set()
    assert not engine.is_loading
    model.load_gate.set()
    engine.close()


@pytest.mark.parametrize("was_loaded", [False, True], ids=["by it", "by one that was killed"])
def test_the_last_user_unloads_a_model(server, model, was_loaded):
    model.is_loaded = was_loaded
    with opened(server, unloads=True) as engine:
        check(engine, probe_inputs())
    engine.close()
    assert (server.calls["load base"], server.calls["unload base"]) == (not was_loaded, 1)


@pytest.mark.parametrize(
    "who",
    ["a base model", "a base model that another loaded", "another uses it", "another used it"],
)
def test_models_of_others_stay_loaded(server, model, who):
    is_base = who.startswith("a base model")
    model.is_loaded = who in {"a base model that another loaded", "another used it"}
    if who == "another used it":
        model.used_at = time.time()  # and this one runs no pass
    with opened(server, unloads=not is_base) as engine:
        if who == "another uses it":
            check(engine, probe_inputs())
            model.used_s = 60.0
    assert server.calls["unload base"] == 0


@pytest.mark.parametrize("when", ["before it was opened", "while it was open"])
def test_a_model_that_is_anothers_stays_loaded(server, model, when):
    model.is_loaded = True
    engine = connect(server, unloads=True)
    if when == "while it was open":
        engine.open()
    model.parameters["precision"] = "float32"
    for call in (engine.open, engine.check):
        with pytest.raises(errors.EngineUnavailableError, match="other weights"):
            call()
    engine.close()
    assert server.calls["unload base"] == 0


def test_closing_a_server_that_is_gone(server):
    engine = connect(server, unloads=True)
    engine.open()
    server.stop()
    engine.close()
    with pytest.raises(errors.EngineUnavailableError):
        engine.run(probe_inputs(), SMALL)
