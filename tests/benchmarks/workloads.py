"""Made-up requests of wanted sizes for the speed benchmark: the same ones on every machine."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

#: Characters of a context by name: the training text's median, its 99th percentile, a long mail.
CONTEXTS = {"short": 80, "medium": 1_800, "long": 8_000}
QUESTIONS = (1, 3, 10, 64)
OUTCOMES = (2, 4, 20, 77)

_TEXT = """
account address agree amount answer arrive bank bill book box branch build call card
carry case change charge check city claim close cold come copy cost cover credit
customer date day deal delay deliver delivery device door email enter error evening fee
file find form friend garden give group hand help hold home hotel hour house invoice
item journey keep key late leave letter light line list loan lost market message minute
money morning move name need new night number offer office open order paper park part
pay payment people phone plan plate please price problem quick rain rate reach reason
receipt refund rent reply report request return road room sale school send service ship
shop show sign size slow small start state station stop store street summer system table
take team tell ticket time town track train transfer travel update urgent visit wait
walk water week window winter word work wrong year
"""
_WORDS = _TEXT.split()


def make_payload(
    *, context: str, n_questions: int, n_outcomes: int, first_question: int = 0
) -> bytes:
    """Return a decide request: yes/no questions for 2 outcomes, a choice of labels for more.

    Questions and labels depend on their number alone, so that requests that differ in context
    share them, as an application's do; from another first number on they are others.
    """
    decisions = []
    for number in range(first_question, first_question + n_questions):
        rng = np.random.default_rng([1, number])
        decision: dict[str, Any] = {
            "id": f"q{number}",
            "question": f"{_phrase(rng, 9).capitalize()}?",
            "kind": "binary" if n_outcomes == 2 else "single",
        }
        if n_outcomes > 2:
            names = (_phrase(rng, 2 + index % 3) for index in range(4 * n_outcomes))
            decision["outcomes"] = list(dict.fromkeys(names))[:n_outcomes]
        decisions.append(decision)
    return json.dumps({"context": context, "decisions": decisions}).encode()


def make_context(n_characters: int, number: int) -> str:
    """Return words up to so many characters; another number gives others."""
    rng = np.random.default_rng([2, n_characters, number])
    return _phrase(rng, n_characters // 4 + 1)[:n_characters]


def _phrase(rng: np.random.Generator, n_words: int) -> str:
    return " ".join(rng.choice(_WORDS, n_words))
