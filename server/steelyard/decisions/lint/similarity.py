"""Texts that are nearly equal, found among hundreds without comparing each with each."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence

from steelyard.decisions.lint.scales import AMOUNT_WORDS
from steelyard.decisions.words import word_set

#: Two sets of words are near when they share this part of all their words.
NEAR = 0.8

# Words that set one text apart from another which is equal otherwise.
_CONTRASTS = word_set(
    "above after before below cannot domestic downward earlier existing external fail failed few "
    "first high in inbound incoming incorrect inside internal international later less low many "
    "more negative never new no non none not old only other out outbound outgoing outside over "
    "partial partially positive post pre second under unable upward with within without won"
)
_QUALIFIERS = word_set(
    "and anti but co except ex for from later lite max mini multi now only or partial partially "
    "plus pre pro semi self sub than then to unless until vs with without"
)
_MAX_CONTAINER_WORDS = 12
#: Pairs, at most, that are compared in one decision: names of one pattern, such as numbers at the
#: end of the same words, are all near each other, and none of them is a fault.
MAX_COMPARED = 2_000


def near_pairs(sets: Sequence[frozenset[str]]) -> Iterator[tuple[int, int]]:
    """Yield the pairs of sets that share at least ``NEAR`` of all their words, first index first.

    Two sets that near share one of their rarest words; only pairs that do are compared, and at
    most ``MAX_COMPARED`` of them.
    """
    n_compared = 0
    counts = Counter(word for words in sets for word in words)
    seen: dict[str, list[int]] = {}
    for later, words in enumerate(sets):
        rarest = sorted(words, key=lambda word: (counts[word], word))
        rarest = rarest[: len(words) - math.ceil(NEAR * len(words) - 1e-9) + 1]
        candidates = {index for word in rarest for index in seen.get(word, ())}
        for earlier in sorted(candidates):
            n_compared += 1
            if n_compared > MAX_COMPARED:
                return
            shared = len(words & sets[earlier])
            if shared >= NEAR * (len(words) + len(sets[earlier]) - shared) - 1e-9:
                yield earlier, later
        for word in rarest:
            seen.setdefault(word, []).append(later)


def is_contrast(first: frozenset[str], second: frozenset[str]) -> bool:
    """Return whether the words that only one of two sets has make them opposites, or other numbers.

    >>> is_contrast(frozenset(("paid", "before")), frozenset(("paid", "after")))
    True
    """
    different = first ^ second
    return any(
        word in _CONTRASTS
        or word in AMOUNT_WORDS
        or word.endswith("n't")
        or any(character.isdigit() for character in word)
        for word in different
    )


def contained_pairs(names: Sequence[tuple[str, ...]]) -> Iterator[tuple[int, int]]:
    """Yield the pairs of names of which one is part of the other, the part first.

    A part that a word such as *not*, *very* or *without* sets apart is none: ``urgent`` is not part
    of ``not urgent``. Neither is a number.
    """
    places: dict[tuple[str, ...], int] = {}
    for index, words in enumerate(names):
        places.setdefault(words, index)
    for index, words in enumerate(names):
        if len(words) > _MAX_CONTAINER_WORDS:
            continue
        for start in range(len(words)):
            for end in range(start + 1, len(words) + 1):
                part = words[start:end]
                rest = words[:start] + words[end:]
                if part in places and rest and _is_real_part(part, rest):
                    yield places[part], index


def _is_real_part(part: Sequence[str], rest: Sequence[str]) -> bool:
    if all(not word.isalnum() or word.isdigit() for word in part):
        return False
    if not any(word.isalnum() for word in rest):  # C and C++
        return False
    return not any(
        word in _CONTRASTS or word in _QUALIFIERS or word in AMOUNT_WORDS for word in rest
    )
