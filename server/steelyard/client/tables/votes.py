"""Several people's answers to rows: read from cells, how often they agree, and joined into one label."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

from steelyard.client.tables.cells import answer_of, label_names
from steelyard.imports.items import AnnotatedText, agreed, agreement_notes
from steelyard.imports.table import Table

#: Answers to a row, each with the person's name; empty where none is given.
Votes = list[tuple[str, str]]
#: Names of an object's field that say whose answer it is.
_BY = re.compile(r"(annotator|assessor|coder|rater|reviewer|user|worker)([ _]?(id|name|email))?")


def votes_in(cell: Any) -> Votes | None:
    """Return the answers in a cell; ``None`` where it is none of several people's.

    >>> (
    ...     votes_in(["a", "b", "a"]),
    ...     votes_in({"ann": "a", "bob": "b"}),
    ...     votes_in({"a": 0.5, "b": 0.5}),
    ... )
    ([('', 'a'), ('', 'b'), ('', 'a')], [('ann', 'a'), ('bob', 'b')], None)
    >>> votes_in([{"worker_id": 3, "label": "a"}])
    [('3', 'a')]
    """
    if cell in (None, "", []):
        return []
    if isinstance(cell, dict):
        is_named = len(cell) > 1 and all(isinstance(value, str) for value in cell.values())
        return list(cell.items()) if is_named else None
    if not isinstance(cell, list):
        return None
    votes: Votes = []
    for item in cell:
        by, answer = "", item
        if isinstance(item, dict):
            key = next((key for key in item if _BY.fullmatch(str(key).lower())), None)
            if key is None or item[key] in (None, ""):
                return None
            by = str(item[key])
            rest = {name: value for name, value in item.items() if name != key}
            answer = next(iter(rest.values())) if len(rest) == 1 else answer_of(rest)
        names = label_names(answer) if isinstance(answer, str | int | float) else []
        if len(names) != 1:
            return None
        votes.append((by, names[0]))
    return votes


def agreement(votes: Sequence[Votes]) -> float:
    """Return the share of pairs of answers to a row that are the same; 0 without pairs."""
    pairs = [first == second for row in votes for (_, first), (_, second) in combinations(row, 2)]
    return sum(pairs) / len(pairs) if pairs else 0.0


def join_votes(
    table: Table, name: str, votes: Sequence[Votes], note: str, raters: Sequence[str] = ()
) -> Table:
    """Return a table with a label of the share of each answer, and who gave which."""
    items = []
    for of_row in votes:
        item = AnnotatedText({})
        for by, answer in of_row:
            item.add(by, {name: answer})
        items.append(item)
    columns = table.columns if name in table.columns else (*table.columns, name)
    place = columns.index(name)
    rows = [
        (line, [*cells[:place], agreed(item.answers(name)), *cells[place + 1 :]])
        for (line, cells), item in zip(table.rows, items, strict=True)
    ]
    return replace(
        table,
        columns=columns,
        rows=rows,
        notes=[*table.notes, note, *agreement_notes(items, [name])],
        replies=[item.replies for item in items],
        raters=(*table.raters, *raters),
    )
