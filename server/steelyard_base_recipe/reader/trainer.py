"""The training loop of the reader: seeded, taken up again after a break, logged."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from steelyard.scoring.tokenizer import Tokenizer
from steelyard_base_recipe.reader.judgement import judge
from steelyard_base_recipe.reader.model import FALSE, N_LABELS, TRUE, Reader, to_batch
from steelyard_base_recipe.reader.rows import Pool, ReaderRow, Twin, length_of

LOG, CHECKPOINT = "log.jsonl", "checkpoint.pt"
_BATCHES_A_STEP = 2
#: A part of a batch ends where a row would fill less than this of its width, once it has so many tokens.
_LEAST_FILLED, _LEAST_TOKENS = 0.85, 300


@dataclass(frozen=True, slots=True)
class ReaderRecipe:
    """Everything that decides a run."""

    #: Tokens of texts and lines to train on, padding not counted.
    tokens: int = 40_000_000
    #: Tokens of rows in a step, twins not counted.
    tokens_per_step: int = 4_096
    #: Share of those rows that are written ones.
    written_share: float = 0.4
    #: Share of those rows that say what kind of text a labelled one is; the others are public pairs.
    kinds_share: float = 0.25
    #: Tokens of pairs of twins in a step.
    twin_tokens_per_step: int = 4_200
    #: Weight of the term that puts the text which makes a line true above its twin.
    twin_weight: float = 1.0
    #: Shares of the written rows and twins that are read as statements, and as their negations.
    statement_share: float = 0.45
    negation_share: float = 0.2
    #: Share of the rows and twins that get sentences of other texts around their own.
    surrounded_share: float = 0.12
    #: Layers in which line and text do not see each other.
    apart: int = 0
    #: Weight of the labels and twins beside a teacher's logits and layers.
    label_weight: float = 0.5
    learning_rate: float = 8e-5
    warmup_steps: int = 40
    #: Share of the tokens, at the end, over which the rate falls linearly to zero.
    decay: float = 0.3
    weight_decay: float = 0.01
    clip: float = 1.0
    seed: int = 1
    validate_every: int = 400_000
    validation_rows: int = 600
    save_every_s: float = 300.0


class ReaderTrainer:
    """Trains a :class:`Reader` on pairs and twins, and writes its log and checkpoint.

    A run that was ended is taken up at its checkpoint, with another order of rows from there on.
    """

    def __init__(
        self,
        reader: Reader,
        tokenizer: Tokenizer,
        written: Sequence[ReaderRow],
        public: Sequence[ReaderRow],
        kinds: Sequence[ReaderRow],
        twins: Sequence[Twin],
        recipe: ReaderRecipe,
        folder: Path,
        report: Callable[[dict[str, Any]], None],
        teacher: Reader | None = None,
    ) -> None:
        self.reader, self.tokenizer, self.recipe = reader, tokenizer, recipe
        self.teacher = teacher
        self.reader.apart = recipe.apart
        self.written = written
        self.folder, self.report = folder, report
        self.step = self.tokens = 0
        self.seconds = 0.0
        # Rare words would drift; as they are, most of them were never seen.
        reader.words.weight.requires_grad_(False)
        learnt = [part for part in reader.parameters() if part.requires_grad]
        matrices = [part for part in learnt if part.ndim > 1]
        others = [part for part in learnt if part.ndim < 2]
        self.optimizer = torch.optim.AdamW(
            [
                {"params": matrices, "weight_decay": recipe.weight_decay},
                {"params": others, "weight_decay": 0.0},
            ],
            lr=recipe.learning_rate,
            betas=(0.9, 0.98),
            fused=True,
        )
        folder.mkdir(parents=True, exist_ok=True)
        if (folder / CHECKPOINT).exists():
            self._load()
        self._rng = np.random.default_rng((recipe.seed, self.step))
        half = recipe.tokens_per_step // _BATCHES_A_STEP
        self._pools = [self._pool(rows, half) for rows in (written, kinds, public)]
        sizes = [2 * max(length_of(twin.true), length_of(twin.false)) for twin in twins]
        self._twins = (
            [twins[i] for i in batch]
            for batch in Pool(sizes, recipe.twin_tokens_per_step, self._rng)
        )

    def run(self, judged: Callable[[ReaderTrainer], dict[str, float]]) -> None:
        """Train until the recipe's tokens are seen."""
        recipe = self.recipe
        started, done = time.monotonic(), self.seconds
        saved, losses = started, []
        next_validation = (self.tokens // recipe.validate_every + 1) * recipe.validate_every
        while self.tokens < recipe.tokens:
            losses.append(self._step())
            self.seconds = done + time.monotonic() - started
            if self.step % 10 == 0:
                rows, twins = np.mean(losses, axis=0)
                self._log(loss=float(rows), twin_loss=float(twins), rate=self._rate())
                losses.clear()
            if self.tokens >= next_validation or self.tokens >= recipe.tokens:
                next_validation += recipe.validate_every
                self._log(**judged(self))
                self._save()
                saved = time.monotonic()
            elif time.monotonic() - saved >= recipe.save_every_s:
                self._save()
                saved = time.monotonic()

    @torch.no_grad()
    def read(self, rows: Sequence[ReaderRow]) -> NDArray[np.float32]:
        """Return logits (rows, 3) of rows."""
        return read_rows(self.reader, self.tokenizer, rows)

    def _pool(self, rows: Sequence[ReaderRow], budget: int) -> Iterator[list[ReaderRow]]:
        sizes = [length_of(row) for row in rows]
        for batch in Pool(sizes, budget, self._rng):
            yield [rows[i] for i in batch]

    def _step(self) -> tuple[float, float]:
        self.reader.train()
        for group in self.optimizer.param_groups:
            group["lr"] = self._rate()
        totals = [0.0, 0.0]
        for _ in range(_BATCHES_A_STEP):
            ends = np.cumsum([self.recipe.written_share, self.recipe.kinds_share])
            pool = self._pools[int(np.searchsorted(ends, self._rng.random(), side="right"))]
            rows = [self._turned(row) for row in next(pool)]
            around = [self._around() for _ in rows]
            logits, gap = self._logits(rows, around)
            loss = label_loss(logits, rows).mean()
            ((self._label_weight * loss + gap) / _BATCHES_A_STEP).backward()
            totals[0] += float(loss.detach()) / _BATCHES_A_STEP
        twins = [self._turned_twin(twin) for twin in next(self._twins)]
        around = [self._around() for _ in twins]
        logits, gap = self._logits(
            [twin.true for twin in twins] + [twin.false for twin in twins], around * 2
        )
        evidence = logits[:, TRUE] - logits[:, FALSE]
        n = len(twins)
        loss = functional.softplus(evidence[n:] - evidence[:n]).mean()
        (self._label_weight * self.recipe.twin_weight * loss + gap).backward()
        totals[1] = float(loss.detach())
        torch.nn.utils.clip_grad_norm_(self.reader.parameters(), self.recipe.clip)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.step += 1
        return totals[0], totals[1]

    @property
    def _label_weight(self) -> float:
        return 1.0 if self.teacher is None else self.recipe.label_weight

    def _logits(
        self, rows: Sequence[ReaderRow], around: Sequence[tuple[str, str]]
    ) -> tuple[Tensor, Tensor]:
        """Return logits (rows, 3), and how far the reader is from its teacher; 0 without one."""
        pairs = [
            (self.tokenizer.encode(row.line), self.tokenizer.encode(f"{before}{row.text}{after}"))
            for row, (before, after) in zip(rows, around, strict=True)
        ]
        self.tokens += sum(3 + len(line) + len(text) for line, text in pairs)
        if self.teacher is None:
            return logits_of(self.reader, pairs).float(), torch.zeros(())
        return taught_logits(self.reader, self.teacher, pairs)

    def _turned(self, row: ReaderRow) -> ReaderRow:
        """Return a row as it is typed, as a statement, or negated."""
        draw = self._rng.random() - self.recipe.negation_share
        if draw < 0:
            return row.as_negation()
        return row.as_statement() if draw < self.recipe.statement_share else row

    def _turned_twin(self, twin: Twin) -> Twin:
        first, second = self._turned(twin.true), twin.false
        if first.line == twin.true.line:
            return twin
        if first.label == 0:
            return Twin(first, second.as_statement())
        return Twin(second.as_negation(), first)

    def _around(self) -> tuple[str, str]:
        """Return the text before and after a text: mostly none, else that of another row."""
        if self._rng.random() >= self.recipe.surrounded_share:
            return "", ""
        text = self.written[int(self._rng.integers(len(self.written)))].text
        return (f"{text}\n\n", "") if self._rng.random() < 0.5 else ("", f"\n\n{text}")

    def _rate(self) -> float:
        recipe = self.recipe
        left = (
            (recipe.tokens - self.tokens) / (recipe.decay * recipe.tokens) if recipe.decay else 1.0
        )
        return recipe.learning_rate * min(
            1.0, (self.step + 1) / recipe.warmup_steps, max(left, 0.0)
        )

    def _log(self, **figures: float) -> None:
        line = {
            "step": self.step,
            "tokens": self.tokens,
            "seconds": round(self.seconds, 1),
            **figures,
        }
        with (self.folder / LOG).open("ab") as file:
            file.write(msgspec.json.encode(line) + b"\n")
        self.report(line)

    def _save(self) -> None:
        content = {
            "model": self.reader.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "state": {"step": self.step, "tokens": self.tokens, "seconds": self.seconds},
            "recipe": asdict(self.recipe),
        }
        place = self.folder / CHECKPOINT
        torch.save(content, place.with_suffix(".new"))
        place.with_suffix(".new").replace(place)

    def _load(self) -> None:
        content = torch.load(self.folder / CHECKPOINT, map_location="cpu", weights_only=True)
        self.reader.load_state_dict(content["model"])
        self.optimizer.load_state_dict(content["optimizer"])
        state = content["state"]
        self.step, self.tokens, self.seconds = state["step"], state["tokens"], state["seconds"]


def label_loss(logits: Tensor, rows: Sequence[ReaderRow]) -> Tensor:
    """Return the loss of each row: of its label, or of all labels but one where only that is known."""
    experts = torch.tensor([row.expert or (0.0,) * N_LABELS for row in rows])
    shares = functional.log_softmax(logits + experts, dim=-1)
    allowed = torch.tensor(
        [
            [
                row.label == i or (row.label == 3 and i != 0) or (row.label == 4 and i != 1)
                for i in range(N_LABELS)
            ]
            for row in rows
        ]
    )
    return -torch.logsumexp(shares.masked_fill(~allowed, float("-inf")), dim=-1)


def logits_of(reader: Reader, pairs: Sequence[tuple[Sequence[int], Sequence[int]]]) -> Tensor:
    """Return logits (rows, 3) of pairs of token ids, the products in bfloat16."""
    sizes = [3 + len(line) + len(text) for line, text in pairs]
    parts = of_like_length(sizes)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = torch.cat([reader(*to_batch([pairs[i] for i in part])) for part in parts])
    order = torch.tensor([i for part in parts for i in part])
    return logits[torch.argsort(order)]


def taught_logits(
    reader: Reader, teacher: Reader, pairs: Sequence[tuple[Sequence[int], Sequence[int]]]
) -> tuple[Tensor, Tensor]:
    """Return a reader's logits (rows, 3) of pairs, and its distance to a teacher.

    That is the divergence of the teacher's probabilities, and the mean over the joint layers of how
    far their states are from the teacher's, in shares of those states' mean square.
    """
    parts = of_like_length([3 + len(line) + len(text) for line, text in pairs])
    logits, gap = [], torch.zeros(())
    for part in parts:
        batch = to_batch([pairs[i] for i in part])
        seen = batch[2][..., None]
        with torch.autocast("cpu", dtype=torch.bfloat16):
            with torch.no_grad():
                right, aims = teacher.read(*batch)
            answer, states = reader.read(*batch)
        logits.append(answer.float())
        share = len(part) / len(pairs)
        gap = gap + share * functional.kl_div(
            functional.log_softmax(logits[-1], -1),
            functional.log_softmax(right.float(), -1),
            log_target=True,
            reduction="batchmean",
        )
        joint = list(zip(states, aims, strict=True))[reader.apart :]
        for state, aim in joint:
            mask = seen[:, : state.shape[1]]
            away = ((state - aim).float().square() * mask).sum()
            gap = gap + share / len(joint) * away / (aim.float().square() * mask).sum()
    order = torch.tensor([i for part in parts for i in part])
    return torch.cat(logits)[torch.argsort(order)], gap


def of_like_length(sizes: Sequence[int]) -> list[list[int]]:
    """Return the places of ``sizes`` in parts whose rows lose little to padding.

    A batch with one long row costs as if all were long: half of a step without this.
    """
    parts: list[list[int]] = []
    for place in sorted(range(len(sizes)), key=lambda i: -sizes[i]):
        longest = sizes[parts[-1][0]] if parts else 0
        if not parts or (
            sizes[place] < _LEAST_FILLED * longest and len(parts[-1]) * longest >= _LEAST_TOKENS
        ):
            parts.append([])
        parts[-1].append(place)
    return parts


def read_rows(
    reader: Reader, tokenizer: Tokenizer, rows: Sequence[ReaderRow]
) -> NDArray[np.float32]:
    """Return logits (rows, 3) of rows, read in batches of like length."""
    reader.eval()
    pairs = [(tokenizer.encode(row.line), tokenizer.encode(row.text)) for row in rows]
    order = sorted(range(len(pairs)), key=lambda i: len(pairs[i][0]) + len(pairs[i][1]))
    logits = np.zeros((len(rows), N_LABELS), dtype=np.float32)
    with torch.no_grad():
        for start in range(0, len(order), 32):
            places = order[start : start + 32]
            logits[places] = logits_of(reader, [pairs[i] for i in places]).float().numpy()
    return logits


def judge_on(
    written: Sequence[ReaderRow], twins: Sequence[Twin], public: Sequence[ReaderRow], n_rows: int
) -> Callable[[ReaderTrainer], dict[str, float]]:
    """Return a function that judges a trainer's reader on the same rows each time."""
    order = np.random.default_rng(0)
    rows, unseen = (
        [some[i] for i in order.permutation(len(some))[:n_rows]] for some in (written, public)
    )
    return lambda trainer: judge(trainer.read, twins, rows, unseen)
