"""The thresholds of a ladder, certified on the held-out decisions of a fine-tune."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from msgspec import UNSET, UnsetType
from numpy.typing import NDArray

from steelyard.calibration.certify import last_passed, missing_rows, run_tests
from steelyard.evaluations.gate_wire import BeforeAfter, GateLadder, LadderMs
from steelyard.evaluations.measures.gate_slices import compared_measure
from steelyard.evaluations.measures.records import BoolArray, measure_records
from steelyard.scoring.heads import Heads
from steelyard.scoring.ladder import READING_STEP, WORDS_STEP, Ladder
from steelyard.scoring.novelty import TrainingTexts
from steelyard.scoring.protocol import Scorer
from steelyard.scoring.tuned import TunedScorer
from steelyard.trainer.cheapest import MARGIN, time_alone
from steelyard.trainer.reading import HeldOutDecision
from steelyard.trainer.records import records_of_group
from steelyard.trainer.task import FineTuneTask
from steelyard.wire.origins import counts

#: How often thresholds so certified keep to the margin.
CONFIDENCE = 0.95
#: Thresholds of a kind that are tested at most.
_MAX_CANDIDATES = 50
_FIRST = frozenset({0})


@dataclass(frozen=True, slots=True)
class LadderTest:
    """The ladder of a fine-tune, its figures, and the step that decides each held-out decision."""

    ladder: Ladder
    gate: GateLadder
    steps: NDArray[np.object_]


def certify_ladder(
    task: FineTuneTask,
    tables: tuple[pa.Table, pa.Table],
    decisions: Sequence[HeldOutDecision],
    words: Heads,
    texts: TrainingTexts,
) -> LadderTest:
    """Return the ladder whose words answer as much as is certified; nothing where that is nothing.

    ``tables`` have the held-out decisions as the heads that read the base scored them, and as words alone
    did. Of each kind thresholds are tested from the highest on (Learn then Test): that words answer a
    decision wrong that the other heads answer right happens in at most ``MARGIN`` of all decisions. The
    order knows no label, so that the last one before the first that fails holds.
    """
    reading, by_words = (
        measure_records(records_of_group(table, "adapted", task.method)) for table in tables
    )
    right = by_words.right
    harm = np.maximum(reading.values[right] - by_words.values[right], 0.0)
    contexts = np.unique([each.context_sha256 for each in decisions], return_inverse=True)[1]
    kinds = np.array([each.rendered.kind for each in decisions])
    is_counted = by_words.counted[compared_measure(by_words)] & [
        counts(each.by, task.judged_by) for each in decisions
    ]
    ladder = Ladder(Heads(head for head in words if head.reads_words_alone), texts, {})
    has_head = np.array([ladder.heads.find(each.rendered) is not None for each in decisions])
    may_answer = has_head & ladder.are_near([each.context for each in decisions])
    thresholds, missing = {}, {}
    for kind in sorted(set(kinds[is_counted & may_answer].tolist())):
        of_kind = is_counted & (kinds == kind)
        threshold, missing[kind] = certify_words(
            by_words.p_top[of_kind], may_answer[of_kind], harm[of_kind], contexts[of_kind]
        )
        if threshold is not None:
            thresholds[kind] = threshold
    least = np.array([thresholds.get(kind, np.inf) for kind in kinds.tolist()])
    answered = may_answer & (by_words.p_top >= least)
    counted = is_counted & answered
    n = max(int(is_counted.sum()), 1)
    gate = GateLadder(
        thresholds=thresholds,
        share=float(counted.sum() / n),
        margin=MARGIN,
        confidence=CONFIDENCE,
        lost=float((reading.values[right] - by_words.values[right])[counted].sum() / n),
        missing_rows={kind: rows for kind, rows in missing.items() if kind not in thresholds},
    )
    heads = Heads(head for head in ladder.heads if head.spec.kind in thresholds)
    steps = np.where(answered, WORDS_STEP, READING_STEP).astype(object)
    steps[~has_head | np.isinf(least)] = None
    return LadderTest(Ladder(heads, texts, thresholds, round(gate.share, 4)), gate, steps)


def take_steps(table: pa.Table, by_words: pa.Table, steps: NDArray[np.object_]) -> pa.Table:
    """Return the records of every group, of the adapted model those of the step that decided."""
    is_adapted = pa.compute.equal(table["group"], "adapted")
    adapted = table.filter(is_adapted)
    n = len(steps)
    chosen = np.arange(n) + np.where(steps == WORDS_STEP, n, 0)
    mixed = pa.concat_tables([adapted, by_words]).take(chosen)
    place = mixed.schema.get_field_index("decided_by")
    mixed = mixed.set_column(place, "decided_by", pa.array(steps, pa.string()))
    return pa.concat_tables([mixed, table.filter(pa.compute.invert(is_adapted))])


def time_ladder(
    test: LadderTest, both: BeforeAfter, scorer: Scorer, decisions: Sequence[HeldOutDecision]
) -> LadderMs | UnsetType:
    """Return the cost of each step; ``both`` are those of what reads the base, and of words, alone."""
    ladder, reading = test.ladder, both.before
    if not ladder.thresholds or reading is None:
        return UNSET
    # Everything stands that is near: the step alone, and no pass of the base.
    first = replace(ladder, thresholds=dict.fromkeys(ladder.thresholds, 0.0))
    words = time_alone(TunedScorer(ladder.heads, scorer, ladder=first), decisions)
    return LadderMs(words=words, reading=reading, mean=words + (1 - ladder.share) * reading)


def certify_words(
    p_top: NDArray[np.float64],
    may_answer: BoolArray,
    harm: NDArray[np.float64],
    contexts: NDArray[np.intp],
) -> tuple[float | None, int | None]:
    """Return the lowest threshold that is certified, and the rows that would certify one."""
    candidates = _candidates(p_top[may_answer])
    wrong = harm[:, None] * (may_answer[:, None] & (p_top[:, None] >= candidates))
    tests = run_tests(wrong, np.ones_like(wrong), contexts, error=MARGIN)
    passed = last_passed(tests, _FIRST, confidence=CONFIDENCE)
    if passed is not None:
        return float(candidates[passed]), 0
    n_rows = len(np.unique(contexts))
    return None, missing_rows(tests, _FIRST, n_rows=n_rows, confidence=CONFIDENCE)


def _candidates(p_top: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return thresholds between the observed top probabilities, the highest first, and 0 as the last."""
    observed = np.unique(p_top)
    between = np.append((observed[:-1] + observed[1:]) / 2, observed[-1:])[::-1]
    steps = np.linspace(0, len(between) - 1, min(len(between), _MAX_CANDIDATES - 1))
    return np.append(between[steps.round().astype(np.intp)], 0.0)
