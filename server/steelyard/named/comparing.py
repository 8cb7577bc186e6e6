"""Whether one version of a named decision may replace another, from the answers of both; pure.

The losses are judged by the gate of families (``steelyard.evaluations.measures.gate``): a version may
lose no more than it allows, all decisions together and each by itself. The gate knows no policies, so
actions are looked at here: a version is refused too where it surely takes more wrong actions, or fewer
right ones, than is allowed.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import msgspec
import numpy as np

from steelyard.calibration.bins import FloatArray
from steelyard.decisions.answer import answer_decision
from steelyard.decisions.kinds import Decision
from steelyard.decisions.validation import ValidRequest
from steelyard.decisions.wire import ABSTAIN, DecisionResult, Kind
from steelyard.evaluations.gate_wire import Gate
from steelyard.evaluations.measures.gate import judge
from steelyard.evaluations.measures.gate_rules import EARLIER_INCONCLUSIVE, EARLIER_WORSE, TOO_FEW
from steelyard.evaluations.measures.records import IndexArray, Records, records_from_columns
from steelyard.evaluations.measures.sampling import ratio_measures
from steelyard.evaluations.wire import Change
from steelyard.named import comparison_wire
from steelyard.named.rule_rows import rule_action
from steelyard.proof.differences import Bootstrap, Paired, sum_by_context
from steelyard.wire.measures import Measure

#: By how much wrong actions may surely become more, and right ones fewer: shares of all decisions.
WRONG_ALLOWANCE, RIGHT_ALLOWANCE = 0.01, 0.05
#: Moves of actions that a decision lists.
_MAX_MOVES = 10

REMOVED = "decision_removed"
NOTHING_LABELLED = "nothing_labelled"
MORE_WRONG = "more_wrong_actions"
FEWER_RIGHT = "fewer_right_actions"
FEWER_RIGHT_RULES = "fewer_right_rule_actions"
_UNSURE = frozenset((TOO_FEW, EARLIER_INCONCLUSIVE, NOTHING_LABELLED))


class ComparedActions(msgspec.Struct, frozen=True, array_like=True):
    """The actions that the rules of two versions take about a context.

    ``right`` are those that they take on the known labels of all their decisions.
    """

    context: str
    actions: tuple[str, str]
    right: tuple[str, str] | None = None
    is_stored: bool = False


class Compared(msgspec.Struct, frozen=True, array_like=True):
    """One decision about a context as two versions answered it; numbers are in outcome order.

    ``right`` are the actions that the two policies take where the label is known.
    """

    context: str
    decision: str
    kind: Kind
    outcomes: list[str]
    probabilities: tuple[list[float], list[float]]
    actions: tuple[str, str]
    right: tuple[str, str] | None = None
    target: list[float] | None = None
    #: The stored decision that it is of.
    source: str = ""


_Acted: TypeAlias = Compared | ComparedActions


@dataclass(frozen=True, slots=True)
class VersionAnswer:
    """A version's decision, and its answer."""

    decision: Decision
    result: DecisionResult


@dataclass(frozen=True, slots=True)
class RuledAnswer:
    """A version, and its answers to all its decisions."""

    questions: ValidRequest
    results: Mapping[str, DecisionResult]


def compare_answers(
    context: str,
    before: VersionAnswer,
    after: VersionAnswer,
    label: Mapping[str, float] | None,
    source: str = "",
) -> Compared:
    """Return two answers on the outcomes of either version; one that lacks an outcome gives it 0."""
    names = list(dict.fromkeys((*before.decision.outcomes.names, *after.decision.outcomes.names)))
    target = None
    if label is not None and label.keys() <= set(names):
        target = [float(label.get(name, 0.0)) for name in names]
    is_labelled = target is not None and math.isclose(sum(target), 1.0, abs_tol=1e-4)
    return Compared(
        context=context,
        decision=after.decision.id,
        kind=after.decision.kind,
        outcomes=names,
        probabilities=(_on(names, before.result), _on(names, after.result)),
        actions=(before.result.action, after.result.action),
        right=(
            (right_action(before.decision, label), right_action(after.decision, label))
            if is_labelled and label is not None
            else None
        ),
        target=target if is_labelled else None,
        source=source,
    )


def compare_rules(
    context: str,
    before: RuledAnswer,
    after: RuledAnswer,
    cells: Mapping[str, Any],
    labels: Mapping[str, Mapping[str, float]],
    *,
    is_stored: bool,
) -> ComparedActions | None:
    """Return the actions of the rules of both; ``None`` without rules, or the fields that they need."""
    sides = before, after
    actions = [rule_action(side.questions, side.results, cells) for side in sides]
    if actions[0] is None or actions[1] is None:
        return None
    right = None
    if labels.keys() >= _ids(before.questions) | _ids(after.questions):
        right = (_right_rule(before, cells, labels), _right_rule(after, cells, labels))
    return ComparedActions(context, (actions[0], actions[1]), right, is_stored)


