"""Arithmetic in a question: counting, sums, and numbers or dates held against each other."""

from __future__ import annotations

import re
from collections.abc import Sequence

from steelyard.decisions.kinds import BINARY_NAMES
from steelyard.decisions.lint.sentences import IMPERATIVES, WH_WORDS, Sentence
from steelyard.decisions.words import word_set

_NUMBER = re.compile(r"\d[\d.,]*\Z")
_ISO_DATE = re.compile(r"\d{4}-\d{1,2}-\d{1,2}\Z")
_YEAR = re.compile(r"(?:19|20)\d\d\Z")
_SUM = re.compile(r"\d\s*[+×]\s*\d|\d\s\*\s\d")  # noqa: RUF001
_PERCENT_OF = re.compile(r"\d\s?(?:%|percent)\s+of\b")
_CURRENCIES = frozenset(("$", "€", "£", "¥", "usd", "eur", "gbp"))
_MONTHS = word_set(
    "january february march april may june july august september october november december"
)
_DATE_NOUNS = word_set("date dates deadline deadlines expiry expiration timestamp birthday")
_AMOUNT_NOUNS = word_set(
    "amount amounts balance cost costs number price prices quantity sum total totals"
)
_UNITS = word_set(
    "second seconds minute minutes hour hours day days week weeks month months year years"
)
#: What a judge gives: how many of them is a grade, not a count.
_POINTS = frozenset(("points", "stars"))
_COMPUTE = word_set("calculate compute count divide multiply subtract sum")
_COMPARATIVES = word_set(
    "bigger earlier fewer greater higher larger later less longer lower more older shorter smaller "
    "younger"
)
_NUMBER_WORDS = word_set("zero one two three four five six seven eight nine ten eleven twelve")
#: Phrases that ask for a computation wherever they stand.
_PHRASES = tuple(
    tuple(phrase.split())
    for phrase in (
        "the sum of",
        "add up to",
        "adds up to",
        "total number of",
        "what is the number of",
        "what is the sum",
        "what is the total",
        "what is the average",
        "what is the median",
        "what is the percentage",
        "what is the ratio",
        "percentage of the",
        "an even number",
        "an odd number",
        "a prime number",
        "divisible by",
        "the square root",
    )
)
_COUNTING = tuple(
    tuple(phrase.split()) for phrase in ("how many", "how old", "how long ago", "what number of")
)


def find_arithmetic(sentence: Sentence, answers: Sequence[str]) -> str | None:
    """Return the words of a sentence that ask for arithmetic.

    ``None`` where nothing is computed, or where a number is only reported.

    >>> from steelyard.decisions.lint.sentences import read_sentence
    >>> find_arithmetic(read_sentence("Was it bought more than 30 days ago?"), ())
    'more than 30'
    >>> find_arithmetic(read_sentence("Does she ask for more than 30 days?"), ()) is None
    True
    """
    words = sentence.words
    if sentence.first in _COMPUTE:
        return sentence.first
    match = _SUM.search(sentence.text)
    if match is None and sentence.first in {"what", "how"}:
        match = _PERCENT_OF.search(sentence.text)
    if match:
        return match.group()
    for place in range(len(words)):
        phrase = _counting_at(words, place, answers) or _comparison_at(words, place)
        if phrase and not sentence.is_reported(place):
            return phrase
    return None


def _counting_at(words: Sequence[str], place: int, answers: Sequence[str]) -> str | None:
    for phrase in _PHRASES:
        if tuple(words[place : place + len(phrase)]) == phrase:
            return " ".join(phrase)
    before = words[place - 1] if place else ","
    if before not in IMPERATIVES and before not in {",", ":", ";", "-", "and", "or"}:
        return None
    for phrase in _COUNTING:
        end = place + len(phrase)
        if tuple(words[place:end]) != phrase or not are_counts(answers):
            continue
        if _POINTS.isdisjoint(words[end : end + 1]):
            return " ".join(phrase)
    return None


def are_counts(answers: Sequence[str]) -> bool:
    """Return whether outcomes are no grades: yes and no, or counts in digits or words."""
    has_digit = any(character.isdigit() for answer in answers for character in answer)
    if has_digit or tuple(answers) == BINARY_NAMES:
        return True
    firsts = [answer.casefold().split(maxsplit=1)[:1] for answer in answers]
    return sum(not _NUMBER_WORDS.isdisjoint(first) for first in firsts) >= 2


def _comparison_at(words: Sequence[str], place: int) -> str | None:
    width = _comparator_width(words, place)
    if width == 0:
        return _interval_at(words, place)
    comparator = " ".join(words[place : place + width])
    is_place = words[place] in {"over", "under", "above", "below"}
    is_time = words[place] in {"before", "after"}
    value = words[place + width : place + width + 5]
    if _CURRENCIES.issuperset(value[:1]):
        value = value[1:]
    if value and _NUMBER.match(value[0]) and not is_time:
        return f"{comparator} {value[0]}"
    if _is_date(value) and not is_place:
        return f"{comparator} a date"
    # "The amount over the total" compares nothing; "the total is less than the amount" does.
    for nouns in () if is_place else (_DATE_NOUNS,) if is_time else (_DATE_NOUNS, _AMOUNT_NOUNS):
        if not nouns.isdisjoint(words[:place]) and not nouns.isdisjoint(value):
            return comparator
    return _choice_of_dates(words, place)


def _comparator_width(words: Sequence[str], place: int) -> int:
    """Return how many words from a place on compare: ``more than`` 2, ``before`` 1, others 0."""
    word, follows = words[place], words[place + 1 : place + 2]
    if word in _COMPARATIVES:
        return 2 if tuple(follows) == ("than",) else int(word in {"earlier", "later"})
    if word == "at" and tuple(follows) in {("least",), ("most",)}:
        return 2
    return int(
        word in {"over", "under", "above", "below", "before", "after"} or word.startswith("exceed")
    )


def _is_date(words: Sequence[str]) -> bool:
    """Return whether words start with a date: 2024-03-01, March 2024, 1 March, the year 2024."""
    date_words = [word for word in words if word not in {"the", "of", "year", "("}][:3]
    if not date_words:
        return False
    if _ISO_DATE.match(date_words[0]) or _YEAR.match(date_words[0]):
        return True
    has_month = bool(_MONTHS.intersection(date_words[:2]))
    return has_month and any(word[0].isdigit() for word in date_words)


def _choice_of_dates(words: Sequence[str], place: int) -> str | None:
    """Find ``which date is earlier``."""
    if words[place] not in {"earlier", "later"} or not WH_WORDS.intersection(words[:1]):
        return None
    return f"date is {words[place]}" if _DATE_NOUNS.intersection(words[:place]) else None


def _interval_at(words: Sequence[str], place: int) -> str | None:
    """Find ``within 30 days of``, ``in the last 30 days`` and ``days between``."""
    word, rest = words[place], tuple(words[place + 1 : place + 6])
    if word in _UNITS and rest[:1] and rest[0] in {"between", "since", "until"}:
        return f"{word} {rest[0]}"
    if word in {"last", "past"} and len(rest) > 1 and _NUMBER.match(rest[0]) and rest[1] in _UNITS:
        return f"{word} {rest[0]} {rest[1]}"
    is_span = word == "within" and len(rest) > 2 and rest[1] in _UNITS and rest[2] in {"of", "from"}
    return f"within {rest[0]} {rest[1]} {rest[2]}" if is_span and rest[0][0].isdigit() else None
