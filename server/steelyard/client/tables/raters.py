"""Several people's answers to one question in a plain table, as one label: the share of each answer.

Each person has a column (``label_1``, ``annotator_a``), or a cell has the answers of all.
"""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter
from collections.abc import Collection, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from typing import Any

from steelyard.client.tables.cells import label_names, text_of
from steelyard.client.tables.columns import is_label_name, listed
from steelyard.client.tables.guessing import guess_mapping
from steelyard.client.tables.labels import label_of, plain_name
from steelyard.client.tables.mapping import discarded_notes
from steelyard.client.tables.votes import Votes, agreement, join_votes, votes_in
from steelyard.decisions.words import name_parts, word_set
from steelyard.imports.items import AnnotatedText, agreed, agreement_notes
from steelyard.imports.objects import structure_of
from steelyard.imports.table import Row, Table

_RATERS = word_set("annotator assessor coder labeler labeller rater turker")
#: Words for people in names of columns, who elsewhere may be those who wrote a text.
_PEOPLE = _RATERS | word_set("expert reviewer")
#: Names of columns, beside those of labels, whose cells may have the answers of several people.
_ANSWERS = word_set("annotation annotations judgments judgements ratings votes")
#: What tells columns of several people apart: a number, or a letter by itself.
_INDEX = re.compile(r"(?<![^\W_])[A-Ha-h](?![^\W_])|(?<=[a-z])[A-H](?![^\W_])|\d{1,2}(?!\d)")
#: Pairs of answers to a row that agree, at least: two labels of one text never do.
_LEAST_AGREEMENT = 1 / 3
_LEAST_OF_LIST = 1 / 2
#: People that answer a row, at most: longer lists have a label for each word of a text.
_MOST_RATERS = 15


def with_raters(table: Table, known: Collection[str] = ()) -> Table:
    """Return a table where several people's answers to a question are one label, if it has such.

    Columns of a person each stay beside that label's, and are in ``raters``. None is joined that is
    named by the id of a ``known`` decision.
    """
    if table.hints is not None or not table.rows:
        return table
    for name, columns in _repeated(table.columns).items():
        table = _with_repeated_joined(table, name, columns)
    numbered = [name for name in table.columns if name not in table.raters]
    for name, columns in _columns_by_label(numbered).items():
        if known and not set(columns).isdisjoint(known):
            continue
        table = _with_columns_joined(table, name, columns)
    for name in table.columns:
        is_label = is_label_name(name) or _ANSWERS.intersection(name_parts(name)[-1:])
        if is_label and name not in table.raters and not table.replies:
            table = _with_cells_joined(table, name)
    return table if table.replies or table.parts else _with_rows_joined(table)


def _repeated(columns: Sequence[str]) -> dict[str, list[str]]:
    """Return columns of labels that a file names alike, by that name.

    >>> _repeated(["text", "Labels", "Labels 2", "Labels 3", "team", "team 2"])
    {'Labels': ['Labels', 'Labels 2', 'Labels 3']}
    """
    by_name: dict[str, list[str]] = {}
    for column in columns:
        name, _, number = column.rpartition(" ")
        if number.isdecimal() and int(number) > 1 and name in columns and is_label_name(name):
            by_name.setdefault(name, [name]).append(column)
    return by_name


def _with_repeated_joined(table: Table, name: str, columns: Sequence[str]) -> Table:
    """Return a table where columns of one name are one: people's answers, or a list of labels."""
    cells = [
        [label_names(cell) for cell in of_row]
        for of_row in zip(*(table.column(column) for column in columns), strict=True)
    ]
    if any(len(names) > 1 for of_row in cells for names in of_row):
        return table
    votes: list[Votes] = [
        [(column, names[0]) for column, names in zip(columns, of_row, strict=True) if names]
        for of_row in cells
    ]
    if agreement(votes) >= _LEAST_AGREEMENT and any(len({*map(_answer, row)}) > 1 for row in votes):
        note = f"The columns called {name} are people's answers to one question."
        return join_votes(table, name, votes, note, columns[1:])
    place = table.columns.index(name)
    rows = []
    for (line, row), of_row in zip(table.rows, votes, strict=True):
        labels = list(dict.fromkeys(map(_answer, of_row)))
        rows.append((line, [*row[:place], labels, *row[place + 1 :]]))
    note = f"The columns called {name} are one: a row has the labels of all."
    raters = (*table.raters, *columns[1:])
    return replace(table, rows=rows, notes=[*table.notes, note], raters=raters)