def right_action(decision: Decision, label: Mapping[str, float]) -> str:
    """Return the policy's action on a known label; "" where its outcomes lack the label."""
    result = _right_result(decision, label)
    return "" if result is None else result.action


def _right_rule(
    side: RuledAnswer, cells: Mapping[str, Any], labels: Mapping[str, Mapping[str, float]]
) -> str:
    """Return the action of a version's rules on known labels; "" where its outcomes lack one."""
    results: dict[str, DecisionResult] = {}
    for decision in side.questions.decisions:
        result = _right_result(decision, labels[decision.id])
        if result is None:
            return ""
        results[decision.id] = result
    return rule_action(side.questions, results, cells) or ""


def _right_result(decision: Decision, label: Mapping[str, float]) -> DecisionResult | None:
    names = decision.outcomes.names
    total = math.fsum(label.get(name, 0.0) for name in names)
    if total <= 0:
        return None
    policy = decision.policy
    if policy is not None:
        policy = replace(policy, min_probability=None, max_cost=None, outcome_thresholds=None)
    shares = [label.get(name, 0.0) / total for name in names]
    return answer_decision(replace(decision, policy=policy), shares)


def compare_sides(
    before: ValidRequest,
    after: ValidRequest,
    rows: Sequence[Compared] | None,
    stored: Sequence[Compared] | None,
    *,
    rules: Sequence[ComparedActions] = (),
    price: comparison_wire.ComparedPrice | None,
    left_out: int,
    warnings: Sequence[str] = (),
    contents: tuple[Mapping[str, Any], Mapping[str, Any]],
) -> comparison_wire.ComparisonResult:
    """Return the verdict on a candidate, and its changes."""
    removed = sorted(_ids(before) - _ids(after))
    reasons = {REMOVED: f"It no longer asks {', '.join(removed)}."} if removed else {}
    sides: list[comparison_wire.ComparedSide | None] = []
    is_proven = False
    for is_stored, name, compared in (
        (False, "held-out rows", rows),
        (True, "stored decisions", stored),
    ):
        ruled = [each for each in rules if each.is_stored is is_stored]
        side, why = _side(compared, ruled, name) if compared else (None, {})
        sides.append(side)
        for reason, sentence in why.items():
            reasons.setdefault(reason, sentence)
        is_proven = is_proven or (side is not None and side.gate is not None and not why)
    if all(side is None or side.gate is None for side in sides):
        reasons[NOTHING_LABELLED] = (
            "Nothing says which answers are right: give the decision a dataset with held-out rows, or "
            "report feedback on its stored decisions."
        )
    if not reasons.keys() <= _UNSURE:
        verdict: comparison_wire.Verdict = "refused"
    else:
        verdict = "passed" if is_proven else "inconclusive"
    if verdict == "passed":
        reasons = {}
    return comparison_wire.ComparisonResult(
        verdict=verdict,
        reasons=list(reasons),
        sentences=list(reasons.values()),
        changes=list_changes(*contents),
        rows=sides[0],
        stored=sides[1],
        price=price,
        left_out=left_out,
        warnings=list(warnings),
    )


