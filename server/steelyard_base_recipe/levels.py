"""Made-up contexts that say how much of something there is, and questions with levels to answer.

Labelled texts have few scales, most of them of feeling. Here every level of every scale is equally
frequent, in words that are not the level's own, so that the order is taught.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import msgspec
import numpy as np

from steelyard_base_recipe.made_rows import load_rows
from steelyard_base_recipe.records import MadeQuestion, pick

#: Share of the scales that is of situations, and of degrees.
SITUATION_SHARE, DEGREE_SHARE = 0.3, 0.25
#: Words that stand before an adjective, from the least to the most.
_DEGREES = (
    ("not at all {a}", "not {a} in the least", "anything but {a}"),
    ("a little {a}", "slightly {a}", "a bit {a}", "ever so slightly {a}"),
    ("fairly {a}", "moderately {a}", "rather {a}", "more or less {a}"),
    ("very {a}", "really {a}", "truly {a}", "quite remarkably {a}"),
    ("extremely {a}", "incredibly {a}", "unbelievably {a}", "as {a} as it gets"),
)
_DEGREE_NAMES = (
    "not {a}; slightly {a}; moderately {a}; very {a}; extremely {a}",
    "not {a} at all; a little {a}; rather {a}; very {a}; extraordinarily {a}",
    "not at all; slightly; moderately; very; extremely",
    "1; 2; 3; 4; 5",
)
_DEGREE_QUESTIONS = (
    "How {a} was the {n}?",
    "How {a} is it?",
    "How {a} does the text call the {n}?",
)
_DEGREE_SENTENCES = ("The {n} was {p}.", "{who} found the {n} {p}.", "To me the {n} seemed {p}.")
_ADJECTIVES = (
    "loud", "cold", "warm", "crowded", "expensive", "polite", "helpful", "dirty", "dark", "heavy",
    "clear", "confusing", "slow", "fast", "reliable", "dangerous", "boring", "interesting", "sweet",
    "complicated", "modern", "formal", "friendly", "thorough", "relevant", "important", "risky",
    "comfortable", "creative", "technical", "tired", "angry", "worried", "detailed", "convincing",
)  # fmt: skip
_NOUNS = (
    "hall", "report", "machine", "kettle", "lecture", "bicycle", "lamp", "bridge", "camera", "stove",
    "jacket", "manual", "concert", "kitchen", "printer", "ferry", "exhibition", "sofa", "radio",
    "guide", "tent", "heater", "website", "timetable", "museum",
)  # fmt: skip
_WHO = ("Anna", "Mr Weber", "Ms Okafor", "Li", "The manager", "Our neighbour", "Tom", "The clerk")
_OTHERS = ("Reference number {i}.", "Thank you for your message.", "It was written on the {i}th.")
#: Which of five levels are left where there are fewer.
_FEWER = ((0, 1, 2, 3, 4), (0, 2, 4), (0, 1, 3, 4), (0, 4), (0, 1, 2, 3, 4))


@dataclass(frozen=True, slots=True)
class LevelScale:
    """Questions, names and sentences of one thing that there is more or less of."""

    questions: tuple[str, ...]
    names: tuple[tuple[str, ...], ...]
    sentences: tuple[str, ...]
    phrases: tuple[tuple[str, ...], ...]


class _Rows(msgspec.Struct):
    scales: tuple[LevelScale, ...]
    situations: LevelScale


@cache
def scales() -> tuple[LevelScale, ...]:
    """Return every scale with sentences of its own, that of situations last."""
    rows = load_rows("levels.toml", _Rows)
    return (*rows.scales, rows.situations)


def made_levels(rng: np.random.Generator) -> tuple[str, list[MadeQuestion]]:
    """Return a context that says how much of something there is, and a question on it."""
    adjective = pick(_ADJECTIVES, rng)
    *others, situations = scales()
    draw = rng.random()
    if draw < SITUATION_SHARE:
        scale = situations
    elif draw < SITUATION_SHARE + DEGREE_SHARE:
        scale = _of_degree(adjective)
    else:
        scale = pick(others, rng)
    places = pick(_FEWER, rng)
    right = int(rng.integers(len(places)))
    phrase = pick(scale.phrases[places[right]], rng)
    given = {"n": pick(_NOUNS, rng), "who": pick(_WHO, rng), "i": str(rng.integers(4, 30))}
    sentence = pick(scale.sentences, rng).format(p=phrase.format(**given), **given)
    sentences = [sentence[:1].upper() + sentence[1:]]
    if rng.random() < 0.4:
        sentences.append(pick(_OTHERS, rng).format(**given))
    names = pick(scale.names, rng)
    named = tuple(names[i] for i in places)
    if names[0] == "1":  # numbers have no gaps
        named = names[: len(places)]
    question = pick(scale.questions, rng).format(**given)
    context = " ".join(sentences[i] for i in rng.permutation(len(sentences)))
    return context, [MadeQuestion("ordinal", question, named, right)]


def _of_degree(adjective: str) -> LevelScale:
    def worded(texts: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(text.replace("{a}", adjective) for text in texts)

    return LevelScale(
        worded(_DEGREE_QUESTIONS),
        tuple(_split(line.replace("{a}", adjective), ";") for line in _DEGREE_NAMES),
        _DEGREE_SENTENCES,
        tuple(worded(level) for level in _DEGREES),
    )


def _split(line: str, mark: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in line.split(mark))
