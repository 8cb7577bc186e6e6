"""Worded examples to tensors: layouts packed into rows, with masks, pools and targets."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

import numpy as np
import torch
from numpy.typing import NDArray

from steelyard.decisions.rendering import RenderedRequest
from steelyard.scoring import packing
from steelyard.scoring.passes import KINDS, level_features
from steelyard.scoring.reading import READING, read_request
from steelyard.scoring.tokenizer import Tokenizer
from steelyard.training.examples import WordedDecision
from steelyard.training.model import PackedBatch

#: Rows hold items of up to their length: attention is dense within a row, so short ones are cheap.
ROW_LENGTHS = (128, 256, 512)
#: A context cut to fewer tokens than this is not worth a row.
MIN_CONTEXT = 16


@dataclass(slots=True)
class Item:
    """One laid-out request with its examples, and its source."""

    layout: packing.Layout
    examples: list[WordedDecision]
    request: packing.TokenizedRequest

    @property
    def context(self) -> tuple[int, ...]:
        """The context's tokens."""
        return tuple(self.request.context)


def make_item(
    context: str,
    examples: list[WordedDecision],
    tokenizer: Tokenizer,
    longest: int = ROW_LENGTHS[-1],
    reading: int = READING,
) -> Item | None:
    """Lay a worded row out; cut its context to ``longest`` tokens, or return None if it cannot fit."""
    rendered = RenderedRequest(context, tuple(example.decision for example in examples))
    request = read_request(rendered, tokenizer, reading)
    tokens = request.context

    def laid(n_tokens: int) -> packing.Layout:
        return packing.lay_out(replace(request, context=tokens[:n_tokens]))

    fitting = len(tokens)
    if len(laid(fitting)) > longest:
        # Windows share tokens, so the room for a context is not what is left of the row.
        fitting = bisect_right(range(fitting), longest, key=lambda n: len(laid(n))) - 1
        if fitting < MIN_CONTEXT:
            return None
        ends = accumulate(map(len, request.sentences))
        sentences = [
            sentence
            for sentence, end in zip(request.sentences, ends, strict=True)
            if end <= fitting
        ]
        request = replace(request, context=tokens[:fitting], sentences=sentences)
    return Item(laid(fitting), examples, request)


def make_batches(items: list[Item], *, full_attention: bool = False) -> list[PackedBatch]:
    """Pack items into one batch for each row length that is needed."""
    batches = []
    shorter = 0
    for length in ROW_LENGTHS:
        group = [item for item in items if shorter < len(item.layout) <= length]
        if group:
            batches.append(_batch(group, length, full_attention=full_attention))
        shorter = length
    return batches


def _batch(items: list[Item], row_length: int, *, full_attention: bool) -> PackedBatch:
    texts: dict[tuple[int, ...], int] = {}
    for item in items:
        read = [text for decision in item.request.decisions for text in decision.alone]
        for text in (*item.request.sentences, *read):
            if text is not None:
                cut = tuple(text[: row_length - 2])
                texts.setdefault(cut, len(items) + len(texts))
    layouts = [item.layout for item in items] + [packing.lay_out_text(text) for text in texts]
    _, starts, n_rows = place([len(layout) for layout in layouts], row_length)
    ids, positions, roles = (np.zeros((n_rows, row_length), np.int64) for _ in range(3))
    blocks = np.zeros((n_rows, row_length, 5), np.int32)
    blocks[:, :, packing.LISTEN_CONTEXT :] = -1
    n_pools = len(layouts)
    pools = np.full((n_rows, row_length), n_pools, np.int64)
    offset = 0
    for index, (layout, flat) in enumerate(zip(layouts, starts, strict=True)):
        row, start = divmod(flat, row_length)
        part = slice(start, start + len(layout))
        ids[row, part], positions[row, part] = layout.ids, layout.positions
        roles[row, part] = layout.roles
        blocks[row, part] = packing.shift_ids(layout.blocks, offset)
        if full_attention:
            blocks[row, part, packing.BLOCK] = offset + layout.context_channel
        pools[row, part][layout.blocks[:, packing.CHANNEL] == layout.context_channel] = index
        offset += layout.n_ids
    mask = blocks[:, :, None, packing.BLOCK] == blocks[:, None, :, packing.BLOCK]
    for listen in range(packing.LISTEN_CONTEXT, 5):
        mask |= blocks[:, :, None, listen] == blocks[:, None, :, packing.CHANNEL]
    decisions = _decisions(items, starts, texts, n_pools, row_length)
    return PackedBatch(
        ids=torch.from_numpy(ids),
        positions=torch.from_numpy(positions),
        roles=torch.from_numpy(roles),
        mask=torch.from_numpy(mask[:, None]),
        pools=torch.from_numpy(pools.reshape(-1)),
        n_pools=n_pools,
        n_tokens=sum(len(layout) for layout in layouts),
        texts=(*(item.context for item in items), *texts),
        **{name: torch.from_numpy(value) for name, value in decisions.items()},
    )


