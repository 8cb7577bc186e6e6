"""Hashed n-grams of a text, and the table that turns them into a vector.

Words alone and in pairs, and runs of 3 to 5 characters. Each is known by a hash alone, so that
serving needs no list of words: a table holds the hashes worth knowing and how rare they are.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

#: Lengths of runs of characters.
CHARACTERS = (3, 4, 5)

#: A word of a text in small letters, or a mark.
WORD = re.compile(r"\w+|[^\w\s]")
_BASE = np.uint64(0x9E3779B97F4A7C15)
_MIX = np.uint64(0xBF58476D1CE4E5B9)
_SHIFT, _HALF = np.uint64(29), np.uint64(32)
#: Texts, at least, that are faster hashed together than one by one.
MANY = 8
#: Texts hashed together, and single ones, that stay hashed: several heads read the same call.
_CACHED = 2
#: Characters that are hashed at once: more than a processor keeps near would be slower.
_AT_ONCE = 16_384
#: Starts of the hashes of each sort of n-gram, so that they do not mix.
_WORDS, _PAIRS, _RUNS = (np.uint64(0x1000_0000_0000 * salt) for salt in (1, 2, 3))

Hashes = NDArray[np.uint32]
Floats = NDArray[np.float32]
Counted = tuple[NDArray[np.intp], Hashes, Floats]


@dataclass(frozen=True, slots=True, eq=False)
class HashedTexts:
    """The n-grams of many texts, of one sort: the place of the text of each, and its hash."""

    owners: NDArray[np.int64]
    hashes: Hashes

    def counted(self) -> Counted:
        """Return the place of the text, the hash and the count of each n-gram, both rising."""
        keys, counts = np.unique(
            self.owners.astype(np.uint64) << _HALF | self.hashes, return_counts=True
        )
        return (keys >> _HALF).astype(np.intp), keys.astype(np.uint32), counts.astype(np.float32)


def hash_texts(texts: Sequence[str]) -> tuple[HashedTexts, HashedTexts]:
    """Return the n-grams of texts, of words and of characters, each as often as it stands there."""
    lowered = [text.lower() for text in texts]
    words = [WORD.findall(text) for text in lowered]
    of_words = _checksums([word for each in words for word in each])
    word_owners = np.repeat(np.arange(len(texts)), [len(each) for each in words])
    is_pair = word_owners[:-1] == word_owners[1:]
    pairs = (of_words[:-1] * _BASE + of_words[1:])[is_pair]
    joined = [f" {' '.join(text.split())} " for text in lowered]
    encoded = "".join(joined).encode("utf-32-le", "surrogatepass")
    codes = np.frombuffer(encoded, "<u4").astype(np.uint64)
    owners = np.repeat(np.arange(len(texts)), [len(text) for text in joined])
    runs, run_owners = [], []
    rolled = codes
    for length in range(2, min(CHARACTERS[-1], len(codes)) + 1):
        rolled = rolled[:-1] * _BASE + codes[length - 1 :]
        if length in CHARACTERS:
            # A run that begins in one text and ends in the next is none.
            is_whole = owners[: len(rolled)] == owners[length - 1 :]
            runs.append(_mixed((rolled + np.uint64(length))[is_whole] + _RUNS))
            run_owners.append(owners[: len(rolled)][is_whole])
    return (
        HashedTexts(
            np.concatenate([word_owners, word_owners[:-1][is_pair]]),
            np.concatenate([_mixed(of_words + _WORDS), _mixed(pairs + _PAIRS)]),
        ),
        HashedTexts(
            np.concatenate([np.zeros(0, np.int64), *run_owners]),
            np.concatenate([np.zeros(0, np.uint32), *runs]),
        ),
    )


def hash_words(words: Sequence[str]) -> Hashes:
    """Return the hash that each word, in small letters, has in a text."""
    return _mixed(_checksums(words) + _WORDS)


@lru_cache(_CACHED)
def count_ngrams(texts: tuple[str, ...]) -> tuple[Counted, Counted]:
    """Return the n-grams of texts, of words and of characters: the place of the text, the hash and the count."""
    words, characters = hash_texts(texts)
    return words.counted(), characters.counted()


@lru_cache(_CACHED)
def hash_ngrams(text: str) -> tuple[tuple[Hashes, Floats], ...]:
    """Return the n-grams of a text, of words and of characters: rising hashes, and their counts."""
    lowered = text.lower()
    words = WORD.findall(lowered)
    of_words = _checksums(words)
    pairs = of_words[:-1] * _BASE + of_words[1:]
    joined = f" {' '.join(lowered.split())} "
    codes = np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), "<u4").astype(np.uint64)
    runs = []
    rolled = codes
    for length in range(2, min(CHARACTERS[-1], len(codes)) + 1):
        rolled = rolled[:-1] * _BASE + codes[length - 1 :]
        if length in CHARACTERS:
            runs.append(rolled + np.uint64(length))
    return (
        _counted([_mixed(of_words + _WORDS), _mixed(pairs + _PAIRS)]),
        _counted([_mixed(run + _RUNS) for run in runs]),
    )


@dataclass(frozen=True, eq=False)
class NgramTable:
    """The n-grams that count, by their rising hashes, and their inverse document frequency."""

    columns: Hashes
    rarity: Floats

    def __len__(self) -> int:
        return len(self.columns)

    @cached_property
    def name(self) -> str:
        """Name of the table: the first 16 hex digits of the SHA-256 of its content."""
        content = self.columns.astype("<u4").tobytes() + self.rarity.astype("<f4").tobytes()
        return hashlib.sha256(content).hexdigest()[:16]

    def vector(self, text: str) -> tuple[NDArray[np.intp], Floats]:
        """Return a text's vector as its non-zero places: columns, and values.

        Words and characters weigh the same: each part is of length ``sqrt(0.5)``, or of 0 where no
        n-gram of it is known.
        """
        places, values = [], []
        for hashes, counts in hash_ngrams(text):
            indices, is_known = self._find(hashes)
            value = (1 + np.log(counts[is_known])) * self.rarity[indices]
            length = np.sqrt(2 * (value**2).sum())
            places.append(indices)
            values.append(value / length if length > 0 else value)
        return np.concatenate(places), np.concatenate(values).astype(np.float32)

    def vectors(self, texts: Sequence[str]) -> list[tuple[NDArray[np.intp], Floats]]:
        """Return ``vector`` of each text: of many at once, in a third of the time."""
        vectors = []
        for part in in_parts(texts):
            by_sort = [self._part(counted, len(part)) for counted in count_ngrams(part)]
            for (places, values), (run_places, run_values) in zip(*by_sort, strict=True):
                vectors.append(
                    (
                        np.concatenate([places, run_places]),
                        np.concatenate([values, run_values]),
                    )
                )
        return vectors

    def _find(self, hashes: Hashes) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """Return the columns of the hashes that have one, and which those are."""
        indices = np.searchsorted(self.columns, hashes)
        indices[indices == len(self.columns)] = 0
        is_known = self.columns[indices] == hashes if len(self) else np.zeros(len(indices), bool)
        return indices[is_known], is_known

    def _part(self, part: Counted, n: int) -> list[tuple[NDArray[np.intp], Floats]]:
        """Return the known n-grams of one sort, and their values, of each of n texts."""
        owners, hashes, counts = part
        columns, is_known = self._find(hashes)
        values = (1 + np.log(counts[is_known])) * self.rarity[columns]
        squares = values**2
        ends = np.searchsorted(owners[is_known], np.arange(n + 1))
        vectors = []
        for start, end in pairwise(ends.tolist()):
            length = np.sqrt(2 * squares[start:end].sum())
            own = values[start:end]
            vectors.append((columns[start:end], own / length if length > 0 else own))
        return vectors


def fit_table(texts: Sequence[str], most_columns: int, *, least_texts: int = 2) -> NgramTable:
    """Choose the n-grams of a table: those that most texts have."""
    per_text = [hashes for text in texts for hashes, _ in hash_ngrams(text)]
    everything = np.concatenate(per_text) if per_text else np.zeros(0, np.uint32)
    hashes, n_texts = np.unique(everything, return_counts=True)
    is_common = n_texts >= least_texts
    hashes, n_texts = hashes[is_common], n_texts[is_common]
    if len(hashes) > most_columns:
        # Ties fall to the smaller hash, so that the order of texts does not matter.
        commonest = np.sort(np.lexsort((hashes, -n_texts))[:most_columns])
        hashes, n_texts = hashes[commonest], n_texts[commonest]
    rarity = np.log((1 + len(texts)) / (1 + n_texts)) + 1
    return NgramTable(hashes.astype(np.uint32), rarity.astype(np.float32))


def in_parts(texts: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Cut texts into parts of a bounded number of characters, which are hashed together."""
    part: list[str] = []
    n_characters = 0
    for text in texts:
        part.append(text)
        n_characters += len(text)
        if n_characters >= _AT_ONCE:
            yield tuple(part)
            part, n_characters = [], 0
    if part:
        yield tuple(part)


def _checksums(words: Sequence[str]) -> NDArray[np.uint64]:
    return np.array(
        [zlib.crc32(word.encode("utf-8", "surrogatepass")) for word in words], np.uint64
    )


def _mixed(hashes: NDArray[np.uint64]) -> Hashes:
    """Mix all bits of a hash into the 32 that are used."""
    mixed = (hashes ^ (hashes >> _SHIFT)) * _MIX
    mixed = (mixed ^ (mixed >> _SHIFT)) * _BASE
    return (mixed >> _HALF).astype(np.uint32)


def _counted(parts: Sequence[NDArray[np.uint32]]) -> tuple[Hashes, Floats]:
    together = np.concatenate(parts) if parts else np.zeros(0, np.uint32)
    hashes, counts = np.unique(together, return_counts=True)
    return hashes, counts.astype(np.float32)
