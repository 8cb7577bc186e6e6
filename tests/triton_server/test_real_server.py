"""Triton's own server: started, asked, compared with this process, killed, hung, refused."""

from __future__ import annotations

import os
import queue
import re
import select
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import httpx
import numpy as np
import pytest
from tritonclient.grpc import InferenceServerClient, InferInput, InferRequestedOutput
from tritonclient.utils import np_to_triton_dtype

from steelyard.errors import EngineUnavailableError
from steelyard.scoring.onnx import OnnxScorer
from steelyard.scoring.remote.triton_address import parse_address
from steelyard.scoring.remote.triton_engine import TritonEngine
from steelyard.settings import child_environment
from steelyard.triton import parity
from steelyard.triton.environment import Environment
from steelyard.triton.host import TritonHost
from steelyard.triton.parity import LIMIT, check_server, is_good
from steelyard.triton.repository import ExportOptions, ModelSource, base_source, write_model
from support.models.random_model import WORDS, sample_requests
from support.triton.triton_hosting import environments, write_lora_artifact

pytestmark = [pytest.mark.triton, pytest.mark.timeout(300)]

SHARED_MEMORY = Path("/dev/shm")


@pytest.fixture(scope="module")
def int8(random_folder: Path) -> ModelSource:
    return base_source(random_folder, name="random-int8", engine="onnxruntime-int8")


@pytest.fixture(scope="module")
def tuned(tmp_path_factory, base: ModelSource) -> ModelSource:
    return write_lora_artifact(tmp_path_factory.mktemp("tuned") / "artifact", base)


@pytest.fixture(scope="module")
def repository(tmp_path_factory, base, int8, tuned) -> Path:
    folder = tmp_path_factory.mktemp("repository")
    for source in (base, int8, tuned):
        write_model(folder, source, ExportOptions())
    return folder


@pytest.fixture(scope="module")
def host(environment: Environment, repository: Path) -> Iterator[TritonHost]:
    with TritonHost(repository, environment, load=["random"]) as host:
        yield host


def test_it_is_ready_with_its_models_and_nothing_else(host):
    assert host.is_ready()
    loaded = {name for name, state in host.models().items() if state == "READY"}
    assert loaded == {"random"}
    assert httpx.get(f"{host.http_url}/v2/models/random/versions/1/ready").is_success
    figures = httpx.get(host.metrics_url).text
    assert 'nv_inference_request_success{model="random",version="1"}' in figures


def test_every_model_answers_as_this_process_does(host, base, int8, tuned, monkeypatch):
    monkeypatch.setattr(parity, "WORDS", WORDS)
    for source in (int8, tuned):
        host.load(source.name)
    sources = {source.name: source for source in (base, int8, tuned)}
    found = check_server(parse_address(host.url), sources)
    assert {one.model: one.verdict for one in found} == dict.fromkeys(sources, "equal")
    assert is_good(found)
    assert max(one.difference for one in found) < LIMIT
    assert {one.precision for one in found} == {"float32", "int8"}
    for source in (int8, tuned):
        host.unload(source.name)


def test_other_weights_and_unknown_models_are_not_compared(host, base, tuned):
    address = parse_address(host.url)
    other = ModelSource("random", "0" * 64, base.files)
    [found] = [one for one in check_server(address, {"random": other}) if one.model == "random"]
    assert found.verdict == "failed"
    assert "export it again" in found.message
    [found] = [one for one in check_server(address, {}) if one.model == "random"]
    assert (found.verdict, is_good([found])) == ("failed", False)


def test_a_model_that_is_not_there_or_not_whole_is_refused(host, repository, int8):
    with pytest.raises(EngineUnavailableError, match="Triton refused: failed to load 'nope'"):
        host.load("nope")
    broken = repository / "broken"
    shutil.copytree(repository / int8.name, broken)
    config = broken / "config.pbtxt"
    config.write_text(config.read_text().replace('name: "random-int8"', 'name: "broken"', 1))
    graph = broken / "1" / "graph.onnx"
    graph.write_bytes(graph.read_bytes() + b"x")
    with pytest.raises(EngineUnavailableError, match="is not the file that was exported"):
        host.load("broken")
    shutil.rmtree(broken)
    assert host.is_live()


def test_a_model_that_is_loaded_again_with_other_weights_is_seen(host, repository, base, tuned):
    write_model(repository, replace(base, name="shared"), ExportOptions())
    engine = TritonEngine(
        parse_address(host.url), "shared", sha256=base.sha256, precision="float32", timeout_s=30.0
    )
    engine.open()
    engine.check()
    write_model(repository, replace(tuned, name="shared"), ExportOptions())
    host.load("shared")
    with pytest.raises(EngineUnavailableError, match="other weights"):
        engine.check()
    engine.close()
    host.unload("shared")
    shutil.rmtree(repository / "shared")


