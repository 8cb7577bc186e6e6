"""ONNX Runtime in this process, running one pass of the packed graph at a time."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from steelyard.errors import EngineUnavailableError
from steelyard.scoring.cancellation import before_pass

#: Inputs or outputs of a pass, by their names in the graph.
Tensors = dict[str, NDArray[np.generic]]

FLOAT32, INT8 = "float32", "int8"
#: The layer whose products are in float32 whatever the precision: the set-attention layer.
_EXACT_PREFIX = "set_layer."
_LOOKED_UP_PREFIX = "word_embeddings."
#: Past tokens from which on a pass gives its memory back: few requests are that long, and what one
#: needs would otherwise stay with the process. Seconds after which any pass does, so that a crowd's
#: memory goes with the crowd.
LARGE_PAST, _GIVE_BACK_S = 2_048, 60.0


class PassEngine(Protocol):
    """Runs passes of the graph, here or elsewhere. Safe to use from several threads."""

    def run(self, inputs: Tensors, outputs: Sequence[str]) -> Tensors:
        """Run one pass and return the outputs asked for."""

    def close(self) -> None:
        """Release the engine; a later ``run`` raises ``EngineUnavailableError``."""


class Engine:
    """Runs passes of the graph of its precision, on weights as they are stored; thread-safe."""

    def __init__(
        self,
        graph: bytes,
        weights: Mapping[str, NDArray[np.generic]],
        *,
        precision: str,
        threads: int = 0,
    ) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3  # errors; they are raised as well
        # Spinning threads make two busy processes on two cores many times slower.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self._give_back = onnxruntime.RunOptions()
        self._give_back.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
        #: When, by the clock that goes on alone, a pass gives the memory of those before back.
        self.gives_back_at = 0.0
        tensors = graph_weights(weights, precision)
        values = {
            name: onnxruntime.OrtValue.ortvalue_from_numpy(array) for name, array in tensors.items()
        }
        options.add_external_initializers(list(values), list(values.values()))
        # A session copies its weights, or packs them anew; tables that it only looks up it reads here.
        self._tables = {
            name: value for name, value in values.items() if name.startswith(_LOOKED_UP_PREFIX)
        }
        for name, table in self._tables.items():
            options.add_initializer(name, table)
        self._session: onnxruntime.InferenceSession | None = onnxruntime.InferenceSession(
            graph, options, providers=["CPUExecutionProvider"]
        )

    def run(self, inputs: Tensors, outputs: Sequence[str]) -> Tensors:
        """Run one pass and return the outputs asked for.

        Raises ``EngineUnavailableError`` when the engine is closed or the runtime fails, and
        ``DeadlineExceededError`` when its caller is gone (``cancellation.before_pass``).
        """
        check = before_pass.get()
        if check is not None:
            check()
        session = self._session
        if session is None:
            raise _closed()
        now = time.monotonic()
        past = inputs.get("past_channels")
        is_large = past is not None and past.size > LARGE_PAST
        gives_back = is_large or now >= self.gives_back_at
        if gives_back:
            # A large pass's memory holds its outputs until they are copied: the next gives it back.
            self.gives_back_at = now + _GIVE_BACK_S * (not is_large)
        try:
            values = session.run(list(outputs), inputs, self._give_back if gives_back else None)
        except Exception as error:
            message = "The scoring engine failed on this request; try it again."
            raise EngineUnavailableError(message, retry_after_s=1.0) from error
        return dict(zip(outputs, values, strict=True))

    def close(self) -> None:
        """Release the session; a later ``run`` raises ``EngineUnavailableError``."""
        self._session = None


def _closed() -> EngineUnavailableError:
    message = "The scoring engine is closed; start the service again."
    return EngineUnavailableError(message, retry_after_s=1.0)


def graph_weights(
    stored: Mapping[str, NDArray[np.generic]], precision: str
) -> dict[str, NDArray[np.generic]]:
    """Return the tensors that a graph takes from the stored weights.

    In ``float32`` every matrix is dequantised but the word embeddings, which the graph looks up as
    int8; in ``int8`` the encoder's matrices stay as they are.
    """
    tensors: dict[str, NDArray[np.generic]] = {}
    for name, value in stored.items():
        stem, _, part = name.rpartition(".")
        scale = stored.get(f"{stem}.scale")
        as_stored = precision == INT8 and not name.startswith(_EXACT_PREFIX)
        if scale is None or as_stored or name.startswith(_LOOKED_UP_PREFIX):
            tensors[name] = value
        elif part == "weight":
            tensors[name] = np.multiply(value, scale, dtype=np.float32)
        elif part == "bias":
            tensors[name] = value
    return tensors
