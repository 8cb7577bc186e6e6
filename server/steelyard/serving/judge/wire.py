"""The wire ``gguf``: a judge of this machine."""

from __future__ import annotations

from steelyard.decisions.rendering import RenderedRequest
from steelyard.serving.connected.answers import Probabilities
from steelyard.serving.connected.wire import Post


class GgufWire:
    """Hands requests to a ``JudgeEngine`` as they are."""

    async def score(self, request: RenderedRequest, post: Post) -> list[Probabilities]:
        """Return the probabilities of every decision, in outcome order."""
        answers: list[Probabilities] = await post("", request)
        return answers
