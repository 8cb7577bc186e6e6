"""Suspect labels: predictions of models of the other rows, stored beside the version."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from steelyard.datasets.frames import suspects
from steelyard.datasets.frames.suspects import find_suspects, load_suspects
from support.datasets.dataset_rows import make_row_dict, write_version


class Words:
    """Vectors by the first word of a text, so that a test sets which texts are alike."""

    def __init__(self):
        self.n_texts = 0

    def __call__(self, texts):
        self.n_texts += len(texts)
        vectors = np.zeros((len(texts), 4), dtype=np.float32)
        for row, text in enumerate(texts):
            vectors[row, ["money", "crash"].index(text.split()[0])] = 1
            vectors[row, 2:] = [0.01, 0.02 * (row % 3)]
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def rows_of_two_kinds(n_rows, wrong=()):
    right = {"money": "billing", "crash": "support"}
    kinds = ["money", "crash"] * (n_rows // 2)
    return [
        make_row_dict(
            f"{kind} {number}",
            targets={
                "route": right[kinds[number + 1 if number in wrong else number]],
                "refund": "yes",
            },
        )
        for number, kind in enumerate(kinds)
    ]


def test_a_label_against_the_prediction_of_other_rows_is_suspect(store):
    version = write_version(store, rows_of_two_kinds(40, wrong=[6, 21]))
    found = find_suspects(store, version, Words(), scorer="words")
    assert np.flatnonzero(found.score > 0).tolist() == [6, 21]
    # The other decision has one label only, which says nothing.
    for place, outcome in ((6, "billing"), (21, "support")):
        [(decision, told)] = msgspec.json.decode(found.expected[place]).items()
        assert (decision, told["outcome"]) == ("route", outcome)
        assert told["probability"] >= 4 * told["label_probability"]
        assert found.score[place] == pytest.approx(
            told["probability"] - told["label_probability"], abs=1e-3
        )


def test_suspects_are_stored_and_go_with_the_version(store):
    version = write_version(store, rows_of_two_kinds(30, wrong=[3]))
    embed, steps = Words(), []
    assert load_suspects(store, version, "words") is None
    found = find_suspects(store, version, embed, scorer="words", progress=steps.append)
    kept = load_suspects(store, version, "words")
    assert (kept.score == found.score).all()
    assert kept.expected == found.expected
    assert steps[-1] == version.rows
    assert load_suspects(store, version, "another") is None
    assert store.sweep(version.files(), older_than_s=0) == []
    assert any("suspects" in name for name in store.sweep(set(), older_than_s=0))


@pytest.mark.parametrize("left", [b"", b"PAR1 half of a file"])
def test_damaged_suspects_are_made_again(store, left, caplog):
    version = write_version(store, rows_of_two_kinds(30, wrong=[3]))
    embed = Words()
    found = find_suspects(store, version, embed, scorer="words")
    n_texts = embed.n_texts
    kept = [name for name in store.names() if name.endswith((".npy", ".suspects.parquet"))]
    assert len(kept) >= 2
    for name in kept:
        store.put_beside(name, left)
    assert load_suspects(store, version, "words") is None
    again = find_suspects(store, version, embed, scorer="words")
    assert (again.score == found.score).all()
    assert embed.n_texts == 2 * n_texts
    assert (load_suspects(store, version, "words").score == found.score).all()
    assert {name for name in kept if name in caplog.text} == set(kept)


def test_the_same_rows_in_another_order_are_looked_at_again(store):
    rows = rows_of_two_kinds(40, wrong=[6, 21])
    first = write_version(store, rows)
    second = write_version(store, rows[::-1], dataset_id="ds_2")
    assert (first.sha256, first.definitions) == (second.sha256, second.definitions)
    find_suspects(store, first, Words(), scorer="words")
    assert load_suspects(store, second, "words") is None
    find_suspects(store, second, Words(), scorer="words")
    for version, wrong in ((first, [6, 21]), (second, [18, 33])):
        kept = load_suspects(store, version, "words")
        assert np.flatnonzero(kept.score > 0).tolist() == wrong
        assert sorted(kept.expected) == wrong


def test_many_rows_are_held_against_a_sample(store, monkeypatch):
    monkeypatch.setattr(suspects, "MAX_REFERENCES", 50)
    version = write_version(store, rows_of_two_kinds(80, wrong=[10]))
    found = find_suspects(store, version, Words(), scorer="words")
    assert np.flatnonzero(found.score > 0).tolist() == [10]


def test_too_few_rows_say_nothing(store):
    version = write_version(store, rows_of_two_kinds(2))
    found = find_suspects(store, version, Words(), scorer="words")
    assert np.isnan(found.score).all()
    assert found.expected == {}


def test_a_search_that_is_stopped_keeps_nothing(store):
    version = write_version(store, rows_of_two_kinds(20))

    def stop(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        find_suspects(store, version, Words(), scorer="words", progress=stop)
    assert load_suspects(store, version, "words") is None
