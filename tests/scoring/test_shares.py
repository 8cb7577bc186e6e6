from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.scoring.shares import MOST_CHARACTERS, TURN_CHARACTERS, FairQueue, Share

A, B = Share("a"), Share("b")


@dataclass(frozen=True)
class Item:
    share: Share
    characters: int
    name: int = 0


ITEMS = st.builds(
    Item,
    st.sampled_from([A, B, Share("c")]),
    st.integers(0, 2 * MOST_CHARACTERS),
    st.integers(0, 1_000_000),
)


def filled(*items: Item) -> FairQueue[Item]:
    queue: FairQueue[Item] = FairQueue()
    for item in items:
        queue.push(item)
    return queue


@given(st.lists(ITEMS, max_size=40), st.integers(0, 2 * MOST_CHARACTERS))
def test_everything_is_taken_once_within_the_bound(items, bound):
    queue = filled(*items)
    assert (len(queue), queue.characters) == (len(items), sum(item.characters for item in items))
    taken = []
    while queue:
        batch = queue.take(bound)
        assert batch
        assert len(batch) == 1 or sum(item.characters for item in batch) <= bound
        taken += batch
    assert sorted(taken, key=repr) == sorted(items, key=repr)
    assert (len(queue), queue.characters, queue.shares) == (0, 0, ())


@pytest.mark.parametrize(("a", "b"), [(80, 80), (80, 8_000), (100_000, 80), (300, 2_000)])
def test_accounts_get_the_same_share(a, b):
    queue = filled(*(Item(A, a) for _ in range(4_000)), *(Item(B, b) for _ in range(4_000)))
    got = {A: 0, B: 0}
    while got[A] + got[B] < 40 * MOST_CHARACTERS // 10:
        for item in queue.take(TURN_CHARACTERS):
            got[item.share] += min(item.characters, MOST_CHARACTERS)
    assert abs(got[A] - got[B]) <= TURN_CHARACTERS + max(min(a, MOST_CHARACTERS), b)


def test_short_ones_of_an_account_go_first_and_a_long_one_is_not_put_off_for_ever():
    queue = filled(Item(A, 10 * 512, -1))
    order = []
    for number in range(40):
        queue.push(Item(A, 80, number))
        order += [item.name for item in queue.take(1)]
    assert order.index(-1) == 9


def test_an_entry_waits_for_its_own_line_and_as_much_of_others():
    long, short = Item(A, 200_000), Item(A, 3_000)
    queue = filled(long, Item(A, 1_000), Item(A, 4_000), Item(B, 9_000), long)
    assert queue.characters_before(short) == 2 * 5_000
    assert queue.characters_before(Item(B, 3_000)) == 0
    assert queue.characters_before(long) == queue.characters
    assert queue.characters_before(long, 9_000) == 5_000


def test_a_blocked_entry_keeps_its_place():
    queue = filled(Item(A, 1, 1), Item(B, 1, 2), Item(A, 1, 3))
    assert queue.take(10, lambda item: item.share == B) == [Item(B, 1, 2)]
    assert queue.take(10, lambda item: item.share == B) == []
    assert [item.name for item in queue] == [1, 3]


def test_the_longest_line_gives_its_last_place():
    queue = filled(Item(B, 1, 0), *(Item(A, 1, n) for n in range(3)))
    assert queue.take_last_of_longest() == Item(A, 1, 2)
    assert [queue.n_of(A), queue.n_of(B), queue.most()] == [2, 1, 2]
    queue.keep(lambda item: item.share == B)
    assert queue.shares == (B,)
    assert queue.take_last_of_longest() == Item(B, 1, 0)
    assert queue.take_last_of_longest() is None


def test_who_had_nothing_waiting_goes_next_and_once_in_a_round():
    queue = filled(*(Item(A, 300, name) for name in range(9)))
    assert {item.share for item in queue.take(TURN_CHARACTERS)} == {A}
    queue.push(Item(B, 2_000))
    assert queue.take(TURN_CHARACTERS) == [Item(B, 2_000)]
    queue.push(Item(B, 2_000, 1))  # its place in the round stays
    assert {item.share for item in queue.take(TURN_CHARACTERS)} == {A}
    assert len(queue) == 8
