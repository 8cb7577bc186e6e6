from __future__ import annotations

import json
from typing import Any

import pytest

from steelyard.datasets.bodies import read_body, read_form
from steelyard.datasets.ingest import RowReader
from steelyard.datasets.wire import AddRows, CreateDataset
from steelyard.errors import InvalidRequestError
from support.datasets.dataset_rows import make_row_dict


def refused(payload: Any, shape: Any = CreateDataset) -> dict[tuple[Any, ...], str]:
    with pytest.raises(InvalidRequestError) as caught:
        read_body(payload, shape)
    return {violation.path: violation.type for violation in caught.value.violations}


@pytest.mark.parametrize("as_bytes", [True, False])
def test_rows_go_on_to_the_reader(as_bytes: bool) -> None:
    body = {"name": "mail", "training": [make_row_dict()], "evaluation": [{"context": 1}]}
    payload = json.dumps(body).encode() if as_bytes else body
    request = read_body(payload, CreateDataset)
    assert (request.name, request.evaluation_fraction, list(request.parts)) == (
        "mail",
        0.2,
        ["training", "evaluation"],
    )
    reader = RowReader()
    for part, items in request.parts.items():
        for _ in reader.read_examples(items, part):
            pass
    assert reader.n_rows == 1
    assert reader.findings.listed[0].violation().path[:3] == ("body", "evaluation", 0)
    assert body["training"] == [make_row_dict()]


def test_everything_wrong_around_the_rows_is_found_at_once() -> None:
    payload = (
        b'{"name": " ", "examples": [], "training": 5, "evaluation_fraction": 0.05, "rows": 1,'
        b'"max_price_usd": "1 USD", "max_price_usd": "2 USD"}'
    )
    assert refused(payload) == {
        ("body", "max_price_usd"): "duplicate_key",
        ("body", "training"): "wrong_type",
        ("body", "evaluation_fraction"): "out_of_range",
        ("body", "rows"): "unknown_field",
        ("body", "name"): "blank",
        ("body", "examples"): "refused",
    }


def test_rows_come_in_some_part() -> None:
    assert refused({"name": "a"}) == {("body", "examples"): "missing"}
    assert refused({"name": "a", "examples": None}) == {("body", "examples"): "missing"}
    assert refused(b"[]") != {}
    assert refused(rb'{"name": "a\u0000", "examples": []}') == {("body", "name"): "nul"}
    assert refused({"name": "a", "examples": []}, AddRows) == {("body", "name"): "refused"}


@pytest.mark.parametrize("price", ["0", "0.25", "12.000000001"])
def test_a_price_is_a_decimal_number(price: str) -> None:
    request = read_body({"examples": [], "max_price_usd": price}, AddRows)
    assert request.max_price_usd == price


@pytest.mark.parametrize("price", ["\uff11", "-1", "1e3", "0.0000000001"])
def test_another_text_is_no_price(price: str) -> None:
    body = {"examples": [], "max_price_usd": price}
    assert refused(body, AddRows) == {("body", "max_price_usd"): "invalid_amount"}


@pytest.mark.parametrize("fraction", ["nan", "0.\uff15"])
def test_a_form_is_read_as_the_body_is(fraction: str) -> None:
    fields = {"name": "mail", "evaluation_fraction": "0.5", "max_price_usd": "1"}
    request = read_form(fields, ["training", "evaluation"], CreateDataset)
    assert (request.evaluation_fraction, request.max_price_usd) == (0.5, "1")
    assert request.parts == {"training": [], "evaluation": []}
    with pytest.raises(InvalidRequestError) as caught:
        read_form({"evaluation_fraction": fraction}, [], CreateDataset)
    assert {violation.path[1]: violation.type for violation in caught.value.violations} == {
        "name": "missing",
        "evaluation_fraction": "wrong_type",
        "examples": "missing",
    }