def list_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Return the places in which two contents differ, such as ``decisions.team.question``."""
    places = [
        name
        for name in dict.fromkeys((*before, *after))
        if name != "decisions" and before.get(name) != after.get(name)
    ]
    old = {decision["id"]: decision for decision in before["decisions"]}
    new = {decision["id"]: decision for decision in after["decisions"]}
    for name in dict.fromkeys((*old, *new)):
        if name not in old or name not in new:
            places.append(f"decisions.{name}")
            continue
        fields = dict.fromkeys((*old[name], *new[name]))
        places += [
            f"decisions.{name}.{field}"
            for field in fields
            if old[name].get(field) != new[name].get(field)
        ]
    return places


def _side(
    compared: Sequence[Compared], ruled: Sequence[ComparedActions], name: str
) -> tuple[comparison_wire.ComparedSide, dict[str, str]]:
    """Return the comparison on one kind of contexts, and the reasons against the candidate."""
    labelled = [answer for answer in compared if answer.target is not None]
    by_decision: dict[str, list[Compared]] = {}
    for answer in compared:
        by_decision.setdefault(answer.decision, []).append(answer)
    gate: Gate | None = None
    reasons: dict[str, str] = {}
    rules = _rules(ruled) if ruled else None
    if labelled:
        verdict = judge(
            _records(labelled, 0),
            _records(labelled, 1),
            against="parent",
            is_new=[False] * len(labelled),
            judged_on="all",
        )
        gate = verdict.gate
        # What it does wrong comes first, then by how much its probabilities are worse.
        reasons = _action_reasons(labelled, name) | _rule_reasons(rules, name)
        reasons |= {
            reason: f"On {name}: {sentence}"
            for reason, sentence in zip(gate.reasons, verdict.sentences, strict=True)
            # One that surely is worse is not unsure.
            if reason != EARLIER_INCONCLUSIVE or EARLIER_WORSE not in gate.reasons
        }
    side = comparison_wire.ComparedSide(
        contexts=len({answer.context for answer in compared}),
        labelled=len(labelled),
        decisions=[_decision(answers) for answers in by_decision.values()],
        rules=rules,
        gate=gate,
    )
    return side, reasons


def _action_reasons(labelled: Sequence[Compared], name: str) -> dict[str, str]:
    reasons: dict[str, str] = {}
    wrong, right = _changes(labelled, _is_wrong), _changes(labelled, _is_right)
    if (wrong.low or 0.0) > 0 and wrong.change > WRONG_ALLOWANCE:
        reasons[MORE_WRONG] = f"On {name} it takes more wrong actions: {_describe(wrong)}."
    if (right.high or 0.0) < 0 and right.change < -RIGHT_ALLOWANCE:
        reasons[FEWER_RIGHT] = f"On {name} it takes fewer right actions: {_describe(right)}."
    return reasons


def _rule_reasons(rules: comparison_wire.ComparedRules | None, name: str) -> dict[str, str]:
    right = None if rules is None else rules.right
    if right is None or (right.high or 0.0) >= 0 or right.change >= -RIGHT_ALLOWANCE:
        return {}
    return {FEWER_RIGHT_RULES: f"On {name} its rules take fewer right actions: {_describe(right)}."}


def _describe(change: Change) -> str:
    return (
        f"{change.before:.1%} before and {change.after:.1%} after, a change of "
        f"{change.change * 100:+.1f} points (95 % interval {(change.low or 0) * 100:+.1f} to "
        f"{(change.high or 0) * 100:+.1f})"
    )


def _decision(answers: Sequence[Compared]) -> comparison_wire.ComparedDecision:
    labelled = [answer for answer in answers if answer.target is not None]
    return comparison_wire.ComparedDecision(
        decision=answers[0].decision,
        n=len(answers),
        changed=_changed(answers),
        abstained=_changes(answers, _did_abstain),
        right=_changes(labelled, _is_right) if labelled else None,
        wrong=_changes(labelled, _is_wrong) if labelled else None,
        moves=_list_moves(answers),
    )


def _rules(ruled: Sequence[ComparedActions]) -> comparison_wire.ComparedRules:
    labelled = [each for each in ruled if each.right is not None]
    return comparison_wire.ComparedRules(
        n=len(ruled),
        changed=_changed(ruled),
        right=_changes(labelled, _is_right) if labelled else None,
        moves=_list_moves(ruled),
    )


def _changed(answers: Sequence[_Acted]) -> Measure | None:
    """Return the share with another action, over contexts."""
    is_changed = np.array([float(len(set(answer.actions)) > 1) for answer in answers])
    sums = sum_by_context(np.stack([is_changed, np.ones(len(answers))], axis=1), _codes(answers))
    (changed,) = ratio_measures(sums[:, :1], sums[:, 1:], Bootstrap(), are_proportions=[True])
    return changed


def _list_moves(answers: Sequence[_Acted]) -> list[comparison_wire.ActionMove]:
    moves = Counter(answer.actions for answer in answers if len(set(answer.actions)) > 1)
    return [
        comparison_wire.ActionMove(before=before, after=after, n=n)
        for (before, after), n in moves.most_common(_MAX_MOVES)
    ]


def _did_abstain(answer: Compared, place: int) -> bool:
    return answer.actions[place] == ABSTAIN


def _is_right(answer: _Acted, place: int) -> bool:
    return answer.right is not None and answer.actions[place] == answer.right[place]


def _is_wrong(answer: Compared, place: int) -> bool:
    return not _is_right(answer, place) and not _did_abstain(answer, place)


def _changes(answers: Sequence[_Acted], holds: Any) -> Change:
    """Return how the share of answers changes for which something holds, over contexts."""
    old, new = (np.array([[float(holds(answer, place))] for answer in answers]) for place in (0, 1))
    reach = 1.0 if (old != new).any() else 0.0
    paired = Paired(old, new, _codes(answers))
    (difference,) = paired.differences([-reach], [reach], Bootstrap())
    return Change(**difference._asdict())


def _codes(answers: Sequence[_Acted]) -> IndexArray:
    contexts = np.array([answer.context for answer in answers])
    return np.asarray(np.unique(contexts, return_inverse=True)[1], dtype=np.intp)


def _records(answers: Sequence[Compared], place: int) -> Records:
    return records_from_columns(
        contexts=[answer.context for answer in answers],
        decision_ids=[answer.decision for answer in answers],
        kinds=[answer.kind for answer in answers],
        outcomes=[answer.outcomes for answer in answers],
        probabilities=[_whole(answer.probabilities[place]) for answer in answers],
        labels=[_whole(answer.target or []) for answer in answers],
        supervision="targets",
    )


def _whole(shares: Sequence[float]) -> FloatArray:
    numbers = np.asarray(shares, dtype=np.float64)
    whole: FloatArray = numbers / numbers.sum()
    return whole


def _on(names: Sequence[str], result: DecisionResult) -> list[float]:
    return [result.probabilities.get(name, 0.0) for name in names]


def _ids(request: ValidRequest) -> set[str]:
    return {decision.id for decision in request.decisions}
