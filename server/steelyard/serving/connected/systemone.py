"""The wire ``systemone``: ``POST /v1/systemone``, which most servers of decision models speak."""

from __future__ import annotations

from typing import Any

from steelyard.decisions.rendering import RenderedDecision, RenderedRequest, described
from steelyard.serving.connected.answers import (
    Probabilities,
    checked,
    member,
    normalized,
    probability,
)
from steelyard.serving.connected.wire import Post


class SystemOneWire:
    """Asks all questions of a request at once."""

    def __init__(self, model: str) -> None:
        self._model = model

    async def score(self, request: RenderedRequest, post: Post) -> list[Probabilities]:
        """Return the probabilities of every decision, in outcome order."""
        questions = {f"q{n}": _ask(decision) for n, decision in enumerate(request.decisions)}
        body = {"model": self._model, "state": request.context, "questions": questions}
        answers = member(await post("/v1/systemone", body), "answers")
        return [
            _read(decision, member(answers, name))
            for name, decision in zip(questions, request.decisions, strict=True)
        ]


def _ask(decision: RenderedDecision) -> dict[str, Any]:
    outcomes = described(decision)
    question: dict[str, Any] = {"instructions": decision.instructions}
    if decision.kind == "binary":
        pairs = zip(("true", "false"), outcomes, strict=True)
        criteria = {key: text for key, (_, text) in pairs if text is not None}
        return {"type": "noul", **question, **({"criteria": criteria} if criteria else {})}
    if decision.kind == "ordinal":
        return {"type": "score", **question, "criteria": list(decision.outcomes)}
    return {"type": "choice", **question, "criteria": dict(outcomes)}


def _read(decision: RenderedDecision, answer: Any) -> Probabilities:
    if decision.kind == "binary":
        yes = probability(member(answer, "noul"))
        return normalized([yes, 1 - yes])
    shares = member(answer, "probabilities")
    if decision.kind == "ordinal":
        levels = [str(level) for level in range(len(decision.outcomes))]
        if isinstance(shares, list):  # some servers list them in order
            shares = dict(zip(levels, shares, strict=False))
        return checked(levels, shares)
    return checked([name for name, _ in described(decision)], shares)