def _answer(vote: tuple[str, str]) -> str:
    return vote[1]


def _columns_by_label(columns: Sequence[str]) -> dict[str, list[str]]:
    """Return columns that differ in a number, a letter or a person's name alone, by the label they may be.

    >>> _columns_by_label(["text", "label_1", "label_2", "Rater A", "Rater B", "q1", "q2"])
    {'label': ['label_1', 'label_2'], 'rater': ['Rater A', 'Rater B']}
    """
    by_label: dict[str, list[str]] = {}
    for column in columns:
        parts = name_parts(column)
        if len(parts) == 2 and parts[0] in _PEOPLE:
            by_label.setdefault(parts[0], []).append(column)
        elif len(_INDEX.findall(column)) == 1:
            stem = re.sub(r"[\s_.\-()#]+", " ", _INDEX.sub(" ", column)).strip()
            if is_label_name(stem) or _PEOPLE.intersection(name_parts(stem)):
                by_label.setdefault(stem, []).append(column)
    return {stem: names for stem, names in by_label.items() if len(names) > 1}


def _with_columns_joined(table: Table, stem: str, columns: Sequence[str]) -> Table:
    words = name_parts(stem)
    is_of_people = bool(_PEOPLE.intersection(words))
    name = "_".join(word for word in words if word not in _PEOPLE) or "label"
    columns = [column for column in columns if any(map(label_names, table.column(column)))]
    try:
        labels = [label_of(table, column) for column in columns]
    except ValueError:
        return table  # texts, or one value throughout
    counts = Counter(plain_name(name) for label in labels for name in label.outcomes)
    is_alike = len(labels) > 1 and all(
        2 * sum(counts[plain_name(name)] > 1 for name in label.outcomes) >= len(label.outcomes)
        for label in labels
    )
    # Numbered columns of yes and no are questions apart.
    is_flag = any(label.kind == "binary" for label in labels) and not is_of_people
    if not is_alike or is_flag or any(label.kind == "several" for label in labels):
        return table
    by_column = [
        [(label.targets(cell) or {}).get(label.id) for cell in table.column(label.column)]
        for label in labels
    ]
    spelled: dict[str, str] = {}
    for answer, _ in Counter(filter(None, chain(*by_column))).most_common():
        spelled.setdefault(plain_name(answer), answer)
    votes = [
        [
            (column, spelled[plain_name(answer)])
            for column, answer in zip(columns, answers, strict=True)
            if answer is not None
        ]
        for answers in zip(*by_column, strict=True)
    ]
    shown = listed(columns)
    if agreement(votes) < _LEAST_AGREEMENT:
        note = (
            f"{shown} have the same outcomes, and are a decision each. If they are labels of one text, "
            "write them in one column as a list; if they are people's answers, the share of each."
        )
        return replace(table, notes=[*table.notes, note])
    options = " ".join(f"--label {shlex.quote(column)}" for column in columns[:2])
    note = f"{shown} are people's answers to one question; {options} … makes a decision of each."
    if name in table.columns:
        note = f"{note} The label is {name}."
        return replace(table, notes=[*table.notes, note], raters=(*table.raters, *columns))
    return join_votes(table, name, votes, note, columns)


