"""Labels that prompt tuning doubted, as a dataset tells them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from steelyard.datasets.frames.pages import StoredRow
from steelyard.datasets.version_service import decode_example
from steelyard.datasets.wire import LabelToCheck


@dataclass(frozen=True, slots=True)
class Doubt:
    """A row's label that a job doubted, at a time in Unix seconds."""

    index: int
    decision: str
    reason: str
    job: str
    at: float


def labels_to_check(rows: Iterable[StoredRow], doubts: Sequence[Doubt]) -> list[LabelToCheck]:
    """Return the doubted labels of the training rows that are there, each row and decision once.

    ``doubts`` are those of the newest job first: its reason is reported, and its time.
    """
    by_row: dict[int, dict[str, list[Doubt]]] = {}
    for doubt in doubts:
        by_row.setdefault(doubt.index, {}).setdefault(doubt.decision, []).append(doubt)
    labels = []
    for line, row in enumerate(rows, start=1):
        for decision, of_label in by_row.get(row.index, {}).items():
            sent = decode_example(row.json)
            labels.append(
                LabelToCheck(
                    row=f"r{row.index}",
                    line=line,
                    decision=decision,
                    reason=of_label[0].reason,
                    jobs=[doubt.job for doubt in of_label],
                    flagged_at=of_label[0].at,
                    context=sent.context,
                    targets=sent.labels.get(decision),
                )
            )
    return labels
