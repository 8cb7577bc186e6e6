"""Rules about policies: thresholds and actions that never come to anything."""

from __future__ import annotations

from collections.abc import Sequence

from steelyard.decisions.lint.subjects import Subject
from steelyard.wire.violations import show


def unreachable_abstain(subject: Subject) -> str | None:
    """Find a threshold for abstaining at or below one over the number of outcomes.

    The largest of n probabilities is never lower than 1/n, so that the threshold never triggers:
    its author counts on a check that is not there.
    """
    policy, n_outcomes = subject.decision.policy, len(subject.names)
    if policy is None or policy.min_probability is None:
        return None
    if policy.min_probability > 1 / n_outcomes:
        return None
    return (
        f"The decision never abstains below {policy.min_probability:g}: the largest of {n_outcomes} "
        f"probabilities is at least {1 / n_outcomes:.4g}. Set a higher threshold, or remove it."
    )


def dominated_action(subject: Subject) -> str | None:
    """Find an action that costs at least as much as another whatever the outcome.

    It is never chosen. Often two costs were swapped, or costs and gains.
    """
    policy = subject.decision.policy
    if policy is None:
        return None
    dominated = find_dominated(policy.costs)
    if dominated is None:
        return None
    worse, better = (show(policy.actions[place]) for place in dominated)
    return (
        f"The action {worse} costs at least as much as {better} for every outcome, so it is never "
        "chosen. Correct its costs, or remove it."
    )


def find_dominated(costs: Sequence[Sequence[float]]) -> tuple[int, int] | None:
    """Return the first row that is never the cheapest, and one that is never dearer.

    One set of bits per row holds who is at most as dear in every column so far, so that time grows
    with rows times columns and not with the square of the rows.

    >>> find_dominated([[0, 5], [1, 6], [9, 0]])
    (1, 0)
    """
    n_rows = len(costs)
    if n_rows < 2:
        return None
    cheaper = [(1 << n_rows) - 1] * n_rows
    for column in zip(*costs, strict=True):
        order = sorted(range(n_rows), key=column.__getitem__)
        seen, start = 0, 0
        while start < n_rows:
            end = start
            while end < n_rows and column[order[end]] == column[order[start]]:
                seen |= 1 << order[end]
                end += 1
            for row in order[start:end]:
                cheaper[row] &= seen
            start = end
    for row in range(n_rows):
        others = cheaper[row] & ~(1 << row)
        while others:
            other = (others & -others).bit_length() - 1
            if other < row or costs[other] != costs[row]:
                return row, other
            others &= others - 1
    return None