def _with_cells_joined(table: Table, column: str) -> Table:
    cells: list[Any] = []
    votes: list[Votes] = []
    for cell in map(structure_of, table.column(column)):
        if (of_row := votes_in(cell)) is None:
            return table
        cells.append(cell)
        votes.append(of_row)
    n_most = max(map(len, votes))
    is_named = any(by for of_row in votes for by, _ in of_row)
    is_listed = any(isinstance(cell, list) for cell in cells) and not is_named
    if not 2 <= n_most <= _MOST_RATERS or (is_listed and _has_lists_beside(table, column, cells)):
        return table
    by_person = [[by for by, _ in of_row if by] for of_row in votes]
    if any(len(set(people)) < len(people) for people in by_person):
        return table  # a person's several labels
    is_sure = any(isinstance(cell, list) for cell in cells) and is_named
    if not is_sure and agreement(votes) < (_LEAST_OF_LIST if is_listed else _LEAST_AGREEMENT):
        return table
    note = f"{column} has several people's answers to one question."
    names = {answer for of_row in votes for _, answer in of_row}
    if (truth := _label_with(table, column, names)) is not None:
        notes = [*table.notes, f"{note} The label is {truth}."]
        return replace(table, notes=notes, raters=(*table.raters, column))
    return join_votes(table, column, votes, note)


def _with_rows_joined(table: Table) -> Table:
    """Return a table where the rows of a text that several people labelled are one row."""
    people = _RATERS | {"worker"}
    by = next((name for name in table.columns if people & {*name_parts(name)[:1]}), None)
    if by is None:
        return table
    try:
        mapping = guess_mapping(table)
    except ValueError:
        return table
    labels = [label for label in mapping.labels if label.kind != "several"]
    if not labels or discarded_notes(table, mapping):
        return table
    at = {name: place for place, name in enumerate(table.columns)}
    items: dict[str, tuple[Row, AnnotatedText]] = {}
    seen: dict[tuple[str, str], dict[str, Any]] = {}
    for row in table.rows:
        line, cells = row
        context = [cells[at[name]] for name in mapping.context]
        key = json.dumps(context if any(map(text_of, context)) else line, default=str)
        _, item = items.setdefault(key, (row, AnnotatedText({})))
        answers = {
            label.column: (label.targets(cells[at[label.column]]) or {}).get(label.id)
            for label in labels
        }
        if seen.setdefault((key, str(cells[at[by]])), answers) != answers:
            return table  # a person who contradicts themselves
        item.add(cells[at[by]], answers)
    votes = [
        [(reply.by, str(reply.answers[label.column])) for reply in item.replies if reply.answers]
        for _, item in items.values()
        for label in labels
        if all(label.column in reply.answers for reply in item.replies if reply.answers)
    ]
    if len(items) == len(table.rows) or agreement(votes) < _LEAST_AGREEMENT:
        return table
    names = [label.column for label in labels]
    rows = []
    for (line, cells), item in items.values():
        joined = list(cells)
        for name in names:
            joined[at[name]] = agreed(item.answers(name))
        rows.append((line, joined))
    texts = [item for _, item in items.values()]
    note = f"{by} says who answered: the rows of one text are one, at the first's line."
    return replace(
        table,
        rows=rows,
        notes=[*table.notes, note, *agreement_notes(texts, names)],
        replies=[item.replies for item in texts],
    )


def _label_with(table: Table, column: str, names: AbstractSet[str]) -> str | None:
    """Return another column that is named as labels are and has most of some outcomes."""
    for other in table.columns:
        if other != column and is_label_name(other) and other not in table.raters:
            with suppress(ValueError):
                if 2 * len(names & {*label_of(table, other).outcomes}) >= len(names):
                    return other
    return None


def _has_lists_beside(table: Table, column: str, cells: Sequence[Any]) -> bool:
    """Return whether another column has a list of the same length in each row: the words of a text."""
    lengths = [len(cell) if isinstance(cell, list) else 0 for cell in cells]
    return any(
        name != column
        and all(
            isinstance(other := structure_of(cell), list) and len(other) == length
            for cell, length in zip(table.column(name), lengths, strict=True)
        )
        for name in table.columns
    )
