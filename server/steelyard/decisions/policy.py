"""From probabilities to an action: costs, weights, and when to abstain.

Two spellings mean the same. ``policy`` has ``action_costs`` and ``abstain_below``, and with them
``outcome_thresholds`` and ``abstain_unstated``; the older one has ``costs``, ``weights`` and ``abstain`` beside the question.
``read_policy`` reads either into one ``Policy``, and ``choose_action`` applies it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Any, overload

from steelyard.decisions.wire import ABSTAIN, MAX_ACTIONS
from steelyard.wire.violations import Path, Violations, refusal, show

#: The older spelling's fields.
SEED_FIELDS = ("weights", "costs", "abstain")
#: A decision without any of these has no policy.
POLICY_FIELDS = frozenset(("policy", *SEED_FIELDS))


@dataclass(frozen=True, slots=True)
class Policy:
    """How to choose an action on one decision."""

    actions: tuple[str, ...] = ()
    costs: tuple[Sequence[float], ...] = ()
    weights: tuple[float, ...] | None = None
    min_probability: float | None = None
    max_cost: float | None = None
    costs_path: Path = ()
    #: Of each outcome, the probability below which it is not acted on; None where none is its own.
    outcome_thresholds: tuple[float | None, ...] | None = None
    #: Abstain where it is more probable than this that the context does not say.
    max_unstated: float | None = None

    def threshold_of(self, place: int) -> float | None:
        """Return the probability below which an outcome, the likeliest one, is not acted on."""
        own = None if self.outcome_thresholds is None else self.outcome_thresholds[place]
        return self.min_probability if own is None else own


@dataclass(frozen=True, slots=True, eq=False)
class FlatCosts(Sequence[float]):
    """The costs of an action that is right for one outcome and costs the same for every other.

    It stands for its row and takes the room of three numbers: prices of 255 outcomes are short to
    send and 65,025 costs.

    >>> list(FlatCosts(5.0, 1, 3))
    [5.0, 0.0, 5.0]
    """

    price: float
    place: int
    n: int

    def __len__(self) -> int:
        return self.n

    def __iter__(self) -> Iterator[float]:
        price = self.price
        return chain(repeat(price, self.place), (0.0,), repeat(price, self.n - self.place - 1))

    @overload
    def __getitem__(self, index: int) -> float: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[float]: ...

    def __getitem__(self, index: int | slice) -> float | Sequence[float]:
        return tuple(self)[index]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))


@dataclass(frozen=True, slots=True)
class ChosenAction:
    """The action of a policy."""

    action: str
    expected_costs: dict[str, float] | None


def choose_action(
    policy: Policy,
    names: Sequence[str],
    probabilities: Sequence[float],
    unstated: float | None = None,
) -> ChosenAction:
    """Choose the cheapest action, or abstain; the expected costs stay where it abstains.

    Without costs it is the outcome with the largest weight times probability, whose expected cost is
    the sum of the others' shares. Weights scale the probabilities. The first wins a tie. ``unstated``
    is the probability that the context does not say, where the model knows.

    >>> policy = Policy(("refund", "ask"), ((0.0, 9.0), (2.0, 1.0)))
    >>> choose_action(policy, ("billing", "other"), (0.9, 0.1)).action
    'refund'
    """
    shares = _shares(probabilities, policy.weights)
    expected_costs: dict[str, float] | None = None
    if policy.actions:
        costs = [_expected_cost(shares, row) for row in policy.costs]
        if not all(map(math.isfinite, costs)):
            action = policy.actions[[math.isfinite(cost) for cost in costs].index(False)]
            raise refusal(
                (*policy.costs_path, action),
                "has an expected cost too large for a number; scale the costs down.",
                "overflow",
            )
        cost = min(costs)
        chosen = policy.actions[costs.index(cost)]
        expected_costs = dict(zip(policy.actions, costs, strict=True))
    else:
        share = max(shares)
        chosen, cost = names[shares.index(share)], 1 - share
    p_top = max(probabilities)
    threshold = policy.threshold_of(probabilities.index(p_top))
    is_unsure = threshold is not None and p_top < threshold
    is_dear = policy.max_cost is not None and cost > policy.max_cost
    most = policy.max_unstated
    is_unstated = most is not None and unstated is not None and unstated > most
    abstains = is_unsure or is_dear or is_unstated
    return ChosenAction(ABSTAIN if abstains else chosen, expected_costs)


def _shares(probabilities: Sequence[float], weights: Sequence[float] | None) -> list[float]:
    """Return weight times probability, normalised.

    Products are formed on mantissas, their exponents taken relative to the largest: no weight is too
    large or too small, and exact ties stay ties.
    """
    if weights is None:
        return list(probabilities)
    parts = []
    for probability, weight in zip(probabilities, weights, strict=True):
        (mantissa, exponent), (factor, shift) = math.frexp(probability), math.frexp(weight)
        parts.append((mantissa * factor, exponent + shift))
    largest = max(exponent for mantissa, exponent in parts if mantissa > 0)
    scaled = [math.ldexp(mantissa, exponent - largest) for mantissa, exponent in parts]
    total = math.fsum(scaled)
    return [value / total for value in scaled]


def _expected_cost(shares: Sequence[float], costs: Sequence[float]) -> float:
    try:
        return math.fsum(share * cost for share, cost in zip(shares, costs, strict=True))
    except OverflowError:
        return math.inf


def read_policy(
    fields: Mapping[str, Any], names: Sequence[str] | None, path: Path, violations: Violations
) -> Policy | None:
    """Read a decision's policy in either spelling; ``None`` without one, or ``violations`` says why."""
    policy = fields.get("policy")
    seed = [name for name in SEED_FIELDS if fields.get(name) is not None]
    if policy is not None:
        for name in seed:
            violations.add(
                (*path, name),
                "is given beside policy, which says the same in another spelling; keep one of them.",
                "conflict",
            )
        return _read_new(policy, names, (*path, "policy"), violations)
    return _read_seed(fields, names, path, violations) if seed else None


