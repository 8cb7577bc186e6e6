"""The behaviour suite asked of weights in training, which no graph holds yet."""

from __future__ import annotations

from collections.abc import Callable

import torch

from steelyard.decisions.rendering import RenderedRequest
from steelyard.scoring.tokenizer import Tokenizer
from steelyard.training.base.augment import WordedDecision
from steelyard.training.base.batches import make_batches, make_item
from steelyard.training.base.model import PackedScorer
from steelyard.training.behaviour.figures import Answer, answer_all, figures
from steelyard.training.behaviour.rows import make_rows


def behaviours(
    model: PackedScorer, tokenizer: Tokenizer, precision: str = "bfloat16"
) -> dict[str, float]:
    """Return a model's figure of each behaviour by its name, at temperature 1."""
    rows = make_rows()
    answers = answer_all(rows, answerer(model, tokenizer, precision))
    return {one.name: one.value for one in figures(rows, answers)}


def answerer(
    model: PackedScorer, tokenizer: Tokenizer, precision: str = "bfloat16"
) -> Callable[[RenderedRequest], list[Answer]]:
    """Return what answers a request with the weights that a model has then."""
    device = model.word_embeddings.weight.device

    def ask(request: RenderedRequest) -> list[Answer]:
        sizes = [len(one.outcomes) for one in request.decisions]
        items = []
        for one, n in zip(request.decisions, sizes, strict=True):
            item = make_item(request.context, [WordedDecision(one, (1 / n,) * n)], tokenizer)
            if item is None:
                msg = f"{one.question!r} and its outcomes do not fit beside their context."
                raise ValueError(msg)
            items.append(item)
        # Batches are by length, the shortest first: what is sorted by length stays in its order.
        order = sorted(range(len(items)), key=lambda i: len(items[i].layout))
        is_training = model.training
        model.eval()
        is_lowered = precision == "bfloat16"
        with torch.no_grad(), torch.autocast(device.type, torch.bfloat16, enabled=is_lowered):
            logits = [
                row
                for batch in make_batches([items[i] for i in order])
                for row in model(batch.to(device))[0]
            ]
        model.train(is_training)
        found = {
            i: torch.softmax(row[: sizes[i]].double(), -1).cpu().numpy()
            for i, row in zip(order, logits, strict=True)
        }
        return [found[i] for i in range(len(items))]

    return ask
