"""The unit of a step of LoRA: rows drawn in epochs, with a bounded number of outcomes.

An outcome's vector depends on its own text, the question and the context alone, so a decision of
many outcomes may be trained on some of them at a time: all that are right, and others drawn anew at
every step. A step then costs about the same whatever a decision asks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from steelyard.decisions.rendering import RenderedDecision
from steelyard.scoring.reading import READING, decision_read
from steelyard.scoring.tokenizer import Tokenizer
from steelyard.trainer.rows import TuningRow
from steelyard.training.batches import Item, make_item
from steelyard.training.examples import WordedDecision

#: Outcomes of one decision in a step, at most; an ordinal decision keeps all its levels.
MAX_OUTCOMES = 16
#: Decisions read together on one context, at most.
MAX_DECISIONS = 4


@dataclass(frozen=True, slots=True)
class Unit:
    """Decisions of one context, laid out together."""

    item: Item
    rows: tuple[TuningRow, ...]


def scaled_rewards(rewards: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scale rewards to 0 for the worst outcome and 1 for the best; zeros where all are equal."""
    low, high = rewards.min(), rewards.max()
    return (rewards - low) / (high - low) if high > low else np.zeros_like(rewards)


def as_read(row: TuningRow, reading: int) -> TuningRow:
    """Return a row whose question and outcomes are as the model reads them, before some are left out."""
    question, outcomes = decision_read(row.decision, reading)
    return replace(row, decision=replace(row.decision, question=question, outcomes=outcomes))


def usable_groups(
    rows: Sequence[TuningRow], method: str, tokenizer: Tokenizer, reading: int = READING
) -> list[tuple[TuningRow, ...]]:
    """Group rows by context, those that cannot be trained on left out."""
    groups = []
    for _, neighbours in groupby(rows, key=lambda row: row.context_sha256):
        usable = [
            row
            for row in neighbours
            if not (method == "reward" and row.labels.min() == row.labels.max())
            and make_item(
                row.context, [_longest(row, method, tokenizer)], tokenizer, reading=reading
            )
            is not None
        ]
        groups += [
            tuple(usable[start : start + MAX_DECISIONS])
            for start in range(0, len(usable), MAX_DECISIONS)
        ]
    return groups


def drawn(n_groups: int, batch: int, step: int, seed: int) -> list[int]:
    """Return the groups of a step: every epoch has each of them once, in an order of its own."""
    first = step * batch
    orders: dict[int, NDArray[np.int64]] = {}
    indices = []
    for place in range(first, first + batch):
        epoch, within = divmod(place, n_groups)
        if epoch not in orders:
            orders[epoch] = np.random.default_rng([seed, epoch, 0]).permutation(n_groups)
        indices.append(int(orders[epoch][within]))
    return indices


def lay_out_units(
    group: tuple[TuningRow, ...],
    method: str,
    tokenizer: Tokenizer,
    rng: np.random.Generator,
    reading: int = READING,
) -> list[Unit]:
    """Word a group for a step: one unit, or one a decision where they do not fit a row together."""
    examples = [thinned(row, method, rng) for row in group]
    item = make_item(group[0].context, examples, tokenizer, reading=reading)
    whole = len(tokenizer.encode(group[0].context))
    if item is not None and (len(group) == 1 or len(item.context) == whole):
        return [Unit(item, group)]
    alone = [
        (make_item(row.context, [example], tokenizer, reading=reading), row)
        for row, example in zip(group, examples, strict=True)
    ]
    return [Unit(item, (row,)) for item, row in alone if item is not None]


def thinned(row: TuningRow, method: str, rng: np.random.Generator) -> WordedDecision:
    """Word a row's decision with up to ``MAX_OUTCOMES`` of its outcomes, in their order.

    For ``sft`` those with the largest targets are kept, for ``reward`` the best and the worst;
    others are drawn. The example's targets are the targets kept, rescaled to sum 1, or the rewards
    scaled to 0 … 1 over all outcomes.
    """
    n_outcomes = len(row.decision.outcomes)
    if n_outcomes <= MAX_OUTCOMES or row.decision.kind == "ordinal":
        return _example(row, np.arange(n_outcomes), method)
    if method == "sft":
        by_target = np.argsort(-row.labels, kind="stable")
        required = by_target[: max(1, min(int((row.labels > 0).sum()), MAX_OUTCOMES - 1))]
    else:
        required = np.asarray([row.labels.argmax(), row.labels.argmin()])
    others = np.setdiff1d(np.arange(n_outcomes), required)
    chosen = rng.permutation(others)[: MAX_OUTCOMES - len(required)]
    return _example(row, np.sort(np.concatenate([required, chosen])), method)


def plain_example(row: TuningRow) -> WordedDecision:
    """Word a row's decision as it is asked, every outcome kept; its targets mean nothing."""
    n_outcomes = len(row.decision.outcomes)
    return _example(row, np.arange(n_outcomes), "reward")


def _longest(row: TuningRow, method: str, tokenizer: Tokenizer) -> WordedDecision:
    """Word a row's decision with the outcomes that take most room."""
    n_outcomes = len(row.decision.outcomes)
    if n_outcomes <= MAX_OUTCOMES or row.decision.kind == "ordinal":
        return _example(row, np.arange(n_outcomes), method)
    lengths = [len(tokenizer.encode(text)) for text in row.decision.outcomes]
    longest = np.sort(np.argsort(lengths, kind="stable")[-MAX_OUTCOMES:])
    return _example(row, longest, "reward")


def _example(row: TuningRow, places: NDArray[np.int64], method: str) -> WordedDecision:
    labels = row.labels[places] if method == "sft" else scaled_rewards(row.labels)[places]
    if method == "sft":
        labels = labels / labels.sum()
    decision = row.decision
    outcomes = tuple(decision.outcomes[i] for i in places)
    return WordedDecision(
        RenderedDecision(decision.kind, decision.question, outcomes), tuple(labels.tolist())
    )
