"""Text around a context without bearing on it, and questions that it does not answer."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from steelyard_base_recipe.facts import made_fact
from steelyard_base_recipe.mixture import Mixture, MixtureRow
from steelyard_base_recipe.records import made_record, pick

#: Words of unrelated text around a context: the number is drawn evenly in its logarithm.
LEAST_WORDS, MOST_WORDS = 10, 280
#: Share of the texts around a context that are made up: statements, which a message can be told from.
MADE_SHARE = 0.5
#: Sources of texts that state something: no messages, which could be what a choice is about.
PLAIN_SOURCES = (
    "attack_technique",
    "boolq",
    "dbpedia",
    "fewrel",
    "qnli",
    "snli",
)
#: Sources whose yes/no questions ask what a text states: of another text the answer is no.
STATED_SOURCES = (
    "cad_nli",
    "conj_nli",
    "cooking_tags",
    "fever_symmetric",
    "fool_me_twice",
    "mnli",
    "monotonicity_nli",
    "qnli",
    "snli",
)
#: Sources whose choices have nothing to do with the texts of other sources.
NARROW_SOURCES = (
    "attack_technique",
    "bitext_support",
    "booking_slots",
    "cooking_tags",
    "fewrel",
    "hwu64",
    "it_tickets",
    "medical_question_type",
    "metatool",
    "snips",
    "so_tags",
)
#: Of such a question no is the answer of a text that contradicts it.
_INVERSE = re.compile(r"inconsistent|contradict", re.IGNORECASE)
_TRIES = 8


def surround(
    context: str,
    source: str,
    mixture: Mixture,
    rng: np.random.Generator,
    *,
    is_statement: bool = False,
) -> str:
    """Put sentences of other contexts before a context, after it, or on both sides.

    They come from other sources and, unless the context is itself made up, from made-up contexts.
    """
    most_words = int(np.exp(rng.uniform(np.log(LEAST_WORDS), np.log(MOST_WORDS))))
    sentences: list[str] = []
    n_words = 0
    while n_words < most_words:
        row = _row_of(PLAIN_SOURCES, source, mixture, rng)
        if row is None:
            return context
        text = row.context
        if not is_statement and rng.random() < MADE_SHARE:
            # A made-up fact may not stand beside another, which it could contradict.
            text, _ = made_fact(rng, wants_share=0.0) if rng.random() < 0.5 else made_record(rng)
        for sentence in re.split(r"(?<=[.!?])\s+", text):
            words = sentence.split()[: most_words - n_words]
            if words and n_words < most_words:
                sentences.append(" ".join(words))
                n_words += len(words)
    cut = (0, len(sentences), int(rng.integers(len(sentences) + 1)))[int(rng.integers(3))]
    joint = ("\n\n", "\n", " ")[int(rng.integers(3))]
    parts = (" ".join(sentences[:cut]), context, " ".join(sentences[cut:]))
    return joint.join(part for part in parts if part)


def unanswered(source: str, mixture: Mixture, rng: np.random.Generator) -> str | None:
    """Return another source's question about its own text: of this text the answer is no."""
    row = _row_of(STATED_SOURCES, source, mixture, rng)
    for decision in row.decisions if row else ():
        if decision["kind"] == "binary" and not _INVERSE.search(decision["question"]):
            return str(decision["question"])
    return None


def foreign_choice(
    source: str, mixture: Mixture, rng: np.random.Generator
) -> tuple[str, list[str]] | None:
    """Return another source's choice: of its outcomes none fits this text."""
    if source in NARROW_SOURCES:
        # Requests of one assistant are often those of another.
        return None
    decision = _choice_of(_row_of(NARROW_SOURCES, source, mixture, rng))
    return None if decision is None else (str(decision["question"]), list(decision["outcomes"]))


def any_choice(source: str, mixture: Mixture, rng: np.random.Generator) -> dict[str, Any] | None:
    """Return another source's choice, whether one of its outcomes fits this text or not."""
    sources = tuple(mixture.labels)
    rows = (_row_of(sources, source, mixture, rng) for _ in range(_TRIES))
    return next((choice for row in rows if (choice := _choice_of(row)) is not None), None)


def misleading(
    context: str, names: list[str], source: str, mixture: Mixture, rng: np.random.Generator
) -> str | None:
    """Return a label of the source that shares a word with the context and is not an outcome."""
    words = _words(context)
    labels = mixture.labels.get(source, [])
    known = {name.casefold() for name in names}
    for i in rng.integers(len(labels), size=4 * _TRIES) if labels else ():
        label = labels[int(i)]
        if label.casefold() not in known and _words(label) & words:
            return label
    return None


def _row_of(
    sources: tuple[str, ...], own: str, mixture: Mixture, rng: np.random.Generator
) -> MixtureRow | None:
    names = [name for name in sources if name != own and mixture.rows.get(name)]
    if not names:
        return None
    return pick(mixture.rows[pick(names, rng)], rng)


def _choice_of(row: MixtureRow | None) -> dict[str, Any] | None:
    """Return a row's first choice."""
    decisions = row.decisions if row is not None else ()
    return next((decision for decision in decisions if decision["kind"] == "single"), None)


def _words(text: str) -> set[str]:
    return set(re.findall(r"[a-z]{4,}", text.casefold().replace("_", " ")))
