"""The filter language as Polars expressions over the stored columns."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from functools import reduce
from typing import Any

import polars as pl

from steelyard.datasets import filters
from steelyard.datasets.filters import Comparison, Filter, Sort
from steelyard.wire.methods import Method

_COMPARE: dict[Comparison, Callable[[Any, Any], Any]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}
#: A word of a text.
WORD = re.compile(r"[0-9A-Za-z_\u0080-\U0010ffff]+")
_NOT_WORD = r"[^0-9A-Za-z_\x{80}-\x{10ffff}]"


def filter_expression(where: Filter, method: Method) -> pl.Expr:
    """Return the Polars expression of a filter."""
    match where:
        case filters.AllFilter():
            parts = [filter_expression(part, method) for part in where.filters]
            return reduce(operator.and_, parts, pl.lit(True))
        case filters.AnyFilter():
            parts = [filter_expression(part, method) for part in where.filters]
            return reduce(operator.or_, parts, pl.lit(False))
        case filters.NotFilter():
            return ~filter_expression(where.filter, method)
        case _:
            return _leaf(where, method)


def sort_expressions(order: Sort, method: Method) -> tuple[list[pl.Expr], list[bool]]:
    """Return the sort keys of rows, the first key first, and which of them descend.

    Nulls are to come last; the last key is the index, which ascends.
    """
    index = pl.col("index")
    if order.by == "index":
        return [index], [order.descending]
    if order.by == "context_characters":
        key = pl.col("context").str.len_chars()
    elif order.by == "decisions":
        key = pl.col("asked").list.len()
    else:
        key = _value_of(order.decision or "", order.outcome or "", method)
    return [key, index], [order.descending, False]


def _leaf(where: Filter, method: Method) -> pl.Expr:
    holds: pl.Expr
    match where:
        case filters.LabelFilter():
            value = _value_of(where.decision, where.outcome, method)
            holds = _COMPARE[where.op](value, where.value).fill_null(value=False)
        case filters.ExpectedFilter():
            holds = _any_entry(
                _entry("decision").eq(where.decision)
                & _entry("outcome").eq(where.outcome)
                & _entry("is_top")
            )
        case filters.AsksFilter():
            holds = pl.col("asked").list.contains(where.decision)
            if where.labelled is not None:
                has_label = _any_entry(_entry("decision").eq(where.decision))
                holds &= has_label if where.labelled else ~has_label
        case filters.DecisionsFilter() | filters.CharactersFilter():
            decisions, context = pl.col("asked"), pl.col("context")
            counts_decisions = isinstance(where, filters.DecisionsFilter)
            size = decisions.list.len() if counts_decisions else context.str.len_chars()
            holds = _COMPARE[where.op](size.cast(pl.Int64), where.value)
        case filters.IndexFilter():
            holds = pl.col("index") >= where.at_least
            if where.below is not None:
                holds &= pl.col("index") < where.below
        case filters.PlacesFilter():
            # A range goes to the statistics of the files, so that groups far off are not read.
            near = pl.col("index").is_between(min(where.indexes), max(where.indexes))
            holds = near & pl.col("index").is_in(list(where.indexes))
        case filters.RowsFilter():
            holds = pl.col("row_sha256").is_in([bytes.fromhex(text) for text in where.sha256])
        case filters.SideFilter():
            holds = pl.col("side") == where.side
        case _:
            holds = _text_leaf(where)
    return holds


def _text_leaf(where: Filter) -> pl.Expr:
    match where:
        case filters.ContainsFilter():
            lowered = pl.col("context").str.to_lowercase()
            return lowered.str.contains(where.text.lower(), literal=True)
        case filters.WordsFilter():
            return _has_words(where.text)
        case _:
            raise TypeError(f"{type(where).__name__} is not a filter of rows.")


def _has_words(text: str) -> pl.Expr:
    lowered = pl.col("context").str.to_lowercase()
    words = dict.fromkeys(WORD.findall(text.lower()))
    matches = [lowered.str.contains(f"(?:^|{_NOT_WORD}){word}(?:{_NOT_WORD}|$)") for word in words]
    return reduce(operator.and_, matches, pl.lit(True))


def _entry(field: str) -> pl.Expr:
    return pl.element().struct.field(field)


def _any_entry(holds: pl.Expr) -> pl.Expr:
    return pl.col("labels").list.eval(holds).list.any()


def _value_of(decision: str, outcome: str, method: Method) -> pl.Expr:
    """Return the value of a label for an outcome; null where the decision or the outcome has no label."""
    is_named = _entry("decision").eq(decision) & _entry("outcome").eq(outcome)
    value = pl.col("labels").list.eval(_entry("value").filter(is_named)).list.first()
    if method == "reward":
        return value
    has_label = _any_entry(_entry("decision").eq(decision))
    return pl.when(has_label).then(value.fill_null(0.0))
