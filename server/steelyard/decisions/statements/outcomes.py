"""A question and one of its outcomes or levels as a statement."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from steelyard.decisions.rendering import read_outcomes
from steelyard.decisions.statements.classes import classes_of
from steelyard.decisions.statements.clauses import BE, DO, DeclinedError, Tokens, predicate
from steelyard.decisions.statements.lexicon import base_of
from steelyard.decisions.statements.nouns import is_plural
from steelyard.decisions.statements.parsing import subject_cost
from steelyard.decisions.statements.predicates import OF_TWO_OBJECTS
from steelyard.decisions.statements.reading import read_question, spell_out, without_guidance
from steelyard.decisions.statements.tokens import Token, join, tokenize, words_of
from steelyard.decisions.statements.turning import KINDS, clause_of_question
from steelyard.decisions.words import word_set

_WHO = word_set("who whom")
_WHICH = word_set("which what")
#: Adverbs between the noun that is asked for and its verb: "what best describes it".
_DEGREES = word_set("best most better mainly mostly")
_THIS = word_set("this it that")
_WHOSE = word_set("the your their its")
_SORTS = word_set("kind sort type")
#: Words that begin the subject of an indirect question.
_BEGINNING = word_set("the this my your his her its our their it he she they we you i")
_END = "?.!: "
#: Before what is to be chosen; what is to be classified is not, but for its kind: "the intent of the text".
_CHOOSE = re.compile(
    r"^(?:(?:can|could) you )?(?:please )?(?:(?:choose|pick|select|identify|determine|name|find|give|state) "
    r"(?=the |which |what |who )|(?:classify|label|rate|grade|assess|estimate) (?=the \w+ of )"
    r"|(?:tell|say|decide|find out)(?: me| us)? (?=which |what |who ))",
    re.IGNORECASE,
)
#: "Which team do you think should own it" asks which should.
_THINK = re.compile(r"(?<=\w) (?:do you (?:think|believe|say)|would you say)(?= )", re.IGNORECASE)
#: Words of the shortest question, and of the shortest description that may be a sentence.
_SHORTEST = 3
#: A word costs less than this as a verb where it hardly is another.
_SURE = 0.5
#: The most words of a name, and what reading them as one may cost.
_LONGEST_NAME, _NAME_COST = 8, 3.0
#: Classes of words that a subject begins with.
_STARTS = frozenset("DQNGU")


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
    question = " ".join(without_guidance(question).split())
    try:
        text = _THINK.sub("", _CHOOSE.sub("", spell_out(question.rstrip(_END))))
        tokens = _subject_of(tuple(tokenize(text)))
    except DeclinedError:
        return f'The answer to "{question}" is {outcome}.'
    subject = join(tokens)
    return f"{subject[:1].upper()}{subject[1:]} {_verb_of(tokens)} {outcome}."


def _verb_of(subject: Tokens) -> str:
    """Return the verb behind a subject: "are" behind "the drugs that she takes"."""
    classes = [classes_of(token).keys() for token in subject]
    size = next(
        (i for i, own in enumerate(classes) if {"P", "H", "F", "R", "O"} & own), len(subject)
    )
    is_many = size > 1 and subject[0].word == "the" and is_plural(subject[1:size])
    return "are" if is_many else "is"


def _is_sentence(description: str) -> bool:
    return (
        len(description.split()) >= _SHORTEST
        and description.endswith((".", "!"))
        and read_question(description) is not None
    )


def _subject_of(tokens: Tokens) -> Tokens:
    """Return the noun that a question asks for, with its clause; ``DeclinedError`` where it asks for none."""
    if len(tokens) > 1 and {"P", "H"} & classes_of(tokens[0]).keys() and tokens[1].word in _WHICH:
        return _behind(tokens[0], _subject_of(tokens[1:]))
    if not tokens or tokens[0].word not in _WHO | _WHICH:
        return _named(tokens)
    return _answer_of(tokens)


def _answer_of(tokens: Tokens) -> Tokens:
    """Return the noun that a question beginning with its question word asks for."""
    named = _indirect(tokens)
    if named is not None:
        return named
    place = next((i for i in range(1, len(tokens)) if _is_verb(tokens, i)), None)
    if place is None:
        if tokens[0].word in _WHO or (tokens[1:] and tokens[1].word in _DEGREES):
            raise DeclinedError
        return _named(tokens[1:])
    noun, rest = tokens[1:place], tokens[place + 1 :]
    is_being = KINDS.get(tokens[place].word) == "be"
    size = len(noun)
    while size and (noun[size - 1].word in _DEGREES or "A" in classes_of(noun[size - 1])):
        size -= 1
    noun, adverbs = noun[:size], noun[size:]
    if not noun and is_being and (tokens[0].word in _WHICH or rest[0].word in _WHOSE):
        return _being(tokens, place)
    subject = words_of("the")
    if (
        tokens[0].word in _WHO
        or (noun and noun[0].word == "of")
        or (not noun and tokens[0].word == "which")
    ):
        subject = words_of("the one")
    is_pointing = is_being and len(rest) == 1 and rest[0].word in _THIS
    if [token.word for token in noun] == ["one"] or (is_pointing and tokens[0].word in _WHO):
        # "Which one is it", "who is it".
        raise DeclinedError
    if noun and is_pointing:
        # "What kind of request is this?"
        return (*subject, *noun)
    starts = classes_of(rest[0]) if rest else {}
    is_thing = is_being and rest and rest[0].word in _WHOSE
    if is_thing and noun and noun[0].word in _SORTS and not _is_question(tokens[place:]):
        # "What sort of person is the reviewer".
        raise DeclinedError
    is_subject = is_being and not _STARTS.intersection(
        {min(starts, key=lambda name: starts[name])} if noun else starts
    )
    clause = (*adverbs, *(tokens[place:] if is_subject else _clause(tokens[place:])))
    if tokens[0].word in _WHO:
        return (*subject, *noun, *words_of("who"), *clause)
    is_what = not noun and tokens[0].word == "what"
    return (tokens[0], *clause) if is_what else (*subject, *noun, *words_of("that"), *clause)


def _indirect(tokens: Tokens) -> Tokens | None:
    """Return what an indirect question asks for: "(tell me) which team it goes to"; None of another."""
    classes = [classes_of(token) for token in tokens]
    place = next(
        (
            i
            for i in range(1, len(tokens) - 1)
            if tokens[i].word in _BEGINNING
            and not {"P", "H", "F", "T", "D"} & classes[i - 1].keys()
        ),
        0,
    )
    noun, clause = tokens[1:place], tokens[place:]
    is_led = all(_is_kind(own) for own in classes[1:place])
    if not place or not is_led or any(token.word in KINDS for token in noun):
        return None
    if clause[-1].word in BE:
        # "What the mood is", "what kind of complaint this is".
        return (*words_of("the"), *noun) if noun else clause[:-1]
    if not any(_is_verb(clause, i) for i in range(1, len(clause))):
        return None
    if tokens[0].word in _WHO:
        return (*words_of("the one who"), *clause)
    return (*words_of("the"), *noun, *words_of("that"), *clause) if noun else (tokens[0], *clause)


def _is_kind(classes: Mapping[str, float]) -> bool:
    """Return whether a word belongs to a noun with what it is of: "type of complaint"."""
    return min(classes, key=lambda name: classes[name]) in "NMFDQGUY"


def _being(tokens: Tokens, place: int) -> Tokens:
    """Return what "what is ..." asks for: "the topic", "what the customer is asking for", "what this is about"."""
    rest = tokens[place + 1 :]
    if rest[0].word in _WHOSE and _is_doing(tokens[place:]):
        return (tokens[0], *_clause(tokens[place:]))
    if rest[-1].word == "about" and not {"M", "A", "I", "E"} & classes_of(rest[-2]).keys():
        return (tokens[0], *rest[:-1], tokens[place], rest[-1])
    if rest[0].word not in _WHOSE or "P" in classes_of(rest[-1]):
        raise DeclinedError
    return rest


def _behind(preposition: Token, subject: Tokens) -> Tokens:
    """Return a thing with its clause behind a preposition: "the team to which it should go"."""
    place = next((i for i, token in enumerate(subject) if token.word == "that"), 0)
    if not place or subject[place + 1].word in KINDS:
        raise DeclinedError
    before = replace(preposition, text=preposition.word, before=" ")
    return (*subject[:place], before, *words_of("which"), *subject[place + 1 :])


def _named(tokens: Tokens) -> Tokens:
    """Return the thing that is asked for by its name alone: "topic", "the sentiment of the review"."""
    words = tokens[1:] if tokens and tokens[0].word == "the" else tokens
    is_several = {"or", "and", ",", "/", ":", "?"} & {token.word for token in words}
    if not words or is_several or len(words) > _LONGEST_NAME:
        raise DeclinedError
    first, cost = classes_of(words[0], is_first=True), subject_cost((*words_of("the"), *words))
    if len(words) > 1 and first.get("V", 9.0) < first.get("N", 9.0):
        # "Pick one".
        raise DeclinedError
    if cost > _NAME_COST and "that" not in {token.word for token in words}:
        raise DeclinedError
    start = words[0].text if words[0].text.isupper() else words[0].text.lower()
    return (*words_of("the"), *words_of(start), *words[1:])


def _is_question(tokens: Tokens) -> bool:
    try:
        clause_of_question(tokens)
    except DeclinedError:
        return False
    return True


def _is_doing(tokens: Tokens) -> bool:
    """Return whether a question with "be" asks for an action of its subject or on it."""
    try:
        clause = clause_of_question(tokens)
    except DeclinedError:
        return False
    classes = classes_of(clause.rest[0])
    kind = min(classes, key=lambda name: classes[name])
    # "What are the effects mentioned" asks for a thing, "what is she called" and "paid for" for another.
    is_given = base_of(clause.rest[0].word, "participle") in OF_TWO_OBJECTS
    return kind == "I" or (kind == "E" and (is_given or "P" in classes_of(clause.rest[-1])))


def _is_verb(tokens: Tokens, place: int) -> bool:
    """Return whether the verb of the question stands at a place."""
    word, classes = tokens[place].word, classes_of(tokens[place])
    behind = tokens[place + 1 :]
    is_last = not behind
    if word in KINDS:
        return not is_last
    if place > 1 and _is_base(tokens[place]) and is_plural(tokens[place - 1 : place]):
        # "Which tests fail".
        return True
    forms = ("third",) if place > 1 else ("third", "past")
    noun = classes.get("N", 9.0)
    verb = min(classes.get("Z", 9.0), classes.get("W", 9.0) if place == 1 else 9.0)
    if is_last or behind[0].word in KINDS:
        return is_last and verb < noun
    if noun < verb < 9.0 and (_is_base(behind[0]) or any(token.word in KINDS for token in behind)):
        # "Which of these issues is the customer reporting".
        return False
    return any(base_of(word, form) is not None for form in forms)


def _is_base(verb: Token) -> bool:
    return classes_of(verb).get("V", 9.0) < _SURE


def _clause(tokens: Tokens) -> Tokens:
    """Return the clause after "that": its subject is the noun asked for, or stands in it."""
    if tokens[0].word not in KINDS or tokens[1].word == "to":
        # "Has to happen".
        return tokens
    try:
        clause = clause_of_question(tokens)
    except DeclinedError:
        if tokens[0].word in DO:
            raise
        return tokens
    if clause.is_possession or _is_most(clause.subject):
        # "Has the most experience", "is the most serious".
        return tokens
    subject, adverbs = clause.subject, clause.subject[-1:]
    if len(subject) > 1 and adverbs[0].word in _DEGREES:
        # "Is the candidate best suited".
        return (*subject[:-1], *predicate(clause, (*adverbs, *clause.rest)))
    return (*subject, *predicate(clause, clause.rest))


def _is_most(subject: Tokens) -> bool:
    """Return whether words are "the most" alone."""
    return len(subject) == 2 and subject[1].word in {"most", "least", "best", "worst"}
