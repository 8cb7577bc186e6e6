"""A trained model whose answers to choices a new one keeps while it learns something else.

Training on the old model's failures loses, within some million tokens, part of its skills:
the new model is held to the old one's answers, on labelled choices and on choices without a
label (Li and Hoiem 2018, "learning without forgetting"), and to its pooled vectors.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

import torch
from torch import Tensor

from steelyard.training.model import PackedBatch, PackedScorer

#: What the teacher's logits are divided by: about what fits tasks that it was not trained on.
TEMPERATURE = 2.0


class ScorerTeacher:
    """Answers batches as the old model does."""

    def __init__(
        self,
        model: PackedScorer,
        device: torch.device,
        autocast: Callable[[], AbstractContextManager[object]],
    ) -> None:
        self._model = model.to(device).eval().requires_grad_(False)
        self._autocast = autocast

    @torch.no_grad()
    def __call__(self, batch: PackedBatch) -> tuple[Tensor, Tensor]:
        """Return targets with the teacher's part in them, and its pooled unit vectors.

        Both are float32: of shape (n_decisions, n_outcomes) and (n_pools, width).
        """
        with self._autocast():
            logits, pooled = self._model(batch)
        answers = torch.softmax(logits / TEMPERATURE, dim=-1)
        return torch.lerp(batch.targets, answers, batch.teacher_shares.unsqueeze(-1)), pooled
