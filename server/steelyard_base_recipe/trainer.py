"""The training loop of the base model: seeded, resumable, logged."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import torch
from torch import Tensor

from steelyard.decisions.rendering import render_context
from steelyard.scoring.tokenizer import Tokenizer
from steelyard.training.batches import Item, make_batches, make_item
from steelyard.training.model import NEW_PARTS, PackedBatch, PackedScorer
from steelyard_base_recipe.anchor import Anchor
from steelyard_base_recipe.augment import augment, plain_examples
from steelyard_base_recipe.behaviours import behaviours
from steelyard_base_recipe.checkpoints import CHECKPOINT
from steelyard_base_recipe.mixture import Mixture, MixtureRow
from steelyard_base_recipe.teacher import ScorerTeacher

LOG = "log.jsonl"
PRECISIONS = ("bfloat16", "float32")


@dataclass(frozen=True, slots=True)
class BaseRecipe:
    """Everything that decides a run.

    Raise ``ValueError`` when the precision is neither.
    """

    #: Tokens to train on, padding not counted; texts alone for the similarity channel are.
    tokens: int = 12_000_000
    #: Tokens of packed requests in a step, texts alone not counted.
    tokens_per_step: int = 4_096
    learning_rate: float = 1.5e-4
    new_learning_rate: float = 5e-4
    warmup_steps: int = 100
    #: Share of the tokens, at the end, over which the rate falls linearly to zero; the rate is
    #: constant before (Hu et al. 2024, "warmup-stable-decay").
    decay: float = 0.3
    weight_decay: float = 0.01
    clip: float = 1.0
    anchor: float = 4.0
    layer_decay: float = 0.9
    seed: int = 1
    full_attention: bool = False
    #: In how many of the lowest layers a question and its outcomes do not see the context.
    apart: int = 0
    #: Tokens between validations; each also writes a checkpoint.
    validate_every: int = 750_000
    validation_rows: int = 40
    save_every_s: float = 600.0
    #: Also keep the weights of every validation at or past this many tokens, as
    #: ``weights-TOKENS.pt``; 0 for none.
    keep_at: int = 0
    #: Of the matrix products, ``bfloat16`` or ``float32``. On a processor without bfloat16 matrix
    #: units float32 is the faster.
    precision: str = "bfloat16"
    #: The encoder that the run begins with, of ``steelyard_base_recipe.start.STARTS``.
    start: str = "minilm-6"

    def __post_init__(self) -> None:
        if self.precision not in PRECISIONS:
            msg = f"precision is {self.precision!r}; expected one of {', '.join(PRECISIONS)}."
            raise ValueError(msg)


@dataclass(slots=True)
class TrainingState:
    """Where a run is."""

    step: int = 0
    tokens: int = 0
    seconds: float = 0.0


class BaseTrainer:
    """Trains a :class:`PackedScorer` on a mixture and writes its log and checkpoints."""

    def __init__(
        self,
        model: PackedScorer,
        mixture: Mixture,
        validation: dict[str, list[MixtureRow]],
        tokenizer: Tokenizer,
        recipe: BaseRecipe,
        folder: Path,
        device: torch.device,
        report: Callable[[dict[str, Any]], None],
        start: PackedScorer,
        teacher: PackedScorer | None = None,
        *,
        behaves: bool = False,
    ) -> None:
        self.model = model.to(device)
        self._behaves = behaves
        self.mixture, self.tokenizer, self.recipe = mixture, tokenizer, recipe
        self.folder, self.device, self.report = folder, device, report
        self.state = TrainingState()
        self.validation = {
            source: [
                item
                for row in rows[: recipe.validation_rows]
                if (item := plain_item(row, tokenizer)) is not None
            ]
            for source, rows in sorted(validation.items())
        }
        # Word embeddings stay as they are: rare words would drift, and a later build shares them.
        model.word_embeddings.weight.requires_grad_(False)
        self.optimizer = torch.optim.AdamW(
            parameter_groups(model, recipe),
            weight_decay=recipe.weight_decay,
            betas=(0.9, 0.98),
            fused=True,
        )
        is_lowered = recipe.precision == "bfloat16"
        self._lowered = Lowered(self.model) if is_lowered else None
        self.teacher: ScorerTeacher | None = None
        self.anchor: Anchor | None = None
        if teacher is not None:
            teacher = lowered(teacher) if is_lowered else teacher
            self.teacher = ScorerTeacher(teacher, device, self.autocast)
        elif recipe.anchor > 0:  # a teacher's vectors are those of texts that it reads anyway
            start = lowered(start) if is_lowered else start
            self.anchor = Anchor(start, device, self.autocast)
        self.drifts: list[float] = []
        folder.mkdir(parents=True, exist_ok=True)
        self._resume()

    def run(self, until: int | None = None) -> TrainingState:
        """Train until the recipe's tokens are seen, or so many, and return the state at the end.

        A run that stops before the recipe's end leaves a checkpoint, and says nothing of itself.
        """
        recipe, state = self.recipe, self.state
        end = recipe.tokens if until is None else min(until, recipe.tokens)
        started, done = time.monotonic(), state.seconds
        saved = started
        losses: list[float] = []
        next_validation = (state.tokens // recipe.validate_every + 1) * recipe.validate_every
        while state.tokens < end:
            losses.append(self._step())
            state.seconds = done + time.monotonic() - started
            if state.step % 50 == 0:
                figures = {"train_loss": float(np.mean(losses)), "rate": self._rate()}
                if self.drifts:
                    figures["drift"] = float(np.mean(self.drifts))
                self._log(**figures)
                losses.clear()
                self.drifts.clear()
            if state.tokens >= next_validation or state.tokens >= recipe.tokens:
                next_validation += recipe.validate_every
                self._log(validation=self.validate(), **self._behaviours())
                self._save(keeps=True)
                saved = time.monotonic()
            elif state.tokens >= end or time.monotonic() - saved >= recipe.save_every_s:
                self._save()
                saved = time.monotonic()
        return state

    def validate(self) -> dict[str, dict[str, float]]:
        """Return log loss and accuracy for each validation source and their mean."""
        figures = {}
        for source, items in self.validation.items():
            losses, right = [], []
            for logits, batch in self.predict(items):
                losses.append(soft_cross_entropy(logits, batch)[1])
                right.append((logits.argmax(-1) == batch.targets.argmax(-1)).float())
            figures[source] = {
                "log_loss": float(torch.cat(losses).mean()),
                "accuracy": float(torch.cat(right).mean()),
            }
        figures["mean"] = {
            name: float(np.mean([figure[name] for figure in figures.values()]))
            for name in ("log_loss", "accuracy")
        }
        return figures

    def _behaviours(self) -> dict[str, dict[str, float]]:
        """Return the figures of the behaviour suite, if this run asks it."""
        if not self._behaves:
            return {}
        return {"behaviour": behaviours(self.model, self.tokenizer, self.autocast)}

    def predict(self, items: list[Item]) -> Iterator[tuple[torch.Tensor, Any]]:
        """Yield logits and batch for items, some hundred at a time."""
        self.model.eval()
        for start in range(0, len(items), 64):
            batches = make_batches(
                items[start : start + 64], full_attention=self.recipe.full_attention
            )
            for batch in (b.to(self.device) for b in batches):
                with torch.no_grad(), self.autocast():
                    yield self.model(batch)[0], batch
        self.model.train()

    def _step(self) -> float:
        rng = np.random.default_rng([self.recipe.seed, self.state.step])
        items: list[Item] = []
        size = 0
        while size < self.recipe.tokens_per_step:
            for row in self.mixture.sample(rng, 8):
                context, examples = augment(
                    row, self.mixture, rng, has_teacher=self.teacher is not None
                )
                item = make_item(context, examples, self.tokenizer)
                if item is not None:
                    items.append(item)
                    size += len(item.layout)
        batches = make_batches(items, full_attention=self.recipe.full_attention)
        weight = sum(float(batch.weights.sum()) for batch in batches)
        n_pools = sum(batch.n_pools for batch in batches)
        total = 0.0
        for group in self.optimizer.param_groups:
            group["lr"] = group["peak"] * self._rate()
        model = self.model if self._lowered is None else self._lowered.refreshed()
        for batch in (b.to(self.device) for b in batches):
            vectors = None
            if self.teacher is not None:
                batch.targets, vectors = self.teacher(batch)
            elif self.anchor is not None:
                vectors = self.anchor.vectors(batch.texts)
            with self.autocast():
                logits, pooled = model(batch)
                _, losses = soft_cross_entropy(logits, batch)
            loss = (losses * batch.weights).sum() / weight
            if vectors is not None:
                drift = 1.0 - (pooled * vectors).sum(-1)
                self.drifts.append(float(drift.detach().mean()))
                loss = loss + self.recipe.anchor * drift.sum() / n_pools
            loss.backward()
            total += float((losses.detach() * batch.weights).sum()) / weight
            self.state.tokens += batch.n_tokens
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.recipe.clip)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.state.step += 1
        if not np.isfinite(total):
            msg = f"The loss is {total} at step {self.state.step}; lower the learning rate."
            raise FloatingPointError(msg)
        return total

    def _rate(self) -> float:
        """Return the share of the peak learning rate that is in force."""
        warm = min(1.0, (self.state.step + 1) / self.recipe.warmup_steps)
        left = 1.0 - self.state.tokens / self.recipe.tokens
        cool = min(1.0, left / self.recipe.decay) if self.recipe.decay > 0 else 1.0
        return min(warm, max(cool, 0.0))

    def autocast(self) -> torch.autocast:
        """Return the context in which the run's precision is that of matrix products."""
        return torch.autocast(
            self.device.type, torch.bfloat16, enabled=self.recipe.precision == "bfloat16"
        )

    def _log(self, **figures: Any) -> None:
        line = {
            "step": self.state.step,
            "tokens": self.state.tokens,
            "seconds": round(self.state.seconds, 1),
            **figures,
        }
        with (self.folder / LOG).open("ab") as log:
            log.write(msgspec.json.encode(line) + b"\n")
        self.report(line)

    def _save(self, *, keeps: bool = False) -> None:
        content = {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "state": asdict(self.state),
            "recipe": asdict(self.recipe),
        }
        partial = self.folder / f"{CHECKPOINT}.partial"
        torch.save(content, partial)
        partial.replace(self.folder / CHECKPOINT)
        if keeps and 0 < self.recipe.keep_at <= self.state.tokens:
            path = self.folder / f"weights-{self.state.tokens}.pt"
            torch.save({key: content[key] for key in ("model", "state", "recipe")}, path)

    def _resume(self) -> None:
        path = self.folder / CHECKPOINT
        if path.exists():
            content = torch.load(path, map_location=self.device, weights_only=True)
            apart = int(content["recipe"].get("apart", 0))
            if apart != self.recipe.apart:
                msg = (
                    f"The run in {self.folder} has apart {apart}, and {self.recipe.apart} is asked "
                    f"for; resume it with --apart {apart}, or choose another folder."
                )
                raise ValueError(msg)
            self.model.load_state_dict(content["model"])
            peaks = [group["peak"] for group in self.optimizer.param_groups]
            self.optimizer.load_state_dict(content["optimizer"])
            for group, peak in zip(self.optimizer.param_groups, peaks, strict=True):
                group["peak"] = peak
            self.state = TrainingState(**content["state"])


