"""A server that speaks Triton's gRPC protocol as a test sets it: slow, lying, dying, other.

Its models run callables of NumPy arrays; everything between the service and them is real: the
protocol's own messages, a channel, and shared memory.
"""

from __future__ import annotations

import mmap
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc
import numpy as np
from tritonclient.grpc import service_pb2, service_pb2_grpc
from tritonclient.utils import np_to_triton_dtype, triton_to_np_dtype

Arrays = dict[str, np.ndarray]
Run = Callable[[Arrays, Sequence[str]], Arrays]

#: Answers that are not the model's: what arrives in its place, by name.
LIES: dict[str, Callable[[Arrays], Arrays]] = {
    "not a number": lambda outputs: {k: np.full_like(v, np.nan) for k, v in outputs.items()},
    "infinity": lambda outputs: {k: v + np.float32(np.inf) for k, v in outputs.items()},
    "too few": lambda outputs: {k: v[..., :-1] for k, v in outputs.items()},
    "another rank": lambda outputs: {k: v[None] for k, v in outputs.items()},
    "another type": lambda outputs: {k: v.astype(np.float64) for k, v in outputs.items()},
    "integers": lambda outputs: {k: v.astype(np.int32) for k, v in outputs.items()},
    "nothing": lambda outputs: {},
    "another name": lambda outputs: {f"{k}_": v for k, v in outputs.items()},
}


@dataclass
class FakeModel:
    """A model of the repository.

    Parameters
    ----------
    run : callable
        Gives the outputs asked for.
    parameters : dict of str to str
        Of its configuration.
    lie : callable, optional
        Changes the result of ``run``.
    fault : grpc.StatusCode, optional
        The end of every pass, ``n_faults`` times; without end where that is None.
    gate, load_gate : threading.Event
        Passes, and loading, wait while it is not set.
    used_s : float
        How long after it was used its statistics say that it was.
    """

    run: Run
    parameters: dict[str, str] = field(default_factory=dict)
    lie: Callable[[Arrays], Arrays] | None = None
    fault: grpc.StatusCode | None = None
    message: str = "a fault"
    n_faults: int | None = None
    gate: threading.Event = field(default_factory=threading.Event)
    load_gate: threading.Event = field(default_factory=threading.Event)
    is_loaded: bool = False
    load_fault: str | None = None
    n_passes: int = 0
    used_s: float = 0.0
    used_at: float = 0.0

    def __post_init__(self) -> None:
        self.gate.set()
        self.load_gate.set()


@dataclass
class _Region:
    memory: mmap.mmap
    offset: int
    size: int


