from __future__ import annotations

import pytest
from sqlalchemy import Connection, insert

from steelyard.errors import InvalidRequestError
from steelyard.storage import State
from steelyard.storage.pages import newest_first
from steelyard.storage.tables import accounts

MINE = accounts.c.name.like("mine-%")


@pytest.fixture
def filled(state: State) -> State:
    # Two of each time, so that the id must order them.
    def fill(connection: Connection) -> None:
        for index in range(10):
            for owner in ("mine", "yours"):
                name = f"{owner}-{index}"
                values = {"id": name, "name": name, "created_at": index // 2}
                connection.execute(insert(accounts), values)

    state.write_now(fill)
    return state


def walk(state: State, limit: int, **options) -> list[str]:
    found: list[str] = []
    cursor = None
    while True:
        page = state.read_now(
            lambda c, at=cursor: newest_first(
                c, accounts, owned=MINE, limit=limit, cursor=at, **options
            )
        )
        assert 0 < len(page.rows) <= limit
        found += [row.id for row in page.rows]
        cursor = page.next_cursor
        if cursor is None:
            return found


@pytest.mark.parametrize("limit", [1, 3, 5, 10, 200])
def test_walking_gives_each_once_the_newest_first(filled: State, limit: int):
    assert walk(filled, limit) == [f"mine-{index}" for index in reversed(range(10))]


def test_a_cursor_need_not_meet_the_filter(filled: State):
    page = filled.read_now(
        lambda c: newest_first(
            c, accounts, owned=MINE, where=[accounts.c.created_at < 3], cursor="mine-9"
        )
    )
    assert [row.id for row in page.rows] == [f"mine-{index}" for index in (5, 4, 3, 2, 1, 0)]


@pytest.mark.parametrize("cursor", ["", "yours-1", "mine-10", "x" * 65, "\0", "é"])
def test_an_unknown_cursor_is_refused(filled: State, cursor: str):
    with pytest.raises(InvalidRequestError) as caught:
        filled.read_now(lambda c: newest_first(c, accounts, owned=MINE, cursor=cursor))
    assert caught.value.details[0]["path"] == ["query", "cursor"]


@pytest.mark.parametrize("limit", [0, -1, 201])
def test_a_limit_out_of_range_is_refused(filled: State, limit: int):
    with pytest.raises(InvalidRequestError) as caught:
        filled.read_now(lambda c: newest_first(c, accounts, owned=MINE, limit=limit))
    assert caught.value.details[0]["path"] == ["query", "limit"]
