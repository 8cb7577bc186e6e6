"""Read the right answers of a row: the targets or the rewards of its decisions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from msgspec import Struct

from steelyard.datasets.canonical import canonical_json, digest
from steelyard.wire.methods import Method
from steelyard.wire.violations import BODY, Path, Violations, show

Supervision = Literal["targets", "rewards"]
#: What each method's rows carry.
SUPERVISION_OF: dict[Method, Supervision] = {"sft": "targets", "reward": "rewards"}
METHOD_OF: dict[Supervision, Method] = {"targets": "sft", "rewards": "reward"}

#: Probabilities whose sum is this near 1 are kept as sent.
EXACT_SUM = 1e-6
#: Those whose sum is this near are divided by it; others are refused.
NEAR_SUM = 1e-3


class Labels(Struct, frozen=True, kw_only=True):
    """The labels of one row, one entry per outcome that is named."""

    supervision: Supervision
    decisions: tuple[str, ...]
    outcomes: tuple[str, ...]
    values: tuple[float, ...]
    tops: tuple[bool, ...]
    digest: bytes

    def by_decision(self) -> dict[str, dict[str, float]]:
        """Return the labels as the wire has them: decision id to outcome to value."""
        labels: dict[str, dict[str, float]] = {}
        for decision, outcome, value in self.entries():
            labels.setdefault(decision, {})[outcome] = value
        return labels

    def entries(self) -> Iterator[tuple[str, str, float]]:
        """Return decision id, outcome and value of every entry."""
        return zip(self.decisions, self.outcomes, self.values, strict=True)


def read_labels(
    supervision: Supervision,
    value: Mapping[str, Any],
    names: Mapping[str, tuple[str, ...] | None],
    violations: Violations,
) -> Labels | None:
    """Read the labels of a row; ``None`` when something was found."""
    path = (*BODY, supervision)
    if not value:
        violations.add(path, "is empty; label at least one decision.", "too_short")
    read: dict[str, dict[str, float]] = {}
    for id_, item in value.items():
        if id_ not in names:
            violations.add(
                (*path, id_), "is not a decision of this row; use one of its ids.", "unknown"
            )
            continue
        outcomes = names[id_]
        if outcomes is None:
            continue
        values = _read_values(supervision, item, outcomes, (*path, id_), violations)
        if values is not None:
            read[id_] = values
    if path in violations.touched or len(read) < len(value):
        return None
    return _labels(supervision, read, names)


def _read_values(
    supervision: Supervision, item: Any, names: tuple[str, ...], path: Path, violations: Violations
) -> dict[str, float] | None:
    if isinstance(item, str) and supervision == "targets":
        if item not in names:
            violations.add(path, f"is {show(item)}, which is not one of its outcomes.", "unknown")
            return None
        return {item: 1.0}
    if not isinstance(item, dict):
        accepted = "an outcome's name, or an object" if supervision == "targets" else "an object"
        violations.add(
            path, f"is {show(item)}; give {accepted} from outcome to number.", "wrong_type"
        )
        return None
    known = set(names)
    for name, value in item.items():
        if name not in known:
            violations.add((*path, name), "is not one of the decision's outcomes.", "unknown")
        elif isinstance(value, bool) or not isinstance(value, int | float):
            violations.add((*path, name), f"is {show(value)}; give a number.", "wrong_type")
        elif supervision == "targets" and not 0 <= value <= 1:
            violations.add((*path, name), f"is {show(value)}; give 0 to 1.", "out_of_range")
    if path in violations.touched:
        return None
    values = {name: float(value) for name, value in item.items()}
    return (_check_sum if supervision == "targets" else _check_complete)(
        values, names, path, violations
    )


def _check_sum(
    values: dict[str, float], _names: tuple[str, ...], path: Path, violations: Violations
) -> dict[str, float] | None:
    total = sum(values.values())
    if abs(total - 1) <= EXACT_SUM:
        return values
    if abs(total - 1) <= NEAR_SUM:
        return {name: value / total for name, value in values.items()}
    violations.add(path, f"sums to {total:.6g}; make the probabilities sum to 1.", "wrong_sum")
    return None


def _check_complete(
    values: dict[str, float], names: tuple[str, ...], path: Path, violations: Violations
) -> dict[str, float] | None:
    for name in names:
        if name not in values:
            violations.add((*path, name), "is missing; reward every outcome.", "missing")
    return None if path in violations.touched else values


def _top(by_name: Mapping[str, float], names: tuple[str, ...]) -> str:
    best = max(by_name.values())
    return next(name for name in names if by_name.get(name) == best)


def _labels(
    supervision: Supervision,
    read: dict[str, dict[str, float]],
    names: Mapping[str, tuple[str, ...] | None],
) -> Labels:
    decisions, outcomes, values, tops = [], [], [], []
    for id_, by_name in read.items():
        top = _top(by_name, names[id_] or ())
        for name, value in by_name.items():
            decisions.append(id_)
            outcomes.append(name)
            values.append(value)
            tops.append(name == top)
    labelled = {
        id_: {name: value for name, value in by_name.items() if value or supervision == "rewards"}
        for id_, by_name in read.items()
    }
    return Labels(
        supervision=supervision,
        decisions=tuple(decisions),
        outcomes=tuple(outcomes),
        values=tuple(values),
        tops=tuple(tops),
        digest=digest(supervision.encode(), canonical_json(labelled)),
    )
