from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.scoring.ngrams import NgramTable, fit_table, hash_ngrams

TEXTS = ["the card was stolen", "my card is lost", "what is the exchange rate", "rates of exchange"]


def overlap(one: str, other: str) -> float:
    table = fit_table([*TEXTS, one, other], 10_000, least_texts=1)
    vectors = np.zeros((2, len(table)))
    for row, text in enumerate((one, other)):
        places, values = table.vector(text)
        vectors[row, places] = values
    return float(vectors[0] @ vectors[1])


def test_hashes_are_the_same_on_every_machine():
    (words, counts), (runs, _) = hash_ngrams("No, no!")
    assert words.tolist() == sorted(words.tolist())
    assert words.dtype == np.uint32
    assert words[:3].tolist() == [534231297, 1846512877, 1978756507]
    assert len(runs) == 17
    assert counts.sum() == 7


@settings(deadline=None)
@given(st.text(max_size=60))
def test_any_text_has_n_grams_and_a_vector(text):
    table = fit_table([text, *TEXTS], 10_000, least_texts=1)
    places, values = table.vector(text)
    assert len(places) == len(values)
    assert len(np.unique(places)) == len(places)
    assert np.isfinite(values).all()
    assert float(values @ values) == pytest.approx(1, abs=1e-5) or not text.split()


@settings(deadline=None)
@given(st.lists(st.text(max_size=40), max_size=12))
def test_texts_together_have_the_vectors_that_each_has_alone(texts):
    table = fit_table([*texts[::2], *TEXTS], 10_000, least_texts=1)
    together = table.vectors([*texts, *TEXTS, *TEXTS])
    for (places, values), text in zip(together, [*texts, *TEXTS, *TEXTS], strict=True):
        alone = table.vector(text)
        assert places.tolist() == alone[0].tolist()
        assert values.tobytes() == alone[1].tobytes()


def test_case_and_white_space_do_not_matter():
    for one, other in zip(
        hash_ngrams("The  CARD\nis lost "), hash_ngrams("the card is lost"), strict=True
    ):
        assert np.array_equal(one[0], other[0])


def test_like_texts_are_alike():
    assert overlap("my card was stolen", "the card got stolen") > 0.2
    assert overlap("my card was stolen", "exchange rates") < 0.05
    assert overlap("a", "a") == pytest.approx(overlap("b", "b"))


def test_a_lone_surrogate_is_read():
    assert len(hash_ngrams("\ud800 card")[0][0])


def test_a_long_text_is_read_to_its_end():
    text = "card " * 60_000
    for told, plain in zip(hash_ngrams(f"{text}stolen"), hash_ngrams(text), strict=True):
        assert set(told[0].tolist()) > set(plain[0].tolist())


def test_a_table_keeps_the_commonest_ngrams():
    table = fit_table(TEXTS, 5)
    assert len(table) == 5
    assert (np.diff(table.columns.astype(np.int64)) > 0).all()
    assert fit_table(TEXTS[::-1], 5).name == table.name
    whole = fit_table(TEXTS, 10_000)
    assert set(table.columns.tolist()) <= set(whole.columns.tolist())
    assert len(fit_table(TEXTS, 10_000, least_texts=1)) > len(whole)


def test_a_table_may_be_empty():
    table = fit_table(["one"], 10)
    assert len(table) == 0
    places, values = table.vector("one")
    assert len(places) == len(values) == 0


def test_the_name_tells_tables_apart():
    columns = np.array([1, 2], np.uint32)
    one = NgramTable(columns, np.array([1, 2], np.float32))
    assert one.name == NgramTable(columns.copy(), np.array([1, 2], np.float32)).name
    assert one.name != NgramTable(columns, np.array([1, 3], np.float32)).name