def _decisions(
    items: list[Item],
    starts: list[int],
    pools: dict[tuple[int, ...], int],
    n_pools: int,
    row_length: int,
) -> dict[str, NDArray[np.generic]]:
    n_decisions = sum(len(item.examples) for item in items)
    n_outcomes = max(len(e.targets) for item in items for e in item.examples)
    shape = (n_decisions, n_outcomes)
    markers, outcome_pools = np.zeros(shape, np.int64), np.full(shape, n_pools, np.int64)
    outcome_mask = np.zeros(shape, bool)
    levels = np.zeros((*shape, 3), np.float32)
    targets = np.zeros(shape, np.float32)
    kinds, context_pools = np.zeros(n_decisions, np.int64), np.zeros(n_decisions, np.int64)
    n_compared = max(1, *(len(item.request.sentences) for item in items))
    compared_pools = np.full((n_decisions, n_compared), n_pools, np.int64)
    weights, teacher_shares = np.zeros(n_decisions, np.float32), np.zeros(n_decisions, np.float32)
    at = 0
    for index, item in enumerate(items):
        sentences = [pools[tuple(text[: row_length - 2])] for text in item.request.sentences]
        decisions = zip(item.examples, item.request.decisions, item.layout.markers, strict=True)
        for example, decision, marked in decisions:
            n = len(example.targets)
            markers[at, :n] = starts[index] + marked
            outcome_mask[at, :n] = True
            levels[at, :n] = level_features(example.decision.kind, n)
            targets[at, :n] = example.targets
            kinds[at] = KINDS.index(example.decision.kind)
            context_pools[at] = index
            compared = sentences if sentences and decision.kind == "single" else [index]
            compared_pools[at, : len(compared)] = compared
            for o, text in enumerate(decision.alone):
                if text is not None:
                    outcome_pools[at, o] = pools[tuple(text[: row_length - 2])]
            teacher_shares[at] = example.teacher_share
            weights[at] = 1.0 / len(item.examples) ** 0.5
            at += 1
    return {
        "markers": markers,
        "outcome_mask": outcome_mask,
        "levels": levels,
        "targets": targets,
        "kinds": kinds,
        "context_pools": context_pools,
        "compared_pools": compared_pools,
        "outcome_pools": outcome_pools,
        "weights": weights,
        "teacher_shares": teacher_shares,
    }


def place(lengths: Sequence[int], length: int) -> tuple[int, list[int], int]:
    """Place units of at most ``length`` tokens, first fit by decreasing length."""
    free: list[int] = []
    starts = [0] * len(lengths)
    first_open = 0
    for index in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        size = lengths[index]
        row = next((r for r in range(first_open, len(free)) if free[r] >= size), len(free))
        if row == len(free):
            free.append(length)
        starts[index] = row * length + length - free[row]
        free[row] -= size
        while first_open < len(free) and free[first_open] == 0:
            first_open += 1
    return length, starts, len(free)