def _read_new(
    policy: Mapping[str, Any], names: Sequence[str] | None, path: Path, violations: Violations
) -> Policy | None:
    costs_path = (*path, "action_costs")
    # One of the wrong type is noted already.
    matrix = None if costs_path in violations.paths else policy.get("action_costs")
    threshold = policy.get("abstain_below")
    own = policy.get("outcome_thresholds")
    max_unstated = policy.get("abstain_unstated")
    is_empty = matrix is None and threshold is None and not own and max_unstated is None
    if is_empty and path not in violations.touched:
        violations.add(
            path,
            "is empty; give action_costs, abstain_below, outcome_thresholds or abstain_unstated, or "
            "remove it.",
            "missing",
        )
    thresholds = _read_thresholds(own, names, (*path, "outcome_thresholds"), violations)
    actions, costs = _read_matrix(matrix, names, costs_path, violations)
    if path in violations.touched:
        return None
    return Policy(
        actions,
        costs,
        min_probability=threshold,
        costs_path=costs_path,
        outcome_thresholds=thresholds,
        max_unstated=max_unstated,
    )


def _read_seed(
    fields: Mapping[str, Any], names: Sequence[str] | None, path: Path, violations: Violations
) -> Policy | None:
    costs_path = (*path, "costs")
    matrix = fields.get("costs")
    if matrix and any(isinstance(row, int | float) for row in matrix.values()):
        actions, costs = _read_flat(matrix, names, costs_path, violations)
    else:
        actions, costs = _read_matrix(matrix, names, costs_path, violations)
    weights = _read_weights(fields.get("weights"), names, (*path, "weights"), violations)
    threshold, max_cost = _read_abstain(fields.get("abstain"), (*path, "abstain"), violations)
    if any((*path, name) in violations.touched for name in SEED_FIELDS):
        return None
    return Policy(actions, costs, weights, threshold, max_cost, costs_path)