def test_a_pass_that_waits_too_long_is_refused_and_the_others_are_answered(host, base):
    scorer = OnnxScorer(None, base.files.tokenizer, name="random", engine_name="")
    passed = scorer.plan([scorer.lay_out(one) for one in sample_requests()], None)
    inputs = []
    for name, array in passed.items():
        tensor = InferInput(name, list(array.shape), np_to_triton_dtype(array.dtype))
        tensor.set_data_from_numpy(array)
        inputs.append(tensor)
    client = InferenceServerClient(host.grpc_address)
    wanted = [InferRequestedOutput("logits")]
    answers: queue.SimpleQueue = queue.SimpleQueue()

    def tell(result, error) -> None:
        answers.put((result, error))

    for _ in range(8):
        client.async_infer("random", inputs, tell, outputs=wanted, timeout=1)
    found = [answers.get(timeout=60) for _ in range(8)]
    client.close()
    engine = base.engine()
    expected = engine.run(passed, ["logits"])["logits"]
    engine.close()
    refused = [error for _, error in found if error is not None]
    assert refused, "none of eight passes waited longer than a microsecond"
    assert all("timeout expired" in str(error).lower() for error in refused)
    for result, error in found:
        if error is None:
            np.testing.assert_allclose(result.as_numpy("logits"), expected, atol=1e-4)


@pytest.mark.slow
def test_a_killed_one_leaves_nothing_and_starts_again(host):
    before, pid = host.url, host.pid
    os.kill(pid, signal.SIGKILL)
    assert host.wait(30)
    assert not host.is_live()
    host.kill()
    assert not list(SHARED_MEMORY.glob(f"steelyard-triton-*-{os.getpid()}-*"))
    host.start()
    assert (host.url, host.is_ready()) == (before, True)
    assert host.pid != pid


@dataclass(frozen=True, slots=True)
class Hanging(Environment):
    """An environment whose backend has a program that never reports itself."""

    elsewhere: Path

    @property
    def backends(self) -> Path:
        return self.elsewhere


def test_one_that_hangs_in_its_start_is_ended_and_swept(environment, repository, tmp_path):
    backends = tmp_path / "backends"
    shutil.copytree(environment.backends, backends)
    stub = backends / "python" / "triton_python_backend_stub"
    stub.write_text("#!/bin/sh\nexec sleep 120\n")
    stub.chmod(0o755)
    hanging = Hanging(environment.folder, backends)
    host = TritonHost(repository, hanging, load=["random"], start_s=3.0)
    with pytest.raises(EngineUnavailableError, match="not ready after 3 s and was ended"):
        host.start()
    assert not host.is_running
    prefix = host._prefix
    assert not list(SHARED_MEMORY.glob(f"{prefix}*"))


class Lines:
    """The output of a process, a line at a time, with a bound on the wait for one."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.said: list[str] = []
        self._queue: queue.SimpleQueue[str] = queue.SimpleQueue()
        threading.Thread(target=self._read, args=(process,), daemon=True).start()

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            self._queue.put(line)

    def until(self, is_it: Callable[[str], object], timeout_s: float = 120.0) -> str:
        give_up_at = time.monotonic() + timeout_s
        while True:
            try:
                line = self._queue.get(timeout=max(0.0, give_up_at - time.monotonic()))
            except queue.Empty:
                pytest.fail("It did not say that; it said:\n" + "".join(self.said))
            self.said.append(line)
            if is_it(line):
                return line


@pytest.mark.slow
def test_the_command_runs_it_starts_it_again_and_stops(environment, tmp_path):
    arguments = [
        *("--home", str(tmp_path), "--environment", str(environments())),
        *("--port", "0", "--http-port", "0", "--metrics-port", "0", "--threads", "1"),
    ]
    with subprocess.Popen(
        [sys.executable, "-m", "steelyard", "triton", "up", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=child_environment(PYTHONUNBUFFERED="1"),
    ) as process:
        try:
            lines = Lines(process)
            told = lines.until(lambda line: line.startswith("Triton answers on"))
            url, pid = re.findall(r"(triton://\S+) \(process (\d+)\)", told)[0]
            line = lines.until(lambda line: "STEELYARD_SCORER" in line)
            assert line.strip() == f"For the service: STEELYARD_SCORER={url}"
            assert any("environment" in line for line in lines.said)
            assert any("steelyard-base-2: written" in line for line in lines.said)
            server = os.pidfd_open(int(pid))
            os.kill(int(pid), signal.SIGKILL)
            assert select.select([server], [], [], 30)[0]
            os.close(server)
            lines.until(lambda line: "Triton is ready again." in line)
            process.send_signal(signal.SIGTERM)
            lines.until(lambda line: "Stopping Triton." in line)
            assert process.wait(60) == 0
        finally:
            process.kill()
    assert not list(SHARED_MEMORY.glob(f"steelyard-triton-*-{process.pid}-*"))
