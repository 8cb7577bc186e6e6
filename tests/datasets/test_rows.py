from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given

from steelyard.datasets.canonical import canonical_json
from steelyard.datasets.labels import Labels
from steelyard.datasets.rows import Row, hash_context, read_row
from support.datasets.dataset_rows import REFUND, ROUTE, URGENCY, make_row_dict, target_rows
from support.decisions.strategies import few

IMAGE = {"id": 1, "media_type": "image/png", "data": base64.b64encode(b"image").decode()}


def read(**fields: Any) -> Row:
    row = read_row(make_row_dict(**fields))
    assert isinstance(row, Row), row
    return row


def faults(**fields: Any) -> dict[tuple[Any, ...], str]:
    found = read_row(make_row_dict(**fields))
    assert isinstance(found, list), found
    return {violation.path: violation.type for violation in found}


def test_everything_wrong_with_a_row_is_found_at_once() -> None:
    assert faults(
        context=5,
        decisions=[{**ROUTE, "policy": {}}, {**REFUND, "question": " "}, URGENCY],
        targets={"urgency": {"1": 0.5, "9": 0.5}, "refund": "maybe", "team": "a"},
        rewards=None,
        fallback=["a"],
        model=" ",
        questoin=1,
    ) == {
        ("context",): "wrong_type",
        ("decisions", 0, "policy"): "refused",
        ("decisions", 1, "question"): "blank",
        ("targets", "urgency", "9"): "unknown",
        ("targets", "team"): "unknown",
        ("fallback",): "wrong_type",
        ("model",): "blank",
        ("questoin",): "unknown_field",
    }


@pytest.mark.parametrize(
    ("targets", "expected"),
    [
        ({}, {("targets",): "too_short"}),
        ([], {("targets",): "wrong_type"}),
        ({"refund": 1}, {("targets", "refund"): "wrong_type"}),
        ({"refund": True}, {("targets", "refund"): "wrong_type"}),
        ({"refund": None}, {("targets", "refund"): "wrong_type"}),
        ({"refund": "Yes"}, {("targets", "refund"): "unknown"}),
        ({"refund": {}}, {("targets", "refund"): "wrong_sum"}),
        ({"refund": {"yes": 0.9}}, {("targets", "refund"): "wrong_sum"}),
        ({"refund": {"yes": 1.002}}, {("targets", "refund", "yes"): "out_of_range"}),
        ({"refund": {"yes": -0.5, "no": 1}}, {("targets", "refund", "yes"): "out_of_range"}),
        ({"refund": {"yes": "1"}}, {("targets", "refund", "yes"): "wrong_type"}),
        ({"refund": {"yes": True}}, {("targets", "refund", "yes"): "wrong_type"}),
    ],
)
def test_targets_that_cannot_be_used(targets: Any, expected: dict[Any, str]) -> None:
    assert faults(targets=targets) == expected


@pytest.mark.parametrize(
    ("rewards", "expected"),
    [
        ({"refund": {"yes": 1}}, {("rewards", "refund", "no"): "missing"}),
        ({"refund": "yes"}, {("rewards", "refund"): "wrong_type"}),
        ({"refund": {"yes": 1, "no": 1e999}}, {("rewards", "refund", "no"): "not_finite"}),
        ({"refund": {"yes": 1, "no": 0, "x": 2}}, {("rewards", "refund", "x"): "unknown"}),
    ],
)
def test_rewards_that_cannot_be_used(rewards: Any, expected: dict[Any, str]) -> None:
    assert faults(targets=..., rewards=rewards) == expected


def test_a_row_has_one_of_targets_and_rewards() -> None:
    assert faults(targets=...) == {("targets",): "missing"}
    both = {"rewards": {"refund": {"yes": 1, "no": 0}}}
    assert faults(**both) == {("rewards",): "refused"}
    assert read(rewards=None).labels.supervision == "targets"


def test_targets_are_kept_or_scaled_to_one() -> None:
    nearly = read(targets={"refund": {"yes": 0.9999999, "no": 0}}).labels
    assert nearly.values == (0.9999999, 0.0)
    near = read(targets={"refund": {"yes": 0.75, "no": 0.2495}}).labels
    assert sum(near.values) == pytest.approx(1, abs=1e-12)
    assert near.values[0] == pytest.approx(0.75 / 0.9995)


def test_the_expected_outcome_is_the_likeliest_and_the_first_on_a_tie() -> None:
    def expected(labels: Labels) -> list[str]:
        return [name for name, top in zip(labels.outcomes, labels.tops, strict=True) if top]

    soft = {"route": {"other": 0.4, "support": 0.4, "billing": 0.2}}
    assert expected(read(targets=soft).labels) == ["support"]
    rewards = {"refund": {"no": -1, "yes": -1}}
    assert expected(read(targets=..., rewards=rewards).labels) == ["yes"]


