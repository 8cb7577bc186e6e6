"""Made-up contexts that say one thing or its opposite, and questions that hang on which.

Data sets hold few pairs of texts that differ in one word and in the answer. Here both texts, both
questions and both answers are equally frequent, so that no word alone gives an answer away.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TypeVar

import msgspec
import numpy as np

from steelyard_base_recipe.made_rows import load_rows

T = TypeVar("T")

NAMES = ("Anna", "Mr Weber", "Ms Okafor", "Li", "the manager", "our agent", "Tom", "the clerk")
_STATED = (
    "The {n} is {a}.",
    "The {n} is {a}.",
    "The {n} is not {b}.",
    "{who} checked: the {n} is {a}.",
    "Status of the {n}: {a}.",
    "{N}: {a}",
    "As of today, the {n} is {a}.",
    "We can confirm that the {n} is {a}.",
    "{who} thought that the {n} was {b}, but it is {a}.",
    "The {n} was {b} last week and is {a} now.",
    "It is not true that the {n} is {b}; it is {a}.",
    "{who} says the {n} is {a}.",
    "Please note: {n} {a}.",
    "I looked at the {n} and found it {a}.",
)
_QUESTIONS = (
    "Is the {n} {a}?",
    "Is the {n} {a}?",
    "Does the text say that the {n} is {a}?",
    "Is it true that the {n} is {a}?",
    "The {n} is {a}.",
    "Would you call the {n} {a}?",
    "Can one conclude that the {n} is {a}?",
    "Is it correct that the {n} is {a} now?",
    "Is it false that the {n} is {b}?",
    "Is the {n} not {b}?",
)
_CHOICES = (
    "Which statement is true?",
    "What does the text say?",
    "How is the {n}?",
    "What is the state of the {n}?",
    "Which of these fits?",
)
_UNSAID = ("not stated", "the text does not say", "unknown", "cannot be told")
_OTHERS = (
    "The meeting is in room {i}.",
    "Reference number {i}.",
    "{who} will be back on Monday.",
    "Thank you for your message.",
    "Call {i} for help.",
    "{who} wrote this on the {d}th.",
)


@dataclass(frozen=True, slots=True)
class MadeQuestion:
    """A question on a made-up context."""

    kind: str
    question: str
    outcomes: tuple[str, ...]
    right: int


class _Entry(msgspec.Struct):
    nouns: tuple[str, ...]
    claim: str
    opposite: str


@cache
def lexicon() -> tuple[tuple[tuple[str, ...], str, str], ...]:
    """Return nouns, a claim about them, and its opposite."""
    entries = load_rows("records.toml", dict[str, tuple[_Entry, ...]])["entries"]
    return tuple((entry.nouns, entry.claim, entry.opposite) for entry in entries)


def made_record(rng: np.random.Generator) -> tuple[str, list[MadeQuestion]]:
    """Return a context that states one or two facts, and questions on one of them.

    A quarter of the contexts also get a question about a thing that they do not mention, with the
    answer no. As many get the same question about the thing that they do mention.
    """
    entries = lexicon()
    first, second, third = (entries[i] for i in rng.permutation(len(entries))[:3])
    noun, is_, is_not = _drawn(first, rng)
    sentences = [_worded(pick(_STATED, rng), noun, is_, is_not, rng)]
    if rng.random() < 0.5:
        other = _drawn(second, rng)
        if other[0] != noun:
            sentences.append(_worded(pick(_STATED, rng), *other, rng))
    if rng.random() < 0.5:
        sentences.append(_worded(pick(_OTHERS, rng), noun, is_, is_not, rng))
    joint = "\n" if rng.random() < 0.2 else " "
    context = joint.join(sentences[i] for i in rng.permutation(len(sentences)))
    drawn = [
        MadeQuestion(
            "binary", _worded(pick(_QUESTIONS, rng), noun, claim, other, rng), ("yes", "no"), right
        )
        for claim, other, right in ((is_, is_not, 0), (is_not, is_, 1))
    ]
    draw = rng.random()
    if draw < 0.25:
        absent, claim, unsaid = _drawn(third, rng)
        if absent not in context:
            question = _worded(_QUESTIONS[2], absent, claim, unsaid, rng)
            drawn.append(MadeQuestion("binary", question, ("yes", "no"), 1))
    elif draw < 0.5:
        # The same words about the mentioned thing, so that the wording alone gives no answer away.
        question = _worded(_QUESTIONS[2], noun, is_, is_not, rng)
        drawn.append(MadeQuestion("binary", question, ("yes", "no"), 0))
    if rng.random() < 0.5:
        drawn.append(_choice(noun, is_, is_not, rng))
    return context, [drawn[i] for i in rng.permutation(len(drawn))]


def _choice(noun: str, is_: str, is_not: str, rng: np.random.Generator) -> MadeQuestion:
    form = ("{a}", "the {n} is {a}", "{N}: {a}")[int(rng.integers(3))]
    outcomes = [_worded(form, noun, claim, "", rng, capital=False) for claim in (is_, is_not)]
    if rng.random() < 0.4:
        outcomes.append(pick(_UNSAID, rng))
    order = rng.permutation(len(outcomes)).tolist()
    question = pick(_CHOICES, rng).format(n=noun)
    return MadeQuestion("single", question, tuple(outcomes[i] for i in order), order.index(0))


def _drawn(
    entry: tuple[tuple[str, ...], str, str], rng: np.random.Generator
) -> tuple[str, str, str]:
    nouns, claim, other = entry
    pair = (claim, other) if rng.random() < 0.5 else (other, claim)
    noun = pick(nouns, rng)
    if rng.random() < 0.2:
        noun = f"{noun} {int(rng.integers(2, 900))}"
    return (noun, *pair)


def _worded(
    form: str, noun: str, is_: str, is_not: str, rng: np.random.Generator, *, capital: bool = True
) -> str:
    text = form.format(
        n=noun,
        N=noun.capitalize(),
        a=is_,
        b=is_not,
        who=pick(NAMES, rng),
        i=int(rng.integers(100, 9_999)),
        d=int(rng.integers(4, 20)),
    )
    return text[:1].upper() + text[1:] if capital else text


def pick(choices: Sequence[T], rng: np.random.Generator) -> T:
    """Return one of some choices, each as likely."""
    return choices[int(rng.integers(len(choices)))]
