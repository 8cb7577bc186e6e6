from __future__ import annotations

import json
import operator
import re
from collections import Counter
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from steelyard.datasets.filters import Sort, read_filter
from steelyard.datasets.frames.pages import RowStore
from steelyard.datasets.frames.scanning import scan
from steelyard.datasets.versions import Manifest
from steelyard.storage.frame_store import FrameStore, open_store
from support.datasets.dataset_rows import (
    DECISIONS,
    OUTCOMES,
    REFUND,
    ROUTE,
    make_row_dict,
    read_all,
    write_version,
)

VOCABULARY = [
    "Refund",
    "refund,",
    "REFUNDS",
    "paid",
    "é",
    "École",
    "118",
    "118_b",
    "a.b",
    "ΟΔΟΣ",
    "x",
]
COMPARE = {name: getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")}

contexts = st.lists(st.sampled_from(VOCABULARY), max_size=4).map(" ".join)
needles = st.sampled_from(
    ["refund", "REFUND", "é", "École", "118", "a.b", "οδος", "paid refund", "."]
)
sent_rows = st.builds(
    lambda context, asked, targets: make_row_dict(
        context, decisions=asked, targets={asked[0]["id"]: targets[asked[0]["id"]]}
    ),
    contexts | st.fixed_dictionaries({"note": contexts}),
    st.lists(st.sampled_from(DECISIONS), min_size=1, unique_by=lambda one: one["id"]),
    st.fixed_dictionaries(
        {
            id_: st.sampled_from(
                [names[0], {names[0]: 0.25, names[1]: 0.75}, {names[1]: 1, names[0]: 0}]
            )
            for id_, names in OUTCOMES.items()
        }
    ),
)
ids = st.sampled_from([*OUTCOMES, "other"])
outcomes = st.sampled_from(["billing", "support", "yes", "no", "1", "3"])
ops = st.sampled_from([*COMPARE])
leaves = st.one_of(
    st.fixed_dictionaries(
        {
            "type": st.just("label"),
            "decision": ids,
            "outcome": outcomes,
            "op": ops,
            "value": st.sampled_from([0, 0.25, 0.5, 1]),
        }
    ),
    st.fixed_dictionaries({"type": st.just("expected"), "decision": ids, "outcome": outcomes}),
    st.fixed_dictionaries(
        {"type": st.just("asks"), "decision": ids}, optional={"labelled": st.booleans() | st.none()}
    ),
    st.fixed_dictionaries({"type": st.just("decisions"), "op": ops, "value": st.integers(0, 3)}),
    st.fixed_dictionaries({"type": st.just("characters"), "op": ops, "value": st.integers(0, 12)}),
    st.fixed_dictionaries({"type": st.just("contains"), "text": needles}),
    st.fixed_dictionaries({"type": st.just("words"), "text": needles}),
    st.fixed_dictionaries(
        {"type": st.just("side"), "side": st.sampled_from(["training", "evaluation"])}
    ),
    st.fixed_dictionaries(
        {"type": st.just("index")},
        optional={"at_least": st.integers(0, 9), "below": st.integers(0, 9)},
    ),
)
conditions = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds(lambda one: {"type": "not", "filter": one}, inner),
        st.builds(
            lambda type_, many: {"type": type_, "filters": many},
            st.sampled_from(["all", "any"]),
            st.lists(inner, max_size=3),
        ),
    ),
    max_leaves=5,
)


def words_of(text: str) -> set[str]:
    return set(re.findall(r"(?:\w|[^\x00-\x7f])+", text.lower()))


def has_label(where: dict[str, Any], row: dict[str, Any]) -> bool:
    label = row["labels"].get(where["decision"])
    compare = COMPARE[where["op"]]
    return label is not None and compare(label.get(where["outcome"], 0.0), where["value"])


def is_between(where: dict[str, Any], row: dict[str, Any]) -> bool:
    below = where.get("below")
    return row["index"] >= where.get("at_least", 0) and (below is None or row["index"] < below)


def asks(where: dict[str, Any], row: dict[str, Any]) -> bool:
    wanted = where.get("labelled")
    is_labelled = where["decision"] in row["labels"]
    return where["decision"] in row["asked"] and wanted in (None, is_labelled)


#: The meaning of every filter in plain Python.
MEANINGS: dict[str, Any] = {
    "all": lambda where, row: all(holds(part, row) for part in where["filters"]),
    "any": lambda where, row: any(holds(part, row) for part in where["filters"]),
    "not": lambda where, row: not holds(where["filter"], row),
    "label": has_label,
    "expected": lambda where, row: row["expected"].get(where["decision"]) == where["outcome"],
    "asks": asks,
    "decisions": lambda where, row: COMPARE[where["op"]](len(row["asked"]), where["value"]),
    "characters": lambda where, row: COMPARE[where["op"]](len(row["context"]), where["value"]),
    "contains": lambda where, row: where["text"].lower() in row["context"].lower(),
    "words": lambda where, row: words_of(where["text"]) <= words_of(row["context"]),
    "side": lambda where, row: row["side"] == where["side"],
    "index": is_between,
}


