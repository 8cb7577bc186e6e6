"""An engine in a Triton server: passes over gRPC, each within a deadline, their answers checked.

Calls block the thread that makes them. On loopback a pass of 40 kB took 0.54 ms and 0.26 ms of
processor time that way, against 0.69 and 0.40 over ``grpc.aio`` on a loop of its own: the scorer's
thread waits for one pass at a time in either case.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception,
    wait_random_exponential,
)
from tritonclient.grpc import (
    InferenceServerClient,
    InferInput,
    InferRequestedOutput,
    InferResult,
    KeepAliveOptions,
)
from tritonclient.utils import InferenceServerException, np_to_triton_dtype

from steelyard.errors import DeadlineExceededError, EngineUnavailableError, SteelyardError
from steelyard.scoring.engine import Tensors
from steelyard.scoring.passes import PAST_OUTPUTS, WIDTH
from steelyard.scoring.remote.region_pool import RegionPool
from steelyard.scoring.remote.shared_region import (
    SHARED,
    SharedRegion,
    large_ones,
    left_regions,
    place,
)
from steelyard.scoring.remote.triton_address import TritonAddress
from steelyard.scoring.remote.triton_failures import (
    LATER_S,
    SOON_S,
    failure_of,
    is_passing,
    lacks_region,
)
from steelyard.settings import InvalidSettingError

_log = logging.getLogger(__name__)

T = TypeVar("T")

VERSION = "1"
#: Parameters of a model's configuration that name its weights.
SHA256, PRECISION = "steelyard_sha256", "precision"
#: Seconds that a server has to say how it is.
CHECK_S = 2.0
#: Tries of a pass, in all.
ATTEMPTS = 3
#: Bytes of a pass from which its large tensors go through shared memory, and of a large tensor.
SHARED_PASS, SHARED_TENSOR = 2_000_000, 16_384
#: Regions that a pass tries: a server started again lacks the first, and has the next.
REGION_TRIES = 2
#: Seconds by which another process may have used a model later than this one, and is not using it.
_USED_S = 2.0
_OPTIONS = [
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 1_000),
    # A server that is started again is found by the next probe.
    ("grpc.max_reconnect_backoff_ms", 1_000),
    ("grpc.max_send_message_length", -1),
    ("grpc.max_receive_message_length", -1),
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    # A proxy of the environment is for the web, not for a server beside this one.
    ("grpc.enable_http_proxy", 0),
]


def connect(address: TritonAddress) -> InferenceServerClient:
    """Make a connection to a server; it is not asked yet."""
    return InferenceServerClient(
        address.target,
        **address.tls_options(),
        keepalive_options=KeepAliveOptions(),
        channel_args=_OPTIONS,
    )


class RetryBudget:
    """Bounds how much tries add to the load of a server that fails."""

    def __init__(self, most: float = 10.0, share: float = 0.1) -> None:
        self._most, self._share = most, share
        self._left = most
        self._lock = threading.Lock()

    def take(self) -> bool:
        """Take one try; return whether there was one."""
        with self._lock:
            if self._left < 1.0:
                return False
            self._left -= 1.0
            return True

    def give(self) -> None:
        """Note a success."""
        with self._lock:
            self._left = min(self._most, self._left + self._share)


@dataclass(frozen=True, slots=True)
class _Output:
    """An output that was asked for: its shape, and where it arrives when not in the answer."""

    shape: tuple[int, ...]
    start: int | None = None


class TritonEngine:
    """Runs passes in a model of a Triton server; thread-safe.

    A pass may be tried again: it changes nothing.
    """

    def __init__(
        self,
        address: TritonAddress,
        model: str,
        *,
        sha256: str,
        precision: str,
        timeout_s: float,
        load_s: float = 60.0,
        unloads: bool = False,
        shares_memory: bool | None = None,
    ) -> None:
        self._address = address
        self._model = model
        self._needed = {SHA256: sha256, PRECISION: precision}
        self._timeout_s = timeout_s
        self._load_s = load_s
        self._unloads = unloads
        may_share = address.is_loopback if shares_memory is None else shares_memory
        self._regions = RegionPool(
            self._register, self._unregister, may_share=SHARED.is_dir() and may_share
        )
        self._budget = RetryBudget()
        self._lock = threading.Lock()
        self._loads = 0
        self._was_opened = False
        self._used_at = 0.0
        self._closing = threading.Event()
        self._client = connect(address)

    @property
    def place(self) -> str:
        """The server, as the setting says it."""
        return self._address.url

    @property
    def is_loading(self) -> bool:
        """Whether the server is loading the model for this engine at the moment."""
        return self._loads > 0

    def open(self, *, loads: bool = True) -> None:
        """Load the model unless it is loaded, and check its weights by its configuration.

        Raises ``EngineUnavailableError`` when the server cannot be reached, has no such model or
        has it with other weights, and ``DeadlineExceededError`` when it does not answer in time.
        """
        self._regions.resume()
        if not self._ask(lambda client: client.is_server_live(client_timeout=CHECK_S)):
            raise self._refusal("is not live", SOON_S)
        if not self._is_ready():
            if not loads:
                raise self._refusal(f"has {self._model} not loaded", SOON_S)
            self._load()
        self._compare_weights()
        self._was_opened = True
        # Who loads nothing only looks, and leaves the server as it is.
        if loads and self._regions.may_share:
            self._drop_left_regions()

    def check(self) -> None:
        """Ask whether the model is ready, with the weights that it must have; raises as ``open``."""
        if not self._is_ready():
            raise self._refusal(f"no longer has the model {self._model} loaded", SOON_S)
        # Exported and loaded again, it may be another: services of other weights share its name.
        self._compare_weights()
        self._regions.ask_again()

    def run(self, inputs: Tensors, outputs: Sequence[str]) -> Tensors:
        """Run one pass and return the outputs asked for.

        Raises ``EngineUnavailableError`` when the server cannot run it or its answer is none,
        ``ModelWarmingError`` when it has the model not loaded, ``DeadlineExceededError`` when it is
        late.
        """
        shapes = _output_shapes(inputs, outputs)
        ends_at = time.monotonic() + self._timeout_s
        retrying = Retrying(
            stop=self._is_over,
            wait=wait_random_exponential(multiplier=0.05, max=1.0),
            retry=retry_if_exception(self._may_retry),
            sleep=self._sleep,
            reraise=True,
        )
        try:
            answer: Tensors = retrying(self._run_once, inputs, shapes, ends_at)
        except InferenceServerException as error:
            raise failure_of(error, self.place, self._model) from error
        self._used_at = time.time()
        self._budget.give()
        return answer

    def interrupt(self) -> None:
        """End the calls that are on their way; later ones use a new connection."""
        with self._lock:
            if self._closing.is_set():
                return
            old = self._client
            try:
                self._client = connect(self._address)
            except (OSError, InvalidSettingError):
                _log.exception("A file for TLS cannot be read now; the connection stays.")
                return
        old.close()

    def close(self) -> None:
        """Release the model and of the connection; may be called twice."""
        with self._lock:
            if self._closing.is_set():
                return
            self._closing.set()
        self._regions.close()
        # Whoever loaded it may have been killed, and will not unload it.
        if self._unloads and self._was_opened:
            # Whatever goes wrong, the server is left as it is.
            with suppress(InferenceServerException):
                self._unload()
        self._client.close()

    def _ask(self, call: Callable[[InferenceServerClient], T]) -> T:
        """Make a call other than a pass; raise its failure as the contract has it."""
        try:
            with self._speaking():
                return call(self._client)
        except InferenceServerException as error:
            raise failure_of(error, self.place, self._model) from error

    @contextmanager
    def _speaking(self) -> Iterator[None]:
        try:
            yield
        except ValueError as error:
            # How gRPC says that a connection was closed under a call.
            raise InferenceServerException(str(error), status="StatusCode.CANCELLED") from error

    def _is_ready(self) -> bool:
        return bool(
            self._ask(
                lambda client: client.is_model_ready(self._model, VERSION, client_timeout=CHECK_S)
            )
        )

    def _load(self) -> None:
        with self._lock:
            self._loads += 1
        try:
            with self._speaking():
                self._client.load_model(self._model, client_timeout=self._load_s)
        except InferenceServerException as error:
            failure = failure_of(error, self.place, self._model)
            if isinstance(failure, DeadlineExceededError):
                raise self._refusal(
                    f"did not load {self._model} in {self._load_s:g} s", SOON_S
                ) from error
            if is_passing(error) or "CANCELLED" in str(error.status()):
                raise failure from error
            raise self._refusal(
                f"cannot load {self._model}: it is not in its repository, or not whole; write it "
                "with `steelyard triton export`",
                LATER_S,
            ) from error
        finally:
            with self._lock:
                self._loads -= 1

    def _compare_weights(self) -> None:
        config = self._ask(
            lambda client: client.get_model_config(self._model, VERSION, client_timeout=CHECK_S)
        ).config
        for name, needed in self._needed.items():
            actual = config.parameters[name].string_value if name in config.parameters else ""
            if actual != needed:
                self._was_opened = False  # it is another's now
                raise self._refusal(
                    f"has {self._model} with other weights than this service ({name} "
                    f"{actual[:16] or 'unknown'}, not {needed[:16]}); export it again with "
                    "`steelyard triton export` and load it again",
                    LATER_S,
                )

    def _unload(self) -> None:
        """Unload the model from the server, unless another process used it since."""
        model_stats = self._client.get_inference_statistics(
            self._model, VERSION, client_timeout=CHECK_S
        ).model_stats
        last_ms = max((model_stat.last_inference for model_stat in model_stats), default=0)
        if last_ms / 1000.0 <= self._used_at + _USED_S:
            self._client.unload_model(self._model, client_timeout=CHECK_S)

    def _may_retry(self, error: BaseException) -> bool:
        return (
            isinstance(error, InferenceServerException)
            and is_passing(error)
            and not self._closing.is_set()
        )

    def _is_over(self, state: RetryCallState) -> bool:
        """Return whether a pass that failed is tried no more; takes a try of the budget where not."""
        is_late = (state.seconds_since_start or 0.0) >= self._timeout_s
        return is_late or state.attempt_number >= ATTEMPTS or not self._budget.take()

    def _sleep(self, seconds: float) -> None:
        self._closing.wait(seconds)

    def _run_once(
        self, inputs: Tensors, shapes: dict[str, tuple[int, ...]], ends_at: float
    ) -> Tensors:
        for _ in range(REGION_TRIES):
            size = _shared_size(inputs, shapes) if self._regions.shares else 0
            region = self._regions.borrow(size) if size else None
            if region is None:
                break
            try:
                answer = self._infer(inputs, shapes, ends_at, region)
            except InferenceServerException as error:
                # Until it has ended its call the server may still write there.
                self._regions.discard(region)
                if not lacks_region(error):
                    raise
                self._regions.forget()
            except BaseException:
                self._regions.discard(region)
                raise
            else:
                self._regions.give_back(region)
                # The server works: one each pass, that none takes noticeably longer.
                self._regions.ask_again(1)
                return answer
        else:
            if self._regions.stop():
                _log.warning(
                    "The Triton server %s lacks memory that it just mapped, as several servers "
                    "behind one address do; large passes of %s are sent.",
                    self.place,
                    self._model,
                )
        return self._infer(inputs, shapes, ends_at, None)

    def _infer(
        self,
        inputs: Tensors,
        shapes: dict[str, tuple[int, ...]],
        ends_at: float,
        region: SharedRegion | None,
    ) -> Tensors:
        left_s = ends_at - time.monotonic()
        if left_s <= 0:
            raise InferenceServerException("no time left", status="StatusCode.DEADLINE_EXCEEDED")
        shared = {} if region is None else region.write(large_ones(inputs, SHARED_TENSOR))
        given = []
        for name, array in inputs.items():
            tensor = InferInput(name, array.shape, np_to_triton_dtype(array.dtype))
            if name in shared and region is not None:
                start, size = shared[name]
                tensor.set_shared_memory(region.name, size, start)
            else:
                tensor.set_data_from_numpy(array)
            given.append(tensor)
        expected = _requested_outputs(shapes, shared, is_shared=region is not None)
        requested = []
        for name, spec in expected.items():
            output = InferRequestedOutput(name)
            if spec.start is not None and region is not None:
                output.set_shared_memory(region.name, 4 * math.prod(spec.shape), spec.start)
            requested.append(output)
        with self._speaking():
            result = self._client.infer(
                self._model,
                given,
                VERSION,
                outputs=requested,
                timeout=int(left_s * 1e6),
                client_timeout=left_s,
            )
        return {name: self._read(result, name, spec, region) for name, spec in expected.items()}

    def _read(
        self, result: InferResult, name: str, expected: _Output, region: SharedRegion | None
    ) -> NDArray[np.float32]:
        """Return an output; raise where its shape or type does not fit this graph."""
        output = result.get_output(name)
        if output is None:
            raise self._lie(f"no {name}")
        if output.datatype != "FP32" or tuple(output.shape) != expected.shape:
            raise self._lie(f"{name} as {output.datatype} of shape {list(output.shape)}")
        shape = tuple(output.shape)
        if expected.start is not None and region is not None:
            array: Any = region.read(expected.start, shape)
        else:
            try:
                array = result.as_numpy(name)
            except (ValueError, InferenceServerException) as error:
                raise self._lie(f"{name} that cannot be read") from error
            if array is None or array.shape != shape or array.dtype != np.float32:
                raise self._lie(f"{name} that is not what it says")
        if not np.isfinite(array).all():
            raise self._lie(f"{name} with numbers that are not finite")
        values: NDArray[np.float32] = array
        return values

    def _lie(self, what: str) -> SteelyardError:
        return self._refusal(
            f"answered a pass of {self._model} with {what}; no answer is made of it", SOON_S
        )

    def _refusal(self, what: str, wait_s: float) -> SteelyardError:
        return EngineUnavailableError(
            f"The Triton server {self.place} {what}.", retry_after_s=wait_s
        )

    def _register(self, name: str, size: int) -> None:
        self._client.register_system_shared_memory(name, f"/{name}", size, client_timeout=CHECK_S)

    def _unregister(self, name: str) -> None:
        self._client.unregister_system_shared_memory(name, client_timeout=CHECK_S)

    def _drop_left_regions(self) -> None:
        """Unmap regions on the server that belong to services that were killed."""
        # It may be forbidden, and passes need none of it.
        with suppress(InferenceServerException, ValueError):
            known = self._client.get_system_shared_memory_status(client_timeout=CHECK_S).regions
            for name in left_regions(known):
                self._unregister(name)


def _shared_size(inputs: Tensors, shapes: dict[str, tuple[int, ...]]) -> int:
    """Return the bytes that a pass needs in shared memory; 0 where it is better sent."""
    n_bytes = sum(array.nbytes for array in inputs.values())
    if n_bytes + 4 * sum(map(math.prod, shapes.values())) < SHARED_PASS:
        return 0
    shared = place(large_ones(inputs, SHARED_TENSOR))
    ends = [start + size for start, size in shared.values()]
    outputs = _requested_outputs(shapes, shared, is_shared=True).values()
    ends += [
        output.start + 4 * math.prod(output.shape) for output in outputs if output.start is not None
    ]
    return max(ends, default=0)


def _output_shapes(inputs: Tensors, outputs: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """Return the shape of each output."""
    n_rows, length = inputs["input_ids"].shape
    decisions = inputs["marker_index"].shape
    shapes: dict[str, tuple[int, ...]] = {
        "logits": decisions,
        "marker_vectors": (*decisions, WIDTH),
        "pooled": inputs["pooled_past"].shape,
        **dict.fromkeys(PAST_OUTPUTS, (n_rows, length, WIDTH)),
    }
    return {name: shapes[name] for name in outputs}


def _requested_outputs(
    shapes: dict[str, tuple[int, ...]], shared: dict[str, tuple[int, int]], *, is_shared: bool
) -> dict[str, _Output]:
    """Return where each output arrives: large ones behind the inputs in shared memory."""
    if not is_shared:
        return {name: _Output(shape) for name, shape in shapes.items()}
    sizes = {name: 4 * math.prod(shape) for name, shape in shapes.items()}
    large = {name: size for name, size in sizes.items() if size >= SHARED_TENSOR}
    start = max((first + size for first, size in shared.values()), default=0)
    places = place(large, start)
    return {
        name: _Output(shape, places[name][0] if name in places else None)
        for name, shape in shapes.items()
    }
