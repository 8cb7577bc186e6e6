"""Answers of a route's models to labelled rows, each asked through a running server."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from steelyard.asking.rows import ask_in_threads, result_or_error
from steelyard.decisions.rendering import render_value
from steelyard.decisions.tokens import count_input_tokens
from steelyard.decisions.validation import read_request
from steelyard.decisions.wire import DecideResponse
from steelyard.errors import SteelyardError
from steelyard.serving.routed.walking import Answers, Side

#: The least probability of a label: a loss is finite.
_LEAST = 1e-9
#: Rows and models that are asked at once.
_AT_ONCE = 8


class _Characters:
    """Counts characters where tokens are counted."""

    name = revision = sha256 = ""

    def count(self, text: str) -> int:
        """Count the characters of a text."""
        return len(text)

    least = count


_CHARACTERS = _Characters()
#: Asks a model the decisions of a row.
Ask = Callable[[str, Mapping[str, Any]], DecideResponse]


@dataclass(slots=True)
class _Gathered:
    """Figures of decisions as they arrive: one list for each model, and the common ones."""

    rows: list[int] = field(default_factory=list)
    context_tokens: list[float] = field(default_factory=list)
    decision_tokens: list[float] = field(default_factory=list)
    answers: list[list[tuple[float, float, float, float]]] = field(default_factory=list)


def observe(
    ask: Ask,
    rows: Sequence[Mapping[str, Any]],
    prices: Mapping[str, int],
    progress: Callable[[int], None] = lambda _: None,
) -> tuple[Side, Counter[str]]:
    """Ask every model about every labelled decision; return the answers, and why rows failed.

    ``prices``, in nano-USD by input token, names the models. A row counts only if
    all of them answer it.
    """
    gathered, failures = _Gathered(), Counter[str]()
    labelled = [row for row in map(_labelled, rows) if row["decisions"]]
    answered = ask_in_threads(
        [(model, row) for row in labelled for model in prices],
        lambda pair: ask(*pair),
        result_or_error,
        _AT_ONCE,
        progress=lambda n_answers: progress(n_answers // len(prices)),
    )
    by_row = zip(*[iter(answered)] * len(prices), strict=True)
    for row, results in zip(labelled, by_row, strict=True):
        answers = [each for each in results if not isinstance(each, SteelyardError)]
        if len(answers) == len(prices):
            _gather(gathered, row, answers)
        else:
            failures[
                next(each.message for each in results if isinstance(each, SteelyardError))
            ] += 1
    return _side(gathered, prices), failures


def _labelled(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row with only the decisions that have targets."""
    targets = row.get("targets") or {}
    return {
        **row,
        "decisions": [decision for decision in row["decisions"] if decision["id"] in targets],
    }


def _gather(gathered: _Gathered, row: Mapping[str, Any], answers: list[DecideResponse]) -> None:
    decisions = row["decisions"]
    # Usage has one number for a request: share it out by the characters of each text.
    parsed = read_request({"context": row["context"], "decisions": decisions}).decisions
    characters = [count_input_tokens(_CHARACTERS, "", [decision]) for decision in parsed]
    context = len(render_value(row["context"]))
    a_character = answers[0].usage.input_tokens / max(1, context + sum(characters))
    number = len(gathered.context_tokens)
    gathered.context_tokens.append(context * a_character)
    for decision, size in zip(decisions, characters, strict=True):
        gathered.rows.append(number)
        gathered.decision_tokens.append(size * a_character)
        figures = partial(_figures, decision["id"], row["targets"][decision["id"]])
        gathered.answers.append([figures(answer) for answer in answers])


def _figures(
    decision: str, targets: Mapping[str, float], answer: DecideResponse
) -> tuple[float, float, float, float]:
    """Return an answer's top probability, whether it is right, its loss in nats, and tokens written."""
    result = answer.decisions[decision]
    loss = sum(
        -share * float(np.log(max(result.probabilities[outcome], _LEAST)))
        for outcome, share in targets.items()
        if share
    )
    likeliest = max(result.probabilities, key=lambda outcome: targets.get(outcome, 0.0))
    # Usage has one number for a request: each decision has the same share.
    written = answer.usage.n_written / len(answer.decisions)
    return result.p_top, float(result.top == likeliest), loss, written


def _side(gathered: _Gathered, prices: Mapping[str, int]) -> Side:
    shape = (len(gathered.rows), len(prices), 4)
    figures = np.asarray(gathered.answers, dtype=np.float64).reshape(shape)
    return Side(
        rows=np.asarray(gathered.rows, dtype=np.int64),
        context_tokens=np.asarray(gathered.context_tokens, dtype=np.float64),
        decision_tokens=np.asarray(gathered.decision_tokens, dtype=np.float64),
        models=tuple(
            Answers(model, price, *figures[:, place].T)
            for place, (model, price) in enumerate(prices.items())
        ),
    )
