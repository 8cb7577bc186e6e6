"""Facts in everyday words: texts that bear them out, texts that rule them out, and questions.

A lexicon of opposites (``records``) teaches the words of an opposite; here a text and a question say
the same in other words, as people do. A quarter of the questions refuse the opposite, so that "not"
or "false" alone gives no answer away.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import msgspec
import numpy as np

from steelyard_base_recipe.made_rows import load_rows
from steelyard_base_recipe.records import NAMES, MadeQuestion, pick

#: Share of made-up facts that are on what the writer of a message wants.
WANTS_SHARE = 0.3
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_AFFIRMED = (
    "Is it true that {c}?",
    "Does the text say that {c}?",
    "Is it correct to say that {c}?",
    "Can one conclude that {c}?",
    "Would you say that {c}?",
    "According to the text, is it so that {c}?",
    "Does it follow that {c}?",
    "{C}.",
)
_REFUSED = (
    "Is it false that {c}?",
    "Is it untrue that {c}?",
    "Is it wrong to say that {c}?",
    "Is it not the case that {c}?",
    "Does the text rule out that {c}?",
    "Does the text deny that {c}?",
    "Would you deny that {c}?",
    "Is the opposite of this true: {c}?",
)
_CHOICES = (
    "Which statement is true?",
    "Which of these does the text bear out?",
    "What follows from the text?",
    "Which one is right?",
)
#: What asks after a text's own words: of a thing that it does not speak of, the answer is no.
_SAYS = ("Does the text say that {c}?", "Does the text tell us that {c}?", "Is it stated that {c}?")
#: What stands around a message, and changes nothing of what it wants.
_AROUND = (
    "Hello",
    "Good morning",
    "Customer number {n}",
    "Best regards, {who}",
    "{who}",
    "Dear team",
)
_JOINTS = (" ", " ", " ", "\n", "\n\n")


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact in its wordings."""

    holds: tuple[str, ...]
    fails: tuple[str, ...]
    asks: tuple[str, ...]
    opposites: tuple[str, ...]
    claim: str
    denied: str


class _Rows(msgspec.Struct):
    facts: tuple[Fact, ...]
    wants: tuple[Fact, ...]


@cache
def _rows() -> _Rows:
    return load_rows("facts.toml", _Rows)


def facts() -> tuple[Fact, ...]:
    """Return every fact that may stand beside others."""
    return _rows().facts


def wants() -> tuple[Fact, ...]:
    """Return every fact on the wishes of the writer of a message."""
    return _rows().wants


def made_fact(
    rng: np.random.Generator, *, wants_share: float = WANTS_SHARE
) -> tuple[str, list[MadeQuestion]]:
    """Return a context that supports or contradicts a fact, and questions on it both ways.

    The context has up to three other facts around the one that is asked about. A share of the facts is
    about the wishes of a message's writer.
    """
    fact, *others, absent = (facts()[i] for i in rng.permutation(len(facts()))[:5])
    others = others[: int(rng.integers(4))]
    around: list[str] = []
    if rng.random() < wants_share:
        fact, others = pick(wants(), rng), []
        around = [_AROUND[i] for i in rng.permutation(len(_AROUND))[: int(rng.integers(3))]]
    given = {
        "who": pick(NAMES, rng),
        "day": pick(_DAYS, rng),
        "n": str(int(rng.integers(1_000, 99_999))),
        "i": f"{int(rng.integers(24))}:{int(rng.integers(60)):02}",
    }
    holds = bool(rng.random() < 0.5)
    statements = [
        pick(stated.holds if is_so else stated.fails, rng)
        for stated, is_so in [(fact, holds), *((o, rng.random() < 0.5) for o in others)]
    ]
    texts = [_sentence(_worded(text, given)) for text in (*statements, *around)]
    context = pick(_JOINTS, rng).join(texts[i] for i in rng.permutation(len(texts)))
    drawn = [
        MadeQuestion(
            "binary",
            _worded(_question(fact, is_so, rng), given),
            ("yes", "no"),
            int(is_so != holds),
        )
        for is_so in (True, False)
    ]
    if rng.random() < 0.6:
        # What is stated and what is not, in the same words; as often yes as no, or nearly.
        of, right = (fact, int(not holds)) if rng.random() < 0.85 else (absent, 1)
        claim = of.claim if rng.random() < 0.5 or of is absent else of.denied
        right = 1 - right if claim == fact.denied else right
        question = _worded(pick(_SAYS, rng).format(c=claim), given)
        drawn.append(MadeQuestion("binary", question, ("yes", "no"), right))
    if rng.random() < 0.5:
        order = rng.permutation(2).tolist()
        claims = [_worded((fact.claim, fact.denied)[i], given, capital=False) for i in order]
        drawn.append(
            MadeQuestion("single", pick(_CHOICES, rng), tuple(claims), order.index(int(not holds)))
        )
    return context, [drawn[i] for i in rng.permutation(len(drawn))]


def _sentence(text: str) -> str:
    return text if text.endswith("?") else f"{text}."


def _question(fact: Fact, is_so: bool, rng: np.random.Generator) -> str:
    """Return a question whose answer is yes where the fact holds, or where it does not."""
    draw = rng.random()
    if draw < 0.45:
        return pick(fact.asks if is_so else fact.opposites, rng)
    claim, denied = (fact.claim, fact.denied) if is_so else (fact.denied, fact.claim)
    form, clause = (pick(_AFFIRMED, rng), claim) if draw < 0.75 else (pick(_REFUSED, rng), denied)
    return form.format(c=clause, C=clause[:1].upper() + clause[1:])


def _worded(text: str, given: dict[str, str], *, capital: bool = True) -> str:
    worded = text.format(**given)
    return worded[:1].upper() + worded[1:] if capital else worded
