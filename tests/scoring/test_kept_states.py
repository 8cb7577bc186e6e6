from __future__ import annotations

import threading

import numpy as np
import pytest

from steelyard.scoring.lower import KeptStates


def states(n_tokens: int, value: float = 0.0) -> np.ndarray:
    return np.full((n_tokens, 384), value, np.float32)


#: Bytes of an entry of one token, its key of one byte included.
ENTRY = 384 * 4 + 401


def test_states_are_found_by_their_model_alone():
    kept = KeptStates()
    kept.put(1, {b"a": states(2, 1.0)})
    assert np.array_equal(kept.get(1, [b"a", b"b"])[b"a"], states(2, 1.0))
    assert kept.get(2, [b"a"]) == {}
    found = kept.figures()
    assert (found.hits, found.misses, found.evictions) == (1, 2, 0)
    assert found.n_bytes == 2 * 384 * 4 + 401


def test_the_least_recently_used_leaves_first():
    kept = KeptStates(2 * ENTRY)
    kept.put(0, {b"a": states(1), b"b": states(1)})
    kept.get(0, [b"a"])
    kept.put(0, {b"c": states(1)})
    assert set(kept.get(0, [b"a", b"b", b"c"])) == {b"a", b"c"}
    assert kept.figures().evictions == 1
    assert kept.figures().n_bytes == 2 * ENTRY


def test_states_stored_again_count_once():
    kept = KeptStates()
    kept.put(0, {b"a": states(1)})
    kept.put(0, {b"a": states(1)})
    assert kept.figures().n_bytes == ENTRY


def test_states_over_the_bound_push_nothing_out():
    kept = KeptStates(2 * ENTRY)
    kept.put(0, {b"a": states(1)})
    kept.put(0, {b"b": states(9)})
    assert set(kept.get(0, [b"a", b"b"])) == {b"a"}
    assert kept.figures().evictions == 0


def test_a_lower_bound_holds_at_once():
    kept = KeptStates()
    kept.put(0, {key.to_bytes(): states(1) for key in range(9)})
    kept.bound(3 * ENTRY)
    assert set(kept.get(0, [key.to_bytes() for key in range(9)])) == {b"\6", b"\7", b"\10"}
    kept.bound(0)
    kept.put(0, {b"a": states(1)})
    assert kept.figures().n_bytes == 0


def test_a_model_is_forgotten_alone():
    kept = KeptStates()
    for model in (1, 2):
        kept.put(model, {b"a": states(1)})
    kept.forget(1)
    assert kept.get(1, [b"a"]) == {}
    assert set(kept.get(2, [b"a"])) == {b"a"}
    assert kept.figures().n_bytes == ENTRY


@pytest.mark.parametrize("n_threads", [4])
def test_threads_share_the_bound(n_threads):
    kept, wrong = KeptStates(5 * ENTRY), []

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(300):
            number = int(rng.integers(12))
            found = kept.get(0, [number.to_bytes()]).get(number.to_bytes())
            if found is None:
                kept.put(0, {number.to_bytes(): states(1, number)})
            elif not (found == number).all():
                wrong.append(number)
            if kept.figures().n_bytes > 5 * ENTRY:
                wrong.append("bound")

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(n_threads)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert wrong == []
    assert kept.figures().n_bytes == 5 * ENTRY
