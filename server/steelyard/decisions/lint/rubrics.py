"""Rules about the levels of an ordinal decision: in order, few, and each with a meaning."""

from __future__ import annotations

import re
from collections import defaultdict
from itertools import pairwise

from steelyard.decisions.lint.scales import (
    COUNTED_DOWN,
    DEGREE_WORDS,
    distinct_parts,
    read_ranks,
)
from steelyard.decisions.lint.subjects import Subject
from steelyard.decisions.words import normalise, read_words, singular, straighten
from steelyard.wire.violations import show

#: More levels than this are hard to tell apart.
MANY_LEVELS = 10

_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?\Z", re.ASCII)
_LEVEL_NUMBER = re.compile(
    r"(?:grade|level|p|priority|rating|score|sev|severity|stage|step|tier|value)?[\s_#:-]*"
    r"[+-]?\d+(?:\.\d+)?(?: (?:stars?|points?))?"
)
_LEADING_NUMBER = re.compile(r"\d+(?:\.\d+)?\b", re.ASCII)


def unordered_levels(subject: Subject) -> str | None:
    """Find levels out of order: numbers that go up and down, or wording that falls where they rise.

    The expected level is the mean position, from 0 at the first: it means something only when every
    level is more than the one before. Numbers that count down by custom (P1, severity 1) may
    describe the gravest first.
    """
    names = subject.names
    numbers = [float(name) for name in names if _NUMBER.match(name.strip())]
    if len(numbers) == len(names) and not _is_monotone(numbers):
        shown = ", ".join(map(show, names[:6]))
        return f"The levels {shown} are not in order. List them, and the rubric, from low to high."
    leading = [_LEADING_NUMBER.match(line) for line in subject.descriptions]
    counts = [float(match.group()) for match in leading if match is not None]
    if len(counts) == len(names) and counts != sorted(counts) and not _is_monotone(counts):
        return "The numbers in the rubric are not in order. List its lines from low to high."
    for texts, what in (
        (subject.descriptions, "rubric"),
        (tuple(distinct_parts(subject.names)), "levels"),
    ):
        disorder = _find_disorder(subject, texts)
        if disorder:
            first, second = (show(texts[place]) for place in disorder)
            return (
                f"The {what} read out of order: {first} comes before {second}. List the levels, and "
                "their rubric, from low to high."
            )
    return None


def _find_disorder(subject: Subject, texts: tuple[str, ...]) -> tuple[int, int] | None:
    """Return the places of two texts of which the later one ranks lower."""
    read = read_ranks(texts)
    if read is None:
        return None
    scale, ranks = read
    ranked = [(place, rank) for place, rank in enumerate(ranks) if rank is not None]
    falls = [(earlier[0], later[0]) for earlier, later in pairwise(ranked) if earlier[1] > later[1]]
    if not falls:
        return None
    if all(earlier[1] >= later[1] for earlier, later in pairwise(ranked)):
        # They fall all along. That is an order too, where the names or the question ask for it.
        text = " ".join(sentence.text for sentence in subject.question.sentences)
        is_free = scale.rises_with is not None and not scale.rises_with.search(text)
        if is_free or all(COUNTED_DOWN.match(name.strip()) for name in subject.names):
            return None
    return falls[0]


def _is_monotone(numbers: list[float]) -> bool:
    steps = [later - earlier for earlier, later in pairwise(numbers)]
    return all(step > 0 for step in steps) or all(step < 0 for step in steps)


def unanchored_rubric(subject: Subject) -> str | None:
    """Find lines that only repeat the level's number, or differ from others by a word of degree.

    ``Somewhat urgent`` and ``quite urgent`` mean something else to each reader. A line that says
    the state at its level (``answered today``) is read alike by all.
    """
    lines = subject.descriptions
    bare = [
        place
        for place, (name, line) in enumerate(zip(subject.names, lines, strict=True))
        if _says_nothing(name, line)
    ]
    if len(bare) >= 2 or 2 * len(bare) >= len(lines):
        return (
            f"The rubric says nothing about the level {show(subject.names[bare[0]])} but its name. "
            "Say in each line what is the case at that level."
        )
    alike = _differ_by_degree(lines)
    if alike is None:
        return None
    first, second = (show(lines[place]) for place in alike)
    return (
        f"The lines {first} and {second} of the rubric differ by a word of degree alone. Say in each "
        "what is the case at that level."
    )


def _says_nothing(name: str, line: str) -> bool:
    text, own = normalise(line), normalise(name)
    if text in {"", own}:
        return True
    # "2" or "level 2" on a level that has a number for a name.
    return all(_LEVEL_NUMBER.fullmatch(value) is not None for value in (text, own))


def _differ_by_degree(lines: tuple[str, ...]) -> tuple[int, int] | None:
    """Return two lines that are equal but for words of degree, where half of all lines are such."""
    groups: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for place, line in enumerate(lines):
        words = [word for word in read_words(straighten(line[:400])) if word[0].isalnum()]
        groups[tuple(singular(word) for word in words if word not in DEGREE_WORDS)].append(place)
    for places in groups.values():
        texts = {normalise(lines[place]) for place in places}
        # "Urgent" and "not urgent" are two plain levels.
        is_yes_no = len(lines) == 2 and any("not" in text.split() for text in texts)
        if len(texts) >= 2 and 2 * len(texts) >= len(lines) and not is_yes_no:
            return places[0], next(
                place for place in places if normalise(lines[place]) != normalise(lines[places[0]])
            )
    return None


def too_many_levels(subject: Subject) -> str | None:
    """Find more than ten levels.

    Neighbours are then hard to tell apart, and the probability spreads over several of them. The
    expected level is as fine as one likes with five.
    """
    n_levels = len(subject.names)
    if n_levels <= MANY_LEVELS:
        return None
    return (
        f"There are {n_levels} levels. Use three to five that differ plainly; the expected level "
        "gives the steps between them."
    )
