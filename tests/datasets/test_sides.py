from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.datasets.sides import count_evaluation, pick_evaluation
from strategies import few

CONTEXTS = [hashlib.sha256(bytes([number])).digest() for number in range(40)]


@pytest.mark.parametrize(
    ("n_contexts", "fraction", "expected"),
    [
        (0, 0.2, 0),
        (0, 1.0, 0),
        (1, 0.2, 0),
        (1, 0.9, 0),
        (1, 1.0, 1),
        (2, 0.2, 0),
        (2, 0.99, 1),
        (4, 0.1, 0),
        (5, 0.1, 1),
        (5, 0.2, 1),
        (10, 0.25, 2),
        (10, 0.99, 9),
        (10, 1.0, 10),
        (1_000_000, 0.2, 200_000),
    ],
)
def test_how_many_are_put_aside(n_contexts: int, fraction: float, expected: int) -> None:
    assert count_evaluation(n_contexts, fraction) == expected


@few
@given(st.permutations(CONTEXTS), st.sampled_from([0.1, 0.2, 0.5, 0.9, 1.0]))
def test_the_order_of_contexts_does_not_count(contexts: list[bytes], fraction: float) -> None:
    def evaluation(order: list[bytes]) -> set[bytes]:
        picked = pick_evaluation("ds_1", order, fraction)
        return {context for context, is_picked in zip(order, picked, strict=True) if is_picked}

    assert evaluation(contexts) == evaluation(CONTEXTS)
    assert len(evaluation(contexts)) == count_evaluation(len(contexts), fraction)


def test_the_lowest_ranks_are_picked() -> None:
    ranks = [hashlib.sha256(b"ds_1\n" + context).digest() for context in CONTEXTS]
    lowest = set(sorted(ranks)[:8])
    expected = [rank in lowest for rank in ranks]
    assert pick_evaluation("ds_1", CONTEXTS, 0.2).tolist() == expected


def test_another_dataset_picks_others() -> None:
    first, second = (pick_evaluation(id_, CONTEXTS, 0.5) for id_ in ("ds_1", "ds_2"))
    assert (first != second).any()
