"""What a browser looks at, and how it stands in the address."""

from __future__ import annotations

import pytest

pytest.importorskip("panel", reason="needs the workbench extra")

from panel.io.location import Location

from steelyard_workbench.session import IN_ADDRESS, Session


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
