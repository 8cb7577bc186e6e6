"""The packed graph as one ONNX file with its weights inside, for hosts that load only such files."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from steelyard.errors import EngineUnavailableError


def embed_weights(graph: bytes, tensors: Mapping[str, NDArray[np.generic]]) -> bytes:
    """Put tensors into a graph, and check it."""
    try:
        import onnx
        from onnx import TensorProto, numpy_helper
    except ImportError as error:
        message = "An export for a GPU needs onnx; pip install 'steelyard[triton]'."
        raise EngineUnavailableError(message) from error
    model = onnx.load_model_from_string(graph)
    for tensor in model.graph.initializer:
        if tensor.data_location != TensorProto.EXTERNAL:
            continue
        value = tensors.get(tensor.name)
        if value is None:
            message = f"The model's graph takes a tensor {tensor.name} that its weights lack."
            raise EngineUnavailableError(message)
        tensor.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(value), tensor.name))
    onnx.checker.check_model(model)
    content: bytes = model.SerializeToString(deterministic=True)
    return content
