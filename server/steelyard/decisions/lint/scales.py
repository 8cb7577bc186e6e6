"""Scales that words spell: low, medium, high; poor to excellent; never to always; 1 to 5.

A text's rank is read from how it starts (``very high: all users``), and only when every word before
the one that ranks is a modifier. Other texts have no rank, and rules stay silent on them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from steelyard.decisions.words import name_parts, read_words, singular, straighten, word_set

_MORE = word_set(
    "absolutely completely deeply entirely especially exceptionally extremely fully highly "
    "particularly quite really strongly super too totally very"
)
_LESS = word_set(
    "barely bit fairly hardly little mildly moderately partially partly rather reasonably "
    "relatively slightly somewhat"
)
_FILLERS = frozenset(("a", "an", "the", "of", "at", "is", "it's", "this"))
#: A modifier moves a rank away from the middle of its scale, or towards it.
_STEP = 0.4


@dataclass(frozen=True, slots=True)
class Scale:
    """Words that order things."""

    name: str
    ranks: dict[str, int]
    top: int
    rises_with: re.Pattern[str] | None = None
    is_stance: bool = False


def _scale(
    name: str, *levels: str, rises_with: str | None = None, is_stance: bool = False
) -> Scale:
    ranks = {phrase: place for place, level in enumerate(levels) for phrase in level.split(", ")}
    pattern = None if rises_with is None else re.compile(rises_with)
    return Scale(name, ranks, len(levels) - 1, pattern, is_stance)


_GOOD = r"\b(?:good|well|satisf|positiv|quality|happy|helpful|agree|convincing|likely|often)"

SCALES = (
    _scale(
        "levels from low to high",
        "none, nil",
        "negligible, trivial, minimal, tiny, cosmetic",
        "low, lowest, minor, small, slight, mild, weak",
        "medium, moderate, mid, middle, average, intermediate, normal",
        "high, highest, major, large, big, severe, serious, significant, strong, considerable",
        "critical, extreme, catastrophic, maximum, urgent, emergency, blocker, huge",
    ),
    _scale(
        "quality",
        "terrible, awful, horrible, useless",
        "poor, bad, weak",
        "fair, mediocre, acceptable, okay, ok, adequate, average",
        "good, solid",
        "great, very good",
        "excellent, outstanding, perfect, exceptional",
        rises_with=_GOOD,
    ),
    _scale(
        "frequency",
        "never",
        "rarely, seldom, almost never",
        "sometimes, occasionally",
        "often, frequently, usually",
        "always, almost always",
        rises_with=_GOOD,
    ),
    _scale(
        "sentiment",
        "negative, unhappy, dissatisfied, unsatisfied",
        "neutral, mixed",
        "positive, happy, satisfied",
        rises_with=_GOOD,
        is_stance=True,
    ),
    _scale("agreement", "disagree", "neutral", "agree", rises_with=_GOOD, is_stance=True),
    _scale(
        "likelihood",
        "impossible, certainly not",
        "unlikely, improbable",
        "possible, possibly, maybe",
        "likely, probable, probably",
        "certain, definite, definitely, almost certain",
        rises_with=_GOOD,
    ),
    _scale(
        "time left",
        "can wait, no hurry, no rush, whenever, any time, anytime, not urgent",
        "this month, within weeks",
        "this week, within days",
        "tomorrow, next day, soon",
        "today, same day, within hours",
        "now, at once, immediately, right away, right now, asap",
        rises_with=r"\b(?:urgent|urgency|soon|quick|fast|pressing|priority)",
    ),
    _scale("amount", "none", "few, a few, little", "some, several", "many, much", "most", "all"),
    _scale("degree", "not at all", "barely, slightly", "somewhat", "mostly", "completely"),
)

#: Words that say how much.
AMOUNT_WORDS = _MORE | _LESS | frozenset(SCALES[0].ranks)
#: Words by which alone two levels do not say how they differ.
DEGREE_WORDS = (
    AMOUNT_WORDS | _FILLERS | word_set("not no more less most least highest lowest level mostly")
)

#: What ``name_scale`` calls names such as 1 to 5.
NUMBERS = "numbers that follow each other"
#: No words order more names than this.
_MANY_LEVELS = 20
#: Words that rank as a whole text, and count something where more follows.
_QUANTITIES = frozenset(("all", "many", "most", "none", "some"))
_NUMBERED = word_set(
    "level star point grade rating score sev severity priority p s tier stage rank out of"
)
#: Numbered levels that by custom count down from the gravest.
COUNTED_DOWN = re.compile(r"(?:p|s|sev|severity|prio|priority|tier)[\s_-]*\d+\Z", re.IGNORECASE)
_LETTERS_AND_NUMBER = re.compile(r"\A([A-Za-z]{1,8})(\d{1,3})\Z")
_RANGE = re.compile(
    r"(?:<=?|>=?|≤|≥|under|below|up to|less than|over|above|more than|at least|from)?"
    r"\s?[$€£]?(\d[\d.,]*)[km%]?\s?(?:(?:-|–|to)\s?[$€£]?\d[\d.,]*[km%]?|\+|or more|and more|or less)?"  # noqa: RUF001
    r"\s?[^\W\d_]{0,8}%?\Z"
)


def rank_in(text: str, scale: Scale, *, is_whole: bool) -> float | None:
    """Return a text's rank on a scale; ``None`` when it starts with none of its words.

    >>> rank_in("very high: all users", SCALES[0], is_whole=False)
    4.4
    >>> rank_in("no data lost", SCALES[0], is_whole=False) is None
    True
    """
    return _rank_of(_first_words(text), scale, is_whole=is_whole)


def _first_words(text: str) -> list[str]:
    return [word for word in read_words(straighten(text[:80])) if word not in {"-", "_"}]


def _rank_of(words: Sequence[str], scale: Scale, *, is_whole: bool) -> float | None:
    shift = 0.0
    for place in range(min(4, len(words))):
        width, rank = _phrase_at(words, place, scale)
        if rank is not None:
            has_more = len(words) > place + width
            # "None of the features work" is no lowest level.
            if has_more and (is_whole or words[place] in _QUANTITIES):
                return None
            middle = scale.top / 2
            return rank + shift * (1 if rank > middle else -1 if rank < middle else 0)
        if words[place] in _MORE:
            shift += _STEP
        elif words[place] in _LESS:
            shift -= _STEP
        elif words[place] not in _FILLERS:
            return None
    return None


def _phrase_at(words: Sequence[str], place: int, scale: Scale) -> tuple[int, int | None]:
    for width in (3, 2, 1):
        rank = scale.ranks.get(" ".join(words[place : place + width]))
        if rank is not None:
            return min(width, len(words) - place), rank
    return 0, None


def read_ranks(texts: Sequence[str]) -> tuple[Scale, list[float | None]] | None:
    """Return the scale that most of some lines start with, and each line's rank on it.

    ``None`` when fewer than two lines, or fewer than half, are on one scale.
    """
    best: tuple[Scale, list[float | None]] | None = None
    n_best = 1
    firsts = [_first_words(text) for text in texts]
    for scale in SCALES:
        ranks = [_rank_of(words, scale, is_whole=False) for words in firsts]
        n_ranked = sum(rank is not None for rank in ranks)
        if n_ranked > n_best and 2 * n_ranked >= len(texts):
            best, n_best = (scale, ranks), n_ranked
    return best


def name_scale(names: Sequence[str]) -> str | None:
    """Return which ordered scale three or more names are, in whatever order they stand.

    >>> name_scale(["high risk", "low risk", "medium risk"])
    'levels from low to high'
    >>> name_scale(["billing", "shipping", "other"]) is None
    True
    """
    if len(names) < 3:
        return None
    shared, parts = _distinct_parts(names)
    for scale in SCALES if len(names) <= _MANY_LEVELS else ():
        ranks = {rank_in(part, scale, is_whole=True) for part in parts}
        if None in ranks or len(ranks) < len(names):
            continue
        if not scale.is_stance or len(names) > 3:
            return scale.name
    return _name_numbers(names, shared, parts)


def _name_numbers(names: Sequence[str], shared: frozenset[str], parts: list[str]) -> str | None:
    # ASCII alone: "²" is a digit, and no number.
    is_numbered = all(part.isascii() and part.isdigit() and len(part) < 4 for part in parts)
    if is_numbered and shared <= _NUMBERED:
        numbers = sorted({int(part) for part in parts})
        if numbers[0] in {0, 1} and numbers == list(range(numbers[0], numbers[0] + len(names))):
            return NUMBERS
    n_marked = sum(not name.strip().isalnum() for name in names)
    ranges = [_RANGE.match(straighten(name[:80].strip())) for name in names]
    if all(ranges) and 2 * n_marked >= len(names):
        lows = [match.group(1) for match in ranges if match is not None]
        values = [float(low.replace(",", "")) for low in lows if low.count(".") < 2]
        if len(values) == len(names) and values in (sorted(values), sorted(values, reverse=True)):
            return "ranges of numbers"
    return None


def distinct_parts(names: Sequence[str]) -> list[str]:
    """Return names without the words that all of them share.

    >>> distinct_parts(["1 star", "2 stars"]), distinct_parts(["P1", "P2"])
    (['1', '2'], ['1', '2'])
    """
    return _distinct_parts(names)[1]


def _distinct_parts(names: Sequence[str]) -> tuple[frozenset[str], list[str]]:
    split = [name_parts(_LETTERS_AND_NUMBER.sub(r"\1 \2", name.strip())) for name in names]
    shared = frozenset.intersection(*(frozenset(map(singular, words)) for words in split))
    own = [[word for word in words if singular(word) not in shared] for words in split]
    return shared, [" ".join(words) for words in own]
