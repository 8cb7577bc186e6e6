"""Other wordings of a decision, by rules that need no model; the same rows make the same ones.

A small model reads words far more than it reasons, so the rules bring words: the most telling ones of
each outcome's training rows, names spelled out, and a row as an example. Others mend the linter's
warnings: a question that negates or that runs on.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec

from steelyard.decisions.kinds import Decision
from steelyard.decisions.rendering import read_outcomes
from steelyard.prompt_tuning.telling_words import TellingWords
from steelyard.prompt_tuning.wording import Wording

#: From this many outcomes on, descriptions are kept short: the model reads all of them each time.
MANY_OUTCOMES = 24
#: The most characters of a description.
MAX_DESCRIPTION = 480
_PARENTHESES = re.compile(r"\s*\([^()]*\)")
_SENTENCE_END = re.compile(r"(?<=[.?!])\s+(?=[A-Z\"'(])")
_NEGATION = re.compile(r"\s+not\b|n['\u2019]t\b", re.IGNORECASE)
_QUESTIONS = {
    "single": (
        "Which of these fits best?",
        "What is this about?",
        "Which kind of text is this?",
    ),
    "binary": (),
    "ordinal": ("Which level fits best?",),
}


@dataclass(frozen=True, slots=True)
class DescriptionParts:
    """The parts of a description: present text, telling words and examples."""

    keeps_own: bool
    n_words: int
    n_examples: int = 0


_RECIPES = (
    DescriptionParts(False, 3),
    DescriptionParts(False, 6),
    DescriptionParts(False, 12),
    DescriptionParts(False, 24),
    DescriptionParts(False, 0, 1),
    DescriptionParts(False, 6, 1),
    DescriptionParts(True, 4),
    DescriptionParts(True, 10),
    DescriptionParts(True, 0, 1),
    DescriptionParts(True, 6, 1),
)


class Candidates:
    """Makes other wordings of one decision from its training rows."""

    def __init__(self, decision: Decision, original: Wording, words: TellingWords) -> None:
        self._kind = decision.kind
        self._names = decision.outcomes.names
        self._original = original
        self._words = words
        is_many = len(self._names) > MANY_OUTCOMES
        self._recipes = [
            recipe
            for recipe in _RECIPES
            if not (recipe.keeps_own and not any(original.descriptions))
            and not (is_many and (recipe.n_words > 6 or recipe.n_examples > 1))
        ]

    def whole(self, best: Wording) -> list[Wording]:
        """Return wordings that change the question, or the descriptions of all outcomes."""
        made = [
            msgspec.structs.replace(best, question=question) for question in self._questions(best)
        ]
        made += [
            msgspec.structs.replace(best, descriptions=descriptions)
            for descriptions in self._all_descriptions()
        ]
        made += self._without_negation(best)
        return _distinct(made, best)

    def of_outcome(self, best: Wording, outcome: int, rival: int | None) -> list[Wording]:
        """Return wordings that describe one outcome otherwise; a rival is often taken for it."""
        made = [
            best.describing(outcome, self._describe(outcome, recipe)) for recipe in self._recipes
        ]
        made += [
            best.describing(outcome, self._original.descriptions[outcome]),
            best.describing(outcome, self._spelled_out(outcome)),
        ]
        if self._kind != "ordinal":
            made.append(best.describing(outcome, None))
        if rival is not None:
            for n_words in (4, 8):
                apart = self._words.of(outcome, n_words, against=rival)
                made.append(best.describing(outcome, _join(None, apart, ())))
        return _distinct(made, best)

    def _questions(self, best: Wording) -> Iterator[str]:
        for question in dict.fromkeys((self._original.question, best.question)):
            yield question
            plain = _PARENTHESES.sub("", question)
            yield plain
            yield _SENTENCE_END.split(plain)[0]
        yield from _QUESTIONS[self._kind]

    def _all_descriptions(self) -> Iterator[tuple[str | None, ...]]:
        places = range(len(self._names))
        yield self._original.descriptions
        if self._kind != "ordinal":
            yield (None,) * len(self._names)
        yield tuple(self._spelled_out(place) for place in places)
        for recipe in self._recipes:
            yield tuple(self._describe(place, recipe) for place in places)

    def _describe(self, outcome: int, recipe: DescriptionParts) -> str | None:
        own = self._original.descriptions[outcome] if recipe.keeps_own else None
        words = self._words.of(outcome, recipe.n_words)
        examples = self._words.examples(outcome, recipe.n_examples)
        return _join(own, words, examples)

    def _spelled_out(self, outcome: int) -> str | None:
        own = self._original.descriptions[outcome]
        name = read_outcomes((self._names[outcome],))[0].casefold().replace("/", " or ")
        return own if name == self._names[outcome].casefold() else name

    def _without_negation(self, best: Wording) -> list[Wording]:
        """Return the positive question with its answers turned round, where it negates."""
        match = _NEGATION.search(best.question)
        if self._kind != "binary" or match is None:
            return []
        positive = best.question[: match.start()] + best.question[match.end() :]
        return [Wording(question=positive, descriptions=("no, it is not so", "yes, it is so"))]


def combine(best: Wording, changed: Sequence[Wording]) -> Wording:
    """Return the changes of several wordings to one, made together; the earlier one goes first.

    >>> best = Wording(question="?", descriptions=(None, None))
    >>> combine(best, [best.describing(0, "a"), best.describing(1, "b")]).descriptions
    ('a', 'b')
    """
    question = next(
        (wording.question for wording in changed if wording.question != best.question), None
    )
    descriptions = [
        next((new for new in news if new != old), old)
        for old, *news in zip(
            best.descriptions, *(wording.descriptions for wording in changed), strict=True
        )
    ]
    return Wording(question=question or best.question, descriptions=tuple(descriptions))


def _join(own: str | None, words: Sequence[str], examples: Sequence[str]) -> str | None:
    parts = [own] if own else []
    if words:
        parts.append(", ".join(words))
    if examples:
        parts.append("such as " + " or ".join(f'"{example}"' for example in examples))
    return "; ".join(parts)[:MAX_DESCRIPTION] or None


def _distinct(made: Sequence[Wording], best: Wording) -> list[Wording]:
    changed = (wording for wording in made if wording != best and wording.question.strip())
    return list(dict.fromkeys(itertools.chain(changed)))
