"""The wire ``gguf``: a judge of this machine."""

from __future__ import annotations

import numpy as np

from steelyard.decisions.rendering import RenderedRequest
from steelyard.scoring.protocol import ScoredDecision
from steelyard.serving.connected.chat import doubt_of
from steelyard.serving.connected.wire import Post
from steelyard.serving.judge.evidence import Judgement


class GgufWire:
    """Hands requests to a ``JudgeEngine`` as they are."""

    async def score(self, request: RenderedRequest, post: Post) -> list[ScoredDecision]:
        """Return the score of every decision."""
        judgements: list[Judgement] = await post("", request)
        return [
            ScoredDecision(
                np.log(judgement.probabilities).astype(np.float32),
                np.zeros((len(judgement.probabilities), 0), dtype=np.float32),
                calibration=judgement.calibration,
                mass=judgement.mass,
                doubt="" if judgement.mass is None else doubt_of(judgement.mass),
                thought=judgement.thought,
                cpu_ms=judgement.cpu_ms,
            )
            for judgement in judgements
        ]
