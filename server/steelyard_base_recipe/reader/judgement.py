"""How well a reader reads: twins, areas under curves, and public sets that choose nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from steelyard_base_recipe.reader.model import FALSE, TRUE
from steelyard_base_recipe.reader.rows import ReaderRow, Twin

#: Logits (rows, 3) of rows.
Read = Callable[[Sequence[ReaderRow]], NDArray[np.float32]]


def evidence(logits: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return how much more true than false each row is, in logits."""
    difference: NDArray[np.float32] = logits[:, TRUE] - logits[:, FALSE]
    return difference


def balance(read: Read, rows: Sequence[ReaderRow]) -> NDArray[np.float32]:
    """Return the evidence for each row's statement less that for its negation, halved."""
    statements = evidence(read([row.as_statement() for row in rows]))
    negations = evidence(read([row.as_negation() for row in rows]))
    is_turned = np.array([row.reading is not None for row in rows])
    return np.where(is_turned, (statements - negations) / 2, statements)


def judge(
    read: Read, twins: Sequence[Twin], rows: Sequence[ReaderRow], public: Sequence[ReaderRow]
) -> dict[str, float]:
    """Return shares of twins in the right order, areas under curves and accuracies.

    ``twins`` and ``rows``: of the validation split of the written rows. ``public``: held-out public
    pairs; their sources are kept apart, all of MNLI and SNLI as ``three_way``.
    """
    figures: dict[str, float] = {}
    for form in ("statement", "question"):
        pairs = [twin for twin in twins if twin.true.form == form]
        if pairs:
            sides = [[twin.true for twin in pairs], [twin.false for twin in pairs]]
            above = np.subtract(*(evidence(read(side)) for side in sides))
            figures[f"twins_{form}"] = float((above > 0).mean())
            above = np.subtract(*(balance(read, side) for side in sides))
            figures[f"twins_{form}_balance"] = float((above > 0).mean())
        sided = [row for row in rows if row.form == form and row.label in (0, 1)]
        if len({row.label for row in sided}) == 2:
            figures[f"auc_{form}"] = float(
                roc_auc_score([row.label == 0 for row in sided], evidence(read(sided)))
            )
            figures[f"auc_{form}_balance"] = float(
                roc_auc_score([row.label == 0 for row in sided], balance(read, sided))
            )
    by_set: dict[str, list[ReaderRow]] = {}
    for row in public:
        by_set.setdefault("three_way" if row.source in ("mnli", "snli") else row.source, []).append(
            row
        )
    for name, of_set in by_set.items():
        labels = np.array([row.label for row in of_set])
        top = read(of_set).argmax(1)
        # 3 is "not true", 4 is "not false".
        is_right = np.where(labels == 3, top != 0, np.where(labels == 4, top != 1, top == labels))
        figures[name] = float(is_right.mean())
    return figures
