"""Answers to golden rows beside those that were frozen: which moved, and whether beyond chance; pure."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from steelyard.alarms.golden_wire import GoldenResult
from steelyard.evaluations.measures.comparison import Pairing, pair_records
from steelyard.evaluations.measures.records import BoolArray, Records
from steelyard.evaluations.wire import Change
from steelyard.proof.differences import Bootstrap, MeanChange, Paired
from steelyard.proof.margins import lower_end


@dataclass(frozen=True, slots=True)
class Answers:
    """The answers of a check, and the median of their times."""

    records: Records
    latency_ms: float | None


def compare_answers(
    frozen: Answers, again: Answers | None, now: Answers, *, n_checks: int
) -> GoldenResult:
    """Return which answers moved since they were frozen.

    ``again`` are those of the same model right after it was frozen: as many move by chance alone.
    ``n_checks`` counts the checks since; all together find a move where there is none once in 20.
    """
    pairs = pair_records(frozen.records, now.records)
    moved = _moves(pairs)
    by_chance = {} if again is None else _moves_by_key(frozen.records, again.records)
    keys = _keys(frozen.records, pairs)
    before = np.array([[float(by_chance.get(key, False))] for key in keys])
    changed = Paired(before, moved[:, None].astype(float), pairs.context_codes)
    (share,) = changed.differences([-1.0], [1.0], Bootstrap())
    right = _change_of_right(pairs)
    has_moved = _is_beyond(share.change, share.low, n_checks)
    is_worse = right is not None and _is_beyond(
        -right.change, None if right.high is None else -right.high, n_checks
    )
    return GoldenResult(
        n=len(pairs),
        moved=share.after,
        moved_by_chance=share.before,
        beyond_chance=_to_wire(share),
        right=None if right is None else _to_wire(right),
        frozen_latency_ms=frozen.latency_ms,
        latency_ms=now.latency_ms,
        has_moved=has_moved or is_worse,
    )


def _is_beyond(change: float, low: float | None, n_checks: int) -> bool:
    """Whether a change is above 0 at the level that the n-th check has."""
    return low is not None and change > 0 and lower_end(change, low, n_checks) > 0


def _change_of_right(pairs: Pairing) -> MeanChange | None:
    counted = pairs.counted_by(pairs.after.right)
    if not len(counted):
        return None
    reach = 0.0 if counted.is_unchanged else 1.0
    paired = counted.paired([pairs.after.right])
    return paired.differences([-reach], [reach], Bootstrap())[0]


def _moves(pairs: Pairing) -> BoolArray:
    return np.asarray(pairs.before.top != pairs.after.top, dtype=bool)


def _keys(records: Records, pairs: Pairing) -> list[tuple[str, str]]:
    return [
        (str(records.contexts[row]), str(records.decision_ids[row])) for row in pairs.before_rows
    ]


def _moves_by_key(frozen: Records, again: Records) -> dict[tuple[str, str], bool]:
    pairs = pair_records(frozen, again)
    return dict(zip(_keys(frozen, pairs), _moves(pairs).tolist(), strict=True))


def _to_wire(change: MeanChange) -> Change:
    return Change(**change._asdict())
