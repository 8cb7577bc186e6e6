"""Fine-tunes with an adapter for tests: their artifacts, and the models that load them by a server."""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np
from safetensors.numpy import save

from random_model import sample_requests
from steelyard.calibration.temperature import TemperatureTable
from steelyard.decisions.rendering import RenderedRequest
from steelyard.scoring.assets import BaseModel, load_base_model, read_base_files
from steelyard.scoring.batching import Batcher
from steelyard.scoring.engine_host import RemoteHost
from steelyard.scoring.heads import Heads
from steelyard.scoring.merging import ADAPTER, ADAPTER_FACTS, AdapterFacts, base_hashes
from steelyard.scoring.triton_address import parse_scorer
from steelyard.scoring.tuned import FORMAT, ArtifactBase, ArtifactManifest, load_tuned
from steelyard.services.decide import DecideService
from steelyard.services.models import HostedModel
from steelyard.services.tuned_models import Base, TunedModels

REQUEST = RenderedRequest("Short.", sample_requests()[0].decisions)
ADAPTERS = ("ft-ftj_one", "ft-ftj_two", "ft-ftj_three")


@dataclass(frozen=True)
class Tuned:
    """A model that may be loaded."""

    adapter: str
    base: str = "random"

    @property
    def ref(self) -> str:
        return f"router@{1 + ADAPTERS.index(self.adapter)}"


def write_artifact(folder: Path, base: BaseModel, seed: int) -> str:
    """Write a LoRA model without heads; gives what names it."""
    folder.mkdir()
    files = read_base_files(base.scorer.engine, base.scorer.folder)
    rng = np.random.default_rng(seed)
    tensors = {
        "layers.0.query.a": rng.normal(scale=0.5, size=(2, 384)).astype(np.float32),
        "layers.0.query.b": rng.normal(scale=0.5, size=(384, 2)).astype(np.float32),
    }
    content = save(tensors)
    facts = AdapterFacts(
        base=base.scorer.name,
        base_files=base_hashes(files),
        rank=2,
        sha256=hashlib.sha256(content).hexdigest(),
        trained_on="0" * 64,
        parity=0.0,
        parity_decisions=0,
        int8_difference=0.0,
    )
    (folder / ADAPTER).write_bytes(content)
    (folder / ADAPTER_FACTS).write_bytes(msgspec.json.encode(facts))
    Heads([]).save(folder)
    manifest = ArtifactManifest(
        format=FORMAT,
        base=ArtifactBase(
            name=base.scorer.name, sha256=base.scorer.sha256, engine=base.scorer.engine
        ),
        method="sft",
        has_adapter=True,
        parent_sha256=None,
        versions={},
        files={
            path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()
        },
    )
    encoded = msgspec.json.encode(manifest)
    (folder / "manifest.json").write_bytes(encoded)
    return hashlib.sha256(encoded).hexdigest()


def open_models(
    url: str,
    base_folder: Path,
    fetch: Callable[[str], Path],
    closing: ExitStack,
    *,
    falls_back: bool,
) -> TunedModels:
    """Give models of which two are loaded at a time, their passes in a server."""
    host = RemoteHost(parse_scorer(url), falls_back=falls_back, timeout_s=30.0)
    closing.callback(host.close)
    base = load_base_model("onnxruntime-float32", 1, base_folder, host=host, hosted_name="random")
    closing.callback(base.scorer.close)
    queue = Batcher(base.scorer)
    closing.callback(queue.close)
    hosted = HostedModel(
        DecideService(
            model_name="random", temperatures=TemperatureTable(), tokenizer=base.tokenizer
        ),
        queue,
        engine=base.scorer.engine,
        description="A base.",
        release_date=dt.date(2026, 5, 1),
        price_nano=0,
        evaluation_key="0" * 64,
    )

    class Artifacts:
        def fetch(self, sha256: str) -> Path:
            return fetch(sha256)

    def load(folder, base, *, threads, adapter):
        return load_tuned(folder, base, threads=1, host=host, hosted_name=adapter)

    models = TunedModels(
        Artifacts(), {"random": Base(hosted, base.scorer)}, load, max_loaded=2, threads=1
    )
    closing.callback(models.close)
    return models


def answer(hosted: HostedModel) -> list[np.ndarray]:
    """The logits of a model that is loaded."""
    return [one.logits for one in hosted.queue.submit(REQUEST).result(60)]


def answer_alone(folder: Path, base: BaseModel) -> list[np.ndarray]:
    """The same without a server."""
    scorer = load_tuned(folder, base.scorer, threads=1)
    found = [one.logits for one in scorer.score([REQUEST])[0]]
    scorer.close()
    return found
