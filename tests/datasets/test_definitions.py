from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from steelyard.datasets import definitions as definitions_module
from steelyard.datasets.definitions import (
    MAX_READINESS_BYTES,
    Definition,
    decisions_by_id,
    fingerprints_by_id,
    readiness_of,
)
from support.datasets.dataset_rows import REFUND, ROUTE


@pytest.fixture(autouse=True)
def _few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, rows in (("MIN_ROWS", 10), ("MAX_ROWS", 100), ("MIN_ROWS_PER_OUTCOME", 2)):
        monkeypatch.setattr(definitions_module, name, rows)


def define(decision: dict[str, Any] = REFUND, **fields: Any) -> Definition:
    given = {
        "id": decision["id"],
        "fingerprint": "ab" * 32,
        "decision": Raw(json.dumps(decision).encode()),
        "outcomes": ("yes", "no"),
        "is_plain": True,
        "training": 20,
        "evaluation": 5,
        "expected": {"yes": 12, "no": 8},
    }
    return Definition(**{**given, **fields})


@pytest.mark.parametrize(
    ("definitions", "reason"),
    [
        ([define()], None),
        ([define(), define(fingerprint="cd" * 32)], "conflicting_decision"),
        ([define(), define(fingerprint="cd" * 32, training=0, expected={})], None),
        ([define(is_plain=False)], "structured_wording"),
        ([define(training=9)], "too_few_rows"),
        ([define(training=101)], "too_many_rows"),
        ([define(expected={"yes": 19, "no": 1})], "too_few_per_outcome"),
        ([define(expected={"yes": 20})], "too_few_per_outcome"),
        ([define(evaluation=0)], "unbalanced_split"),
    ],
)
def test_why_a_decision_cannot_be_tuned(definitions: list[Definition], reason: str | None) -> None:
    (told,) = readiness_of(definitions).decisions
    assert told.reason == reason


def test_a_decision_has_its_counts() -> None:
    wordings = [define(), define(fingerprint="cd" * 32, training=30, expected={"no": 30})]
    (told,) = readiness_of(wordings).decisions
    assert told.decision == REFUND
    assert told.outcomes == ["yes", "no"]
    assert told.rows == 50
    assert told.labels == {"yes": 12, "no": 38}


def test_tunable_decisions_come_first_and_then_the_most_asked() -> None:
    definitions = [
        define({**REFUND, "id": "rare"}, training=12),
        define({**REFUND, "id": "often"}, training=90),
        define({**REFUND, "id": "too_often"}, training=900),
        define({**REFUND, "id": "evaluated"}, training=0, expected={}),
    ]
    told = readiness_of(definitions)
    assert [one.decision["id"] for one in told.decisions] == ["often", "rare", "too_often"]


def test_the_list_is_as_long_as_fits() -> None:
    definitions = [
        define({**ROUTE, "id": f"d{number}", "question": "?" * 1000}) for number in range(100)
    ]
    told = readiness_of(definitions)
    assert len(msgspec.json.encode(told.decisions)) <= MAX_READINESS_BYTES
    assert len(told.decisions) + told.unlisted == 100
    assert len(told.decisions) > 40


def test_wordings_by_id() -> None:
    wordings = [define(), define(fingerprint="cd" * 32), define(ROUTE)]
    assert fingerprints_by_id(wordings) == {
        "refund": {b"\xab" * 32, b"\xcd" * 32},
        "route": {b"\xab" * 32},
    }
    assert decisions_by_id(wordings) == {"route": ROUTE}
