"""A browser's view, and its form in the address."""

from __future__ import annotations

import pytest

pytest.importorskip("panel", reason="needs the workbench extra")

from panel.io.location import Location

from steelyard_workbench.kit.session import IN_ADDRESS, Session, checked_address


@pytest.mark.parametrize(
    "text",
    ['{"queue": "suspect"}', "[1]", "2024", "1.5", "true", "NaN", "~a", ".5", "-3", "a b&c=d"],
)
def test_a_text_in_the_address_stays_that_text(text):
    written = Location()
    session = Session(None)
    written.sync(session, {name: name for name in IN_ADDRESS})
    session.query = text
    session.param.update(page="review", version=3)

    read = Session(None)
    Location(search=written.search).sync(read, {name: name for name in IN_ADDRESS})
    assert (read.query, read.page, read.version) == (text, "review", 3)


@pytest.mark.parametrize("row", [-1, 0, 12])
def test_a_row_in_the_address_stays_that_row(row):
    written = Location()
    session = Session(None, row=7)
    written.sync(session, {"row": "row"})
    session.row = row
    read = Session(None)
    Location(search=written.search).sync(read, {"row": "row"})
    assert read.row == row


def test_json_that_a_person_typed_is_read_too():
    read = Session(None)
    Location(search='?query={"words":"refund"}').sync(read, {"query": "query"})
    assert read.query == '{"words": "refund"}'


def test_an_address_from_outside_is_cut_to_the_fields_of_a_page():
    address = "page=review&draft=dr_1&row=0&query=%7B%22side%22%3A+%22training%22%7D"
    assert checked_address(f"{address}&theme=dark&page%0A=x&onclick=y") == address
