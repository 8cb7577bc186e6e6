"""Nouns: their number, whether they are counted, and their article."""

from __future__ import annotations

from collections.abc import Sequence

from steelyard.decisions.statements.classes import classes_of
from steelyard.decisions.statements.tokens import Token
from steelyard.decisions.words import singular, word_set

_PLURALS = word_set(
    "people children men women police feet teeth mice data i you we they these those"
)
_SINGULARS = word_set("news he she it this that series gas bus lens")
#: Nouns that take no "a".
_MASS = word_set(
    "abuse access advertising advice aggression alcohol anger anxiety approval assistance attention "
    "authorisation authorization bandwidth blackmail blood bullying cancer care cash chat "
    "cheating clarity code compliance confidentiality consent content corruption coverage "
    "creativity crime criticism damage data delivery depression discrimination disinformation "
    "documentation doxxing education electricity encouragement entertainment equipment evidence "
    "experience expertise feedback food fraud freedom fun furniture gambling gore gossip gratitude "
    "growth guidance harassment harm hate health help hope housing humour humor identification "
    "income incitement inflation info information insurance interest irony jealousy jurisdiction "
    "justice knowledge labour labor land laughter legislation liability logic love luck machinery "
    "maintenance malpractice marketing medication medicine misconduct misinformation money music "
    "negligence news noise nonsense nudity pain parking permission phishing plagiarism pollution "
    "porn pornography pressure pricing privacy proof profanity progress propaganda property protection racism "
    "rain research respect rubbish safety sarcasm satire security self-harm sexism shipping slander "
    "smoke snow spam speech staff storage stress stuff support surveillance sympathy talk tax "
    "terrorism theft time traffic training transport trash travel treason trolling trouble trust "
    "unrest urgency vandalism violence waste water weather work"
)
_VOWEL_SOUNDS = ("a", "e", "i", "o", "u")
_AS_CONSONANTS = ("uni", "use", "usa", "usu", "eu", "one", "once", "ut")


def head_of(tokens: Sequence[Token]) -> Token:
    """Return the noun that others qualify, roughly: the last before a preposition or a clause."""
    head = tokens[0]
    for i, token in enumerate(tokens):
        classes = classes_of(token, is_first=i == 0)
        if i and ({"P", "H", "R", "O", "S"} & set(classes) and "N" not in classes):
            break
        if "N" in classes or "Q" in classes:
            head = token
    return head


def is_plural(tokens: Sequence[Token]) -> bool:
    """Return whether a subject takes a plural verb."""
    if "and" in {token.word for token in tokens}:
        return True
    word = head_of(tokens).word
    if word in _PLURALS:
        return True
    return word not in _SINGULARS and singular(word) != word


def is_mass(tokens: Sequence[Token]) -> bool:
    """Return whether a noun is not counted: it takes no "a"."""
    word = head_of(tokens).word
    return word in _MASS or word.endswith(("ism", "ness", "ware", "ship", "hood"))


def indefinite_article(word: str) -> str:
    """Return the article that goes before a word.

    >>> [indefinite_article(word) for word in ("order", "user", "hour", "refund")]
    ['an', 'a', 'an', 'a']
    """
    if word.startswith(_AS_CONSONANTS):
        return "a"
    return "an" if word.startswith((*_VOWEL_SOUNDS, "hour", "hono", "heir")) else "a"
