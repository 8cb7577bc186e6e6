"""Several labels at once: one yes/no decision for each label of a set, about one context."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any


def multi_label(
    id: str,  # noqa: A002  the field's name
    labels: Sequence[str] | Mapping[str, str | None],
    question: str | None = None,
) -> list[dict[str, Any]]:
    """Return a yes/no decision for each label, of which any number may be right.

    Parameters
    ----------
    id : str
        What the decisions' ids begin with, such as ``"topics"``.
    labels : sequence of str, or mapping
        The labels, each once; or what each means, by label.
    question : str, optional
        What is asked about each, with ``{}`` where the label goes, or the label at its end.

    Raises
    ------
    ValueError
        When a label is there twice, or there is none.

    Examples
    --------
    >>> multi_label("topics", ["late parcel", "refund"])[1]
    {'id': 'topics_refund', 'kind': 'binary', 'question': 'Does the topics "refund" fit?'}
    """
    names = list(labels)
    if not names or len(set(names)) < len(names):
        raise ValueError(f"The labels of {id!r} are {names}; give at least one, and each once.")
    words = question or f'Does the {id} "{{}}" fit?'
    words = words if "{}" in words else f"{words} {{}}"
    decisions: list[dict[str, Any]] = []
    for id_, name in zip(ids_of_labels(id, names), names, strict=True):
        made = {"id": id_, "kind": "binary", "question": words.replace("{}", name)}
        meaning = labels[name] if isinstance(labels, Mapping) else None
        decisions.append(made | ({"outcomes": {"yes": meaning, "no": None}} if meaning else {}))
    return decisions


def ids_of_labels(id: str, labels: Sequence[str]) -> tuple[str, ...]:  # noqa: A002
    """Return the id of each label's decision."""
    ids: list[str] = []
    for label in labels:
        made = base = f"{id[:32]}_{id_of(label)}"[:60]
        count = 1
        while made in ids:
            count += 1
            made = f"{base}_{count}"
        ids.append(made)
    return tuple(ids)


def id_of(text: str) -> str:
    """Return a text as the id of a decision, or a part of one."""
    return re.sub(r"[^A-Za-z0-9_-]+", "_", text).strip("_")[:64] or "label"
