"""A model of Triton's Python backend: passes of the packed graph on ONNX Runtime.

This file is copied into model repositories and runs in the environment of the host, where neither this
package nor anything but NumPy and ONNX Runtime is installed. It imports Triton's module when a model is
loaded, as it is missing elsewhere.
"""

import hashlib
import json
from os import environ  # noqa: TID251  # written, not read
from pathlib import Path
from typing import Any

# The host has no other way: ONNX Runtime sends events to its maker unless this is set before.
environ["ORT_DISABLE_TELEMETRY"] = "1"

GRAPH, WEIGHTS = "graph.onnx", "weights.npz"
#: A pass whose inputs are larger, in bytes, returns its memory to the system: it is part of a long
#: request, and the short ones after it need little.
LARGE = 4 * 1024 * 1024


class TritonPythonModel:
    """One instance of a model: a process of its own, with a session of its own."""

    def initialize(self, args: dict[str, str]) -> None:
        """Load the graph with its weights; raises when a file is not the one that was exported."""
        import numpy as np
        import onnxruntime
        import triton_python_backend_utils

        if int(np.__version__.partition(".")[0]) >= 2:
            # With NumPy 2 this backend answers with outputs that are empty, and says nothing.
            raise RuntimeError(
                f"The environment has NumPy {np.__version__}; this backend needs one below 2."
            )
        self._triton = triton_python_backend_utils
        parameters = json.loads(args["model_config"])["parameters"]
        folder = Path(args["model_repository"]) / args["model_version"]
        for name in (GRAPH, WEIGHTS):
            with (folder / name).open("rb") as file:
                sha256 = hashlib.file_digest(file, "sha256").hexdigest()
            if sha256 != parameters[f"{name}.sha256"]["string_value"]:
                raise RuntimeError(f"{name} is not the file that was exported; export it again.")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = int(parameters["threads"]["string_value"])
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        # Threads that spin while they wait take the cores from the server that feeds them.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        with np.load(folder / WEIGHTS, allow_pickle=False) as stored:
            tensors = {name: stored[name] for name in stored.files}
        values = [onnxruntime.OrtValue.ortvalue_from_numpy(array) for array in tensors.values()]
        options.add_external_initializers(list(tensors), values)
        self._session = onnxruntime.InferenceSession(
            (folder / GRAPH).read_bytes(), options, providers=["CPUExecutionProvider"]
        )
        self._inputs = [given.name for given in self._session.get_inputs()]
        self._tidy = onnxruntime.RunOptions()
        self._tidy.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")

    def execute(self, requests: list[Any]) -> list[Any]:
        """Run each request's pass, and return the outputs that it asks for."""
        return [self._answer(request) for request in requests]

    def _answer(self, request: Any) -> Any:
        triton = self._triton
        try:
            requested_output_names = list(request.requested_output_names())
            inputs = {
                name: triton.get_input_tensor_by_name(request, name).as_numpy()
                for name in self._inputs
            }
            is_large = sum(array.nbytes for array in inputs.values()) > LARGE
            values = self._session.run(
                requested_output_names, inputs, self._tidy if is_large else None
            )
        except Exception as error:  # noqa: BLE001  whatever it is, the caller is told
            return triton.InferenceResponse(error=triton.TritonError(f"The pass failed: {error}"))
        outputs = [
            triton.Tensor(name, value)
            for name, value in zip(requested_output_names, values, strict=True)
        ]
        return triton.InferenceResponse(output_tensors=outputs)
