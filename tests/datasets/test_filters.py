from __future__ import annotations

from typing import Any

import pytest

from steelyard.datasets.filters import (
    MAX_FILTER_DEPTH,
    MAX_FILTER_PARTS,
    LabelFilter,
    read_filter,
    read_sort,
)
from steelyard.errors import InvalidRequestError

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


def test_an_order_by_label_says_which() -> None:
    assert refused(read_sort, {"by": "label"}) == {
        ("decision",): "missing",
        ("outcome",): "missing",
    }
    assert refused(read_sort, {"by": "size"}) == {("by",): "not_allowed"}
    assert read_sort({}).by == "index"
