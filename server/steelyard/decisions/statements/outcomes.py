"""A question and one of its outcomes or levels as a statement."""

from __future__ import annotations

from steelyard.decisions.rendering import read_outcomes
from steelyard.decisions.statements.clauses import DO, DeclinedError, Tokens, predicate
from steelyard.decisions.statements.lexicon import base_of
from steelyard.decisions.statements.reading import read_question
from steelyard.decisions.statements.tokens import join, tokenize, words_of
from steelyard.decisions.statements.turning import KINDS, clause_of_question
from steelyard.decisions.words import word_set

_WHO = word_set("who whom")
_WHICH = word_set("which what")
_THIS = word_set("this it that")
_END = "?.! "
#: Words of the shortest question, and of the shortest description that may be a sentence.
_SHORTEST = 3


def statement_of_outcome(question: str, name: str, description: str | None = None) -> str:
    """Return the statement that an outcome is the answer, or a level with its line of the rubric.

    A description that is a sentence is the statement; else the question and the name make one.

    >>> statement_of_outcome("Which team should own this ticket?", "billing", "charges and refunds")
    'The team that should own this ticket is billing (charges and refunds).'
    >>> statement_of_outcome("How urgent is it?", "2", "The customer cannot work.")
    'The customer cannot work.'
    >>> statement_of_outcome("Where to?", "returns")
    'The answer to "Where to?" is returns.'
    """
    description = " ".join((description or "").split())
    if description and _is_sentence(description):
        return f"{description[:1].upper()}{description[1:].rstrip(_END)}."
    named = read_outcomes((name,))[0]
    outcome = f"{named} ({description.rstrip(_END)})" if description else named
    question = " ".join(question.split())
    try:
        subject = join(_subject_of(tuple(tokenize(question.rstrip(_END)))))
    except DeclinedError:
        subject = f'The answer to "{question}"'
    return f"{subject[:1].upper()}{subject[1:]} is {outcome}."


def _is_sentence(description: str) -> bool:
    return (
        len(description.split()) >= _SHORTEST
        and description.endswith((".", "!"))
        and read_question(description) is not None
    )


def _subject_of(tokens: Tokens) -> Tokens:
    """Return the noun that a question asks for, with its clause.

    Raises
    ------
    DeclinedError
        Where it is no question for one of several.
    """
    if len(tokens) < _SHORTEST or tokens[0].word not in _WHO | _WHICH:
        raise DeclinedError
    place = next((i for i in range(1, len(tokens) - 1) if _is_verb(tokens, i)), None)
    if place is None:
        raise DeclinedError
    noun, rest = tokens[1:place], tokens[place + 1 :]
    is_being = KINDS.get(tokens[place].word) == "be"
    if not noun and tokens[0].word in _WHICH and is_being:
        # "What is the topic?"
        if rest[0].word not in {"the", "your", "their", "its"}:
            raise DeclinedError
        return rest
    subject = words_of("the")
    if not noun or noun[0].word == "of":
        subject = words_of("the one")
    if noun and is_being and len(rest) == 1 and rest[0].word in _THIS:
        # "What kind of request is this?"
        return (*subject, *noun)
    clause = _clause(tokens[place:])
    if tokens[0].word in _WHO:
        return (*subject, *noun, *words_of("who"), *clause)
    return (*subject, *noun, *words_of("that"), *clause) if noun else (tokens[0], *clause)


def _is_verb(tokens: Tokens, place: int) -> bool:
    """Return whether the verb of the question stands at a place."""
    word = tokens[place].word
    return word in KINDS or (place > 1 and base_of(word, "third") is not None)


def _clause(tokens: Tokens) -> Tokens:
    """Return the clause after "that": its subject is the noun asked for, or stands in it."""
    if tokens[0].word not in KINDS:
        return tokens
    try:
        clause = clause_of_question(tokens)
    except DeclinedError:
        if tokens[0].word in DO:
            raise
        return tokens
    return (*clause.subject, *predicate(clause, clause.rest))
