"""Columns whose cells are right outcomes, and the decisions that they label."""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any, Literal

from msgspec import UNSET

from steelyard.client.tables.cells import answer_of, are_flags, label_names
from steelyard.client.tables.columns import has_order, is_label_name
from steelyard.decisions.several import id_of, ids_of_labels, multi_label
from steelyard.decisions.words import name_parts, singular
from steelyard.imports.table import Table
from steelyard.wire.limits import MAX_DECISIONS, MAX_OUTCOMES

if TYPE_CHECKING:
    from steelyard.client import Client
    from steelyard.datasets.wire import Dataset

#: What a column asks: one decision, or, of lists with several names, one of yes and no a name.
Kind = Literal["single", "binary", "ordinal", "several"]

_YES = frozenset({"yes", "y", "true", "t", "1", *"✓✔☑✅"})
_NO = frozenset({"no", "n", "false", "f", "0", *"✗✘☐❌"})
_LEVELS = range(3, 12)
#: A whole number that may be a level; one with zeros before it is a code.
_LEVEL = re.compile(r"-?(0|[1-9]\d{0,2})")
#: Programs' texts for no label, and people's names of an outcome that is none.
_NO_LABEL = frozenset({"-1", "-1.0", "NA", "None"})
_LIKE_NONE = frozenset(
    {"none", "na", "n/a", "-1", "?", "-", "unlabeled", "unlabelled", "todo", "tbd"}
)
#: Letters and digits of outcomes that may differ in punctuation alone; ``C`` and ``C++`` are two.
_LEAST_ALIKE = 4
#: How often the right spelling of a name that may be misspelt is there beside it, and how alike they are: a
#: changed letter is two characters that differ.
_LEAST_TIMES, _LEAST_RATIO, _MOST_DIFFERENT = 20, 0.8, 4
#: Whole numbers as a program wrote them that had blanks among them.
_WHOLE = re.compile(r"-?\d{1,3}[.,]0")
#: Characters of an instruction that is asked as the question; a longer one is the guideline.
_LONGEST_QUESTION = 300
#: What people put between labels in one cell.
_SEPARATORS = re.compile(r"[;|,\n]")


