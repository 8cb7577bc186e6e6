"""The seam between connected models and the wires that reach them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol

from steelyard.decisions.rendering import RenderedRequest
from steelyard.scoring.protocol import ScoredDecision
from steelyard.serving.connected.answers import Probabilities

#: Sends a JSON body to a path of the model's server and returns the decoded answer.
Post = Callable[[str, Any], Awaitable[Any]]


class ModelEngine(Protocol):
    """Where the requests of one connected model go: another server, or a process of this machine."""

    async def post(self, path: str, body: Any) -> Any:
        """Send a body, and return the answer."""
        ...

    async def close(self) -> None:
        """Close its connections."""
        ...


class ModelWire(Protocol):
    """One way to ask a model of another server."""

    async def score(
        self, request: RenderedRequest, post: Post
    ) -> Sequence[Probabilities | ScoredDecision]:
        """Return every decision's probabilities, or its score; ``UnusableAnswerError`` for another form."""
        ...
