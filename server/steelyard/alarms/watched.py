"""A watched model between two looks: its rule, its references, and the effect of each answer."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from msgspec import Struct

from steelyard.alarms import contexts as context_rules
from steelyard.alarms import tracking
from steelyard.alarms.budget import FALSE_ALARMS, WATCHES, Watch
from steelyard.alarms.contexts import ContextMove, Contexts
from steelyard.alarms.readings import Result, answer_values, feedback_values, is_escalated
from steelyard.alarms.tracking import (
    ABSTAINED,
    ESCALATED,
    FAILED,
    GAP,
    LOSS,
    P_TOP,
    RIGHT,
    SLOW,
    AlarmMove,
    Stream,
    Values,
    figures_of,
)
from steelyard.alarms.wire import AlarmReference, AlarmRule
from steelyard.calibration.sequences import BUCKET

#: Answers that are a model's reference where it has no other, at first and, if all is quiet, later.
LEARNED, GROWN = 1_000, 5_000
#: Decisions of a model that are watched.
MOST_DECISIONS = 32
#: One of so many answers has its context looked at.
CONTEXT_EVERY = 2
#: How slow counts as slow: above this quantile of the last days, at the upper end of its interval.
_SLOW, _REACH = 0.95, 2.33
_FIGURES: dict[str, Watch] = {
    P_TOP: "top_probability",
    RIGHT: "accuracy",
    LOSS: "log_loss",
    GAP: "calibration",
    SLOW: "latency",
    FAILED: "errors",
    ESCALATED: "escalations",
}
DEFAULT_RULE = AlarmRule(
    model=None,
    enabled=True,
    watches=list(WATCHES),
    false_alarms=FALSE_ALARMS,
    reference=None,
    updated_at=None,
)

#: Account, name that was called, and the number that answered or nothing.
Key = tuple[str, str, str]


class Watched(Struct):
    """The stored state of a watched model."""

    rule_at: float
    begun_at: float
    reference: AlarmReference | None = None
    #: What the figures are held against that the reference does not have.
    learned: AlarmReference | None = None
    refreshed_at: float = 0.0
    #: When it answered last, and since when feedback is counted: earlier feedback is in the reference.
    answered_at: float = 0.0
    feedback_since: float = 0.0
    answers: int = 0
    slow_ms: float | None = None
    streams: dict[str, Stream] = {}
    contexts: Contexts | None = None


class Sample(Struct):
    """Values of a reference by stream, and its contexts as text."""

    answers: dict[str, list[dict[str, float]]] = {}
    feedback: dict[str, list[dict[str, float]]] = {}
    operations: list[dict[str, float]] = []
    failed: int = 0
    slow_ms: float | None = None
    texts: list[str] = []


@dataclass(frozen=True, slots=True)
class Happening:
    """An alarm of a model that is to be raised or cleared."""

    key: Key
    decision: str
    watch: Watch
    move: AlarmMove | ContextMove
    reference: AlarmReference


def rule_at(rule: AlarmRule) -> float:
    """Return the time a rule was last changed."""
    return rule.updated_at or 0.0


def is_to_grow(watched: Watched, rule: AlarmRule) -> bool:
    """Whether a reference of first answers is to become one of more: nothing was raised by them."""
    of = watched.reference
    if watched.answers != GROWN or rule.reference or of is None or of.kind != "window":
        return False
    is_raised = watched.contexts is not None and watched.contexts.is_raised
    return not is_raised and not any(stream.raised for stream in watched.streams.values())


def adopt(watched: Watched, sample: Sample, rule: AlarmRule, of: AlarmReference) -> None:
    """Watch the figures of a sample that are not watched yet."""
    names = sorted(sample.answers, key=lambda name: (-len(sample.answers[name]), name))
    for decision in names[:MOST_DECISIONS]:
        always = (
            [ABSTAINED] if any(ABSTAINED in values for values in sample.answers[decision]) else []
        )
        _adopt(watched, "answers", decision, sample.answers[decision], rule, always)
        _adopt(watched, "feedback", decision, sample.feedback.get(decision, []), rule, [])
    if watched.contexts is None and "contexts" in rule.watches:
        watched.contexts = context_rules.contexts_of(sample.texts)
    if watched.reference is None:
        watched.reference = of


def adopt_operations(watched: Watched, sample: Sample, rule: AlarmRule, of: AlarmReference) -> None:
    """Hold operations against a sample of the last days from now on."""
    watched.learned = of
    for source in ("operations", "errors"):
        watched.streams.pop(source, None)
    watched.slow_ms = sample.slow_ms
    _adopt(watched, "operations", "", sample.operations, rule, [SLOW, ESCALATED])
    units: list[dict[str, float]] = [{}] * len(sample.operations) + [{FAILED: 1.0}] * sample.failed
    _adopt(watched, "errors", "", units, rule, [FAILED])


def _adopt(
    watched: Watched,
    source: Any,
    decision: str,
    units: Sequence[Values],
    rule: AlarmRule,
    always: Sequence[str],
) -> None:
    name = f"{source}/{decision}" if decision else source
    stream = watched.streams.get(name)
    figures = {
        figure: of
        for figure, of in figures_of(units, always).items()
        if (stream is None or figure not in stream.figures)
        and _FIGURES.get(figure, "shares") in rule.watches
    }
    if stream is not None and any(figure in stream.figures for figure in (P_TOP, RIGHT)):
        # Outcomes are those of the reference that came first.
        figures = {figure: of for figure, of in figures.items() if figure == ABSTAINED}
    if not figures:
        return
    if stream is None:
        watched.streams[name] = Stream(source=source, decision=decision, figures=figures)
    else:
        stream.figures |= figures
        stream.open = tracking.Bucket()
        stream.restart()


def count_answer(
    key: Key,
    watched: Watched,
    rule: AlarmRule,
    at: float,
    results: Mapping[str, Result],
    total_ms: float | None,
) -> Iterator[Happening]:
    """Count an answer; yield the alarms that it raises or clears."""
    watched.answers += 1
    watched.answered_at = at
    for decision, result in results.items():
        stream = watched.streams.get(f"answers/{decision}")
        if stream is not None:
            yield from _add(key, watched, rule, stream, at, answer_values(result))
    operations = watched.streams.get("operations")
    if operations is not None:
        values = operation_values(results, total_ms, watched.slow_ms)
        yield from _add(key, watched, rule, operations, at, values)
    errors = watched.streams.get("errors")
    if errors is not None:
        yield from _add(key, watched, rule, errors, at, {})


def count_feedback(
    key: Key,
    watched: Watched,
    rule: AlarmRule,
    at: float,
    decision: str,
    result: Result,
    outcome: Any,
) -> Iterator[Happening]:
    """Count a decision's feedback; yield the alarms that it raises or clears."""
    stream = watched.streams.get(f"feedback/{decision}")
    if stream is not None and at >= watched.feedback_since:
        yield from _add(key, watched, rule, stream, at, feedback_values(result, outcome))


