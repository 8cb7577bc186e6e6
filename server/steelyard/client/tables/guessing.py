"""Guess the meaning of a table's columns, by their names and their cells."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence
from typing import Any

from steelyard.client.tables.cells import (
    answer_of,
    are_flags,
    are_shares,
    label_names,
    split_text,
    text_of,
)
from steelyard.client.tables.columns import (
    is_beside_name,
    is_label_name,
    is_truth_name,
    listed,
)
from steelyard.client.tables.converted import Mapping
from steelyard.client.tables.labels import Label, known_label, label_of
from steelyard.datasets.wire import SIDES
from steelyard.imports.splits import COLUMNS as SPLIT_COLUMNS
from steelyard.imports.splits import Side, side_of
from steelyard.imports.table import Table
from steelyard.wire.limits import MAX_OUTCOMES

#: Names of columns that are usually the text.
_TEXTS = (
    "context",
    "text",
    "message",
    "body",
    "content",
    "sentence",
    "utterance",
    "ticket",
    "review",
    "query",
    "comment",
    "document",
    "email",
    "question",
    "description",
    "title",
)
#: Guessed labels: at most so many columns, of at most so many outcomes and so long names.
_MOST_LABELS, _MOST_GUESSED, _LONGEST_NAME = 8, 100, 80
#: Blanks of a name that may be a sentence, and characters of the longest outcome.
_LEAST_BLANKS, _LONGEST_OUTCOME = 2, 128
#: Names of two texts that a label is about together, and the end of names that say one of two.
_PAIRS = (
    *({"premise", "hypothesis"}, {"claim", "evidence"}, {"question", "sentence"}),
    *(
        {"question", "passage"},
        {"question", "context"},
        {"query", "passage"},
        {"query", "document"},
    ),
)
_NUMBERED = re.compile(r"(.+?)[ _-]?(?:[12ab]|one|two)", re.IGNORECASE)
#: How often texts of a column are there, on average, that is hardly of contexts.
_LEAST_REPEATED = 4
#: Cells that are seldom labels: numbers with a fraction, days and times.
_NUMBER = re.compile(r"-?\d+([.,]\d+)?")
_DATE = re.compile(r"\d{4}[-/.]\d\d?[-/.]\d\d?([T ].*)?|\d\d?[-/.]\d\d?[-/.]\d{2,4}( .*)?")


def guess_mapping(
    table: Table,
    known: Sequence[dict[str, Any]] = (),
    *,
    context: Sequence[str] = (),
    named: Collection[str] = (),
) -> Mapping:
    """Return the probable meaning of each column; raise ``ValueError`` when none has texts.

    ``known``: decisions of a dataset; a column that is named by the id of one is its label.
    ``context``: columns that a person named as the context; of those ``named`` as anything, none is
    guessed to be something else too.
    """
    hints = table.hints
    if hints is not None and not known and (context or not set(hints.context) <= {*named}):
        hinted = [_hinted_label(table, name) for name in hints.labels if name not in named]
        labels_ = tuple(label for label in hinted if label is not None)
        fields = tuple(name for name in hints.context if name not in named)
        beside = tuple(name for name in hints.metadata if name not in named)
        return Mapping(tuple(context) or fields, labels_, beside)
    by_id = {str(decision["id"]): decision for decision in known}
    split = guess_split(table, named)
    context = tuple(context) or _with_pair(table, {*named, *by_id, split})
    # What ``decide`` adds to rows is a model's answer, and no truth.
    answers = tuple(name.removesuffix("p_top") for name in table.columns if name.endswith(".p_top"))
    others = [
        name
        for name in table.columns
        if name not in {*context, *named, *table.raters, split}
        and not (answers and name.startswith(answers))
    ]
    labels = [known_label(by_id[name]) for name in others if name in by_id]
    if not labels:
        guessed = [label for name in others if (label := _guess_label(table, name)) is not None]
        usual = [label for label in guessed if is_label_name(label.column)]
        labels = _without_copies(_without_numbers(table, usual or guessed))[:_MOST_LABELS]
    return Mapping(context, tuple(labels), split=split)


def _without_copies(labels: list[Label]) -> list[Label]:
    """Return labels without those that others gave where a column is named for the truth: a model's."""
    truths = [label for label in labels if is_truth_name(label.column)]
    copied = {name for label in truths if label.kind != "binary" for name in label.outcomes}
    return [label for label in labels if label in truths or copied.isdisjoint(label.outcomes)]


