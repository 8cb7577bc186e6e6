"""Gain and cost of a judge's thinking, from one pass over labelled rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from steelyard.calibration.temperature import TemperatureTable
from steelyard.decision_log.traffic import proportion_of
from steelyard.evaluations.wire import Change
from steelyard.models.judge_wire import ThinkingEffect
from steelyard.proof.differences import Bootstrap, Paired
from steelyard.scoring.protocol import ScoredDecision
from steelyard.serving.connected.calibrating import LabelledAnswers, calibrate


def effect_of(training: LabelledAnswers, evaluation: LabelledAnswers) -> ThinkingEffect:
    """Return evaluation answers after thinking beside the first ones, which the same pass has."""
    first = _first(evaluation)
    fits = (
        calibrate(_first(training), first, Counter()),
        calibrate(training, evaluation, Counter()),
    )
    before, after = (TemperatureTable(fit.temperatures) for fit in fits)
    scored, rows = evaluation.scored, evaluation.rows
    thoughts = [answer.thought for answer in scored if answer.thought is not None]
    first_ms, all_ms = ([_times(answer)[place] for answer in scored] for place in (0, 1))
    return ThinkingEffect(
        thought=proportion_of(len(thoughts), len(scored)),
        tokens=float(np.mean([thought.n_tokens for thought in thoughts])) if thoughts else None,
        right=_change(_right(first), _right(evaluation), rows),
        log_loss=_change(first.losses(before), evaluation.losses(after), rows),
        cpu_ms=None if np.isnan(all_ms).any() else _change(first_ms, all_ms, rows),
    )


def _times(answer: ScoredDecision) -> tuple[float, float]:
    """Return the processor time of a first answer and of all of it; not numbers where not known."""
    cpu_ms = np.nan if answer.cpu_ms is None else answer.cpu_ms
    of_thought = 0.0 if answer.thought is None else answer.thought.cpu_ms or 0.0
    return cpu_ms - of_thought, cpu_ms


def _first(answers: LabelledAnswers) -> LabelledAnswers:
    """Return the answers before any thought."""
    logits = [
        logits if answer.thought is None else np.asarray(answer.thought.first, dtype=np.float64)
        for logits, answer in zip(answers.logits, answers.scored, strict=True)
    ]
    return replace(answers, logits=logits)


def _right(answers: LabelledAnswers) -> list[float]:
    pairs = zip(answers.logits, answers.targets, strict=True)
    return [float(logits.argmax() == target.argmax()) for logits, target in pairs]


def _change(before: Sequence[float], after: Sequence[float], rows: Sequence[int]) -> Change:
    old, new = (np.array(values)[:, None] for values in (before, after))
    change = Paired(old, new, np.array(rows)).percentile_difference(Bootstrap())
    return Change(**change._asdict())
