"""A teacher's questions about a text: the row's own, and those of other rows that fit it.

What a row asks depends on the seed and the row alone, so that a resumed run asks what an unbroken
one would have asked.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from steelyard.decisions.kinds import BINARY_NAMES
from steelyard.decisions.rendering import RenderedDecision, render_outcome
from steelyard_base_recipe.mixture import Row, source_of

#: Fewest and most questions of a text, and most outcomes of a choice.
FEWEST, MOST, MAX_OUTCOMES = 6, 12, 8
#: Longest question in characters.
MAX_QUESTION = 240
#: Share of the choices whose outcomes lose their descriptions.
_THIN = 0.5
#: Share of the questions of other rows that are of the row's own source.
_SAME_SOURCE = 0.5


@dataclass(frozen=True, slots=True)
class Question:
    """One decision as a teacher is asked it, and the label that it has."""

    kind: str
    text: str
    names: tuple[str, ...]
    descriptions: tuple[Any, ...] = ()
    opposite: str = ""
    #: The labelled share of each outcome; empty where nobody labelled it.
    gold: tuple[float, ...] = ()

    def render(self) -> RenderedDecision:
        """Return the decision as a judge reads it."""
        texts = self.names
        if self.descriptions:
            texts = tuple(map(render_outcome, self.names, self.descriptions))
        return RenderedDecision(self.kind, self.text, texts, self.names, opposite=self.opposite)

    def outcomes(self) -> dict[str, Any]:
        """Return the outcomes as a row of the mixture has them."""
        if not self.descriptions:
            return {"outcomes": self.names}
        if self.kind == "ordinal":
            return {"outcomes": self.names, "rubric": self.descriptions}
        return {"outcomes": dict(zip(self.names, self.descriptions, strict=True))}


class QuestionPool:
    """Questions that several rows ask, by the source and the category that they fit."""

    def __init__(self, rows: Iterable[Row], categories: Mapping[str, str]) -> None:
        self._categories = categories
        n_rows: dict[Any, int] = defaultdict(int)
        first: dict[Any, Question] = {}
        for row in rows:
            for question in own_questions(row):
                key = (source_of(row), question.kind, question.text, frozenset(question.names))
                n_rows[key] += 1
                first.setdefault(key, replace(question, gold=()))
        self._texts: set[str] = set()
        self._by_source: dict[str, list[Question]] = defaultdict(list)
        self._by_category: dict[str, list[Question]] = defaultdict(list)
        for key, question in first.items():
            if n_rows[key] > 1:  # else it names what one row alone has
                self._texts.add(question.text)
                self._by_source[key[0]].append(question)
                self._by_category[categories.get(key[0], "")].append(question)

    def has(self, text: str) -> bool:
        """Return whether several rows ask a question."""
        return text in self._texts

    def choose(self, row: Row, rng: np.random.Generator, n_questions: int) -> list[Question]:
        """Return the questions about a row: its own, then others that fit it."""
        chosen = {question.text: thin(question, rng) for question in own_questions(row)}
        source = source_of(row)
        same = self._by_source.get(source, [])
        near = self._by_category.get(self._categories.get(source, ""), [])
        for _ in range(4 * n_questions if near else 0):
            if len(chosen) >= n_questions:
                break
            pool = same if same and rng.random() < _SAME_SOURCE else near
            question = thin(pool[int(rng.integers(len(pool)))], rng)
            chosen.setdefault(question.text, question)
        return list(chosen.values())[:n_questions]


def own_questions(row: Row) -> Iterator[Question]:
    """Return the labelled decisions of a row that are short enough to be asked."""
    for decision in row.decisions:
        shares = row.targets.get(decision["id"])
        outcomes = decision["outcomes"]
        names = tuple(outcomes)
        if shares is None or len(decision["question"]) > MAX_QUESTION:
            continue
        if decision["kind"] == "binary" and names != BINARY_NAMES:
            continue
        described = outcomes.values() if isinstance(outcomes, dict) else decision.get("rubric")
        yield Question(
            decision["kind"],
            decision["question"],
            names,
            tuple(described or ()),
            gold=tuple(float(shares.get(name, 0.0)) for name in names),
        )


def thin(question: Question, rng: np.random.Generator) -> Question:
    """Return a choice with few outcomes, and half of the time with their names alone."""
    if question.kind != "single":
        return question
    places = np.arange(len(question.names))
    if len(places) > MAX_OUTCOMES:
        right = np.flatnonzero(question.gold)[:MAX_OUTCOMES]
        rest = rng.permutation(np.setdiff1d(places, right))[: MAX_OUTCOMES - len(right)]
        places = rng.permutation(np.concatenate([right, rest]).astype(int))
    keeps = bool(question.descriptions) and rng.random() >= _THIN
    return replace(
        question,
        names=_at(question.names, places),
        descriptions=_at(question.descriptions, places) if keeps else (),
        gold=_at(question.gold, places) if question.gold else (),
    )


def _at(values: tuple[Any, ...], places: np.ndarray[Any, Any]) -> tuple[Any, ...]:
    return tuple(values[place] for place in places.tolist())
