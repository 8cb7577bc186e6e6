from __future__ import annotations

from typing import Any

import pytest

from steelyard.datasets.filters import (
    MAX_FILTER_DEPTH,
    MAX_FILTER_PARTS,
    MAX_PLACES,
    LabelFilter,
    read_filter,
    read_sort,
)
from steelyard.errors import InvalidRequestError
from steelyard.wire.queries import MAX_NUMBER

LEAF = {"type": "contains", "text": "a"}


def refused(read: Any, value: Any) -> dict[tuple[Any, ...], str]:
    with pytest.raises(InvalidRequestError) as caught:
        read(value)
    return {violation.path[1:]: violation.type for violation in caught.value.violations}


def nested(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = LEAF
    for _ in range(depth - 1):
        value = {"type": "not", "filter": value}
    return value


def test_a_filter_is_read() -> None:
    value = {"type": "label", "decision": "a", "outcome": "b", "op": "ge", "value": 1}
    assert read_filter(value) == LabelFilter(decision="a", outcome="b", op="ge", value=1.0)
    read_filter(nested(MAX_FILTER_DEPTH))
    read_filter({"type": "all", "filters": [LEAF] * (MAX_FILTER_PARTS - 1)})


def test_everything_wrong_with_a_filter_is_found_at_once() -> None:
    value = {
        "type": "all",
        "filters": [
            {"type": "label", "decision": "", "op": "about", "value": "x"},
            {"type": "like"},
            {"type": ["all"]},
            {"type": "not"},
            {"type": "any", "filters": 5, "filter": 1},
            {"type": "rows", "sha256": ["g" * 64, "a"]},
            7,
        ],
    }
    path = ("filters",)
    assert refused(read_filter, value) == {
        (*path, 0, "decision"): "too_short",
        (*path, 0, "outcome"): "missing",
        (*path, 0, "op"): "not_allowed",
        (*path, 0, "value"): "wrong_type",
        (*path, 1, "type"): "not_allowed",
        (*path, 2, "type"): "not_allowed",
        (*path, 3, "filter"): "missing",
        (*path, 4, "filter"): "unknown_field",
        (*path, 4, "filters"): "wrong_type",
        (*path, 5, "sha256", 0): "not_allowed",
        (*path, 5, "sha256", 1): "too_short",
        (*path, 6): "wrong_type",
    }


def test_a_filter_is_bounded() -> None:
    assert list(refused(read_filter, nested(MAX_FILTER_DEPTH + 1)).values()) == ["too_deep"]
    wide = {"type": "any", "filters": [LEAF] * MAX_FILTER_PARTS}
    assert list(refused(read_filter, wide).values()) == ["too_long"]


@pytest.mark.parametrize(
    ("filter_", "field"),
    [
        ({"type": "decisions", "op": "lt"}, "value"),
        ({"type": "characters", "op": "ge"}, "value"),
        ({"type": "index"}, "at_least"),
        ({"type": "index"}, "below"),
    ],
)
def test_a_number_is_one_that_a_row_can_have(filter_: dict[str, Any], field: str) -> None:
    read_filter({**filter_, field: MAX_NUMBER})
    for number in (MAX_NUMBER + 1, 10**40):
        assert refused(read_filter, {**filter_, field: number}) == {(field,): "out_of_range"}
    assert refused(read_filter, {**filter_, field: 10**400}) == {(field,): "not_finite"}


def test_places_are_some_and_not_too_many() -> None:
    places = {"type": "places", "indexes": list(range(MAX_PLACES))}
    assert read_filter(places).indexes[-1] == MAX_PLACES - 1
    for indexes in ([], list(range(MAX_PLACES + 1))):
        refusals = refused(read_filter, {"type": "places", "indexes": indexes})
        assert [*refusals] == [("indexes",)]


def test_a_labels_value_is_any_finite_number() -> None:
    value = {"type": "label", "decision": "a", "outcome": "b", "op": "ge", "value": 10**300}
    assert read_filter(value).value == 1e300
    assert refused(read_filter, {**value, "value": float("inf")}) == {("value",): "not_finite"}


def test_an_order_by_label_says_which() -> None:
    assert refused(read_sort, {"by": "label"}) == {
        ("decision",): "missing",
        ("outcome",): "missing",
    }
    assert refused(read_sort, {"by": "size"}) == {("by",): "not_allowed"}
    assert read_sort({}).by == "index"
