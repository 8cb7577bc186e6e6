"""The rows of a fine-tune, read as training and scoring take them.

The decisions of a dataset are few and its rows many, so a list of decisions is read and rendered
once. Rows are rendered exactly as a decide request is.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import msgspec
import numpy as np

from steelyard.decisions.kinds import Decision
from steelyard.decisions.rendering import RenderedDecision, render_context, render_decision
from steelyard.decisions.validation import decisions_of
from steelyard.evaluations.measures.records import UnmeasurableError
from steelyard.trainer.rows import TuningRow
from steelyard.trainer.task import Group, RowCounts, TaskRow
from steelyard.wire.decoding import decoder_of
from steelyard.wire.methods import Method
from steelyard.wire.origins import UNKNOWN

#: Lists of decisions that are kept ready.
_CACHED_TASKS = 1024


@dataclass(frozen=True, slots=True)
class HeldOutDecision:
    """One labelled decision of an evaluation row."""

    row: int
    place: int
    group: Group
    context: str
    context_sha256: str
    decision: Decision
    rendered: RenderedDecision
    labels: tuple[float, ...]
    by: tuple[str, ...] = (UNKNOWN,)  # where they came from


@dataclass(frozen=True, slots=True)
class ReadRows:
    """The labelled decisions of both sides, in the order of the rows."""

    training: list[TuningRow]
    evaluation: list[HeldOutDecision]
    counts: RowCounts


def read_rows(path: Path, method: Method) -> ReadRows:
    """Read ``rows.jsonl``."""
    read = lru_cache(_CACHED_TASKS)(_read_decisions)
    training: list[TuningRow] = []
    evaluation: list[HeldOutDecision] = []
    n_rows: Counter[tuple[str, str]] = Counter()
    for row in _lines(path):
        n_rows[row.side, row.group] += 1
        labels_by_decision = row.targets if method == "sft" else row.rewards
        if labels_by_decision is None:
            missing = "targets" if method == "sft" else "rewards"
            raise UnmeasurableError(f"Row {row.row} of the {row.side} rows has no {missing}.")
        context = render_context(row.context)
        for place, (decision, rendered) in enumerate(read(msgspec.json.encode(row.decisions))):
            labelled = labels_by_decision.get(decision.id)
            if labelled is None:
                continue
            labels = tuple(float(labelled.get(name, 0.0)) for name in decision.outcomes.names)
            if not np.isfinite(labels).all():
                raise UnmeasurableError(
                    f"Row {row.row} of the {row.side} rows has a label that is not finite."
                )
            if row.side == "training":
                training.append(
                    TuningRow(context, row.context_sha256, rendered, np.array(labels), row.is_seen)
                )
            else:
                evaluation.append(
                    HeldOutDecision(
                        row=row.row,
                        place=place,
                        group="earlier" if decision.id in row.earlier_decisions else row.group,
                        context=context,
                        context_sha256=row.context_sha256,
                        decision=decision,
                        rendered=rendered,
                        labels=labels,
                        by=tuple(row.by),
                    )
                )
    counts = RowCounts(
        new_training=n_rows["training", "new"],
        earlier_training=n_rows["training", "earlier"],
        new_evaluation=n_rows["evaluation", "new"],
        earlier_evaluation=n_rows["evaluation", "earlier"],
        training_decisions=len(training),
        evaluation_decisions=len(evaluation),
    )
    return ReadRows(training, evaluation, counts)


def _lines(path: Path) -> Iterator[TaskRow]:
    decoder = decoder_of(TaskRow)
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                yield decoder.decode(line)
            except msgspec.DecodeError as error:
                raise ValueError(f"Line {number} of {path.name} is no row.") from error


def _read_decisions(sent: bytes) -> tuple[tuple[Decision, RenderedDecision], ...]:
    # A policy chooses an action among probabilities, and a guideline is for people: no model learns them.
    plain = (
        dataclasses.replace(decision, policy=None, guideline="") for decision in decisions_of(sent)
    )
    return tuple((decision, render_decision(decision)) for decision in plain)
