"""Questions asked the other way round, and in other words, by rules.

A negated question has the other answer, so that a context asked both ways teaches to read the question
and not only its topic. Rules are many and plain: a lesson from one form carries over to near forms
alone.
"""

from __future__ import annotations

import re

import msgspec
import numpy as np

from steelyard_base_recipe.made_rows import load_rows
from steelyard_base_recipe.records import pick

#: Nouns that end the subject of a question in the data.
_HEADS = (
    "action answer argument article assistant author claim comment content context conversation "
    "critic customer document email film guest headline intent issue item message movie paper "
    "passage person player post product prompt query question reply request response review "
    "reviewer rule rules sentence speaker statement student summary text thread ticket tool tools "
    "tweet user word words writer"
)
_SUBJECT = (
    r"(?:(?:this|that|the|these|those|a|an|one of the|any of the|every)(?: [\w,'-]+){0,4}? (?:"
    + "|".join(_HEADS.split())
    + r")\b(?! of\b)|this|it|there|i|we|someone|most people|what the person did)"
)
_AUXILIARY = r"is|are|was|were|does|do|did|can|could|would|should|will|has|have|may|must"
_PARTS = re.compile(rf"({_AUXILIARY}) ({_SUBJECT}) (.+)", re.IGNORECASE | re.DOTALL)

#: Questions on whether a text bears a statement out: their beginnings, and how the opposite begins.
_BORNE_OUT = re.compile(
    r"(?:is this (?:statement|summary) supported by the text\?|does the text establish that:?|"
    r"according to the text, is it true that:?|does it follow from the text that:?|"
    r"can we conclude:?|do the facts and rules prove that:?)\s*(.+)",
    re.IGNORECASE | re.DOTALL,
)


class _Forms(msgspec.Struct):
    supported: tuple[str, ...]
    unsupported: tuple[str, ...]
    same: tuple[str, ...]
    other: tuple[str, ...]
    true: tuple[str, ...]
    false: tuple[str, ...]


_FORMS = load_rows("negation.toml", _Forms)


def negated(question: str, rng: np.random.Generator) -> str:
    """Return a question whose answer is the other one."""
    borne = _BORNE_OUT.fullmatch(question.strip())
    if borne and rng.random() < 0.8:
        return pick(_FORMS.unsupported, rng).format(s=borne[1])
    parts = split_question(question)
    if parts is None or borne or rng.random() < 0.2:
        return pick(_FORMS.other, rng).format(q=_marked(question))
    verb, subject, rest = parts
    forms = [
        pick(_FORMS.false, rng).format(s=statement(parts)),
        pick(_FORMS.true, rng).format(s=statement(parts, denied=True)),
        _sentence(statement(parts, denied=True)),
        f"{verb.capitalize()} {subject} not {rest}?",
    ]
    if verb in ("does", "do", "did"):
        forms.append(f"{verb.capitalize()} {subject} fail to {rest}?")
    return pick(forms, rng)


def reworded(question: str, rng: np.random.Generator) -> str:
    """Return the question in other words, with the same answer: no negation without its like."""
    borne = _BORNE_OUT.fullmatch(question.strip())
    if borne and rng.random() < 0.8:
        return pick(_FORMS.supported, rng).format(s=borne[1])
    parts = split_question(question)
    draw = rng.random()
    if parts is None or borne or draw < 0.25:
        return pick(_FORMS.same, rng).format(q=_marked(question))
    if draw < 0.6:
        return pick(_FORMS.true, rng).format(s=statement(parts))
    if draw < 0.75:
        return _sentence(statement(parts))
    # Two negations: what has the word "false" or "not" is not always the other answer.
    return pick(_FORMS.false, rng).format(s=statement(parts, denied=True))


def split_question(question: str) -> tuple[str, str, str] | None:
    """Return the auxiliary, subject and rest of a question; None where its form is another."""
    text = question.strip()
    if not text.endswith("?") or "?" in text[:-1] or ":" in text:
        return None
    match = _PARTS.fullmatch(text[:-1])
    if match is None:
        return None
    verb, subject, rest = match.groups()
    return verb.lower(), subject if subject == "I" else subject[:1].lower() + subject[1:], rest


def statement(parts: tuple[str, str, str], *, denied: bool = False) -> str:
    """Return a question's parts as a statement, or as its denial."""
    verb, subject, rest = parts
    return f"{subject} {verb} {'not ' if denied else ''}{rest}"


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _marked(question: str) -> str:
    return question if question.rstrip().endswith(("?", ".", "!")) else f"{question.rstrip()}?"
