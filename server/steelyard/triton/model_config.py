"""The text of a model's ``config.pbtxt``: Triton's ``ModelConfig`` as protobuf text.

Written without protobuf, so that a repository can be exported where Triton's client is not
installed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Backend = Literal["python", "onnxruntime", "tensorrt"]

#: Microseconds that a pass may wait in Triton's queue before it is refused. A caller may ask for
#: less with each request, and is served within its own deadline, which is far below this.
QUEUE_TIMEOUT_US = 60_000_000
#: Passes that may wait for a model before more are refused. Each worker of a service has one or a
#: few on the way, since requests wait, and are packed, in the service.
QUEUE_SIZE = 128

_TYPES = {
    "tensor(float)": "TYPE_FP32",
    "tensor(float16)": "TYPE_FP16",
    "tensor(int32)": "TYPE_INT32",
    "tensor(int64)": "TYPE_INT64",
}


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """An input or output of a graph."""

    name: str
    type: str
    dims: tuple[int, ...]


def render_config(
    name: str,
    *,
    backend: Backend,
    inputs: Sequence[TensorSpec],
    outputs: Sequence[TensorSpec],
    parameters: Mapping[str, str],
    instances: int = 1,
) -> str:
    """Return the text of a model's configuration.

    The inputs of a pass are ragged: rows, tokens, decisions, outcomes and past all vary, and the rows
    of two passes do not go together without new block ids. So the server stacks nothing
    (``max_batch_size: 0``) and merges nothing: passes come packed. ``dynamic_batching`` is only for its
    queue, whose length and waits it bounds.
    """
    is_gpu = backend != "python"
    fields: dict[str, Any] = {
        "name": name,
        "backend": "onnxruntime" if is_gpu else "python",
        "max_batch_size": 0,
        "version_policy": {"specific": {"versions": [1]}},
        "input": [_tensor(spec) for spec in inputs],
        "output": [_tensor(spec) for spec in outputs],
        "instance_group": [
            {"count": instances, "kind": _Enum("KIND_GPU" if is_gpu else "KIND_CPU")}
        ],
        "dynamic_batching": {
            "default_queue_policy": {
                "timeout_action": _Enum("REJECT"),
                "default_timeout_microseconds": QUEUE_TIMEOUT_US,
                "allow_timeout_override": True,
                "max_queue_size": QUEUE_SIZE,
            }
        },
        "parameters": [
            {"key": key, "value": {"string_value": value}}
            for key, value in sorted(parameters.items())
        ],
    }
    if backend == "tensorrt":
        accelerator = {
            "name": "tensorrt",
            # Lower precisions differ by more than the check allows.
            "parameters": [{"key": "precision_mode", "value": "FP32"}],
        }
        fields["optimization"] = {
            "execution_accelerators": {"gpu_execution_accelerator": [accelerator]}
        }
    if backend == "onnxruntime":
        # A CUDA graph would be recorded for every new shape, and no two passes have the same.
        fields["optimization"] = {"cuda": {"graphs": False}}
    return "".join(_lines(fields))


class _Enum(str):
    """A value written without quotes."""

    __slots__ = ()


def _tensor(spec: TensorSpec) -> dict[str, Any]:
    return {"name": spec.name, "data_type": _Enum(_TYPES[spec.type]), "dims": list(spec.dims)}


def _lines(fields: Mapping[str, Any], indent: str = "") -> list[str]:
    lines = []
    for name, value in fields.items():
        if isinstance(value, list) and not (value and isinstance(value[0], dict)):
            if value:
                lines.append(f"{indent}{name}: [{', '.join(map(str, value))}]\n")
            continue
        for entry in value if isinstance(value, list) else [value]:
            if isinstance(entry, Mapping):
                lines += [f"{indent}{name} {{\n", *_lines(entry, indent + "  "), f"{indent}}}\n"]
            else:
                lines.append(f"{indent}{name}: {_scalar(entry)}\n")
    return lines


def _scalar(value: bool | int | str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, _Enum | int):
        return str(value)
    return json.dumps(value)