@dataclass(frozen=True, slots=True)
class Label:
    """A column whose cells are the right outcomes of a decision, or of several."""

    #: The column.
    column: str
    #: The decision's; of several the beginning of theirs, and their question, in which ``{}``
    #: stands for the outcome.
    id: str
    question: str
    #: The decision's; of several each is binary.
    kind: Kind
    #: The decision's, in order; for ``binary`` yes and no. Of several, the name of each label.
    outcomes: tuple[str, ...]
    #: The decision whole, where a dataset has it already.
    definition: dict[str, Any] | None = None
    #: Values of the column to the outcomes that they mean, where those are named otherwise.
    renamed: dict[str, str] = field(default_factory=dict)
    #: Outcomes to their descriptions.
    descriptions: dict[str, str] = field(default_factory=dict)
    #: Values of the column that say that a row has no label.
    no_label: frozenset[str] = frozenset()
    #: What reviewers and judges go by.
    guideline: str = ""
    #: Outcomes of few rows to those of many that they may misspell.
    typos: dict[str, str] = field(default_factory=dict)

    @property
    def note(self) -> str:
        """A note for the user: on its guideline, doubtful labels, or several labels in one."""
        guideline = (
            f"{self.column}: the instructions in the file are its guideline, {len(self.guideline):,} "
            "characters."
            if self.guideline
            else ""
        )
        notes = (
            *(guideline, self.joined_note, self._alike_note()),
            *(self._typo_note(), self._no_label_note()),
        )
        return " ".join(filter(None, notes))

    @property
    def case_note(self) -> str:
        """Sentence about values that differ from another outcome in capitals, blanks or encoding alone."""
        by_case = {
            value: name
            for value, name in self.renamed.items()
            if plain_name(value) == plain_name(name)
        }
        if not by_case:
            return ""
        variants = ", ".join(f"{value} as {name}" for value, name in by_case.items())
        return (
            f"{self.column}: values that differ in capitals or blanks alone are one outcome, in the commonest "
            f"spelling: {variants}. If they differ in meaning, name them apart in the file."
        )

    def _alike_note(self) -> str:
        """Return a note on outcomes that differ in punctuation alone, as ``follow-up`` and ``follow up``."""
        by_letters: dict[str, list[str]] = {}
        for name in self.outcomes if self.definition is None else ():
            letters = "".join(filter(str.isalnum, name)).casefold()
            if len(letters) >= _LEAST_ALIKE:
                by_letters.setdefault(letters, []).append(name)
        alike = next((names for names in by_letters.values() if len(names) > 1), None)
        if alike is None:
            return ""
        return (
            f"{self.column}: {' and '.join(alike)} differ in punctuation alone. If they mean the same, name "
            "them alike in the file."
        )

    def _typo_note(self) -> str:
        if not self.typos:
            return ""
        pairs = ", ".join(f"{name} for {other}" for name, other in sorted(self.typos.items()))
        return (
            f"{self.column}: few rows have a name that may be a typing error: {pairs}. If so, correct it in "
            "the file; else each is an outcome."
        )

    def _no_label_note(self) -> str:
        if self.no_label:
            return (
                f"{self.column}: {', '.join(sorted(self.no_label))} is taken for no label. It is an "
                "outcome with --no-label '', or where you name others so."
            )
        alike = self.like_none
        if not alike:
            return ""
        return (
            f"{self.column}: {', '.join(alike)} is an outcome. If it means that nobody labelled the "
            f"row, leave it out with --no-label {alike[0]}."
        )

    @property
    def like_none(self) -> list[str]:
        """The outcomes that may mean an unlabelled row."""
        if self.definition is not None:
            return []
        return sorted(name for name in self.outcomes if name.lower() in _LIKE_NONE)

    @property
    def joined(self) -> list[str]:
        """The outcomes that look like several others in one cell, as ``billing; shipping``."""
        if self.definition is not None or self.kind != "single":
            return []
        # Help desks put blanks between tags.
        is_tags = name_parts(self.column)[-1:] == ("tags",)
        split = str.split if is_tags and not any(map(_SEPARATORS.search, self.outcomes)) else _parts
        parts = {name: split(name) for name in self.outcomes}
        several = [name for name in self.outcomes if len(parts[name]) > 1]
        counts = Counter(part for each in parts.values() for part in each)
        return several if all(counts[part] > 1 for name in several for part in parts[name]) else []

    @property
    def joined_note(self) -> str:
        """A note for the user on cells that look like several outcomes."""
        joined = self.joined
        if not joined:
            return ""
        parts = _parts(joined[0])
        as_list = json.dumps(parts if len(parts) > 1 else joined[0].split(), ensure_ascii=False)
        return (
            f"{self.column}: {joined[0]} is one outcome. If it means several labels, write such cells "
            f"as lists ({as_list}): each label becomes a decision of yes and no."
        )

    def names_in(self, cell: Any) -> list[str]:
        """Return the names of outcomes in a cell; none where it has no label."""
        return [name for name in label_names(cell) if name not in self.no_label]

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of its decisions."""
        if self.kind != "several":
            return (self.id,)
        return ids_of_labels(self.id, self.outcomes)

    def decisions(self) -> list[dict[str, Any]]:
        """Return its decisions as they are sent."""
        if self.definition is not None:
            return [self.definition]
        beside = {"guideline": self.guideline} if self.guideline else {}
        if self.kind == "several":
            each = multi_label(self.id, self.outcomes, self.question)
            return [decision | beside for decision in each]
        sent: dict[str, Any] = {"id": self.id, "kind": self.kind, "question": self.question}
        sent |= beside
        if self.kind != "binary":
            sent["outcomes"] = list(self.outcomes)
        if self.descriptions and self.kind == "single":
            sent["outcomes"] = {name: self.descriptions.get(name) for name in self.outcomes}
        if self.kind == "ordinal":
            sent["rubric"] = [f"{_words(self.column)}: {level}" for level in self.outcomes]
        return [sent]

    def targets(self, cell: Any) -> dict[str, Any] | None:
        """Return the right outcomes that a cell names; ``None`` where one is no outcome."""
        answer = answer_of(cell)
        if isinstance(answer, dict) and self.kind == "several":
            answer = [name for name, fits in answer.items() if fits]
            return self._each(answer)
        if isinstance(answer, dict):
            is_exact = not self.renamed and answer.keys() <= set(self.outcomes)
            shares = answer if is_exact else self._merge(answer)
            return {self.id: shares} if shares.keys() <= set(self.outcomes) else None
        names = self.names_in(cell)
        if self.kind == "several":
            return self._each(names)
        outcome = self._outcome(names[0]) if len(names) == 1 else None
        return None if outcome is None else {self.id: outcome}

    def _each(self, names: list[str]) -> dict[str, Any] | None:
        """Return yes or no for each outcome; ``None`` where a name is no outcome."""
        fitting = set(map(self._named, names))
        if not fitting <= set(self.outcomes):
            return None
        pairs = zip(self.ids, self.outcomes, strict=True)
        return {id_: "yes" if outcome in fitting else "no" for id_, outcome in pairs}

    def _merge(self, shares: dict[str, Any]) -> dict[str, Any]:
        """Return shares by outcome, with those of values that mean the same added up."""
        merged: dict[str, Any] = {}
        for value, share in shares.items():
            name = self._named(value)
            merged[name] = (merged.get(name) or 0) + (share or 0)
        return merged

    def _named(self, value: str) -> str:
        """Return the outcome that a value means, or the value where it means none."""
        name = self.renamed.get(value, value)
        return name if name in self.outcomes else self._by_case(name) or name

    def _outcome(self, text: str) -> str | None:
        if self.kind == "binary":
            lowered = _whole(text.lower())
            return "yes" if lowered in _YES else "no" if lowered in _NO else None
        whole = _whole(text)
        text, whole = self.renamed.get(text, text), self.renamed.get(whole, whole)
        exact = next((name for name in (text, whole) if name in self.outcomes), None)
        return exact or self._by_case(text)

    def _by_case(self, text: str) -> str | None:
        """Return the one outcome that differs from a value in capitals or blanks alone, or ``None``."""
        plain = plain_name(text)
        alike = [name for name in self.outcomes if plain_name(name) == plain]
        return alike[0] if len(alike) == 1 else None


def label_of(
    table: Table,
    column: str,
    question: str | None = None,
    no_label: Collection[str] | None = None,
) -> Label:
    """Return a column as the label of a decision whose outcomes are the column's values.

    ``no_label``: values that say that a row has no label; found when left out. Raise ``ValueError``
    when its values cannot be outcomes.
    """
    counts, is_several, n_empty = _count_names(table, column)
    given = counts.keys() & set(no_label or ())
    missing = frozenset(_find_no_label(set(counts)) if no_label is None else given)
    renamed = _joined_case({value: n for value, n in counts.items() if value not in missing})
    values = counts.keys() - missing - renamed.keys()
    if all(map(_WHOLE.fullmatch, values)):
        values = {_whole(value) for value in values}
    most = MAX_DECISIONS if is_several else MAX_OUTCOMES
    if len(values) == 1 and n_empty:
        raise ValueError(
            f"The column {column!r} has {next(iter(values))!r} or nothing. If an empty cell means no, "
            "write no in it; else name another column as the label."
        )
    if not 2 <= len(values) <= most:
        alone = " beside those that differ in capitals or blanks alone" if renamed else ""
        raise ValueError(
            f"The column {column!r} has {len(values)} different values{alone}; outcomes are 2 to "
            f"{most}. Name another column as the label."
        )
    kind: Kind = "several" if is_several else "single"
    outcomes = tuple(sorted(values))
    lowered = {value.lower() for value in values}
    if is_several:
        pass
    elif lowered <= _YES | _NO and lowered & _YES and lowered & _NO:
        kind, outcomes, renamed = "binary", ("yes", "no"), {}
    elif all(map(_LEVEL.fullmatch, values)):
        outcomes = tuple(sorted(values, key=int))
        kind = "ordinal" if len(values) in _LEVELS and has_order(column) else "single"
    question = question or question_of(column, kind)
    label = Label(
        *(column, id_of(column), question, kind, outcomes),
        renamed=renamed,
        no_label=missing,
        typos=_likely_typos({name: counts[name] for name in outcomes}),
    )
    instructions = {} if table.hints is None else table.hints.instructions
    return _instructed(label, instructions.get(column, ""))


def _count_names(table: Table, column: str) -> tuple[Counter[str], bool, int]:
    """Return how often a column has each name, whether a row has several, and how many rows have none."""
    counts: Counter[str] = Counter()
    is_several = False
    n_empty = n_single = n_listed = 0
    for cell in table.column(column):
        names, answer = label_names(cell), answer_of(cell)
        n_empty += not names
        is_list = len(names) > 1 and isinstance(answer, list)
        n_listed += is_list
        n_single += bool(names) and not is_list
        # Numbers that sum to something else are a fault of their row alone.
        if isinstance(answer, dict) and not all(
            isinstance(share, int | float) for share in answer.values()
        ):
            raise ValueError(
                f"The column {column!r} has objects of {', '.join(map(repr, answer))}, of which none is the "
                "label; write the label alone, or the share of each outcome, which sum to 1."
            )
        if isinstance(answer, dict):
            is_several = is_several or (are_flags(answer) and sum(answer.values()) > 1)
        elif len(names) > 1:
            is_several = True
        counts.update(names)
    if n_listed > 1 and not n_single and set(counts.values()) == {n_listed}:
        raise ValueError(
            f"The column {column!r} has every name in every row, as models list them by their scores. Write "
            "those alone that fit."
        )
    return counts, is_several, n_empty


def _instructed(label: Label, instructions: str) -> Label:
    """Return a label with the instructions that its program has for it, as question or guideline."""
    is_guessed = label.question == question_of(label.column, label.kind)
    is_question = (
        is_guessed and label.kind != "several" and 0 < len(instructions) <= _LONGEST_QUESTION
    )
    if is_question:
        return replace(label, question=instructions)
    return replace(label, guideline=instructions)


def _joined_case(counts: Mapping[str, int]) -> dict[str, str]:
    """Return the commonest spelling of each value that differs from it in capitals or blanks alone.

    >>> _joined_case({"billing": 1, "Billing": 2, "shipping": 1})
    {'billing': 'Billing'}
    """
    commonest: dict[str, str] = {}
    for value in sorted(counts, key=lambda value: (-counts[value], value.isupper(), value)):
        commonest.setdefault(plain_name(value), value)
    names = {value: commonest[plain_name(value)] for value in counts}
    return {value: name for value, name in names.items() if value != name}


def _likely_typos(counts: Mapping[str, int]) -> dict[str, str]:
    """Return names of few rows that differ in one or two letters from one of many, and that one.

    >>> _likely_typos(
    ...     {"billing": 240, "biling": 1, "valid": 50, "invalid": 1, "tier 1": 1, "tier 2": 40}
    ... )
    {'biling': 'billing'}
    """
    typos: dict[str, str] = {}
    for name, n in counts.items():
        for other in counts:
            if 0 < n * _LEAST_TIMES <= counts[other] and _is_misspelt(name, other):
                typos[name] = max(other, typos.get(name, other), key=counts.__getitem__)
    return typos


def _is_misspelt(name: str, other: str) -> bool:
    name, other = plain_name(name), plain_name(other)
    if name[:1] != other[:1] or min(len(name), len(other)) < _LEAST_ALIKE:
        return False
    if list(filter(str.isdigit, name)) != list(filter(str.isdigit, other)):
        return False
    matcher = SequenceMatcher(None, name, other, autojunk=False)
    n_same = sum(block.size for block in matcher.get_matching_blocks())
    n_different = len(name) + len(other) - 2 * n_same
    return n_different <= _MOST_DIFFERENT and matcher.ratio() >= _LEAST_RATIO


def plain_name(value: str) -> str:
    """Return a value without capitals, repeated blanks, and the ways to encode a letter.

    >>> plain_name("Late   delivery")
    'late delivery'
    """
    return " ".join(unicodedata.normalize("NFC", value).casefold().split())


def with_kind(label: Label, kind: Literal["single", "several"]) -> Label:
    """Return a column whose rows have one outcome, or any number of labels, as a person said.

    Raise ``ValueError`` when it has more labels than a row has decisions.
    """
    if (kind == "several") == (label.kind == "several"):
        return label
    if kind == "several" and len(label.outcomes) > MAX_DECISIONS:
        raise ValueError(
            f"{label.column} has {len(label.outcomes)} labels, and a row has at most {MAX_DECISIONS} "
            "decisions. Choose one outcome a row."
        )
    is_guessed = label.question == question_of(label.column, label.kind)
    question = question_of(label.column, kind) if is_guessed else label.question
    return replace(label, kind=kind, question=question)


def _find_no_label(values: set[str]) -> set[str]:
    """Return values that programs write for no label, where the others are names.

    ``None`` and ``NA`` are outcomes where the others are written alike; ``none`` and ``n/a``, which
    people write too, always are.

    >>> sorted(_find_no_label({"billing", "none", "None", "NA", "-1"}))
    ['-1', 'NA', 'None']
    >>> _find_no_label({"Billing", "None"}), _find_no_label({"-1", "0", "1"})
    (set(), set())
    """
    names = {value for value in values if value not in _NO_LABEL}
    if not any(any(map(str.isalpha, name)) for name in names):
        return set()
    missing = {value for value in values - names if not value.isalpha()}
    if "None" in values and not any(name[:1].isupper() for name in names):
        missing.add("None")
    if "NA" in values and not any(name.isupper() for name in names):
        missing.add("NA")
    return missing


def known_label(decision: dict[str, Any]) -> Label:
    """Return the label of a decision that a dataset has, in a column named by its id."""
    levels = range(len(decision.get("rubric") or ()))
    outcomes = decision.get("outcomes") or levels or ("yes", "no")
    return Label(
        str(decision["id"]),
        str(decision["id"]),
        str(decision["question"]),
        decision.get("kind", "single"),
        tuple(map(str, outcomes)),
        decision,
    )


def known_decisions(client: Client, dataset: Dataset) -> list[dict[str, Any]]:
    """Return the decisions of a dataset, by whose ids columns are named."""
    if dataset.prompt_tuning is not UNSET and dataset.prompt_tuning.decisions:
        return [dict(row.decision) for row in dataset.prompt_tuning.decisions]
    page = client.datasets.rows(dataset.id, limit=1)
    return [dict(decision) for row in page.data for decision in row.decisions]


def question_of(column: str, kind: Kind) -> str:
    """Return the default question about a column."""
    if column.rstrip().endswith("?") and kind != "several":
        return column.strip()
    words = _words(column)
    if kind == "binary":
        return f"{words[:1].upper()}{words[1:]}?"
    if kind == "ordinal":
        return f"What is the {words}?"
    if kind == "several":
        return f'Does the {words} "{{}}" fit?'
    return f"Which {words} fits?"


def _whole(value: str) -> str:
    return value[:-2] if _WHOLE.fullmatch(value) else value


def _parts(name: str) -> list[str]:
    return [part.strip() for part in _SEPARATORS.split(name) if part.strip()]


def _words(column: str) -> str:
    words = re.sub(r"(?<=[a-z])(?=[A-Z])|[_\-.]+", " ", column).strip().lower()
    *before, last = words.split(" ")
    return " ".join([*before, singular(last) if is_label_name(last) else last])
