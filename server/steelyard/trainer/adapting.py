"""The LoRA loop: peft's adapter on the packed scorer, seeded, resumable to the bit.

The loss, per decision:

- ``sft``: cross-entropy of the scorer's logits on the targets.
- ``reward``: an answer should earn much and stay near the base: the expected reward less
  ``NEARNESS`` times the Kullback-Leibler divergence from the base. Every outcome's reward is known,
  so the best answer has a closed form, the base's probability times exp(reward / ``NEARNESS``)
  (Peters et al. 2010; Rafailov et al. 2023). Cross-entropy on it has the same optimum, is convex in
  the logits, and needs no sampling. Rewards count as the gate counts them: 0 for a decision's
  worst outcome, 1 for its best.

In both, cross-entropy of a linear probe on the context's vector is added, over all outcomes: heads
read that vector, and it is trained for telling a context's answer, whatever the outcomes' words.
The probes are thrown away.

Every draw of a step comes from the seed and the step's number, so that a run that goes on from a
checkpoint makes the steps that an unbroken one makes.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import torch
from peft import LoraConfig, get_peft_model_state_dict, inject_adapter_in_model
from peft.tuners.tuners_utils import BaseTunerLayer
from torch import Tensor, nn

from steelyard.decisions.rendering import RenderedDecision
from steelyard.scoring.assets import BaseFiles, read_base_files
from steelyard.scoring.merging import LINEARS, Pair, base_hashes, check_base, read_adapter
from steelyard.trainer.merging import is_written, write_merged
from steelyard.trainer.progress import OnStep
from steelyard.trainer.rows import TuningRow
from steelyard.trainer.units import (
    Unit,
    as_read,
    drawn,
    lay_out_units,
    scaled_rewards,
    usable_groups,
)
from steelyard.training.batches import ROW_LENGTHS, make_batches
from steelyard.training.model import WIDTH, PackedBatch, PackedScorer
from steelyard.training.shape import Shape
from steelyard.training.weights import unpack_weights

CHECKPOINT = "lora.checkpoint.pt"
MERGED = "merged"
#: Steps between checkpoints.
CHECKPOINT_EVERY = 10
#: LoRA's scaling, whatever the rank (peft's alpha is this times the rank).
SCALING = 2.0
#: Share of the steps over which the rate rises.
WARM_UP = 0.1
CLIP = 1.0
#: Weight of the divergence from the base in ``reward``, for rewards from 0 to 1.
NEARNESS = 0.1
#: Weight of the probes' loss, their learning rate relative to LoRA's, and the scale of their
#: logits: the vectors that they read have length one.
PROBE_WEIGHT, PROBE_RATE, PROBE_SCALE = 1.0, 10.0, 16.0
#: Tokens of rows whose activations are held at a time; a row of 512 takes about 200 MB.
ACTIVATION_TOKENS = 2_048
_NAMES = "|".join(LINEARS)
_TARGETS = rf"layers\.\d+\.({_NAMES})"


@dataclass(frozen=True, slots=True)
class Plan:
    """The arguments of a run, as ``steelyard.trainer.lora.train_lora`` describes them."""

    rank: int
    steps: int
    learning_rate: float
    seed: int
    method: str
    batch: int


def adapt(
    rows: Sequence[TuningRow],
    plan: Plan,
    *,
    base_folder: Path | None,
    parent: Path | None,
    folder: Path,
    on_step: OnStep,
    heldout: Sequence[TuningRow],
    threads: int,
) -> Path:
    """Train, merge, check and write, as ``train_lora`` describes."""
    files = read_base_files(folder=base_folder)
    started_from = None
    if parent is not None:
        adapter = read_adapter(parent)
        check_base(adapter.facts, files)
        started_from = adapter.pairs
    trained_on = _identity(rows, plan, files, started_from)
    merged = folder / MERGED
    if is_written(merged, trained_on):
        return merged
    folder.mkdir(parents=True, exist_ok=True)
    with _settled(threads):
        tuner = Tuner(rows, plan, files, started_from, folder / CHECKPOINT, trained_on)
        tuner.run(on_step)
        write_merged(
            tuner.model,
            tuner.pairs(),
            files,
            merged,
            rank=plan.rank,
            trained_on=trained_on,
            heldout=heldout,
        )
    return merged


class Tuner:
    """An adapter in training, at some step."""

    def __init__(
        self,
        rows: Sequence[TuningRow],
        plan: Plan,
        files: BaseFiles,
        started_from: dict[str, Pair] | None,
        checkpoint: Path,
        trained_on: str,
    ) -> None:
        self.plan, self.tokenizer, self.reading = plan, files.tokenizer, files.reading
        rows = [as_read(row, self.reading) for row in rows]
        self.checkpoint, self.trained_on = checkpoint, trained_on
        self.groups = usable_groups(rows, plan.method, self.tokenizer, self.reading)
        if not self.groups:
            raise ValueError(
                "No row can be trained on: every decision is longer than 512 tokens, or its "
                "rewards are all equal."
            )
        self.step = 0
        torch.manual_seed(plan.seed)
        self.model = _adapted(files, plan.rank, started_from)
        self.probes = _probes(self.groups)
        self.parameters = [p for p in self.model.parameters() if p.requires_grad]
        groups = [
            {"params": self.parameters, "peak": plan.learning_rate},
            {"params": list(self.probes.values()), "peak": plan.learning_rate * PROBE_RATE},
        ]
        self.optimizer = torch.optim.AdamW(groups, weight_decay=0.0)
        self._resume()

    def run(self, on_step: OnStep) -> None:
        """Make the steps that are left; keep a checkpoint now and then."""
        while self.step < self.plan.steps:
            rate = self._rate()
            loss = self._step(rate)
            self.step += 1
            if self.step % CHECKPOINT_EVERY == 0 or self.step == self.plan.steps:
                self._save()
            on_step(self.step, loss, rate)
        self.model.eval()

    def pairs(self) -> dict[str, Pair]:
        """Return the adapter's matrices by linear layer, its scaling folded into B."""
        tensors = {name: value.numpy() for name, value in self._adapter().items()}
        stems = [name.removesuffix(".lora_A.weight") for name in tensors if ".lora_A." in name]
        return {
            stem: (
                tensors[f"{stem}.lora_A.weight"],
                tensors[f"{stem}.lora_B.weight"] * np.float32(SCALING),
            )
            for stem in sorted(stems)
        }

    def _step(self, rate: float) -> float:
        plan = self.plan
        rng = np.random.default_rng([plan.seed, self.step, 1])
        for group in self.optimizer.param_groups:
            group["lr"] = group["peak"] * rate / plan.learning_rate
        units = [
            unit
            for index in drawn(len(self.groups), plan.batch, self.step, plan.seed)
            for unit in lay_out_units(
                self.groups[index], plan.method, self.tokenizer, rng, self.reading
            )
        ]
        weight = sum(len(unit.rows) ** 0.5 for unit in units)
        total = 0.0
        self.model.train()
        for part in _parts_of_step(units):
            (batch,) = make_batches([unit.item for unit in part])
            loss = self._loss(batch, part) / weight
            loss.backward()
            total += float(loss.detach())
        if not np.isfinite(total):
            raise FloatingPointError(
                f"The loss of LoRA is {total} at step {self.step + 1}; lower the learning rate."
            )
        torch.nn.utils.clip_grad_norm_(self.parameters, CLIP)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return total

    def _loss(self, batch: PackedBatch, units: Sequence[Unit]) -> Tensor:
        """Return the summed, weighted loss of a batch's decisions."""
        with self._autocast():
            logits, pooled = self.model(batch)
        targets = batch.targets
        if self.plan.method == "reward":
            targets = _near_base(self._base_logits(batch), batch)
        log_probabilities = torch.log_softmax(logits, -1).masked_fill(~batch.outcome_mask, 0.0)
        losses = -(targets * log_probabilities).sum(-1)
        rows = [row for unit in units for row in unit.rows]
        probed = torch.stack(
            [
                self._probe_loss(row, vector)
                for row, vector in zip(rows, pooled[batch.context_pools], strict=True)
            ]
        )
        return ((losses + PROBE_WEIGHT * probed) * batch.weights).sum()

    def _probe_loss(self, row: TuningRow, vector: Tensor) -> Tensor:
        labels = torch.from_numpy(row.labels)
        if self.plan.method == "reward":
            labels = torch.softmax(torch.from_numpy(scaled_rewards(row.labels)) / NEARNESS, -1)
        logits = self.probes[_key(row.decision)] @ vector * PROBE_SCALE
        return -(labels.float() * torch.log_softmax(logits, -1)).sum()

    def _base_logits(self, batch: PackedBatch) -> Tensor:
        layers = [m for m in self.model.modules() if isinstance(m, BaseTunerLayer)]
        for layer in layers:
            layer.enable_adapters(enabled=False)
        with torch.no_grad(), self._autocast():
            logits: Tensor = self.model(batch)[0]
        for layer in layers:
            layer.enable_adapters(enabled=True)
        return logits

    def _rate(self) -> float:
        """Return the learning rate of the next step."""
        warm_up = max(1, round(self.plan.steps * WARM_UP))
        warm = (self.step + 1) / warm_up
        cool = (self.plan.steps - self.step) / max(1, self.plan.steps - warm_up + 1)
        return self.plan.learning_rate * min(1.0, warm, cool)

    @staticmethod
    def _autocast() -> torch.autocast:
        """Return half the time a step where the processor has bfloat16, at no cost in quality."""
        return torch.autocast("cpu", torch.bfloat16, enabled=_has_bfloat16())

    def _adapter(self) -> dict[str, Tensor]:
        return {
            name: value.detach() for name, value in get_peft_model_state_dict(self.model).items()
        }

    def _save(self) -> None:
        content = {
            "trained_on": self.trained_on,
            "step": self.step,
            "parameters": [p.detach() for p in self.parameters],
            "probes": self.probes,
            "optimizer": self.optimizer.state_dict(),
        }
        partial = self.checkpoint.with_name(self.checkpoint.name + ".partial")
        with partial.open("wb") as file:
            torch.save(content, file)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(self.checkpoint)

    def _resume(self) -> None:
        if not self.checkpoint.exists():
            return
        content = torch.load(self.checkpoint, weights_only=True)
        if content["trained_on"] != self.trained_on:
            return  # of other rows or settings: start from the beginning
        with torch.no_grad():
            for parameter, saved in zip(self.parameters, content["parameters"], strict=True):
                parameter.copy_(saved)
            for key, probe in self.probes.items():
                probe.copy_(content["probes"][key])
        self.optimizer.load_state_dict(content["optimizer"])
        self.step = content["step"]


