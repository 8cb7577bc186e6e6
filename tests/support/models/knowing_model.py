"""A server of the wire ``systemone`` that knows most labels of the sample tickets, and is too sure."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from steelyard.cli.samples import sample_file
from steelyard.decisions.rendering import render_context
from support.models.remote_models import share_of

#: Shares of the decisions that it answers rightly, and of probability that it gives its answer.
_RIGHT, _SURE = 0.75, 0.995


def knows_tickets() -> Callable[[str, Any], Any]:
    """Return an answerer of requests about ``support_triage``, always alike."""
    labels: dict[tuple[str, str], str] = {}
    for line in sample_file("support_triage").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        context = render_context(row["context"])
        for decision in row["decisions"]:
            targets = row["targets"].get(decision["id"])
            if targets:
                labels[context, decision["question"]] = max(targets, key=targets.get)

    def answer(path: str, body: Any) -> Any:
        assert path == "/v1/systemone"
        state = body["state"]
        return {
            "answers": {
                name: _answer(question, labels.get((state, question["instructions"])), state)
                for name, question in body["questions"].items()
            }
        }

    return answer


def _answer(question: Any, label: str | None, state: str) -> dict[str, Any]:
    criteria = question.get("criteria", {})
    names = ["yes", "no"] if question["type"] == "noul" else list(criteria)
    if question["type"] == "score":
        names = [text.split(":")[0] for text in names]
    draw = share_of(state, question["instructions"]) - 0.1
    place = names.index(label) if label in names and draw < _RIGHT else int(draw * len(names))
    rest = (1 - _SURE) / (len(names) - 1)
    shares = [_SURE if n == place else rest for n in range(len(names))]
    if question["type"] == "noul":
        return {"type": "noul", "noul": shares[0]}
    keys = [str(n) for n in range(len(names))] if question["type"] == "score" else names
    return {"type": question["type"], "probabilities": dict(zip(keys, shares, strict=True))}