class Lowered:
    """A copy of a model with bfloat16 matrices: its gradients are added to the model's.

    Autocast alone casts every matrix again for each batch, and keeps states in float32 between them:
    measured on two cores with AMX, a step takes 7 % more.
    """

    def __init__(self, model: PackedScorer) -> None:
        self._copy = lowered(model)
        self._pairs = list(zip(model.parameters(), self._copy.parameters(), strict=True))
        for own, copied in self._pairs:
            if copied.requires_grad:
                copied.register_post_accumulate_grad_hook(partial(_add_gradient, own))

    def refreshed(self) -> PackedScorer:
        """Return the copy with the model's weights as they are now."""
        with torch.no_grad():
            for own, copied in self._pairs:
                if copied.requires_grad:
                    copied.copy_(own)
        return self._copy


def lowered(model: PackedScorer) -> PackedScorer:
    """Return a copy of a model with its matrices in bfloat16, and the rest in float32."""
    copied = copy.deepcopy(model)
    for module in copied.modules():
        if isinstance(module, torch.nn.Linear | torch.nn.Embedding):
            module.to(torch.bfloat16)
    return copied


def _add_gradient(own: torch.nn.Parameter, copied: torch.Tensor) -> None:
    """Add the gradient of a copied parameter to its own, in float32."""
    gradient, copied.grad = copied.grad, None
    if gradient is not None:
        own.grad = gradient.float() if own.grad is None else own.grad.add_(gradient)


