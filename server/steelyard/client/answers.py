"""Answers that show themselves in a notebook; their fields are the wire's."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from steelyard.client.display import (
    dataset_html,
    decide_html,
    lint_html,
    rows_html,
    table_html,
)
from steelyard.wire.datasets import Dataset, DatasetPage, Example, RowPage
from steelyard.wire.decide import DecideResponse
from steelyard.wire.feedback_rows import FeedbackRowCounts
from steelyard.wire.lint import LintResponse


class DecideAnswer(DecideResponse, frozen=True, kw_only=True):
    """The answer to a decide request; in a notebook, a table with bars per decision."""

    def _repr_html_(self) -> str:
        return decide_html(self)


class LintAnswer(LintResponse, frozen=True, kw_only=True):
    """What was found about a request; in a notebook, a table."""

    def _repr_html_(self) -> str:
        return lint_html(self.warnings)


class DatasetAnswer(Dataset, frozen=True, kw_only=True):
    """A dataset; in a notebook, a table."""

    def _repr_html_(self) -> str:
        return dataset_html([self])


class DatasetFromFeedbackAnswer(DatasetAnswer, frozen=True, kw_only=True):
    """A dataset that gained rows of feedback; in a notebook, what became of the decisions."""

    feedback: FeedbackRowCounts

    def _repr_html_(self) -> str:
        counts = msgspec.structs.asdict(self.feedback)
        rows = [(name.replace("_", " "), f"{count:,}") for name, count in counts.items()]
        told = table_html("Stored decisions", ("", "decisions"), rows)
        return f"<div>{dataset_html([self])}{told}</div>"


class DatasetsAnswer(DatasetPage, frozen=True, kw_only=True):
    """A page of datasets; in a notebook, a table."""

    data: list[DatasetAnswer]  # type: ignore[assignment]

    def _repr_html_(self) -> str:
        return dataset_html(self.data)


class RowsAnswer(RowPage, frozen=True, kw_only=True):
    """A page of rows; in a notebook, a table."""

    def to_polars(self) -> Any:
        """Give the rows as a Polars frame.

        Returns
        -------
        polars.DataFrame
            ``context`` (the text, or the JSON of another context), ``decisions`` (JSON), and by
            decision id the outcome that the row expects most, null where there is no label. A
            decision that is called like one of the others has ``label:`` before its id.
        """
        import polars as pl  # noqa: PLC0415  a client without frames needs none

        asked = dict.fromkeys(name for row in self.data for name in labels_of(row))
        columns: dict[str, list[Any]] = {
            "context": [_text(row.context) for row in self.data],
            "decisions": [_json(row.decisions) for row in self.data],
        }
        taken = frozenset(columns)
        for name in asked:
            labels = [expected_of(row, name) for row in self.data]
            columns[f"label:{name}" if name in taken else name] = labels
        return pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String))

    def _repr_html_(self) -> str:
        return rows_html(self)


def labels_of(row: Example) -> dict[str, dict[str, float]]:
    """Give the targets of a row, or its rewards."""
    for labels in (row.targets, row.rewards):
        if isinstance(labels, dict):
            return labels
    return {}


def expected_of(row: Example, decision: str) -> str | None:
    """Give the outcome that a row expects most; the first on a tie."""
    labels = labels_of(row).get(decision)
    return max(labels, key=labels.__getitem__) if labels else None


def _text(context: Any) -> str:
    return context if isinstance(context, str) else _json(context)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