def resized(pair: Pair, rank: int, fresh: Pair) -> Pair:
    """Return an adapter's pair, A of (old rank, n_in) and B of (n_out, old rank), at another rank.

    The product stays where the rank does not fall; else it is the nearest of that rank (Eckart and
    Young 1936). ``fresh`` is an untrained pair of the new rank, whose B is zero.
    """
    a, b = pair
    old = a.shape[0]
    if old == rank:
        return pair
    if old < rank:
        return (np.concatenate([a, fresh[0][old:]]), np.concatenate([b, fresh[1][:, old:]], axis=1))
    left, sizes, right = np.linalg.svd(b.astype(np.float64) @ a.astype(np.float64))
    roots = np.sqrt(sizes[:rank])
    return (
        (roots[:, None] * right[:rank]).astype(np.float32),
        (left[:, :rank] * roots).astype(np.float32),
    )


def _adapted(files: BaseFiles, rank: int, started_from: dict[str, Pair] | None) -> PackedScorer:
    """Make the base's scorer with a trainable adapter, everything else frozen."""
    model = PackedScorer(apart=files.apart)
    state = unpack_weights(files.weights, Shape())
    model.load_state_dict({name: torch.from_numpy(value) for name, value in state.items()})
    model.requires_grad_(requires_grad=False)
    config = LoraConfig(r=rank, lora_alpha=round(SCALING * rank), target_modules=_TARGETS)
    inject_adapter_in_model(config, model)
    if started_from is not None:
        modules = dict(model.named_modules())
        with torch.no_grad():
            for name, (a, b) in started_from.items():
                layer = modules[name]
                into = layer.lora_A["default"].weight, layer.lora_B["default"].weight
                fresh = into[0].numpy().copy(), into[1].numpy().copy()
                pair = resized((a, b / np.float32(SCALING)), rank, fresh)
                for parameter, value in zip(into, pair, strict=True):
                    parameter.copy_(torch.from_numpy(value))
    return model


