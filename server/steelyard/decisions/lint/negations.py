"""Negations in a question: words that make *yes* mean that something is not so."""

from __future__ import annotations

from collections.abc import Sequence

from steelyard.decisions.lint.sentences import AUXILIARIES, DETERMINERS, PRONOUNS, Sentence
from steelyard.decisions.words import word_set

_NEGATORS = frozenset(("not", "never", "cannot", "without", "except", "neither"))
#: These negate even inside what somebody says: there they are part of the question.
_ALWAYS = frozenset(("except", "neither"))
# "Not only" adds, "not sure whether" is a state of its own, and "not-for-profit" is one word.
_AFTER_NOT = frozenset(("only", "just", "merely", "simply", "necessarily"))
_BEFORE_NOT = frozenset(("or", "if", "why", "than"))
_BEFORE_NO = word_set(
    "there contain contains include includes have has had show shows give gives provide provides "
    "leave leaves"
)
# "Don't you agree" leads, and denies nothing.
_OPINIONS = frozenset(("agree", "say", "think"))
_NEGATIVE_ADJECTIVES = word_set(
    "impossible improper inaccurate inadequate inappropriate incomplete incorrect invalid "
    "irrelevant unable unclear unhappy unlikely unpaid unsafe unsupported untrue unwilling "
    "unreasonable unresolved dissatisfied"
)
_REASON_STARTS = frozenset(("why",))


def find_negations(sentence: Sentence) -> list[str]:
    """Return the words of a sentence that turn its answer round, as they stand there.

    Left out are those in reported speech and wishes (``does she say that it never came``), in a
    condition (``if it is not paid, who ...``), in a question tag, in ``or not``, and after ``why``,
    which presupposes the negated statement.

    >>> from steelyard.decisions.lint.sentences import read_sentence
    >>> find_negations(read_sentence("Is the parcel not lost?"))
    ['not']
    >>> find_negations(read_sentence("Does she say it is not lost, or not?"))
    []
    """
    words = sentence.words
    start = _condition_end(words)
    if _REASON_STARTS.issuperset(words[start : start + 1]):
        return []
    return [
        negation
        for place in range(start, len(words))
        if (negation := _negation_at(sentence, place)) is not None
    ]


def is_double(negations: Sequence[str], sentence: Sentence) -> bool:
    """Return whether a sentence negates twice, such as ``not unlikely``."""
    n_negations = len(negations) + len(_NEGATIVE_ADJECTIVES.intersection(sentence.words))
    return len(negations) > 0 and n_negations > 1


def _negation_at(sentence: Sentence, place: int) -> str | None:
    words = sentence.words
    word = words[place]
    after = words[place + 1] if place + 1 < len(words) else ""
    before = words[place - 1] if place > 0 else ""
    if word in _NEGATORS:
        # "The courier and not the shop" sets two things apart.
        is_aside = before in {"and", "but"} and after in DETERMINERS | PRONOUNS
        if word == "not" and (after in _AFTER_NOT or before in _BEFORE_NOT or is_aside):
            return None
        negation = word
    elif word.endswith("n't") and word in AUXILIARIES | {"ain't", "needn't"}:
        if _is_tag(words, place) or (after == "you" and not _OPINIONS.isdisjoint(words)):
            return None
        negation = word
    elif word in {"fail", "fails", "failed", "failing"} and after == "to":
        negation = f"{word} to"
    elif word in {"nobody", "nothing"} and place == 1 and before in AUXILIARIES:
        negation = word
    elif word == "no" and (after == "longer" or before in _BEFORE_NO):
        negation = f"no {after}" if after.isalpha() else "no"
    else:
        return None
    if word not in _ALWAYS and sentence.is_reported(place):
        return None
    return negation


def _is_tag(words: Sequence[str], place: int) -> bool:
    """Return whether ``isn't`` and the like stand in a tag at the end: ``..., isn't it?``."""
    rest = words[place + 1 :]
    return place > 0 and len(rest) <= 2 and PRONOUNS.union(("this", "that")).issuperset(rest[:1])


def _condition_end(words: Sequence[str]) -> int:
    """Return where the clause after ``If it is not paid,`` begins; 0 when there is no such clause."""
    openers = {"if", "when", "where", "unless", "although", "given", "assuming", "because", "since"}
    if not words or words[0] not in openers or "," not in words:
        return 0
    return words.index(",") + 1
