"""Messages to organisations of many kinds, and choices of their subject.

The sources of the mixture with such choices are few; here their outcomes are named in everyday words,
and a message mostly does not use the words of its outcome.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from steelyard_base_recipe.made_rows import load_rows
from steelyard_base_recipe.records import MadeQuestion, pick

#: Share of the choices that have an outcome for none of the others, and of these where it is right.
OTHER_SHARE, OTHER_RIGHT = 0.35, 0.08
#: Share of the choices between organisations, not between the intents of one.
ORGANISATIONS_SHARE = 0.2
_QUESTIONS = (
    "What is the message about?",
    "What is this about?",
    "Which subject does it belong to?",
    "What does the writer write about?",
    "Which topic is it?",
    "Choose what the message is on.",
    "What is it that the writer brings up?",
    "Classify the message.",
    "Who should deal with it: the people for what?",
)
_RECEIVERS = (
    "Which organisation was it written to?",
    "Who is the message for?",
    "Whom did the writer write to?",
    "Where does it belong?",
)
_OTHERS = ("other", "something else", "none of these", "anything else", "general")
_HELLOS = ("Hello!", "Good evening,", "Dear all,", "Hi there.", "Dear Sir or Madam,")
_GOODBYES = ("Thank you.", "Kind regards", "Many thanks in advance!", "Please answer soon.", "Bye.")


@cache
def organisations() -> dict[str, dict[str, tuple[str, ...]]]:
    """Return every organisation with its subjects, and messages on each."""
    return load_rows("intents.toml", dict[str, dict[str, tuple[str, ...]]])


def made_intent(rng: np.random.Generator) -> tuple[str, list[MadeQuestion]]:
    """Return a message, and a choice of its subject, asked in two wordings."""
    names = list(organisations())
    receiver = pick(names, rng)
    about = list(organisations()[receiver])
    right = pick(about, rng)
    text = pick(organisations()[receiver][right], rng)
    text = text if text.endswith(("?", "!")) else f"{text}."
    questions: tuple[str, ...] = _QUESTIONS
    if rng.random() < ORGANISATIONS_SHARE:
        # An organisation that gets messages on the same subject could be right too: leave it out.
        about = [name for name in names if name == receiver or right not in organisations()[name]]
        right, questions = receiver, _RECEIVERS
    others = [name for name in about if name != right]
    others = [others[i] for i in rng.permutation(len(others))[: int(rng.integers(2, 9))]]
    outcomes = [right, *others]
    if rng.random() < OTHER_SHARE:
        if len(outcomes) > 3 and rng.random() < OTHER_RIGHT:
            del outcomes[0]
            right = pick(_OTHERS, rng)
            outcomes.append(right)
        else:
            outcomes.append(pick(_OTHERS, rng))
    order = rng.permutation(len(outcomes))
    shown = tuple(outcomes[i] for i in order)
    if rng.random() < 0.3:
        text = f"{pick(_HELLOS, rng)} {text}"
    if rng.random() < 0.3:
        text = f"{text} {pick(_GOODBYES, rng)}"
    chosen = rng.permutation(len(questions))[:2]
    return text, [MadeQuestion("single", questions[i], shown, shown.index(right)) for i in chosen]
