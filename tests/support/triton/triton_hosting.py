"""Triton's own server for tests: its environment, built once for all of them, and models in it."""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec
import numpy as np
import platformdirs
import pytest
from safetensors.numpy import save

from steelyard.errors import EngineUnavailableError
from steelyard.scoring.heads import Heads
from steelyard.scoring.merging import ADAPTER, ADAPTER_FACTS, AdapterFacts, base_hashes
from steelyard.scoring.reading import identity_at
from steelyard.scoring.tuned import FORMAT, ArtifactBase, ArtifactManifest
from steelyard.triton.environment import Environment, build_environment
from steelyard.triton.repository import ModelSource

_built: dict[str, Environment | str] = {}


def environments() -> Path:
    """Where environments of tests are kept between runs; each is named by its versions."""
    return platformdirs.user_cache_path("steelyard", appauthor=False) / "triton"


def triton_environment() -> Environment:
    """The environment, built where it is not; skips the test where it cannot be, and says why."""
    if "found" not in _built:
        lines: list[str] = []
        try:
            _built["found"] = build_environment(environments(), lines.append)
        except (EngineUnavailableError, OSError) as error:
            _built["found"] = f"Triton cannot run here: {error}"
    found = _built["found"]
    if isinstance(found, str):
        pytest.skip(found)
    return found


def write_lora_artifact(
    folder: Path, base: ModelSource, *, scale: float = 0.05, seed: int = 11
) -> ModelSource:
    """Write a fine-tune with an adapter and no heads, and return the sources of its model."""
    rng = np.random.default_rng(seed)
    tensors = {}
    for layer in (0, 3):
        for part, (n_in, n_out) in {"query": (384, 384), "feed_forward_in": (384, 1536)}.items():
            name = f"layers.{layer}.{part}"
            tensors[f"{name}.a"] = rng.normal(scale=0.05, size=(2, n_in)).astype(np.float32)
            tensors[f"{name}.b"] = rng.normal(scale=scale, size=(n_out, 2)).astype(np.float32)
    content = save(tensors)
    facts = AdapterFacts(
        base=base.files.manifest["name"],
        base_files=base_hashes(base.files),
        rank=2,
        sha256=hashlib.sha256(content).hexdigest(),
        trained_on="0" * 64,
        parity=0.0,
        parity_decisions=0,
        int8_difference=0.0,
    )
    folder.mkdir(parents=True)
    Heads([]).save(folder)
    files = {ADAPTER: content, ADAPTER_FACTS: msgspec.json.encode(facts)}
    return write_artifact(folder, base, files, has_adapter=True)


def write_artifact(
    folder: Path, base: ModelSource, files: dict[str, bytes], *, has_adapter: bool
) -> ModelSource:
    """Write these files beside those that are there: an artifact; return the sources of its model."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    manifest = ArtifactManifest(
        format=FORMAT,
        base=ArtifactBase(
            name=base.files.manifest["name"],
            sha256=identity_at(base.files.sha256, base.files.reading),
            engine=base.files.engine,
        ),
        method="sft",
        has_adapter=has_adapter,
        parent_sha256=None,
        versions={},
        files={
            path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()
        },
    )
    sent = msgspec.json.encode(manifest)
    (folder / "manifest.json").write_bytes(sent)
    return ModelSource("ft-ftj_test", hashlib.sha256(sent).hexdigest(), base.files, folder)
