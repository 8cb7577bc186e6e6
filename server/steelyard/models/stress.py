"""Ask a model rows under pressure, and count how many of its answers flip."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.asking.rows import ask_in_threads, result_or_error
from steelyard.decisions.wire import DecideResponse
from steelyard.errors import SteelyardError
from steelyard.evaluations.measures.sampling import ratio_measures
from steelyard.models.pressures import PRESSURES, REPEATED, REWORDED, Request
from steelyard.models.stress_wire import StressLine
from steelyard.proof.differences import Bootstrap

#: Asks the model the decisions of a request.
Ask = Callable[[Any, Sequence[Mapping[str, Any]]], DecideResponse]
#: Rows that are asked at once.
_AT_ONCE = 4
#: Flipped answers and all answers of a row, by pressure; shape (n_pressures, 2).
Counts = NDArray[np.float64]


def ask_under_pressure(
    ask: Ask,
    rows: Sequence[Mapping[str, Any]],
    progress: Callable[[int], None] = lambda _: None,
) -> tuple[list[Counts], Counter[str]]:
    """Return the counts of every row that was answered throughout, and why others were not."""
    counted = ask_in_threads(
        rows, partial(_count_flips, ask), result_or_error, _AT_ONCE, progress=progress
    )
    failures = Counter(each.message for each in counted if isinstance(each, SteelyardError))
    return [each for each in counted if not isinstance(each, SteelyardError)], failures


def _count_flips(ask: Ask, row: Mapping[str, Any]) -> Counts:
    request = Request(row["context"], list(row["decisions"]))
    answered = ask(request.context, request.decisions).decisions
    tops = {decision: result.top for decision, result in answered.items()}
    counts = np.zeros((len(PRESSURES), 2))
    for place, pressure in enumerate(PRESSURES):
        for change in pressure.changes:
            changed = change(request, tops)
            if changed is None:
                continue
            for decision, result in ask(changed.context, changed.decisions).decisions.items():
                is_flipped = changed.name_of(decision, result.top) != tops[decision]
                counts[place] += is_flipped, 1
    return counts


def stress_lines(counts: Sequence[Counts], bootstrap: Bootstrap | None = None) -> list[StressLine]:
    """Return the share of flipped answers under each pressure, with intervals by contexts."""
    if not counts:
        return []
    draws = bootstrap or Bootstrap()
    of_rows = np.stack(counts)
    flipped, answers = of_rows[:, :, 0], of_rows[:, :, 1]
    shares = ratio_measures(flipped, answers, draws, are_proportions=[True] * len(PRESSURES))
    noise = next(place for place, each in enumerate(PRESSURES) if each.name == REWORDED)
    # A context has its own shares: both are of the same texts.
    means = np.divide(flipped, answers, out=np.zeros_like(flipped), where=answers > 0)
    has_both = ((answers > 0) & (answers[:, [noise]] > 0)).astype(np.float64)
    beyond = ratio_measures(
        (means - means[:, [noise]]) * has_both,
        has_both,
        draws,
        are_proportions=[False] * len(PRESSURES),
        ranges=[(-1.0, 1.0)] * len(PRESSURES),
    )
    return [
        StressLine(
            pressure=pressure.name,
            description=pressure.description,
            flipped=shares[place],
            beyond_noise=None if pressure.name in {REPEATED, REWORDED} else beyond[place],
        )
        for place, pressure in enumerate(PRESSURES)
    ]
