"""An alarm's evidence on the wire, and the sentence that tells of it."""

from __future__ import annotations

from steelyard.alarms import tracking
from steelyard.alarms.budget import Watch
from steelyard.alarms.contexts import DISTANCE, LENGTH, NEW_WORDS, ContextMove
from steelyard.alarms.readings import MOST_LOSS
from steelyard.alarms.watched import Happening
from steelyard.alarms.wire import AlarmEvidence, AlarmReference, DecisionsBehind
from steelyard.wire.measures import Measure

#: Watches of feedback.
OF_FEEDBACK: frozenset[Watch] = frozenset({"accuracy", "log_loss", "calibration"})
_NAMES = {
    tracking.ABSTAINED: "share that abstained",
    tracking.P_TOP: "mean top probability",
    tracking.RIGHT: "share that was right by the feedback",
    tracking.LOSS: "mean log loss on feedback",
    tracking.GAP: "mean promise above what came true",
    tracking.SLOW: "share of answers as slow as the slowest twentieth of the reference",
    tracking.FAILED: "share that failed",
    tracking.ESCALATED: "share that went on to another model of the route",
}
_SHARES = frozenset(
    {tracking.ABSTAINED, tracking.RIGHT, tracking.SLOW, tracking.FAILED, tracking.ESCALATED}
)


def in_units(figure: str, value: float) -> float:
    """Return a value in the units of its figure: a loss in nats, a gap from -1 to 1."""
    if figure == tracking.LOSS:
        return value * MOST_LOSS
    return 2 * value - 1 if figure == tracking.GAP else value


def measure_of(estimate: tracking.TrackedFigure) -> Measure:
    """Return an estimate in the units of its figure."""
    value, low, high = (
        in_units(estimate.figure, number)
        for number in (estimate.value, estimate.low, estimate.high)
    )
    return Measure(value=value, low=low, high=high, n=estimate.n)


def evidence_of(happening: Happening) -> AlarmEvidence:
    """Return the evidence of an alarm."""
    _, model, version = happening.key
    move = happening.move
    if isinstance(move, ContextMove):
        return AlarmEvidence(
            figure=move.figure,
            estimate=Measure(value=move.value, low=move.low, high=move.high, n=move.n),
            reference=happening.reference,
            reference_value=move.reference,
            reference_low=None if move.reference_interval is None else move.reference_interval[0],
            reference_high=None if move.reference_interval is None else move.reference_interval[1],
            reference_n=move.reference_n,
            since=move.since,
            until=move.until,
            p_value=move.p_value,
            decisions=DecisionsBehind(
                since=move.since, until=_after(move.until), model=version or model
            ),
        )
    estimate = move.estimate
    variation = None
    if estimate.variation is not None:
        value, low, high = estimate.variation
        variation = Measure(value=value, low=low, high=high, n=estimate.n)
    since, until = estimate.since, estimate.until
    is_of_feedback = happening.watch in OF_FEEDBACK
    if is_of_feedback:
        # Feedback came in that time, on decisions of that time or of before.
        since = happening.reference.until or since
    return AlarmEvidence(
        figure=estimate.figure,
        estimate=measure_of(estimate),
        reference=happening.reference,
        reference_value=in_units(estimate.figure, estimate.reference),
        reference_low=in_units(estimate.figure, estimate.reference_interval[0]),
        reference_high=in_units(estimate.figure, estimate.reference_interval[1]),
        reference_n=estimate.reference_n,
        since=estimate.since,
        until=estimate.until,
        total_variation=variation,
        log_evidence=move.evidence,
        log_threshold=move.threshold,
        decisions=DecisionsBehind(
            since=min(since, estimate.since),
            until=_after(until),
            model=version or model,
            decision=happening.decision or None,
            has_feedback=True if is_of_feedback else None,
        ),
    )


def message_of(happening: Happening) -> str:
    """Return an alarm in a sentence."""
    _, model, version = happening.key
    who = version or model
    evidence = evidence_of(happening)
    measure, reference = evidence.estimate, evidence.reference_estimate
    by = f"{happening.decision} by {who}" if happening.decision else f"answers of {who}"
    now = _shown(evidence.figure, measure)
    was = f"{_shown(evidence.figure, reference)} in {_reference_words(evidence.reference)}"
    if isinstance(happening.move, ContextMove):
        return f"{who}: {_of_contexts(evidence, now, was)}"
    return f"{by}: the {_name(evidence.figure)} is {now}, and was {was}."


def _of_contexts(evidence: AlarmEvidence, now: str, was: str) -> str:
    if evidence.figure == LENGTH:
        return (
            f"Contexts are of another length: half of the new ones have more characters than {now}, "
            f"and than {was}."
        )
    if evidence.figure == DISTANCE:
        return (
            "Contexts are about something else: half of the new ones are further from the nearest "
            f"of the reference than {now}, and than {was}."
        )
    return (
        f"Contexts have other words: half of the new ones have more that are new than {now}, and "
        f"than {was}."
    )


def _reference_words(of: AlarmReference) -> str:
    if of.kind == "evaluation":
        return f"the evaluation {of.evaluation_id}"
    return "its reference of stored answers"


def _name(figure: str) -> str:
    if figure.startswith(tracking.OUTCOME):
        return f"share of the outcome {figure.removeprefix(tracking.OUTCOME)!r}"
    return _NAMES[figure]


def _shown(figure: str, measure: Measure) -> str:
    """Return a figure with its interval and the number that it rests on."""
    is_share = figure in {*_SHARES, NEW_WORDS} or figure.startswith(tracking.OUTCOME)
    shape = ".1%" if is_share else ",.0f" if figure == LENGTH else ".3f"
    n = f"n = {measure.n:,}"
    if measure.low is None or measure.high is None:
        return f"{measure.value:{shape}} ({n})"
    return f"{measure.value:{shape}} ({measure.low:{shape}} to {measure.high:{shape}}, {n})"


def _after(until: float) -> float:
    # The log's query ends before its time.
    return until + 0.001
