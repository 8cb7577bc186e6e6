"""Weights as training keeps them: read from a checkpoint or a base model's folder, averaged."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.numpy import load_file

from steelyard.scoring.assets import WEIGHTS, apart_of, read_manifest
from steelyard.training.model import PackedScorer
from steelyard.training.shape import Shape
from steelyard.training.weights import unpack_weights

CHECKPOINT = "checkpoint.pt"


def read_weights(path: Path) -> dict[str, torch.Tensor]:
    """Read a checkpoint's weights, or those of a base model's folder, dequantised."""
    if path.is_dir():
        stored = {k: v for file in WEIGHTS for k, v in load_file(path / file).items()}
        state = unpack_weights(stored, Shape())
        return {name: torch.from_numpy(value) for name, value in state.items()}
    weights: dict[str, torch.Tensor] = _load(path)["model"]
    return weights


def read_details(path: Path) -> dict[str, Any]:
    """Read a checkpoint's training state and recipe, as far as it has them."""
    content = _load(path)
    return {key: content[key] for key in ("state", "recipe") if key in content}


def read_apart(path: Path) -> int:
    """Return in how many of the lowest layers the questions of such weights see no context."""
    if path.is_dir():
        return apart_of(read_manifest(path))
    return int(read_details(path).get("recipe", {}).get("apart", 0))


def read_scorer(path: Path) -> PackedScorer:
    """Return the scorer that a checkpoint or a base model's folder holds, to ask it."""
    weights = read_weights(path)
    model = PackedScorer(apart=read_apart(path), n_layers=n_layers_of(weights)).eval()
    model.load_state_dict(weights)
    return model


def mean_weights(paths: Sequence[Path]) -> dict[str, torch.Tensor]:
    """Return the mean of the weights of several runs that share a start (Wortsman et al. 2022)."""
    read = [read_weights(path) for path in paths]
    return {
        # In float64, so that the mean of equal weights is these weights to the last bit.
        name: torch.stack([weights[name].double() for weights in read]).mean(0).float()
        for name in read[0]
    }


def _load(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    return content


def n_layers_of(names: Iterable[str]) -> int:
    """Return how many layers the model has whose weights have these names."""
    return 1 + max(int(name.split(".")[1]) for name in names if name.startswith("layers."))
