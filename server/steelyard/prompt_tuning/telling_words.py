"""The words that tell an outcome's rows from the others, and the rows that show it best.

Words and pairs of words are weighed by their log odds in an outcome's rows against all others,
smoothed by how common they are in all rows together, in units of its own standard error (Monroe,
Colaresi and Quinn, "Fightin' Words", Political Analysis, 2008). A row counts a word once.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Sequence

import numpy as np

from steelyard.decisions.words import word_set

#: How much the background counts, as a share of all rows.
_PRIOR_SHARE = 0.2
#: A word tells from this many standard errors on, and in so many rows of its outcome.
_LEAST_Z, _LEAST_ROWS = 1.0, 2
#: Characters of a row that are read, and of one that may be an example.
_READ_CHARACTERS, EXAMPLE_CHARACTERS = 4_000, 160
_WORD = re.compile(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)*")
_EMPTY = word_set(
    "a about after all also am an and any are as at be because been but by can could did do does "
    "for from get got had has have he her him his how i i'm if in into is it it's its just like "
    "me my no not of on one or our out she so some such than that the their them then there these "
    "they this those to too up us user very was we were what when where which who will with would "
    "you your"
)


class TellingWords:
    """The words that the rows of each outcome use more often than the others'."""

    def __init__(self, contexts: Sequence[str], labels: Sequence[int], n_outcomes: int) -> None:
        self._contexts = contexts
        self._labels = np.asarray(labels)
        row_terms = [_terms(context) for context in contexts]
        counts: list[Counter[str]] = [Counter() for _ in range(n_outcomes)]
        for terms, label in zip(row_terms, labels, strict=True):
            counts[label].update(terms)
        self._row_terms = row_terms
        self._terms = sorted({term for count in counts for term in count})
        self._places = {term: place for place, term in enumerate(self._terms)}
        self._counts = np.array(
            [[count[term] for term in self._terms] for count in counts], dtype=np.float64
        ).reshape(n_outcomes, len(self._terms))
        total = self._counts.sum(axis=0)
        self._prior = _PRIOR_SHARE * total
        self._z = np.array([self._weigh(row, total - row) for row in self._counts])

    def of(self, outcome: int, n: int, against: int | None = None) -> tuple[str, ...]:
        """Return the words most typical of an outcome's rows, against all others or one other's."""
        z = self._z[outcome]
        if against is not None:
            z = self._weigh(self._counts[outcome], self._counts[against])
        words: list[str] = []
        for place in np.argsort(-z, kind="stable"):
            if len(words) == n or z[place] < _LEAST_Z:
                break
            term = self._terms[place]
            if self._counts[outcome][place] < _LEAST_ROWS or _overlaps(term, words):
                continue
            words.append(term)
        return tuple(words)

    def examples(self, outcome: int, n: int) -> tuple[str, ...]:
        """Return the short rows that are most typical of an outcome."""
        z = np.clip(self._z[outcome], -3.0, 3.0)

        def weigh(row: int) -> float:
            terms = self._row_terms[row]
            weight = float(sum(z[self._places[term]] for term in terms))
            return weight / math.pow(len(terms) + 4, 0.75)

        mine = [int(row) for row in np.flatnonzero(self._labels == outcome)]
        short = [row for row in mine if 8 <= len(_flat(self._contexts[row])) <= EXAMPLE_CHARACTERS]
        best = sorted(short or mine, key=lambda row: (-weigh(row), self._contexts[row]))
        examples: list[str] = []
        for row in best:
            text = cut(_flat(self._contexts[row]), EXAMPLE_CHARACTERS)
            if len(examples) == n:
                break
            if text and text not in examples:
                examples.append(text)
        return tuple(examples)

    def _weigh(self, mine: np.ndarray, others: np.ndarray) -> np.ndarray:
        prior = self._prior
        n_mine, n_others, n_prior = mine.sum(), others.sum(), prior.sum()
        odds = np.log((mine + prior) / (n_mine + n_prior - mine - prior))
        odds -= np.log((others + prior) / (n_others + n_prior - others - prior))
        weights: np.ndarray = odds / np.sqrt(1 / (mine + prior) + 1 / (others + prior))
        return weights


def cut(text: str, most: int) -> str:
    """Return a text, cut at a word where it is too long.

    >>> cut("a parcel that never came", 15)
    'a parcel that …'
    """
    if len(text) <= most:
        return text
    return text[: most - 1].rsplit(" ", 1)[0] + " …"


def _terms(context: str) -> list[str]:
    words = _WORD.findall(context[:_READ_CHARACTERS].casefold().replace("\u2019", "'"))
    single = {word for word in words if word not in _EMPTY and len(word) > 1}
    pairs = {
        f"{first} {second}"
        for first, second in itertools.pairwise(words)
        # A single letter is the rest of a word cut apart, such as "what 's".
        if min(len(first), len(second)) > 1 and (first not in _EMPTY or second not in _EMPTY)
    }
    return sorted(single | pairs)


def _overlaps(term: str, chosen: Sequence[str]) -> bool:
    words = set(term.split())
    return any(words & set(other.split()) for other in chosen)


def _flat(text: str) -> str:
    return " ".join(text.split())
