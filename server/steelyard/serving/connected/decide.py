"""The wire ``decide``: ``POST /v1/decide``, of another Steelyard and of OneHot."""

from __future__ import annotations

from typing import Any

from steelyard.decisions.rendering import RenderedDecision, RenderedRequest, described
from steelyard.serving.connected.answers import Probabilities, checked, member
from steelyard.serving.connected.wire import Post


class DecideWire:
    """Asks all decisions of a request at once; nothing is stored there."""

    def __init__(self, model: str) -> None:
        self._model = model

    async def score(self, request: RenderedRequest, post: Post) -> list[Probabilities]:
        """Return the probabilities of every decision, in outcome order."""
        body: dict[str, Any] = {
            "context": request.context,
            "decisions": [_ask(decision, f"q{n}") for n, decision in enumerate(request.decisions)],
            "fallback": "none",
            "store": False,
        }
        if self._model:
            body["model"] = self._model
        answers = member(await post("/v1/decide", body), "decisions")
        return [
            checked(_names(decision), member(member(answers, f"q{n}"), "probabilities"))
            for n, decision in enumerate(request.decisions)
        ]


def _names(decision: RenderedDecision) -> list[str]:
    return [name for name, _ in described(decision)]


def _ask(decision: RenderedDecision, id_: str) -> dict[str, Any]:
    question = {"id": id_, "kind": decision.kind, "question": decision.question}
    if decision.guideline:
        question["guideline"] = decision.guideline
    outcomes = described(decision)
    if decision.kind == "ordinal":
        return {**question, "outcomes": _names(decision), "rubric": [text for _, text in outcomes]}
    return {**question, "outcomes": dict(outcomes)}
