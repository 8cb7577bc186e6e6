"""Searches over the rows of a version: queries and answers."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

from steelyard.datasets.filters import (
    Facets,
    Filter,
    Sort,
    read_filter,
    read_filtered,
    read_sort,
    with_words,
)
from steelyard.datasets.wire import (
    DEFAULT_PAGE_ROWS,
    Example,
    Offset,
    Partition,
    RowsLimit,
    Version,
)
from steelyard.wire.decoding import convert
from steelyard.wire.payloads import open_payload
from steelyard.wire.schemas import doc
from steelyard.wire.violations import BODY, Violations

_Text = Annotated[str, Meta(min_length=1, max_length=256)]


class SearchRows(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Which rows, in which order."""

    where: Annotated[Filter | None, doc("All rows when left out.")] = None
    text: Annotated[_Text | None, doc("Rows with all of its words in the context alone.")] = None
    order: Annotated[Sort | None, doc("That of the dataset when left out.")] = None
    facets: Annotated[bool, doc("Count how the rows found spread, too.")] = False
    partition: Partition = "all"
    version: Version | None = None
    offset: Offset = 0
    limit: RowsLimit = DEFAULT_PAGE_ROWS

    @property
    def filter(self) -> Filter | None:
        """The filter of ``where`` and ``text`` together."""
        return with_words(self.where, self.text)


class FoundRows(Struct, frozen=True, kw_only=True):
    """A page of the rows found; ``total`` counts all of them."""

    data: list[Example]
    indexes: Annotated[
        list[int], doc("Of the rows of `data`: their places in the dataset, from 0.")
    ]
    total: int
    offset: int
    limit: int
    has_more: bool
    version: int
    facets: Facets | UnsetType = UNSET


class SimilarRows(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The query of a similarity search: a row of the dataset, or any context; one of the two."""

    row: Annotated[Offset | None, doc("A row's place in the dataset, from 0.")] = None
    context: Annotated[str | dict[str, Any] | list[Any] | None, doc("Text, or JSON.")] = None
    partition: Partition = "all"
    version: Version | None = None
    limit: Annotated[int, Meta(ge=1, le=100)] = 10


class SimilarRow(Struct, frozen=True, kw_only=True):
    """A row and how like it is: the cosine of the contexts' vectors, -1 to 1."""

    index: int
    similarity: float
    row: Example


class FoundSimilar(Struct, frozen=True, kw_only=True):
    """The rows most similar to the query, the most similar first."""

    data: list[SimilarRow]
    version: int


class Relabelled(Struct, frozen=True, kw_only=True):
    """Contexts that got a row which expects another outcome than an older row of theirs."""

    decision: str
    before: Annotated[str, doc("The outcome that older rows expect.")]
    after: Annotated[str, doc("The outcome that added rows expect.")]
    contexts: int
    both: Annotated[int, doc("Contexts of these whose older row stays beside the new one.")] = 0


class VersionDiff(Struct, frozen=True, kw_only=True, rename={"from_": "from"}):
    """The differences between two versions, with the number of removed rows.

    A row whose labels were changed in a review is one removed and one added.
    """

    from_: int
    to: int
    rows: Annotated[int, doc("Rows added.")]
    removed: Annotated[int, doc("Rows of the older one that are gone.")]
    first: Annotated[int | None, doc("Index of the first of them; the others follow it.")]
    contexts: Annotated[int, doc("Contexts added.")]
    sides: Annotated[dict[str, int], doc("Side to rows added.")]
    asked: Annotated[dict[str, int], doc("Decision to rows added that ask it.")]
    expected: Annotated[
        dict[str, dict[str, int]], doc("Decision to outcome to rows added that expect it most.")
    ]
    relabelled: list[Relabelled]


def read_search(payload: object) -> SearchRows:
    """Read a search, or refuse it with everything that is wrong in it."""
    return read_filtered(payload, SearchRows, {"where": read_filter, "order": read_sort})


def read_similar(payload: object) -> SimilarRows:
    """Read the query of a similarity search, or refuse it; as ``read_search``."""
    violations = Violations()
    fields = open_payload(payload, SimilarRows, violations)
    if (fields.get("row") is None) == (fields.get("context") is None):
        violations.add((*BODY, "row"), "or context is needed; give one of the two.", "missing")
    violations.raise_if_any()
    return convert(fields, SimilarRows)
