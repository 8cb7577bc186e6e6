"""Token ids that are kept: the same as without, in bounded memory, and once for each content."""

from __future__ import annotations

import functools
import gc
import tracemalloc
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.scoring import tokenizer as module
from steelyard.scoring.tokenizer import Tokenizer, shared_tokenizer
from support.models.random_model import make_tokenizer_json, make_words


@pytest.fixture(scope="module")
def content() -> bytes:
    return make_tokenizer_json()


@pytest.fixture
def tokenizer(content: bytes) -> Tokenizer:
    return Tokenizer(content, name="words", revision="1")


@functools.cache
def words() -> Tokenizer:
    return Tokenizer(make_tokenizer_json(), name="words", revision="1")


def test_cached_ids_equal_encoded_ones(tokenizer, monkeypatch):
    texts = ["", "card", "pay the bank", "Größe 木水 가각 😀", make_words(60), make_words(600)]
    first = tokenizer.encode_many(texts)
    assert all(isinstance(ids, tuple) for ids in first)
    n_encoded = 0
    encode = tokenizer.encode_anew

    def counted(text: str) -> list[int]:
        nonlocal n_encoded
        n_encoded += 1
        return encode(text)

    monkeypatch.setattr(tokenizer, "encode_anew", counted)
    assert tokenizer.encode_many(texts) == first
    assert n_encoded == 1  # the long one
    assert [tokenizer.count(text) for text in texts] == [len(ids) for ids in first]
    assert hash(first[1]) == hash(tokenizer.encode("card"))


@given(
    st.lists(
        st.sampled_from(["pay", "card", " ", "\n", "é", "e\u0301", "木", "-", "😀"]), max_size=60
    ).map("".join)
)
def test_reading_piece_by_piece_changes_no_token(text):
    whole = words()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_PIECE_CHARACTERS", 3)
        assert (
            whole.encode_anew(text) == whole._tokenizer.encode(text, add_special_tokens=False).ids
        )


@given(st.text(max_size=40))
def test_a_text_has_at_least_its_words(text):
    assert words().least(text) <= words().count(text)


def test_the_bound_is_far_below_a_processs_memory():
    assert module.CACHE_BYTES <= 32 * 1024 * 1024


@pytest.mark.parametrize(
    "make",
    [
        lambda i: f"{i:06d}" + "!?" * 250,  # a token a character
        lambda i: f"{i} " + "가각힣" * 160,  # several a character
        lambda i: f"{i} " + "😀 " * 250,  # four bytes a character
        lambda i: f"{i}",
    ],
    ids=["punctuation", "syllables", "wide", "short"],
)
def test_texts_take_no_more_memory_than_they_may(tokenizer, make):
    tokenizer.cached.bound(256 * 1024)
    n_texts = 1200 if len(make(0)) < 10 else 300
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for i in range(n_texts):
            tokenizer.encode(make(i))
        taken = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert 0 < len(tokenizer.cached) < n_texts
    assert taken <= 1.1 * 256 * 1024


def test_the_last_used_text_is_kept(tokenizer):
    tokenizer.cached.bound(8 * 1024)
    for i in range(100):
        tokenizer.encode(f"outcome {i}")
        tokenizer.encode("card")
    kept = list(tokenizer.cached)
    assert kept[-2:] == ["outcome 99", "card"]
    assert "outcome 0" not in kept
    assert tokenizer.cached.size == sum(
        module.cached_size(*one) for one in tokenizer.cached.items()
    )


def test_threads_that_meet_agree(tokenizer):
    tokenizer.cached.bound(4 * 1024)
    texts = [f"card {i % 17}" for i in range(200)]
    expected = [tuple(tokenizer.encode_anew(text)) for text in texts]
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(tokenizer.encode_many, [texts] * 4))
    assert found == [expected] * 4
    assert tokenizer.cached.size == sum(
        module.cached_size(*one) for one in tokenizer.cached.items()
    )


def test_one_content_has_one_tokenizer_for_as_long_as_it_is_used(content):
    one = shared_tokenizer(content, name="of this test", revision="1")
    assert shared_tokenizer(bytes(bytearray(content)), name="of this test", revision="1") is one
    for name, revision in [("others", "1"), ("of this test", "2")]:
        other = shared_tokenizer(content, name=name, revision=revision)
        assert (other.name, other.revision, other.sha256) == (name, revision, one.sha256)
    changed = shared_tokenizer(content + b" ", name="of this test", revision="1")
    assert changed.sha256 != one.sha256
    gone = weakref.ref(one)
    del one
    gc.collect()
    assert gone() is None