def test_how_to_act_is_kept_and_no_part_of_the_wording() -> None:
    plain = read(decisions=[ROUTE, REFUND])
    acting = read(decisions=[{**ROUTE, "abstain": {"min_probability": 0.5}}, REFUND])
    assert json.loads(acting.task.json)[0]["abstain"] == {"min_probability": 0.5}
    assert acting.row_sha256 == plain.row_sha256


def test_a_guideline_is_kept_and_no_part_of_the_question() -> None:
    guideline = "# Money\n\n- a *voucher* is none"
    plain, guided = read(), read(decisions=[ROUTE, {**REFUND, "guideline": guideline}])
    assert json.loads(guided.task.json)[1]["guideline"] == guideline
    assert guided.row_sha256 == plain.row_sha256


def test_fields_beside_the_row_are_kept_and_no_part_of_it() -> None:
    sent = {"store": True, "model": "a", "metadata": {"b": 1}, "temperature": 2, "fallback": "auto"}
    row = read(**sent, independent=None)
    assert (
        row.extra
        == '{"model":"a","fallback":"auto","temperature":2,"store":true,"metadata":{"b":1}}'
    )
    assert row.row_sha256 == read().row_sha256


@pytest.mark.parametrize(
    ("other", "is_same"),
    [
        ({"decisions": [REFUND, ROUTE]}, True),
        ({"targets": {"refund": {"yes": 1, "no": 0}, "route": "billing"}}, True),
        ({"targets": {"refund": "no", "route": "billing"}}, False),
        ({"targets": {"refund": "yes"}}, False),
        ({"context": "Invoice 118 was paid twice"}, False),
        ({"decisions": [ROUTE, {**REFUND, "question": "Refund?"}]}, False),
        ({"decisions": [{**ROUTE, "outcomes": ["billing", "support", "other"]}, REFUND]}, False),
        ({"decisions": [ROUTE, {**REFUND, "outcomes": {"yes": None}}]}, True),
        ({"decisions": [ROUTE, {**REFUND, "id": "money"}], "targets": {"route": "billing"}}, False),
    ],
)
def test_equal_rows_have_one_hash(other: dict[str, Any], is_same: bool) -> None:
    assert (read(**other).row_sha256 == read().row_sha256) == is_same


def test_equal_wordings_have_one_fingerprint() -> None:
    levels = {key: value for key, value in URGENCY.items() if key != "outcomes"}
    named = {**levels, "outcomes": ["0", "1", "2"]}
    first, second = (
        read(decisions=[one], targets={"urgency": "1"}).task.decisions[0] for one in (levels, named)
    )
    assert first.fingerprint == second.fingerprint
    assert first.json != second.json


def test_images_are_part_of_the_context() -> None:
    shown = {"context": "See <image:1> and <image:2>.", "images": [IMAGE, {**IMAGE, "id": 2}]}
    row = read(**shown)
    swapped = read(**{**shown, "images": shown["images"][::-1]})
    assert row.context_sha256 == swapped.context_sha256
    assert row.context_sha256 != hash_context(shown["context"])


def test_images_and_context_agree() -> None:
    images = [IMAGE, IMAGE, {**IMAGE, "id": 3, "data": "a===="}]
    assert faults(context="<image:1> <image:2>", images=images) == {
        ("images", 1, "id"): "duplicate",
        ("images", 2, "id"): "not_shown",
        ("images", 2, "data"): "not_base64",
        ("context",): "missing",
    }
    assert faults(context={"a": 1}, images=[IMAGE]) == {("images",): "refused"}


@pytest.mark.parametrize(
    ("first", "second"),
    [("1", "1.0"), ("1", "1e0"), ("100", "1E+2"), ("0", "-0.0"), ('"é"', '"\\u00e9"')],
)
def test_spelling_does_not_change_a_value(first: str, second: str) -> None:
    texts = [f'{{"b": [{value}], "a": 1}}' for value in (first, second)]
    assert len({canonical_json(json.loads(text)) for text in texts}) == 1


def test_different_values_have_different_forms() -> None:
    values = [1, "1", 1.5, True, None, [], {}, [1], {"1": 1}, 2**60, 2**60 + 1, 1e300]
    assert len({canonical_json(value) for value in values}) == len(values)


@few
@given(target_rows())
def test_a_row_reads_alike_from_bytes_and_from_values(row: dict[str, Any]) -> None:
    from_values = read_row(row)
    assert isinstance(from_values, Row)
    assert from_values == read_row(json.dumps(row).encode())
    assert from_values == read_row(json.dumps(row, ensure_ascii=False).encode())
