"""A connected base model's answers to a fine-tune's rows: asked once, stored in a file, read as a scorer.

The program knows no server: its parent asks the model first, and leaves its answers in the
folder. Each stands under a hash of its request.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np

from steelyard.decisions.rendering import RenderedDecision, RenderedRequest
from steelyard.errors import EngineUnavailableError
from steelyard.scoring.protocol import ScoredDecision
from steelyard.trainer.rows import TuningRow
from steelyard.trainer.task import BaseAnswer, TaskBase
from steelyard.wire.decoding import decoder_of

_decode = decoder_of(BaseAnswer).decode


def key_of(context: str, decision: RenderedDecision) -> str:
    """Return a hash of one decision on one context."""
    parts = [context, decision.kind, decision.question, decision.outcomes]
    return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()


def read_answers(path: Path) -> tuple[dict[str, list[float] | None], int]:
    """Return the answers of a file by key, and its bytes up to the last whole line."""
    by_key: dict[str, list[float] | None] = {}
    n_bytes = 0
    try:
        with path.open("rb") as file:
            for line in file:
                if not line.endswith(b"\n"):
                    break  # a kill cut it short
                answer = _decode(line)
                by_key[answer.key] = answer.logits
                n_bytes += len(line)
    except FileNotFoundError:
        pass
    except msgspec.DecodeError as error:
        raise ValueError(f"{path.name} is not what this program writes; remove it.") from error
    return by_key, n_bytes


class AnsweredScorer:
    """A connected base model as it answered: it knows the rows that it was asked, and no others."""

    def __init__(self, base: TaskBase, path: Path) -> None:
        self.name = base.name
        self.engine = base.engine
        self.sha256 = base.key
        self._answers, _ = read_answers(path)

    def read_rows(self, rows: Sequence[TuningRow]) -> list[int]:
        """Return the places of the rows that it answered."""
        return [
            place
            for place, row in enumerate(rows)
            if self._answers.get(key_of(row.context, row.decision)) is not None
        ]

    def score(self, requests: Sequence[RenderedRequest]) -> list[list[ScoredDecision]]:
        """Return its answers to every decision of every request, in the order given."""
        return [
            [self._find(request.context, decision) for decision in request.decisions]
            for request in requests
        ]

    def close(self) -> None:
        """Do nothing: there is no engine."""

    def _find(self, context: str, decision: RenderedDecision) -> ScoredDecision:
        logits = self._answers.get(key_of(context, decision))
        if logits is None:
            raise EngineUnavailableError(
                f"{self.name} was not asked, or did not answer, one of the rows; start the "
                "fine-tune again."
            )
        empty = np.zeros((len(logits), 0), np.float32)
        return ScoredDecision(np.array(logits, np.float32), empty)
