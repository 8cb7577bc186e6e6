"""The wire ``decisions``: ``POST /v1/decisions``, as OpenAI and LiteLLM have it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from steelyard.decisions.rendering import RenderedDecision, RenderedRequest, described
from steelyard.serving.connected.answers import (
    Probabilities,
    checked,
    member,
    normalized,
    probability,
    unusable,
)
from steelyard.serving.connected.wire import Post

#: Levels that a score of this wire may have; more are asked as a choice.
_MAX_LEVELS = 10


class DecisionsWire:
    """Asks all questions of a request at once."""

    def __init__(self, model: str) -> None:
        self._model = model

    async def score(self, request: RenderedRequest, post: Post) -> list[Probabilities]:
        """Return the probabilities of every decision, in outcome order."""
        questions = [_ask(decision, f"q{n}") for n, decision in enumerate(request.decisions)]
        body = {"model": self._model, "input": request.context, "questions": questions}
        answers = member(await post("/v1/decisions", body), "answers")
        return [_read(decision, member(answers, n)) for n, decision in enumerate(request.decisions)]


def _is_score(decision: RenderedDecision) -> bool:
    return decision.kind == "ordinal" and len(decision.outcomes) <= _MAX_LEVELS


def _ask(decision: RenderedDecision, name: str) -> dict[str, Any]:
    question: dict[str, Any] = {"name": name, "instructions": decision.instructions}
    if decision.kind == "binary":
        descriptions = [text for text in decision.outcomes if ": " in text]
        instructions = "\n".join([decision.instructions, *descriptions])
        return {"type": "predicate", **question, "instructions": instructions}
    key, members = ("label", "levels") if _is_score(decision) else ("value", "choices")
    outcomes = [
        {key: name, **({} if text is None else {"description": text})}
        for name, text in described(decision)
    ]
    return {"type": "score" if _is_score(decision) else "choice", **question, members: outcomes}


def _read(decision: RenderedDecision, answer: Any) -> Probabilities:
    if decision.kind == "binary":
        yes = probability(member(answer, "probability"))
        return normalized([yes, 1 - yes])
    entries = member(answer, "probabilities")
    if not isinstance(entries, list) or not all(isinstance(entry, Mapping) for entry in entries):
        raise unusable("its probabilities are no array of objects")
    names = [name for name, _ in described(decision)]
    if _is_score(decision):
        by_level: dict[Any, Any] = {
            entry.get("value"): entry.get("probability") for entry in entries
        }
        return checked(names, {name: by_level[n] for n, name in enumerate(names) if n in by_level})
    return checked(names, {entry.get("value"): entry.get("probability") for entry in entries})
