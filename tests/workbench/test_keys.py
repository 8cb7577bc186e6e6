"""Keys: each has one use on a page, tables have theirs, and a chart's rows are in a table too."""

from __future__ import annotations

import asyncio
from collections import Counter

import polars as pl
import pytest

pytest.importorskip("panel", reason="needs the workbench extra")

from steelyard_workbench.frame.navigation import ENTRIES
from steelyard_workbench.kit.components.frame_table import FrameTable, TablePage
from steelyard_workbench.kit.components.mark_table import mark_table
from steelyard_workbench.kit.keys import KEYS, PLACES, action_of, watched_on


def test_no_key_has_two_uses_on_a_page_or_on_the_row_of_a_table():
    for is_table in (False, True):
        keys = [key for one in KEYS if (one.where == "table") == is_table for key in one.keys]
        assert Counter(keys).most_common(1)[0][1] == 1


def test_every_key_is_at_a_place_that_the_table_of_keys_shows():
    assert {one.where for one in KEYS} == set(PLACES)


@pytest.mark.parametrize("slug", [entry.slug for entry in ENTRIES])
def test_a_page_takes_only_the_keys_that_it_has_a_use_for(slug):
    watched = watched_on(slug)
    assert {"?", "Escape", "g h"} <= set(watched)
    assert all(action_of(key) for key in watched)
    assert ("1" in watched) == (slug == "review")
    assert ("ArrowDown" in watched) == (slug == "review"), "arrows scroll the page"


def test_single_letters_can_be_switched_off():
    assert watched_on("review", shortcuts=False) == [
        "ArrowDown",
        "ArrowUp",
        "Enter",
        "Ctrl+z",
        "Ctrl+y",
        "Ctrl+Shift+Z",
        "Escape",
        "?",
    ]


def make_table(count=60, **given):
    frame = pl.DataFrame({"row": range(count), "text": [f"row {n}" for n in range(count)]})
    return FrameTable(
        lambda asked: TablePage(frame.slice(asked.offset, asked.limit), count),
        what="The rows",
        id_column="row",
        columns={"row": ("row", 140), "text": ("text", 140)},
        **given,
    )


def test_enter_on_a_row_opens_it_as_a_click_does():
    opened = []
    table = make_table(on_open=opened.append)
    asyncio.run(table.restart())
    table.open("3")
    table.open("25")  # a row of a page that is not here
    assert opened == [{"row": 3, "text": "row 3"}]


def test_the_keys_of_rows_turn_pages_and_mark_the_row_that_is_open():
    async def walk():
        table = make_table()
        await table.restart()
        assert table.on_key("forward")
        assert table.page == 1
        assert table.on_key("back")
        assert table.page == 0
        assert table.on_key("next")
        assert not table.on_key("accept")
        table.mark(7)
        assert table.marked == "7"
        table.mark(None)
        assert table.marked == ""

    asyncio.run(walk())


def test_a_line_beside_a_chart_opens_the_rows_behind_its_mark():
    opened = []
    table = mark_table(
        ("slice", "n"), [("a", "1"), ("b", "2")], label="Slices", open_=opened.append
    )
    table.press(1)
    table.press(2)
    table.disabled = True
    table.press(0)
    assert opened == [1]
