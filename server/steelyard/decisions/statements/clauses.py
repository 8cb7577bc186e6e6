"""Clauses as a subject, an auxiliary and the rest, and how they are written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from steelyard.decisions.statements.classes import classes_of
from steelyard.decisions.statements.inflection import past, third_person
from steelyard.decisions.statements.tokens import Token, join, words_of
from steelyard.decisions.words import word_set

Tokens = tuple[Token, ...]

DO = frozenset(("do", "does", "did"))
HAVE = frozenset(("has", "have", "had"))
BE = frozenset(("is", "are", "was", "were", "am"))
#: Adverbs before a verb, which "not" stands before.
ADVERBS = word_set(
    "also already actually really ever still always often usually sometimes explicitly clearly "
    "directly even just only fully currently now generally normally regularly openly seriously "
    "specifically truly simply never not ever yet too personally correctly properly successfully"
)
#: What another verb costs less than is one for certain.
_SURE = 1.2


class DeclinedError(Exception):
    """Raised inside where no rule turns a question for certain."""


@dataclass(frozen=True, slots=True)
class Clause:
    """One clause; the auxiliary is in its positive form, and ``do`` also where it is not written."""

    subject: Tokens
    auxiliary: str
    rest: Tokens
    #: Words in front, such as a condition.
    lead: Tokens = ()
    #: Whether ``have`` is the verb itself: "Has she a car?"
    is_possession: bool = False


def write(clause: Clause, subject: Tokens, rest: Tokens) -> str:
    """Return a sentence of a subject and the rest behind a clause's lead."""
    start = Token(subject[0].text, " ", subject[0].word)
    tokens = (*clause.lead, start, *subject[1:], *rest)
    text = join(Token("I", token.before, "i") if token.text == "i" else token for token in tokens)
    first = tokens[0].word
    is_code = "_" in first or (first.endswith(")") and " " not in first)
    size = 2 if text.startswith('"') else 1
    return f"{text if is_code else text[:size].upper() + text[size:]}."


def predicate(clause: Clause, rest: Tokens) -> Tokens:
    """Return the verb of a clause that is not denied, and the rest."""
    if clause.auxiliary in DO:
        return inflect(rest, clause.auxiliary)
    return (*words_of(clause.auxiliary), *rest)


def inflect(rest: Tokens, auxiliary: str) -> Tokens:
    """Return the words after ``do``, ``does`` or ``did`` with their verbs inflected.

    >>> from steelyard.decisions.statements.tokens import tokenize
    >>> join(inflect(tuple(tokenize("also want a refund")), "does"))
    'also wants a refund'
    """
    place = _verb_place(rest)
    words = list(rest)
    words[place] = _inflected(words[place], auxiliary)
    for i in range(place + 1, len(rest) - 1):
        verb = _after_adverbs(rest, i + 1)
        if rest[i].word in {"and", "or"} and _is_verb_beside(rest, place, i, verb):
            words[verb] = _inflected(rest[verb], auxiliary)
    return tuple(words)


def _verb_place(rest: Sequence[Token]) -> int:
    for place, token in enumerate(rest):
        classes = classes_of(token)
        if "V" in classes and not (token.word in ADVERBS and place + 1 < len(rest)):
            return place
        if token.word not in ADVERBS and not {"A", "C"} & classes.keys():
            break
    raise DeclinedError


def _after_adverbs(rest: Sequence[Token], place: int) -> int:
    """Return the place of the first word from a place on that is no adverb and no "at least"."""
    while place + 1 < len(rest):
        is_least = rest[place].word == "at" and rest[place + 1].word in {"least", "most"}
        if not is_least and "A" not in classes_of(rest[place]):
            break
        place += 2 if is_least else 1
    return min(place, len(rest) - 1)


def _is_verb_beside(rest: Sequence[Token], place: int, conjunction: int, second: int) -> bool:
    """Return whether the second verb, behind a conjunction, belongs to the subject as the first does."""
    classes = dict(classes_of(rest[second]))
    verb = classes.pop("V", None)
    other = min(classes.values(), default=9.0)
    if verb is None or verb > other + 1.0:
        return False
    between = rest[place + 1 : conjunction]
    kinds = [classes_of(token).keys() for token in rest]
    if any(
        token.word == "to" and "V" in kind
        for token, kind in zip(between, kinds[place + 2 :], strict=False)
    ):
        # "Wants to cancel and get": the second goes with "to".
        if between[-1].word == ",":
            raise DeclinedError
        return False
    is_nested = any({"R", "X"} & kind for kind in kinds[place + 1 : conjunction])
    # "A refund or mention a bank": no noun stands before "a".
    has_object = any(
        {"D", "G", "Q"} & kind and not {"N", "R"} & kind for kind in kinds[second + 1 :][:1]
    )
    has_object = has_object or second > conjunction + 1
    if between and (is_nested or (other < verb + _SURE and not has_object)):
        raise DeclinedError
    return True


def _inflected(token: Token, auxiliary: str) -> Token:
    if auxiliary == "do":
        return token
    if "(" in token.word:
        raise DeclinedError
    phrase, space, adverb = token.word.partition(" ")
    prefix, dash, verb = phrase.rpartition("-")
    form = third_person(verb) if auxiliary == "does" else past(verb)
    inflected = f"{prefix}{dash}{form}{space}{adverb}"
    aside = token.text[len(token.word) :]
    return replace(token, text=inflected + aside, word=inflected)
