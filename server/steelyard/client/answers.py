"""Names of answers that users import, and how the labels of a row are read.

A call's answer is a type of the wire; ``steelyard.client.display`` and its neighbours register
how it shows itself.
"""

from __future__ import annotations

from steelyard.datasets.wire import Example
from steelyard.decisions.lint.wire import LintResponse
from steelyard.decisions.wire import DecideResponse
from steelyard.evaluations.wire import JobRecord
from steelyard.wire.shown import Framed

#: The answer to a decide request; in a notebook, a table with bars per decision.
DecideAnswer = DecideResponse
#: What was found about a request; in a notebook, a table.
LintAnswer = LintResponse


class RecordList(Framed, list[JobRecord]):
    """Scored decisions; in a notebook, a table of the first."""


def labels_of(row: Example) -> dict[str, dict[str, float]]:
    """Return the targets of a row, or its rewards."""
    for labels in (row.targets, row.rewards):
        if isinstance(labels, dict):
            return labels
    return {}


def expected_of(row: Example, decision: str) -> str | None:
    """Return the outcome that a row expects most; the first on a tie."""
    labels = labels_of(row).get(decision)
    return max(labels, key=labels.__getitem__) if labels else None
