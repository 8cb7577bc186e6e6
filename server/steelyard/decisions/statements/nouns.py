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
    "antisemitism arson asthma bigotry coercion constipation deception defamation diarrhea diarrhoea duress "
    "entrapment evasion exploitation hatred hearsay homophobia impersonation infringement insomnia "
    "intimidation obesity perjury pneumonia retaliation sepsis solicitation xenophobia "
    "abuse access advertising advice aggression alcohol anger anxiety approval assistance attention "
    "authorisation authorization bandwidth banter blackmail bleeding blood bloodshed bragging bribery "
    "bullying cancer care cash chat cheating clarity clickbait code collusion compliance "
    "confidentiality consensus consent content corruption counterfeiting coverage creativity crime "
    "criticism cruelty damage data dating dehydration delivery depression discrimination "
    "disinformation documentation downtime doxxing education electricity encouragement entertainment "
    "equipment espionage evidence experience expertise extortion fatigue feedback flattery food fraud "
    "freedom fun furniture gambling gibberish gore gossip gouging gratitude grooming growth guidance "
    "harassment harm hate health help homework hope housing humor humour identification incitement "
    "income inflation info information insurance interest irony jargon jealousy jurisdiction justice "
    "knowledge labor labour land laughter laundering leakage legalese legislation liability logic "
    "love luck machinery mail maintenance manipulation malpractice malware marketing medication medicine "
    "misconduct misinformation money music nausea negligence nepotism news noise nonsense nudity "
    "outreach pain paperwork parking permission phishing piracy plagiarism pollution porn pornography "
    "pressure pricing privacy profanity progress proof propaganda property protection racism rain "
    "research respect rubbish sabotage safety sarcasm satire security self-harm sexism shipping "
    "signaling slander slang smoke snow spam speech staff stalking storage stress stuff support "
    "surveillance swelling sympathy talk tax terrorism theft time trading traffic training transport "
    "trash travel treason trivia trolling trouble trust unrest urgency vandalism violence vomiting "
    "waste water weather work"
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
        verbal = min(classes.get("E", 9.0), classes.get("I", 9.0))
        if i and "N" in classes_of(tokens[i - 1]) and verbal < classes.get("N", 9.0):
            # "Disputes arising here".
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
    head = head_of(tokens)
    # "Hate speech" is one token.
    word = head.word.rpartition(" ")[2] if head.is_compound else head.word
    return (
        word in _MASS
        or word.startswith("self-")
        or word.endswith(("ism", "ness", "ware", "ship", "hood"))
    )


def indefinite_article(word: str) -> str:
    """Return the article that goes before a word.

    >>> [indefinite_article(word) for word in ("order", "user", "hour", "refund")]
    ['an', 'a', 'an', 'a']
    """
    if word.startswith(_AS_CONSONANTS):
        return "a"
    return "an" if word.startswith((*_VOWEL_SOUNDS, "hour", "hono", "heir")) else "a"