def _without_numbers(table: Table, labels: list[Label]) -> list[Label]:
    """Return labels without those that are the numbers of another's names, as ``label`` and ``label_text``."""
    texts = {
        label.column: list(map(text_of, table.column(label.column)))
        for label in labels
        if len(labels) > 1 and label.kind != "several"
    }
    numbers = {name for name in texts if all(map(_NUMBER.fullmatch, filter(None, texts[name])))}

    def is_number_of(name: str, other: str) -> bool:
        pairs = set(zip(texts[name], texts[other], strict=True))
        return (
            len(pairs) == len({number for number, _ in pairs}) == len({text for _, text in pairs})
        )

    copies = {
        name for name in numbers for other in texts.keys() - numbers if is_number_of(name, other)
    }
    return [label for label in labels if label.column not in copies]


def _hinted_label(table: Table, column: str) -> Label | None:
    try:
        label = label_of(table, column)
    except ValueError:
        return None  # free text, or one answer throughout
    n_texts = sum(name.count(" ") >= _LEAST_BLANKS for name in label.outcomes)
    n_filled = sum(bool(label_names(cell)) for cell in table.column(column))
    is_free = 2 * n_texts > len(label.outcomes) > max(2, n_filled // 2)
    return None if is_free or max(map(len, label.outcomes)) > _LONGEST_OUTCOME else label


def guess_split(table: Table, named: Collection[str] = ()) -> str | None:
    """Return the column that says of which split each row is, if one does that is not ``named``.

    A column that is not named as one has nothing but names of splits.
    """
    usual = [name for name in table.columns if name.strip().lower() in SPLIT_COLUMNS]
    for name in dict.fromkeys([*usual, *table.columns]):
        if name not in named and (name in usual or not is_label_name(name)):
            sides = set[Side | None]()
            for text in filter(None, map(split_text, table.column(name))):
                sides.add(side_of(text))
                if None in sides:
                    break
            if sides == {*SIDES}:
                return name
    return None


def _with_pair(table: Table, others: Collection[str | None]) -> tuple[str, ...]:
    """Return the context, with the other text where a label is of two, as a premise and its hypothesis."""
    context = _guess_context(table, others)

    def is_twin(name: str) -> bool:
        stems = [_NUMBERED.fullmatch(each.strip()) for each in (context, name)]
        alike = {stem[1].lower() if stem else None for stem in stems}
        names = {context.strip().lower(), name.strip().lower()}
        return (len(alike) == 1 and None not in alike) or names in _PAIRS

    names = [name for name in table.columns if name not in others and name != context]
    twin = next((name for name in names if is_twin(name) and _has_texts(table, name)), None)
    return tuple(name for name in table.columns if name in {context, twin})


def _has_texts(table: Table, column: str) -> bool:
    texts = [isinstance(cell, str) and " " in cell.strip() for cell in table.column(column)]
    return 2 * sum(texts) > len(texts)


def _guess_context(table: Table, others: Collection[str | None]) -> str:
    lengths: dict[str, float] = {}
    # Columns of JSON are long, and those of labels, links or canned answers may be, yet are seldom texts.
    seldom: dict[str, float] = {}
    # Cells without a blank are codes where another column has texts.
    codes: dict[str, float] = {}
    n_rows = len(table.rows)
    for name in table.columns:
        if name in others:
            continue
        n_texts = n_characters = 0
        texts = set[int]()
        is_json = is_code = True
        for cell in table.column(name):
            if isinstance(cell, str) and cell.strip():
                n_texts += 1
                n_characters += len(cell)
                if len(texts) * _LEAST_REPEATED <= n_rows:  # more say nothing more
                    texts.add(hash(cell))
                is_json = is_json and cell.lstrip().startswith(("{", "["))
                is_code = is_code and cell.isascii() and len(cell.split()) == 1
        if n_texts:
            is_usual = name.strip().lower() in _TEXTS
            is_repeated = len(texts) * _LEAST_REPEATED <= n_texts or n_texts * 2 < n_rows
            is_seldom = (
                is_json
                or is_label_name(name)
                or (not is_usual and (is_repeated or is_beside_name(name)))
            )
            of_kind = seldom if is_seldom else codes if is_code and not is_usual else lengths
            of_kind[name] = n_characters / n_texts
    if not (lengths or codes) and (lists := _list_of_texts(table, others)) is not None:
        raise ValueError(
            f"No column has texts, and {lists} has lists of them: write a row for each text, or name {lists} "
            "as the context."
        )
    lengths = lengths or codes or _structures(table, others) or seldom
    if not lengths:
        raise ValueError(
            f"No column has texts: {listed(table.columns)}. Name the one with the context, or write the "
            "rows as a list of objects with a text in each."
        )
    named = [name for usual in _TEXTS for name in lengths if name.strip().lower() == usual]
    longest = max(lengths, key=lambda name: lengths[name])
    # A usual name wins unless its texts are far shorter: a title beside a body.
    return next((name for name in named if lengths[name] * 3 >= lengths[longest]), longest)


def _structures(table: Table, others: Collection[str | None]) -> dict[str, float]:
    """Return columns of objects with texts in them, as messages to language models, by their length."""
    lengths: dict[str, float] = {}
    for name in table.columns:
        cells = [
            cell
            for cell in table.column(name)
            if isinstance(cell, dict)
            or (isinstance(cell, list) and any(isinstance(each, dict) for each in cell))
        ]
        texts = [json.dumps(cell, separators=(",", ":"), default=str) for cell in cells]
        if name not in others and not is_label_name(name) and any(" " in text for text in texts):
            lengths[name] = sum(map(len, texts)) / len(texts)
    return lengths


def _list_of_texts(table: Table, others: Collection[str | None]) -> str | None:
    """Return the first column of lists with texts of several words."""

    def has_texts(cell: Any) -> bool:
        return isinstance(cell, list) and any(
            isinstance(text, str) and " " in text.strip() for text in cell
        )

    columns = (name for name in table.columns if name not in others)
    return next((name for name in columns if any(map(has_texts, table.column(name)))), None)


def _guess_label(table: Table, column: str) -> Label | None:
    """Return a column as a label, if its cells look like one."""
    values: set[str] = set()
    n_filled = 0
    is_named = is_label_name(column)
    if not is_named and is_beside_name(column):
        return None
    most = MAX_OUTCOMES if is_named else _MOST_GUESSED
    for cell in table.column(column):
        if cell is None or cell == "":
            continue
        names, answer = label_names(cell), answer_of(cell)
        n_filled += bool(names)
        values.update(name.casefold() for name in names)
        if len(values) > most or (
            isinstance(answer, dict) and not (are_shares(answer) or are_flags(answer))
        ):
            return None
    is_measured = not is_named and all(map(_NUMBER.fullmatch, values))
    if (
        all(map(_DATE.fullmatch, values))
        or {*map(side_of, values)} == {*SIDES}
        or (
            is_measured and not all(float(value.replace(",", ".")).is_integer() for value in values)
        )
        or not 2 <= len(values) <= (n_filled if is_named else max(2, n_filled // 2))
        or max(map(len, values)) > _LONGEST_NAME
    ):
        return None
    try:
        return label_of(table, column)
    except ValueError:
        return None  # lists of too many names
