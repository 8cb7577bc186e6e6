"""Which rows are looked at: words, outcomes, a side and a length, as people choose them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import Any

from steelyard.datasets.filters import MAX_PLACES

#: The sides of rows, with their words on pages.
SIDES = {"training": "to train on", "evaluation": "for the check"}
_DIGITS = "0123456789abcdefghijklmnopqrstuv"
#: A step of no more than 32 bits.
_STEP = re.compile(r"[0-9a-v]{1,6}")


@dataclass(frozen=True, slots=True)
class RowFilter:
    """A choice of rows; everything that is given must hold.

    >>> RowFilter(side="training").where
    {'type': 'side', 'side': 'training'}
    """

    words: str = ""
    #: Decisions and outcomes that the labels of the version expect; of one decision, any of them.
    expected: tuple[tuple[str, str], ...] = ()
    #: One of "", "training", "evaluation".
    side: str = ""
    at_least: int | None = None
    at_most: int | None = None
    #: Places in the dataset, ascending; at most as many as a filter of the server takes.
    places: tuple[int, ...] = ()

    @property
    def where(self) -> dict[str, Any] | None:
        """The filter as the server takes it, without the words; ``None`` for all rows."""
        parts: list[dict[str, Any]] = []
        by_decision: dict[str, list[dict[str, Any]]] = {}
        for decision, outcome in self.expected:
            leaf = {"type": "expected", "decision": decision, "outcome": outcome}
            by_decision.setdefault(decision, []).append(leaf)
        parts += [
            leaves[0] if len(leaves) == 1 else {"type": "any", "filters": leaves}
            for leaves in by_decision.values()
        ]
        if self.side:
            parts.append({"type": "side", "side": self.side})
        for op, value in (("ge", self.at_least), ("le", self.at_most)):
            if value is not None:
                parts.append({"type": "characters", "op": op, "value": value})
        if self.places:
            parts.append({"type": "places", "indexes": list(self.places)})
        if not parts:
            return None
        return parts[0] if len(parts) == 1 else {"type": "all", "filters": parts}

    @property
    def text(self) -> str | None:
        """The words as the server takes them; ``None`` for none."""
        return self.words.strip()[:256] or None

    @property
    def parts(self) -> tuple[tuple[str, RowFilter], ...]:
        """Its parts, each in words and with the remaining filter without it."""
        return self.parts_under({})

    def parts_under(
        self, names: Mapping[tuple[str, str], str]
    ) -> tuple[tuple[str, RowFilter], ...]:
        """Return ``parts`` in the words of a draft, where ``names`` may merge several into one."""
        filter_parts: list[tuple[str, RowFilter]] = []
        if self.text:
            filter_parts.append((f"words: {self.text}", replace(self, words="")))
        present = {pair: (pair[0], names.get(pair, pair[1])) for pair in self.expected}
        for name in dict.fromkeys(present.values()):
            rest = tuple(pair for pair in self.expected if present[pair] != name)
            filter_parts.append((f"{name[0]} is {name[1]}", replace(self, expected=rest)))
        if self.side:
            filter_parts.append((SIDES.get(self.side, self.side), replace(self, side="")))
        if self.at_least is not None:
            filter_parts.append(
                (f"{self.at_least:,} characters or more", replace(self, at_least=None))
            )
        if self.at_most is not None:
            filter_parts.append(
                (f"{self.at_most:,} characters or fewer", replace(self, at_most=None))
            )
        if self.places:
            text = "1 chosen row" if len(self.places) == 1 else f"{len(self.places):,} chosen rows"
            filter_parts.append((text, replace(self, places=())))
        return tuple(filter_parts)

    def with_expected(self, decision: str, *outcomes: str) -> RowFilter:
        """Return it with more outcomes of a decision."""
        pairs = dict.fromkeys([*self.expected, *((decision, outcome) for outcome in outcomes)])
        return replace(self, expected=tuple(pairs))

    def to_json(self) -> dict[str, Any]:
        """Return it for the address: only the set fields."""
        fields = {
            "words": self.words,
            "expected": [list(pair) for pair in self.expected],
            "side": self.side,
            "at_least": self.at_least,
            "at_most": self.at_most,
            "places": _pack(self.places),
        }
        return {name: value for name, value in fields.items() if value not in ("", [], None)}


def read_query(text: str) -> tuple[RowFilter, str]:
    """Read the filter and the queue of an address; unreadable parts are ignored.

    >>> read_query('{"queue": "suspect", "side": "training"}')[1]
    'suspect'
    """
    try:
        fields = json.loads(text) if text else {}
    except ValueError:
        fields = {}
    if not isinstance(fields, dict):
        fields = {}
    pairs = fields.get("expected")
    expected = tuple(
        (pair[0], pair[1])
        for pair in (pairs if isinstance(pairs, list) else ())
        if isinstance(pair, list) and len(pair) == 2 and all(isinstance(part, str) for part in pair)
    )
    words, side, queue = (
        value if isinstance(value := fields.get(name), str) else ""
        for name in ("words", "side", "queue")
    )
    return RowFilter(
        words=words,
        expected=expected,
        side=side if side in SIDES else "",
        at_least=_count(fields.get("at_least")),
        at_most=_count(fields.get("at_most")),
        places=_unpack(fields.get("places")),
    ), queue


def write_query(row_filter: RowFilter, queue: str) -> str:
    """Return the filter and the queue as they stand in the address."""
    return json.dumps({"queue": queue, **row_filter.to_json()}, ensure_ascii=False)


def _pack(places: tuple[int, ...]) -> str:
    """Return places as a short text: the steps from each to the next, in base 32.

    >>> _pack((3, 4, 40)), _unpack("3.1.14")
    ('3.1.14', (3, 4, 40))
    """
    steps = [place - before for before, place in pairwise((0, *places))]
    return ".".join(map(_in_base, steps))


def _unpack(text: object) -> tuple[int, ...]:
    """Return the places of a short text; none of one that cannot be read."""
    steps = text.split(".") if isinstance(text, str) and text else []
    if len(steps) > MAX_PLACES or not all(_STEP.fullmatch(step) for step in steps):
        return ()
    return tuple(accumulate(int(step, 32) for step in steps))


def _in_base(number: int) -> str:
    digits = ""
    while number or not digits:
        number, digit = divmod(number, 32)
        digits = _DIGITS[digit] + digits
    return digits


def _count(value: object) -> int | None:
    is_count = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return value if is_count and isinstance(value, int) else None


#: Called with a filter that was chosen.
OnFilter = Callable[[RowFilter], None]
