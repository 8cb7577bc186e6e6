"""A typed language for choosing, ordering and counting rows.

Here: its shapes and their checks. ``steelyard.datasets.frames.filtering`` runs them.

Texts are compared in lower case. A label without an entry for an outcome gives it 0 when it has
targets. A label filter holds for no row in which the decision has no label.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, TypeVar, cast

import msgspec
from msgspec import Meta, Struct

from steelyard.datasets.wire import Side
from steelyard.decisions.wire import Name
from steelyard.errors import InvalidRequestError
from steelyard.wire.decoding import convert
from steelyard.wire.json_values import check_json, decode_json
from steelyard.wire.payloads import check_shape, open_payload
from steelyard.wire.queries import MAX_NUMBER
from steelyard.wire.violations import BODY, Path, Violations, show

Shape = TypeVar("Shape", bound=Struct)

#: Bounds of one filter: how deep it nests and how many parts it has.
MAX_FILTER_DEPTH, MAX_FILTER_PARTS = 8, 64
#: Places that a filter names one by one.
MAX_PLACES = 2_000

Comparison = Literal["eq", "ne", "lt", "le", "gt", "ge"]
_Text = Annotated[str, Meta(min_length=1, max_length=256)]
_Count = Annotated[int, Meta(ge=0, le=MAX_NUMBER)]


class LabelFilter(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="label"):
    """Rows whose label gives an outcome a probability, or a reward, that compares so."""

    decision: Name
    outcome: str
    op: Comparison
    value: float


class ExpectedFilter(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="expected"):
    """Rows whose label expects an outcome most."""

    decision: Name
    outcome: str


class AsksFilter(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="asks"):
    """Rows that ask a decision; with ``labelled`` only those with, or without, a label on it."""

    decision: Name
    labelled: bool | None = None


class DecisionsFilter(
    Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="decisions"
):
    """Rows that ask a number of decisions that compares so."""

    op: Comparison
    value: _Count


class CharactersFilter(
    Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="characters"
):
    """Rows whose context has a number of characters that compares so; that of its JSON if no text."""

    op: Comparison
    value: _Count


class ContainsFilter(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="contains"):
    """Rows with a text in their context; that of a context that is no text is its JSON."""

    text: _Text


class WordsFilter(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="words"):
    """Rows with every word of a text in their context, in any order.

    A word is a run of letters, digits and underscores, and of any characters beyond ASCII.
    """

    text: _Text


class SideFilter(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="side"):
    """Rows of one side."""

    side: Side


class IndexFilter(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="index"):
    """Rows from one place in the dataset on, up to another, which is not included."""

    at_least: _Count = 0
    below: _Count | None = None


class PlacesFilter(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="places"):
    """Rows at some places in the dataset."""

    indexes: Annotated[list[_Count], Meta(min_length=1, max_length=MAX_PLACES)]


class RowsFilter(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="rows"):
    """Rows by their hashes, in hex."""

    sha256: Annotated[
        list[Annotated[str, Meta(min_length=64, max_length=64)]], Meta(min_length=1, max_length=500)
    ]


class AllFilter(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="all"):
    """Rows for which every filter holds; all rows when there is none."""

    filters: list[Filter]


class AnyFilter(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="any"):
    """Rows for which one filter holds; no rows when there is none."""

    filters: list[Filter]


class NotFilter(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="not"):
    """Rows for which a filter does not hold."""

    filter: Filter


Filter = (
    LabelFilter
    | ExpectedFilter
    | AsksFilter
    | DecisionsFilter
    | CharactersFilter
    | ContainsFilter
    | WordsFilter
    | SideFilter
    | IndexFilter
    | PlacesFilter
    | RowsFilter
    | AllFilter
    | AnyFilter
    | NotFilter
)


class Sort(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """An order of rows; equal ones, and those without the value, are in the order of the dataset.

    ``by`` is ``index``, ``context_characters``, ``decisions`` (their number), or ``label`` (the
    value that the label of ``decision`` gives ``outcome``; rows without it come last).
    """

    by: Literal["index", "context_characters", "decisions", "label"] = "index"
    descending: bool = False
    decision: Name | None = None
    outcome: str | None = None


class Facets(Struct, frozen=True, kw_only=True):
    """How the rows that a filter holds for spread."""

    rows: int
    sides: dict[str, int]
    expected: dict[str, dict[str, int]]


_LEAVES: dict[str, type[Struct]] = {
    "label": LabelFilter,
    "expected": ExpectedFilter,
    "asks": AsksFilter,
    "decisions": DecisionsFilter,
    "characters": CharactersFilter,
    "contains": ContainsFilter,
    "words": WordsFilter,
    "side": SideFilter,
    "index": IndexFilter,
    "places": PlacesFilter,
    "rows": RowsFilter,
}
_TYPES = (*_LEAVES, "all", "any", "not")


def read_filter(value: object, path: Path = BODY) -> Filter:
    """Read a filter, or refuse it with everything that is wrong in it."""
    violations = Violations()
    check_json(value, violations, path)
    violations.raise_if_any()
    _Check(violations).visit(value, path, 1)
    violations.raise_if_any()
    return convert(value, cast("type[Filter]", Filter))


def read_sort(value: object, path: Path = BODY) -> Sort:
    """Read an order of rows, or refuse it with everything that is wrong in it."""
    violations = Violations()
    check_json(value, violations, path)
    violations.raise_if_any()
    check_shape(value, Sort, violations, path)
    if isinstance(value, Mapping):
        for name in ("decision", "outcome"):
            if value.get("by") == "label" and value.get(name) is None:
                violations.add((*path, name), "is missing; sorting by label needs it.", "missing")
    violations.raise_if_any()
    return convert(value, Sort)


def read_filtered(
    payload: object,
    shape: type[Shape],
    readers: Mapping[str, Callable[[object, Path], object]],
    check: Callable[[dict[str, Any], Violations], None] = lambda _fields, _violations: None,
) -> Shape:
    """Read a request some of whose fields have readers, or refuse it with all that is wrong in it."""
    value = decode_json(bytes(payload)) if isinstance(payload, bytes | bytearray) else payload
    apart: dict[str, Any] = {}
    if isinstance(value, Mapping):
        apart = {name: value[name] for name in readers if value.get(name) is not None}
        value = {name: item for name, item in value.items() if name not in readers}
    shape_violations = Violations()
    fields = open_payload(value, shape, shape_violations)
    check(fields, shape_violations)
    violations = list(shape_violations.listed)
    read: dict[str, object] = {}
    for name, item in apart.items():
        try:
            read[name] = readers[name](item, (*BODY, name))
        except InvalidRequestError as error:
            violations.extend(error.violations)
    if violations:
        raise InvalidRequestError(violations=violations, n_unlisted=shape_violations.n_unlisted)
    return msgspec.structs.replace(convert(fields, shape), **read)


def with_words(where: Filter | None, text: str | None) -> Filter | None:
    """Return a filter for rows that also have every word of a text."""
    if text is None:
        return where
    words = WordsFilter(text=text)
    return words if where is None else AllFilter(filters=[where, words])


class _Check:
    """One walk over a filter, bounded in depth and in the number of its parts."""

    def __init__(self, violations: Violations) -> None:
        self._found = violations
        self._n_parts = 0

    def visit(self, value: object, path: Path, depth: int) -> None:
        self._n_parts += 1
        if self._n_parts > MAX_FILTER_PARTS:
            self._found.add(path, f"is past the {MAX_FILTER_PARTS} parts of a filter.", "too_long")
        elif depth > MAX_FILTER_DEPTH:
            self._found.add(path, f"nests deeper than {MAX_FILTER_DEPTH}.", "too_deep")
        elif not isinstance(value, dict):
            self._found.add(path, f"is {show(value)}; give a filter object.", "wrong_type")
        elif not isinstance(value.get("type"), str) or value["type"] not in _TYPES:
            listed = ", ".join(_TYPES)
            self._found.add((*path, "type"), f"is not one of the filters: {listed}.", "not_allowed")
        else:
            self._visit_known(value, path, depth)

    def _visit_known(self, value: dict[str, Any], path: Path, depth: int) -> None:
        type_ = value["type"]
        if type_ in _LEAVES:
            fields = {name: item for name, item in value.items() if name != "type"}
            check_shape(fields, _LEAVES[type_], self._found, path)
            self._check_hashes(fields.get("sha256"), path)
            return
        inner = "filter" if type_ == "not" else "filters"
        for name in value:
            if name not in ("type", inner):
                self._found.add((*path, name), "is not a field here; remove it.", "unknown_field")
        if inner not in value:
            self._found.add((*path, inner), "is missing; add it.", "missing")
        elif type_ == "not":
            self.visit(value[inner], (*path, inner), depth + 1)
        elif isinstance(value[inner], list):
            for index, item in enumerate(value[inner][: MAX_FILTER_PARTS + 1]):
                self.visit(item, (*path, inner, index), depth + 1)
        else:
            self._found.add(
                (*path, inner), "is not an array; send an array of filters.", "wrong_type"
            )

    def _check_hashes(self, hashes: object, path: Path) -> None:
        for index, text in enumerate(hashes if isinstance(hashes, list) else ()):
            if isinstance(text, str) and set(text) - set("0123456789abcdef"):
                self._found.add(
                    (*path, "sha256", index), "is not a SHA-256 in lower-case hex.", "not_allowed"
                )