def _probes(groups: Sequence[tuple[TuningRow, ...]]) -> dict[str, nn.Parameter]:
    probes: dict[str, nn.Parameter] = {}
    for group in groups:
        for row in group:
            n_outcomes = len(row.decision.outcomes)
            probes.setdefault(_key(row.decision), nn.Parameter(torch.zeros(n_outcomes, WIDTH)))
    return probes


def _key(decision: RenderedDecision) -> str:
    content = msgspec.json.encode([decision.kind, decision.question, decision.outcomes])
    return hashlib.sha256(content).hexdigest()


def _has_bfloat16() -> bool:
    """Return whether this processor multiplies bfloat16; elsewhere it would be emulated, slowly."""
    capabilities = torch.cpu.get_capabilities()
    return any(capabilities.get(name, False) for name in ("amx_bf16", "avx512_bf16", "bf16"))


def _near_base(base_logits: Tensor, batch: PackedBatch) -> Tensor:
    """Return the answers of most reward near the base's: base times exp(reward / nearness)."""
    return torch.softmax(base_logits + batch.targets / NEARNESS, -1)


def _parts_of_step(units: Sequence[Unit]) -> Iterator[list[Unit]]:
    """Cut a step's units into parts of one row length each, of up to ``ACTIVATION_TOKENS`` tokens."""
    shorter = 0
    for length in ROW_LENGTHS:
        part: list[Unit] = []
        size = 0
        for unit in units:
            tokens = len(unit.item.layout)
            if not shorter < tokens <= length:
                continue
            if part and size + tokens > ACTIVATION_TOKENS:
                yield part
                part, size = [], 0
            part.append(unit)
            size += tokens
        if part:
            yield part
        shorter = length


