"""The rows of the behaviour suite, made of ``rows.toml``: questions and right answers.

Every row has a group, so that a measure knows its rows, and a key, by which rows that ask the same
in other words are found.
"""

from __future__ import annotations

import random
import re
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

YES_NO = ("yes", "no")
LEVELS = ("not urgent", "slightly urgent", "moderately urgent", "very urgent", "extremely urgent")
NONE = "none of these"
#: Words around a context, and how they are laid: before, after, half and half.
DISTRACTING_WORDS = 200
PLACES = ("before", "after", "around")
WORDINGS = (
    "What does the message want?",
    "Which of these fits the text best?",
    "Please choose the topic that the writer is concerned with.",
)
#: Ways to write the names of options, by the name of the way.
NAMINGS: dict[str, Callable[[Sequence[str]], list[str]]] = {
    "lettered": lambda names: [f"{chr(65 + i)}) {name}" for i, name in enumerate(names)],
    "numbered": lambda names: [f"{i}. {name}" for i, name in enumerate(names, start=1)],
    "camelCase": lambda names: [re.sub(r" (\w)", lambda m: m[1].upper(), n) for n in names],
    "snake_case": lambda names: [name.replace(" ", "_") for name in names],
    "capitals": lambda names: [name.title() for name in names],
}


@dataclass(frozen=True, slots=True)
class BehaviourRow:
    """One question on one context; ``right`` is None where no outcome is.

    ``group`` is the measure it is for; ``key`` has the domain first, and rows of one key ask the
    same of the same message or fact.
    """

    group: str
    key: tuple[str, ...]
    context: str
    kind: str
    question: str
    outcomes: tuple[str, ...]
    right: int | None


@dataclass(frozen=True, slots=True)
class BehaviourFact:
    """A fact in its wordings; see the file."""

    holds: str
    fails: str
    ask: str
    ask_opposite: str
    claim: str
    denied: str


@dataclass(frozen=True, slots=True)
class Domain:
    """The parts of a domain's rows; see the file."""

    name: str
    is_reserved: bool
    facts: tuple[BehaviourFact, ...]
    intents: dict[str, tuple[str, str, str]]
    fillers: tuple[str, ...]
    levels: tuple[str, ...]
    traps: tuple[tuple[str, str, str], ...]


def read_domains() -> list[Domain]:
    """Load the domains that the rows are made of."""
    content = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    return [_domain(name, value) for name, value in content.items()]


def make_rows(domains: Sequence[Domain] | None = None) -> list[BehaviourRow]:
    """Make every row; the same ones in every run."""
    domains = read_domains() if domains is None else domains
    rows: list[BehaviourRow] = []
    for domain in domains:
        others = [other for other in domains if other is not domain]
        rows += _polarity(domain)
        rows += _absent(domain)
        rng = random.Random(domain.name)  # noqa: S311 (seeded, so that every run has the same rows)
        rows += _choices(domain, rng, others)
        for i, text in enumerate(domain.levels):
            question = "How urgent is this?"
            key = (domain.name, text)
            rows.append(BehaviourRow("ordinal", key, text, "ordinal", question, LEVELS, i))
    return rows


def negations(fact: BehaviourFact) -> dict[str, str]:
    """Return the questions whose answer is the other one, by how they are made."""
    return {
        "opposite": fact.ask_opposite,
        "false": f"Is it false that {fact.claim}?",
        "not": f"Is it true that {fact.denied}?",
    }


def _polarity(domain: Domain) -> Iterator[BehaviourRow]:
    for fact in domain.facts:
        for text, right in ((fact.holds, 0), (fact.fails, 1)):
            key = (domain.name, fact.ask, text)
            yield BehaviourRow("asked", key, text, "binary", fact.ask, YES_NO, right)
            for made, question in negations(fact).items():
                group = f"negated: {made}"
                yield BehaviourRow(group, key, text, "binary", question, YES_NO, 1 - right)
            claims = (fact.claim, fact.denied)
            question = "Which statement is true?"
            yield BehaviourRow("claims", key, text, "single", question, claims, right)


def _absent(domain: Domain) -> Iterator[BehaviourRow]:
    for i, fact in enumerate(domain.facts):
        question = f"Does the text say that {fact.claim}?"
        other = domain.facts[(i + 1) % len(domain.facts)].holds
        silent = f"{other} {domain.fillers[i % len(domain.fillers)]}"
        stated = f"{fact.holds} {domain.fillers[i % len(domain.fillers)]}"
        for group, text, right in (("stated", stated, 0), ("not stated", silent, 1)):
            key = (domain.name, fact.ask, text)
            yield BehaviourRow(group, key, text, "binary", question, YES_NO, right)


def _choices(
    domain: Domain, rng: random.Random, others: Sequence[Domain]
) -> Iterator[BehaviourRow]:
    names = tuple(domain.intents)
    messages = [(name, text) for name in names for text in domain.intents[name][1:]]
    for at, (name, text) in enumerate(messages):
        key, right = (domain.name, text), names.index(name)

        def row(
            group: str,
            *,
            context: str = text,
            question: str = WORDINGS[0],
            outcomes: Sequence[str] = names,
            right: int | None = right,
            key: tuple[str, ...] = key,
        ) -> BehaviourRow:
            return BehaviourRow(group, key, context, "single", question, tuple(outcomes), right)

        yield row("choice")
        for question in WORDINGS[1:]:
            yield row("paraphrased", question=question)
        for style, written in NAMINGS.items():
            yield row(f"named: {style}", outcomes=written(names))
        place = PLACES[at % len(PLACES)]
        yield row(f"distracted: {place}", context=_around(text, place, rng, others))
        yield row("none offered", outcomes=(*names, NONE))
        left = [other for other in names if other != name]
        yield row("none right", outcomes=(*left, NONE), right=len(left))
    for text, meant, alike in domain.traps:
        yield BehaviourRow(
            f"trap: {alike}",
            (domain.name, text),
            text,
            "single",
            WORDINGS[0],
            names,
            names.index(meant),
        )


def _around(text: str, place: str, rng: random.Random, others: Sequence[Domain]) -> str:
    """Put sentences of other domains before a text, after it, or around it."""
    sentences: list[str] = []
    while sum(len(sentence.split()) for sentence in sentences) < DISTRACTING_WORDS:
        other = rng.choice(others)
        fact = rng.choice(other.facts)
        sentences.append(rng.choice((*other.fillers, fact.holds, fact.fails)))
    cut = {"before": len(sentences), "after": 0, "around": len(sentences) // 2}[place]
    return " ".join([*sentences[:cut], text, *sentences[cut:]])


def _domain(name: str, value: dict[str, Any]) -> Domain:
    def parts(text: str, n: int) -> tuple[str, ...]:
        pieces = tuple(part.strip() for part in text.split("|"))
        if len(pieces) != n or not all(pieces):
            raise ValueError(f"{name}: {text!r} has {len(pieces)} parts; write {n}.")
        return pieces

    intents = {key: parts(text, 3) for key, text in value["intents"].items()}
    return Domain(
        name,
        value.get("reserved", False),
        tuple(BehaviourFact(*parts(text, 6)) for text in value["facts"]),
        {key: (intent[0], intent[1], intent[2]) for key, intent in intents.items()},
        tuple(value["fillers"]),
        tuple(value["levels"]),
        tuple((trap[0], trap[1], trap[2]) for trap in (parts(text, 3) for text in value["traps"])),
    )