def parameter_groups(model: PackedScorer, recipe: BaseRecipe) -> list[dict[str, Any]]:
    """Group trainable parameters by their peak learning rate."""
    by_rate: dict[float, list[torch.nn.Parameter]] = {}
    for name, parameter in model.named_parameters():
        if not parameter.requires_grad:
            continue
        if name.startswith(NEW_PARTS):
            rate = recipe.new_learning_rate
        elif name.startswith("layers."):
            depth = len(model.layers) - 1 - int(name.split(".")[1])
            rate = recipe.learning_rate * recipe.layer_decay**depth
        else:
            rate = recipe.learning_rate * recipe.layer_decay ** len(model.layers)
        by_rate.setdefault(rate, []).append(parameter)
    return [{"params": parameters, "peak": rate} for rate, parameters in by_rate.items()]


def plain_item(row: MixtureRow, tokenizer: Tokenizer) -> Item | None:
    """Lay a row out as an application would send it; None if it does not fit a row."""
    return make_item(render_context(row.context), plain_examples(row), tokenizer)


def soft_cross_entropy(logits: Tensor, batch: PackedBatch) -> tuple[Tensor, Tensor]:
    """Return the weighted mean log loss on soft targets and the log loss of each decision."""
    log_probabilities = torch.log_softmax(logits, dim=-1).masked_fill(~batch.outcome_mask, 0.0)
    losses = -(batch.targets * log_probabilities).sum(-1)
    return (losses * batch.weights).sum() / batch.weights.sum(), losses