class FakeTriton(service_pb2_grpc.GRPCInferenceServiceServicer):
    """The server; ``start`` and ``stop`` may be called again and again, on one port.

    Parameters
    ----------
    models : dict of str to FakeModel
        The repository.
    shares_memory : bool, default True
        Whether it sees the shared memory of its clients.
    loses_memory : bool, default False
        Whether passes find none of its mapped memory, as where another server answers each call.
    credentials : grpc.ServerCredentials, optional
        Its certificate, where it speaks TLS.
    """

    def __init__(
        self,
        models: dict[str, FakeModel],
        *,
        shares_memory: bool = True,
        loses_memory: bool = False,
        credentials: grpc.ServerCredentials | None = None,
    ) -> None:
        self.models = models
        self.shares_memory = shares_memory
        self.loses_memory = loses_memory
        self.credentials = credentials
        self.is_live = True
        self.calls: Counter[str] = Counter()
        self.port = 0
        #: Names of the memory that passes use now, one for each; it is not unmapped meanwhile.
        self.used: Counter[str] = Counter()
        self._regions: dict[str, _Region] = {}
        self._server: grpc.Server | None = None

    @property
    def url(self) -> str:
        """The value of the setting ``scorer``."""
        return f"{'tritons' if self.credentials else 'triton'}://127.0.0.1:{self.port}"

    @property
    def regions(self) -> set[str]:
        """Names of the memory that it has mapped."""
        return set(self._regions)

    def start(self) -> None:
        """Listen."""
        self._server = grpc.server(
            ThreadPoolExecutor(8),
            options=[
                ("grpc.so_reuseport", 0),
                ("grpc.max_send_message_length", -1),
                ("grpc.max_receive_message_length", -1),
            ],
        )
        service_pb2_grpc.add_GRPCInferenceServiceServicer_to_server(self, self._server)
        at = f"127.0.0.1:{self.port}"
        self.port = (
            self._server.add_secure_port(at, self.credentials)
            if self.credentials
            else self._server.add_insecure_port(at)
        )
        self._server.start()

    def stop(self) -> None:
        """Die: answers on their way are cut off, and every model and region is forgotten."""
        if self._server is None:
            return
        self._server.stop(grace=0).wait()
        self._server = None
        for model in self.models.values():
            model.is_loaded = False
        self._regions.clear()

    # The protocol's own names from here on.

    def ServerLive(self, request: Any, context: Any) -> Any:  # noqa: N802
        self.calls["ServerLive"] += 1
        return service_pb2.ServerLiveResponse(live=self.is_live)

    def ServerReady(self, request: Any, context: Any) -> Any:  # noqa: N802
        return service_pb2.ServerReadyResponse(ready=self.is_live)

    def ServerMetadata(self, request: Any, context: Any) -> Any:  # noqa: N802
        return service_pb2.ServerMetadataResponse(name="triton", version="fake")

    def ModelReady(self, request: Any, context: Any) -> Any:  # noqa: N802
        self.calls["ModelReady"] += 1
        model = self.models.get(request.name)
        return service_pb2.ModelReadyResponse(ready=model is not None and model.is_loaded)

    def ModelConfig(self, request: Any, context: Any) -> Any:  # noqa: N802
        model = self._loaded(request.name, context)
        answer = service_pb2.ModelConfigResponse()
        answer.config.name = request.name
        for key, value in model.parameters.items():
            answer.config.parameters[key].string_value = value
        return answer

    def ModelStatistics(self, request: Any, context: Any) -> Any:  # noqa: N802
        model = self._loaded(request.name, context)
        answer = service_pb2.ModelStatisticsResponse()
        one = answer.model_stats.add(name=request.name, version="1")
        one.execution_count = model.n_passes
        one.last_inference = int((model.used_at + model.used_s) * 1000)
        return answer

    def RepositoryIndex(self, request: Any, context: Any) -> Any:  # noqa: N802
        answer = service_pb2.RepositoryIndexResponse()
        for name, model in self.models.items():
            answer.models.add(name=name, version="1", state="READY" if model.is_loaded else "")
        return answer

    def RepositoryModelLoad(self, request: Any, context: Any) -> Any:  # noqa: N802
        name = request.model_name
        self.calls[f"load {name}"] += 1
        model = self.models.get(name)
        if model is None or model.load_fault is not None:
            why = "failed to poll from model repository" if model is None else model.load_fault
            context.abort(grpc.StatusCode.INTERNAL, f"failed to load '{name}', {why}")
        assert model.load_gate.wait(30)
        model.is_loaded = True
        return service_pb2.RepositoryModelLoadResponse()

    def RepositoryModelUnload(self, request: Any, context: Any) -> Any:  # noqa: N802
        self.calls[f"unload {request.model_name}"] += 1
        self.models[request.model_name].is_loaded = False
        return service_pb2.RepositoryModelUnloadResponse()

    def SystemSharedMemoryRegister(self, request: Any, context: Any) -> Any:  # noqa: N802
        self.calls["register"] += 1
        path = f"/dev/shm/{request.key.lstrip('/')}"
        if not self.shares_memory or not os.path.exists(path):  # noqa: PTH110
            context.abort(
                grpc.StatusCode.INTERNAL, f"Unable to open shared memory region: '{request.key}'"
            )
        descriptor = os.open(path, os.O_RDWR)
        try:
            memory = mmap.mmap(descriptor, request.offset + request.byte_size)
        finally:
            os.close(descriptor)
        if not self.loses_memory:
            self._regions[request.name] = _Region(memory, request.offset, request.byte_size)
        return service_pb2.SystemSharedMemoryRegisterResponse()

    def SystemSharedMemoryStatus(self, request: Any, context: Any) -> Any:  # noqa: N802
        answer = service_pb2.SystemSharedMemoryStatusResponse()
        for name, region in list(self._regions.items()):
            answer.regions[name].name = name
            answer.regions[name].byte_size = region.size
        return answer

    def SystemSharedMemoryUnregister(self, request: Any, context: Any) -> Any:  # noqa: N802
        self.calls["unregister"] += 1
        if self.used[request.name]:
            context.abort(
                grpc.StatusCode.INTERNAL,
                f"Cannot unregister shared memory region '{request.name}', it is currently in use.",
            )
        self._regions.pop(request.name, None)
        return service_pb2.SystemSharedMemoryUnregisterResponse()

    def ModelInfer(self, request: Any, context: Any) -> Any:  # noqa: N802
        self.calls["ModelInfer"] += 1
        tensors = [*request.inputs, *request.outputs]
        names = {one.parameters["shared_memory_region"].string_param for one in tensors} - {""}
        self.used.update(names)
        try:
            return self._infer(request, context)
        finally:
            self.used.subtract(names)

    def _infer(self, request: Any, context: Any) -> Any:
        model = self._loaded(request.model_name, context)
        if not model.gate.wait(30):
            context.abort(grpc.StatusCode.INTERNAL, "the gate stayed shut")
        if model.fault is not None and model.n_faults != 0:
            if model.n_faults is not None:
                model.n_faults -= 1
            context.abort(model.fault, model.message)
        inputs = self._inputs(request, context)
        outputs = model.run(inputs, [output.name for output in request.outputs])
        model.n_passes += 1
        model.used_at = time.time()
        if model.lie is not None:
            outputs = model.lie(outputs)
        return self._answer(request, outputs)

    def _loaded(self, name: str, context: Any) -> FakeModel:
        model = self.models.get(name)
        if model is None or not model.is_loaded:
            context.abort(
                grpc.StatusCode.UNAVAILABLE,
                f"Request for unknown model: '{name}' is not found",
            )
        assert model is not None
        return model

    def _inputs(self, request: Any, context: Any) -> Arrays:
        raw = iter(request.raw_input_contents)
        inputs = {}
        for given in request.inputs:
            region = given.parameters["shared_memory_region"].string_param
            if region:
                content = self._shared(region, given.parameters, context)
            else:
                content = memoryview(next(raw))
            array = np.frombuffer(content, triton_to_np_dtype(given.datatype))
            inputs[given.name] = array.reshape(tuple(given.shape)).copy()
        return inputs

    def _shared(self, name: str, parameters: Any, context: Any) -> memoryview:
        region = self._regions.get(name)
        if region is None:
            context.abort(
                grpc.StatusCode.INVALID_ARGUMENT, f"Unable to find shared memory region: '{name}'"
            )
        assert region is not None
        start = region.offset + parameters["shared_memory_offset"].int64_param
        size = parameters["shared_memory_byte_size"].int64_param
        assert start + size <= region.offset + region.size
        return memoryview(region.memory)[start : start + size]

    def _answer(self, request: Any, outputs: Arrays) -> Any:
        answer = service_pb2.ModelInferResponse(model_name=request.model_name, model_version="1")
        wanted = {output.name: output.parameters for output in request.outputs}
        for name, value in outputs.items():
            told = answer.outputs.add(
                name=name, datatype=np_to_triton_dtype(value.dtype), shape=value.shape
            )
            parameters = wanted.get(name)
            region = parameters["shared_memory_region"].string_param if parameters else ""
            if region:
                place = self._shared(region, parameters, None)
                content = value.tobytes()[: len(place)]
                place[: len(content)] = content
                told.parameters["shared_memory_region"].string_param = region
                told.parameters["shared_memory_byte_size"].int64_param = len(content)
            else:
                answer.raw_output_contents.append(value.tobytes())
        return answer


@contextmanager
def serving(*models: tuple[str, FakeModel], **options: Any) -> Iterator[FakeTriton]:
    """Run a fake server with models that are not loaded yet."""
    server = FakeTriton(dict(models), **options)
    server.start()
    try:
        yield server
    finally:
        for _, model in models:
            model.gate.set()
            model.load_gate.set()
        server.stop()
