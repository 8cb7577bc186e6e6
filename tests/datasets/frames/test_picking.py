from __future__ import annotations

import hashlib
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.datasets.frames import picking
from steelyard.datasets.frames.picking import EvaluationPick, count_evaluation
from support.decisions.strategies import few

CONTEXTS = [hashlib.sha256(bytes([number])).digest() for number in range(40)]


def picked(
    order: list[bytes], fraction: float, dataset_id: str = "ds_1", n_at_once: int = 7
) -> set[bytes]:
    with TemporaryDirectory() as folder:
        pick = EvaluationPick(dataset_id, Path(folder, "ranks"))
        for start in range(0, len(order), n_at_once):
            pick.offer(order[start : start + n_at_once])
        pick.settle(fraction)
        found = {
            context
            for context, is_picked in zip(order, pick.is_evaluation(order), strict=True)
            if is_picked
        }
    assert (pick.n_offered, pick.n_picked) == (len(order), len(found))
    return found


@few
@given(
    st.permutations(CONTEXTS),
    st.sampled_from([0.1, 0.2, 0.5, 0.9, 1.0]),
    st.integers(min_value=1, max_value=50),
)
def test_neither_order_nor_pieces_count(
    contexts: list[bytes], fraction: float, n_at_once: int
) -> None:
    found = picked(contexts, fraction, n_at_once=n_at_once)
    assert found == picked(CONTEXTS, fraction)
    assert len(found) == count_evaluation(len(contexts), fraction)


@pytest.mark.parametrize("prefixes", [1, 2, 1 << 16])
@pytest.mark.parametrize("fraction", [0.1, 0.2, 0.55, 1.0])
def test_the_lowest_ranks_are_picked(
    prefixes: int, fraction: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Few prefixes: many ranks stand beside the last one picked, as with millions of contexts.
    whole = picking._prefixes
    monkeypatch.setattr(picking, "_prefixes", lambda ranks: whole(ranks) * prefixes >> 16)
    monkeypatch.setattr(picking, "_PIECE_RANKS", 3)
    order = sorted(CONTEXTS, key=lambda context: hashlib.sha256(b"ds_1\n" + context).digest())
    n_picked = count_evaluation(len(CONTEXTS), fraction)
    assert picked(CONTEXTS, fraction) == set(order[:n_picked])


def test_another_dataset_picks_others() -> None:
    assert picked(CONTEXTS, 0.5, "ds_1") != picked(CONTEXTS, 0.5, "ds_2")


def test_nothing_is_picked_of_nothing_and_of_one(tmp_path: Path) -> None:
    pick = EvaluationPick("ds_1", tmp_path / "ranks")
    pick.offer([])
    pick.settle(1.0)
    assert (pick.n_offered, pick.n_picked) == (0, 0)
    assert picked(CONTEXTS[:1], 0.2) == set()
