"""Edits to the outcomes of a column: joined spellings, names and descriptions."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from steelyard.client.tables.cells import label_names
from steelyard.client.tables.labels import Label
from steelyard.imports.table import Table

#: What people write where nothing fits.
_NOTHING = frozenset({"na", "n a", "none", "not applicable", "nil", "not available"})
_SPACES = re.compile(r"[\s_\-./]+")


@dataclass(frozen=True, slots=True)
class OutcomeEdit:
    """An edit to one value of a column."""

    #: The outcome's name; the value itself when empty.
    name: str = ""
    #: What it means.
    description: str = ""
    #: Another value of the column that means the same; that one's name and description count.
    same_as: str = ""


def count_values(
    table: Table, column: str, renamed: Mapping[str, str] | None = None
) -> dict[str, int]:
    """Return how many rows each value of a column has, the most first; ``renamed`` by its new name."""
    counts: Counter[str] = Counter()
    for cell in table.column(column):
        names = label_names(cell)
        counts.update({renamed.get(name, name) for name in names} if renamed else names)
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def propose_same(counts: Mapping[str, int]) -> dict[str, str]:
    """Return which values are variants of which: by case, spaces, plural, or as *n/a*.

    The others are the same as the spelling with the most rows, of those that are the singular or
    the plural as most rows have it, and in capitals only where no other spelling is.

    >>> propose_same({"Billing": 9, "billing": 4, "refunds": 2, "Refund": 5, "N/A": 1, "none": 3})
    {'billing': 'Billing', 'refunds': 'Refund', 'N/A': 'none'}
    >>> propose_same({"SHIPPINGS": 5, "SHIPPING": 4, "Shipping": 3})
    {'SHIPPINGS': 'Shipping', 'SHIPPING': 'Shipping'}
    """
    keys = {value: _key(value) for value in counts}
    known = set(keys.values())
    groups: dict[str, list[str]] = {}
    for value, key in keys.items():
        singular = _singular(key)
        groups.setdefault(singular if singular in known else key, []).append(value)
    variants = {}
    for values in groups.values():
        rows = Counter[str]()
        for value in values:
            rows[keys[value]] += counts[value]
        likeliest = max(rows, key=rows.__getitem__)
        first = min(
            (value for value in values if keys[value] == likeliest),
            key=lambda value: (value.isupper(), -counts[value], value),
        )
        variants.update({value: first for value in values if value != first})
    return {value: variants[value] for value in counts if value in variants}


def edit_outcomes(label: Label, edits: Mapping[str, OutcomeEdit]) -> Label:
    """Return a label whose outcomes are named, described and merged as a person said.

    Raise ``ValueError`` when fewer than two outcomes are left, or values are the same as each other
    in a circle.
    """
    if label.definition is not None or label.kind in {"binary", "several"}:
        return label
    names: dict[str, str] = {}
    described: dict[str, str] = {}
    for value in label.outcomes:
        root, seen = value, {value}
        while (edit := edits.get(root)) is not None and edit.same_as:
            root = edit.same_as
            if root in seen:
                raise ValueError(
                    f"{value!r} and {root!r} are each said to be the same as the other; clear one."
                )
            seen.add(root)
        edit = edits.get(root, OutcomeEdit())
        names[value] = edit.name.strip() or root
        if edit.description.strip():
            described[names[value]] = edit.description.strip()
    outcomes = tuple(dict.fromkeys(names[value] for value in label.outcomes))
    if len(outcomes) < 2:
        raise ValueError(f"{label.column} has one outcome left; keep two apart.")
    is_level = label.kind == "ordinal" and outcomes == label.outcomes
    return replace(
        label,
        kind=label.kind if is_level else "single",
        outcomes=outcomes,
        renamed={value: names[name] for value, name in label.renamed.items()}
        | {value: name for value, name in names.items() if value != name},
        descriptions=described,
    )


def _key(value: str) -> str:
    key = _SPACES.sub(" ", value.casefold()).strip()
    return "n a" if key in _NOTHING or not key else key


def _singular(key: str) -> str:
    """Return a word without the ending of a plural, as far as that is sure enough to propose."""
    if key.endswith("ies") and len(key) > 4:
        return f"{key[:-3]}y"
    if key.endswith("s") and not key.endswith("ss") and len(key) > 3:
        return key[:-1]
    return key