def _identity(
    rows: Sequence[TuningRow], plan: Plan, files: BaseFiles, started_from: dict[str, Pair] | None
) -> str:
    """Return the SHA-256 of everything that decides a run."""
    digest = hashlib.sha256()
    facts: list[Any] = [
        plan,
        base_hashes(files),
        [version(name) for name in ("torch", "peft", "numpy")],
        [CHECKPOINT_EVERY, SCALING, WARM_UP, CLIP, NEARNESS, ACTIVATION_TOKENS],
        [PROBE_WEIGHT, PROBE_RATE, PROBE_SCALE],
    ]
    digest.update(msgspec.json.encode(facts))
    for row in rows:
        digest.update(msgspec.json.encode([row.context, _key(row.decision), row.labels.tolist()]))
    for name, pair in sorted((started_from or {}).items()):
        digest.update(name.encode())
        for matrix in pair:
            digest.update(np.ascontiguousarray(matrix).tobytes())
    return digest.hexdigest()


@contextmanager
def _settled(threads: int) -> Iterator[None]:
    """Make torch repeat itself bit by bit, and leave it as it was."""
    n_threads, deterministic = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    generator = torch.get_rng_state()
    torch.use_deterministic_algorithms(mode=True)
    torch.set_num_threads(threads or n_threads)
    try:
        yield
    finally:
        torch.set_num_threads(n_threads)
        torch.use_deterministic_algorithms(mode=deterministic)
        torch.set_rng_state(generator)
