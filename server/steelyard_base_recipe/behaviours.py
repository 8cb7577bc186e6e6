"""The behaviour suite asked of weights in training, which no graph holds yet."""

from __future__ import annotations

from collections.abc import Callable

import torch

from steelyard.decisions.rendering import RenderedRequest
from steelyard.scoring.tokenizer import Tokenizer
from steelyard.training.batches import make_batches, make_item
from steelyard.training.examples import WordedDecision
from steelyard.training.model import PackedScorer
from steelyard_base_recipe.behaviour.figures import Answer, answer_all, figures
from steelyard_base_recipe.behaviour.rows import make_rows


def behaviours(
    model: PackedScorer, tokenizer: Tokenizer, autocast: Callable[[], torch.autocast]
) -> dict[str, float]:
    """Return the figure of each behaviour by its name, at temperature 1, of a model that is trained on."""
    rows = make_rows()
    model.eval()
    answers = answer_all(rows, answerer(model, tokenizer, autocast))
    model.train()
    return {figure.name: figure.value for figure in figures(rows, answers)}


def answerer(
    model: PackedScorer, tokenizer: Tokenizer, autocast: Callable[[], torch.autocast]
) -> Callable[[RenderedRequest], list[Answer]]:
    """Return a function that answers a request with a model's current weights."""
    device = model.word_embeddings.weight.device

    def ask(request: RenderedRequest) -> list[Answer]:
        sizes = [len(decision.outcomes) for decision in request.decisions]
        items = []
        for decision, n in zip(request.decisions, sizes, strict=True):
            item = make_item(request.context, [WordedDecision(decision, (1 / n,) * n)], tokenizer)
            if item is None:
                msg = f"{decision.question!r} and its outcomes do not fit beside their context."
                raise ValueError(msg)
            items.append(item)
        # Batches go from short to long, so that items sorted by length keep their order.
        order = sorted(range(len(items)), key=lambda i: len(items[i].layout))
        with torch.no_grad(), autocast():
            logits = [
                row
                for batch in make_batches([items[i] for i in order])
                for row in model(batch.to(device))[0]
            ]
        answers = {
            i: torch.softmax(row[: sizes[i]].double(), -1).cpu().numpy()
            for i, row in zip(order, logits, strict=True)
        }
        return [answers[i] for i in range(len(items))]

    return ask
