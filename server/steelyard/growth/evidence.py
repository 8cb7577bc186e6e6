"""The evidence of a growth: a model's accuracy, labelled rows as vectors, and sure answers; it blocks."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray
from sqlalchemy import Connection

from steelyard.datasets.service import DatasetService
from steelyard.datasets.version_service import DatasetAt, LabelledRow
from steelyard.decision_log import store
from steelyard.decision_log.traffic import is_right, share
from steelyard.growth import learning
from steelyard.operations.idempotency import SECONDS_A_DAY
from steelyard.storage import State
from steelyard.wire.decoding import decoder_of
from steelyard.wire.measures import Measure

Embed = Callable[[Sequence[str]], NDArray[np.float32]]

#: Answers that are read at most, the newest ones, and at a time.
_MOST, _PAGE = 5_000, 500


class _Result(Struct):
    top: str
    p_top: float


_results = decoder_of(dict[str, _Result]).decode


def measure_error(state: State, criteria: store.AnswerCriteria) -> Measure | None:
    """Return how often answers were wrong by their feedback; ``None`` where too few have any."""
    n = n_wrong = 0
    for observed in _read(state, criteria, store.page_observed):
        results = _results(observed.decision.results)
        for name, outcome in observed.outcomes.items():
            n += 1
            n_wrong += not is_right(results[name].top, outcome)
    return None if n < learning.MIN_EVALUATION else share(n_wrong, n)


def read_sides(
    datasets: DatasetService, at: DatasetAt, decisions: Sequence[str], embed: Embed | None
) -> dict[str, tuple[learning.Labelled, learning.Labelled]]:
    """Return the training and the held-out rows of each decision that has enough, as vectors."""
    rows = [
        list(deque(datasets.side_rows(at, side), learning.MAX_ROWS))
        for side in ("training", "evaluation")
    ]
    vectors = [_vectors_of([str(row.context) for row in side], embed) for side in rows]
    sides = {}
    for decision in decisions:
        places: dict[str, int] = {}
        training, evaluation = (
            _label(side, of_side, decision, places)
            for side, of_side in zip(rows, vectors, strict=True)
        )
        if (
            len(training.labels) >= learning.MIN_ROWS
            and len(evaluation.labels) >= learning.MIN_EVALUATION
        ):
            sides[decision] = training, evaluation
    return sides


def put_sure_answers(
    state: State,
    criteria: store.AnswerCriteria,
    *,
    at_least: float,
    excluded: Collection[str],
    now: float,
) -> int:
    """Report the sure answers of a day ago that have no feedback as a model's, and return how many.

    ``excluded``: models whose answers are not taken. People have a day to say more.
    """
    criteria = replace(criteria, until=now - SECONDS_A_DAY)
    reports: dict[str, tuple[str, Mapping[str, str]]] = {}
    observed_ids = {
        each.decision.id
        for by in (None, "model")
        for each in _read(state, replace(criteria, by=by), store.page_observed)
    }
    for answer in _read(state, criteria, store.page_answers):
        stored = answer.decision
        results = _results(stored.results)
        is_sure = all(result.p_top >= at_least for result in results.values())
        if is_sure and stored.model not in excluded and stored.id not in observed_ids:
            outcomes = {name: result.top for name, result in results.items()}
            reports[stored.id] = stored.model, outcomes

    def work(connection: Connection) -> None:
        for answer_id, (model, outcomes) in reports.items():
            source = store.FeedbackSource("model", model)
            store.put_feedback(connection, answer_id, outcomes, recorded_at=now, source=source)

    if reports:
        state.write_now(work)
    return len(reports)


def _read(
    state: State,
    criteria: store.AnswerCriteria,
    page_of: Callable[..., list[store.ObservedDecision]],
) -> list[store.ObservedDecision]:
    answers: list[store.ObservedDecision] = []
    while len(answers) < _MOST:
        page = state.read_now(lambda connection: page_of(connection, criteria, _PAGE))  # noqa: B023
        answers += page
        if len(page) < _PAGE:
            break
        criteria = replace(criteria, after=page[-1].place)
    return answers


def _vectors_of(texts: Sequence[str], embed: Embed | None) -> learning.FloatArray:
    words = learning.word_vectors(texts)
    if embed is None or not texts:
        return words
    return np.concatenate([words, np.asarray(embed(texts), dtype=np.float64)], axis=1)


def _label(
    rows: Sequence[LabelledRow], vectors: learning.FloatArray, decision: str, places: dict[str, int]
) -> learning.Labelled:
    """Return the rows that label a decision; ``places`` numbers its outcomes as they come."""
    chosen, labels = [], []
    for place, row in enumerate(rows):
        target = (row.targets or {}).get(decision)
        if target:
            outcome = max(target, key=lambda name: target[name])
            chosen.append(place)
            labels.append(places.setdefault(outcome, len(places)))
    return learning.Labelled(vectors[chosen], np.array(labels, dtype=np.intp))
