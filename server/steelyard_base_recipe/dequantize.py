"""Weights out of an encoder's ONNX graph that was quantised dynamically to int8.

Such a graph keeps a matrix as int8 with a scale and a zero point, for all of it or for each output,
under a name that the export made up. The node that multiplies by it is named after the layer.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

_STORED, _SCALE, _ZERO = "_quantized", "_scale", "_zero_point"
_PREFIX = "bert."
#: How the node of a layer's product is named; a layer of one row becomes a Gemm first.
_PRODUCTS = ("MatMul_quant", "Gemm_MatMul_quant")


def read_quantized(graph: Path) -> dict[str, NDArray[np.float32]]:
    """Return a graph's float32 parameters by the names that PyTorch gave them.

    Raise ``ValueError`` where no matrix of the graph is multiplied as int8.
    """
    model = onnx.load(graph)
    stored = {
        initializer.name: numpy_helper.to_array(initializer)
        for initializer in model.graph.initializer
    }
    parameters = {
        name.removeprefix(_PREFIX): np.asarray(value, np.float32)
        for name, value in stored.items()
        if value.dtype == np.float32 and not name.startswith("onnx::") and not name.endswith(_SCALE)
    }
    # A table that is looked up keeps its name.
    for name in stored:
        if name.endswith(f".weight{_STORED}"):
            base = name.removesuffix(_STORED)
            parameters[base.removeprefix(_PREFIX)] = _real(stored, base)
    n_products = 0
    for node in model.graph.node:
        base = node.input[1].removesuffix(_STORED) if node.op_type == "MatMulInteger" else ""
        layer, _, product = node.name.strip("/").replace("/", ".").rpartition(".")
        if f"{base}{_STORED}" in stored and product in _PRODUCTS:
            # A graph multiplies from the right, a layer of PyTorch from the left.
            weight = np.ascontiguousarray(_real(stored, base).T)
            parameters[f"{layer.removeprefix(_PREFIX)}.weight"] = weight
            n_products += 1
    if not n_products:
        msg = f"{graph} multiplies no matrix as int8; give a graph that was quantised dynamically."
        raise ValueError(msg)
    return parameters


def _real(stored: dict[str, NDArray[np.generic]], base: str) -> NDArray[np.float32]:
    zero = stored[f"{base}{_ZERO}"].astype(np.float32)
    scale = stored[f"{base}{_SCALE}"].astype(np.float32)
    real: NDArray[np.float32] = (stored[f"{base}{_STORED}"].astype(np.float32) - zero) * scale
    return real