def holds(where: dict[str, Any], row: dict[str, Any]) -> bool:
    return MEANINGS[where["type"]](where, row)


def plain_rows(store: FrameStore, manifest: Manifest) -> list[dict[str, Any]]:
    """The columns that a filter reads, by row, in order."""
    frame = scan(store, manifest).select("index", "side").sort("index").collect()
    rows = []
    for (index, side), row in zip(
        frame.rows(), read_all(b"".join(RowStore(store).download(manifest))), strict=True
    ):
        tops = zip(row.labels.decisions, row.labels.outcomes, row.labels.tops, strict=True)
        rows.append(
            {
                "index": index,
                "side": side,
                "context": row.context,
                "asked": row.task.ids,
                "labels": row.labels.by_decision(),
                "expected": {decision: outcome for decision, outcome, top in tops if top},
            }
        )
    return rows


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(sent_rows, min_size=1, max_size=10), st.lists(conditions, min_size=1, max_size=4))
def test_a_filter_equals_plain_python(
    tmp_path: Any, items: list[dict[str, Any]], wheres: list[dict[str, Any]]
) -> None:
    store = open_store(tmp_path)
    rows = RowStore(store)
    manifest = write_version(store, items)
    plain = plain_rows(store, manifest)
    for where in wheres:
        expected = [row for row in plain if holds(where, row)]
        condition = read_filter(where)
        total, page = rows.find(manifest, where=condition, limit=500)
        assert [row.index for row in page] == [row["index"] for row in expected]
        assert total == len(expected)
        facets = rows.facets(manifest, where=condition)
        assert facets.rows == total
        assert facets.sides == Counter(row["side"] for row in expected)
        counted = Counter(pair for row in expected for pair in row["expected"].items())
        told = {(id_, name): n for id_, by in facets.expected.items() for name, n in by.items()}
        assert told == counted


@pytest.fixture
def manifest(store: FrameStore) -> Manifest:
    targets = [{"yes": 0.4, "no": 0.6}, {"yes": 0.9, "no": 0.1}, {"no": 1.0}]
    items = [
        make_row_dict("a" * (3 - number), decisions=[REFUND], targets={"refund": target})
        for number, target in enumerate(targets)
    ]
    items.append(make_row_dict("none", decisions=[ROUTE, REFUND], targets={"route": "other"}))
    return write_version(store, items)


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        (Sort(), [0, 1, 2, 3]),
        (Sort(descending=True), [3, 2, 1, 0]),
        (Sort(by="context_characters"), [2, 1, 0, 3]),
        (Sort(by="context_characters", descending=True), [3, 0, 1, 2]),
        (Sort(by="decisions", descending=True), [3, 0, 1, 2]),
        (Sort(by="label", decision="refund", outcome="yes"), [2, 0, 1, 3]),
        (Sort(by="label", decision="refund", outcome="yes", descending=True), [1, 0, 2, 3]),
    ],
)
def test_orders(rows: RowStore, manifest: Manifest, order: Sort, expected: list[int]) -> None:
    total, page = rows.find(manifest, order=order)
    assert total == 4
    assert [row.index for row in page] == expected
    _, second = rows.find(manifest, order=order, offset=1, limit=2)
    assert [row.index for row in second] == expected[1:3]


def test_rows_by_their_hashes(rows: RowStore, store: FrameStore, manifest: Manifest) -> None:
    hashes = scan(store, manifest).sort("index").select("row_sha256").collect().to_series()
    where = read_filter({"type": "rows", "sha256": [hashes[2].hex(), "0" * 64]})
    total, page = rows.find(manifest, where=where)
    assert (total, [row.index for row in page]) == (1, [2])


def test_rewards_are_compared(store: FrameStore, rows: RowStore) -> None:
    items = [
        make_row_dict(f"{number}", targets=..., rewards={"refund": {"yes": number, "no": -number}})
        for number in range(4)
    ]
    manifest = write_version(store, items)
    where = {"type": "label", "decision": "refund", "outcome": "no", "op": "le", "value": -2}
    assert rows.find(manifest, where=read_filter(where))[0] == 2
    other = {**where, "outcome": "maybe"}
    assert rows.find(manifest, where=read_filter(other))[0] == 0
    assert json.loads(msgspec.json.encode(rows.facets(manifest)))["rows"] == 4
