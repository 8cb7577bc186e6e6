"""The search for a better wording: rounds of candidates, scored on validation rows alone.

Rounds in turn change the wording as a whole, and the descriptions of the outcomes that lose most.
Every round first tries all of its candidates on a part of the rows, then the most promising on all.
The best takes a step only when it is better by more than chance makes of so many rows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
from numpy.typing import NDArray

from steelyard.prompt_tuning.candidates import Candidates, combine
from steelyard.prompt_tuning.wire import TuningRound
from steelyard.prompt_tuning.wording import Wording

FloatArray = NDArray[np.float64]

#: Rows that every candidate of a round is tried on, and candidates that go on from there.
SCREENED_ROWS, CANDIDATES = 64, 8
#: Outcomes whose descriptions are tried one by one in a round: those that lose most.
WORST_OUTCOMES = 6
#: A step is taken from this many standard errors of its gain on.
LEAST_STEP = 2.0


class SearchState(msgspec.Struct, frozen=True, kw_only=True):
    """The progress of a search; its durable part."""

    best: Wording
    best_loss: float
    rounds: tuple[TuningRound, ...] = ()
    is_over: bool = False


@dataclass(frozen=True, slots=True)
class Scores:
    """A model's answers to some rows in one wording, and their cost."""

    losses: FloatArray  # (n_rows,)
    probabilities: FloatArray  # (n_rows, n_outcomes)


#: Returns further wordings, of the best one and its scores on all rows.
Write = Callable[[Wording, Scores], list[Wording]]
#: Scores wordings on rows, both given by place; raises when the search is to stop.
Score = Callable[[Sequence[Wording], NDArray[np.int64]], list[Scores]]


def run_round(
    state: SearchState,
    candidates: Candidates,
    targets: FloatArray,
    score: Score,
    *,
    write: Write = lambda best, scores: [],  # noqa: ARG005
) -> SearchState:
    """Return the search after one more round; it is over when no candidate is left to try."""
    number = len(state.rounds) + 1
    everything = np.arange(len(targets))
    before = score([state.best], everything)[0]
    # One outcome alone that has words draws every row to it: all get words first, then each others.
    if number % 2:
        tried = candidates.whole(state.best)
    else:
        tried = [
            wording
            for outcome, rival in _worst(before, targets)
            for wording in candidates.of_outcome(state.best, outcome, rival)
        ]
    tried = list(dict.fromkeys([*tried, *write(state.best, before)]))
    choice = _choose(state.best, tried, before, score, number)
    if choice is None:
        choice = state.best, float(before.losses.mean())
        is_over = bool(state.rounds) and state.rounds[-1].best_loss == state.best_loss
    else:
        is_over = False
    best, best_loss = choice
    rounds = (*state.rounds, TuningRound(round=number, best_loss=best_loss))
    return SearchState(best=best, best_loss=best_loss, rounds=rounds, is_over=is_over)


def _choose(
    best: Wording,
    tried: Sequence[Wording],
    before: Scores,
    score: Score,
    number: int,
) -> tuple[Wording, float] | None:
    """Return the best of some wordings with its loss; ``None`` when none is surely better."""
    if not tried:
        return None
    everything = np.arange(len(before.losses))
    screened = np.sort(_shuffled(len(everything), number)[:SCREENED_ROWS])
    gains = [
        float((before.losses[screened] - scores.losses).mean()) for scores in score(tried, screened)
    ]
    order = sorted(range(len(tried)), key=lambda place: -gains[place])
    promising = [tried[place] for place in order if gains[place] > 0]
    going_on = promising[:CANDIDATES]
    if len(promising) > 1:
        going_on.append(combine(best, promising[: 2 * CANDIDATES]))
    if not going_on:
        return None
    scored = score(going_on, everything)
    steps = [before.losses - scores.losses for scores in scored]
    better = [
        (wording, step)
        for wording, step in zip(going_on, steps, strict=True)
        if step.mean() > LEAST_STEP * _standard_error(step)
    ]
    if not better:
        return None
    wording, step = max(better, key=lambda pair: pair[1].mean())
    return wording, float((before.losses - step).mean())


def _worst(scores: Scores, targets: FloatArray) -> list[tuple[int, int | None]]:
    """Return the outcomes that lose most, each with the one that is most often taken for it."""
    lost = targets * scores.losses[:, None]
    taken = np.clip(scores.probabilities - targets, 0.0, None)
    by_outcome = lost.sum(axis=0) + (taken * scores.losses[:, None]).sum(axis=0)
    worst = np.argsort(-by_outcome, kind="stable")[:WORST_OUTCOMES]
    confused = targets.T @ scores.probabilities
    np.fill_diagonal(confused, -1.0)
    return [
        (int(outcome), int(confused[outcome].argmax()) if confused.shape[0] > 2 else None)
        for outcome in worst
    ]


def _standard_error(values: FloatArray) -> float:
    if len(values) < 2:
        return float("inf")
    return float(values.std(ddof=1) / np.sqrt(len(values)))


def _shuffled(n: int, number: int) -> NDArray[np.int64]:
    keys = [hashlib.sha256(f"{number}:{place}".encode()).digest() for place in range(n)]
    return np.array(sorted(range(n), key=lambda place: keys[place]), dtype=np.int64)