def count_failed(
    key: Key, watched: Watched, rule: AlarmRule, at: float, n: int
) -> Iterator[Happening]:
    """Count failed answers; yield the alarms that they raise or clear."""
    stream = watched.streams.get("errors")
    if stream is not None:
        for _ in range(n):
            yield from _add(key, watched, rule, stream, at, {FAILED: 1.0})


def count_contexts(
    key: Key, watched: Watched, rule: AlarmRule, at: float, texts: Sequence[str]
) -> Iterator[Happening]:
    """Count contexts; yield the alarms that they raise or clear."""
    if watched.contexts is None or watched.reference is None:
        return
    moves = context_rules.gather(watched.contexts, at, texts, false_alarms=rule.false_alarms)
    for move in moves:
        yield Happening(key, "", "contexts", move, watched.reference)


def operation_values(
    results: Mapping[str, Result], total_ms: float | None, slow_ms: float | None
) -> dict[str, float]:
    """Return whether an answer was slow and whether it escalated, as values."""
    is_slow = total_ms is not None and slow_ms is not None and total_ms > slow_ms
    return {SLOW: float(is_slow), ESCALATED: float(is_escalated(results))}


def slow_ms_of(times: Sequence[float]) -> float | None:
    """Return the time that counts as slow: the upper end of the interval of the 95th percentile."""
    n = len(times)
    if n < tracking.MIN_REFERENCE:
        return None
    rank = math.ceil(n * _SLOW + _REACH * math.sqrt(n * _SLOW * (1 - _SLOW)))
    return float(np.sort(np.asarray(times))[min(rank, n) - 1])


def _add(
    key: Key, watched: Watched, rule: AlarmRule, stream: Stream, at: float, values: Values
) -> Iterator[Happening]:
    decisions = 1
    if stream.decision and stream.open.n + 1 >= BUCKET:  # evidence is looked at now, and not before
        decisions = sum(each.source == "answers" for each in watched.streams.values())
    moves = tracking.add(stream, at, values, decisions=decisions, false_alarms=rule.false_alarms)
    of = watched.reference if stream.decision else watched.learned
    for move in moves:
        reference = of or AlarmReference(kind="window")
        if move.estimate.figure == ABSTAINED and watched.learned is not None:
            reference = watched.learned
        yield Happening(key, stream.decision, move.watch, move, reference)
