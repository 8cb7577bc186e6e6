"""The sentences that an answer depends on, and the statements of its question; pure.

A sentence's share is the loss of the top outcome's probability without it (leave-one-out, "occlusion":
Zeiler and Fergus, 2014). It says how sensitive the answer is, not how the model arrives at it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise

from msgspec.structs import replace

from steelyard.decisions.kinds import Decision
from steelyard.decisions.statements import Reading, read_decision
from steelyard.decisions.wire import DecisionResult, ReadAs, SentenceEffect

#: Parts of a context that are left out, each by a pass of its own, at most.
MAX_PARTS = 8
_END = re.compile("(?<=[.!?\u2026])[\"'\u201d\u2019)\\]]*\\s+|(?<=[\u3002\uff01\uff1f])|\n+")

Span = tuple[int, int]


def spans_of(text: str) -> list[Span]:
    """Return where the sentences of a text start and end, at most ``MAX_PARTS``; none of a single one.

    Neighbours are joined, the shortest first, until there are no more than that.

    >>> spans_of("It broke. Please send another!")
    [(0, 9), (10, 30)]
    """
    spans = sentences_of(text)
    while len(spans) > MAX_PARTS:
        least = min(range(len(spans) - 1), key=lambda i: spans[i + 1][1] - spans[i][0])
        spans[least : least + 2] = [(spans[least][0], spans[least + 1][1])]
    return spans if len(spans) > 1 else []


def sentences_of(text: str) -> list[Span]:
    """Return where the sentences of a text start and end, without the space around them."""
    edges = [0, *(match.end() for match in _END.finditer(text)), len(text)]
    spans = []
    for start, stop in pairwise(edges):
        part = text[start:stop]
        if part.strip():
            at = start + len(part) - len(part.lstrip())
            spans.append((at, at + len(part.strip())))
    return spans


def without(text: str, span: Span) -> str:
    """Return a text without a part of it."""
    return f"{text[: span[0]]}{text[span[1] :].lstrip()}".strip()


def effects_of(
    text: str,
    spans: Sequence[Span],
    answers: Mapping[str, DecisionResult],
    left_out: Sequence[Mapping[str, DecisionResult]],
) -> dict[str, list[SentenceEffect]]:
    """Return each decision's sentences, of the largest effect first; ``left_out`` are the answers."""
    effects: dict[str, list[SentenceEffect]] = {}
    for name, answer in answers.items():
        of_spans = [
            SentenceEffect(
                text=text[span[0] : span[1]],
                start=span[0],
                end=span[1],
                change=float(f"{answer.p_top - others[name].probabilities[answer.top]:.9g}"),
                top_without=others[name].top,
            )
            for span, others in zip(spans, left_out, strict=True)
        ]
        effects[name] = sorted(of_spans, key=lambda effect: -abs(effect.change))
    return effects


def with_readings(
    answers: Mapping[str, DecisionResult],
    decisions: Sequence[Decision],
    readings: Sequence[Reading | None],
) -> dict[str, DecisionResult]:
    """Return answers with the reading of each decision, as models that judge statements get it."""
    results = {}
    for decision, own in zip(decisions, readings, strict=True):
        reading = own or read_decision(decision)
        read_as = reading and ReadAs(statement=reading.statement, negation=reading.negation)
        results[decision.id] = replace(answers[decision.id], read_as=read_as)
    return results