def _read_abstain(
    abstain: Mapping[str, Any] | None, path: Path, violations: Violations
) -> tuple[float | None, float | None]:
    if abstain is None:
        return None, None
    threshold, max_cost = abstain.get("min_probability"), abstain.get("cost")
    if threshold is None and max_cost is None and path not in violations.touched:
        violations.add(path, "is empty; give min_probability or cost, or remove it.", "missing")
    return threshold, max_cost


_Matrix = tuple[tuple[str, ...], tuple[Sequence[float], ...]]


def _read_flat(
    flat: Mapping[str, Any], names: Sequence[str] | None, path: Path, violations: Violations
) -> _Matrix:
    """Turn outcome to cost of choosing it wrongly into costs of actions named like the outcomes."""
    if any(isinstance(row, Mapping) for row in flat.values()):
        violations.add(
            path,
            "mixes numbers and objects; give every action an object of costs, or every outcome a "
            "number.",
            "conflict",
        )
        return (), ()
    if names is None or not check_keys(flat, names, path, violations) or path in violations.touched:
        return (), ()
    for name in names:
        check_action(name, path, violations)
    rows = (FlatCosts(float(flat[name]), place, len(names)) for place, name in enumerate(names))
    return tuple(names), tuple(rows)


def _read_matrix(
    matrix: Mapping[str, Mapping[str, float]] | None,
    names: Sequence[str] | None,
    path: Path,
    violations: Violations,
) -> _Matrix:
    if matrix is None:
        return (), ()
    if not 1 <= len(matrix) <= MAX_ACTIONS:
        violations.add(
            path,
            f"has {len(matrix)} actions; give 1 to {MAX_ACTIONS}.",
            "too_long" if matrix else "too_short",
        )
        return (), ()
    rows: list[tuple[float, ...]] = []
    for action, row in matrix.items():
        if not isinstance(action, str):
            continue
        check_action(action, path, violations)
        if names is None or not isinstance(row, Mapping):
            continue
        if (
            check_keys(row, names, (*path, action), violations)
            and (*path, action) not in violations.touched
        ):
            rows.append(tuple(float(row[name]) for name in names))
    return tuple(matrix), tuple(rows)


def check_action(action: str, path: Path, violations: Violations) -> None:
    """Note a name that no action may have."""
    if not action.strip():
        violations.add((*path, action), "is a blank action; give it a name.", "blank")
    elif action == ABSTAIN:
        violations.add(
            (*path, action),
            "is reserved; say when to abstain with abstain_below or abstain, and leave this action "
            "out.",
            "reserved",
        )


def _read_weights(
    weights: Mapping[str, float] | None,
    names: Sequence[str] | None,
    path: Path,
    violations: Violations,
) -> tuple[float, ...] | None:
    if weights is None or names is None:
        return None
    _refuse_unknown(weights, names, path, violations)
    if path in violations.touched:
        return None
    return tuple(float(weights.get(name, 1.0)) for name in names)


def _read_thresholds(
    thresholds: Mapping[str, float] | None,
    names: Sequence[str] | None,
    path: Path,
    violations: Violations,
) -> tuple[float | None, ...] | None:
    if not thresholds or names is None or path in violations.touched:
        return None
    _refuse_unknown(thresholds, names, path, violations)
    return tuple(thresholds.get(name) for name in names)


def check_keys(
    row: Mapping[str, Any], names: Sequence[str], path: Path, violations: Violations
) -> bool:
    """Note outcomes that a row leaves out and names that are none; return whether it fits."""
    missing = [name for name in names if name not in row]
    for name in missing:
        violations.add((*path, name), "is missing; give a cost for every outcome.", "missing")
    return _refuse_unknown(row, names, path, violations) and not missing


def _refuse_unknown(
    row: Mapping[str, Any], names: Sequence[str], path: Path, violations: Violations
) -> bool:
    known = set(names)
    # A key that is no text is noted already.
    unknown = [name for name in row if name not in known and isinstance(name, str)]
    for name in unknown:
        violations.add(
            (*path, name),
            f"is not one of the decision's outcomes ({show(name)}); remove or rename it.",
            "unknown_outcome",
        )
    return not unknown
