"""Phrases without a subject or a verb, read as what is said of the text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from steelyard.decisions.statements.classes import DEEDS, INDEFINITE, NOMINATIVES, classes_of
from steelyard.decisions.statements.clauses import ADVERBS, Clause, DeclinedError, Tokens
from steelyard.decisions.statements.joints import INTRANSITIVE
from steelyard.decisions.statements.lexicon import base_of
from steelyard.decisions.statements.nouns import head_of, indefinite_article, is_mass, is_plural
from steelyard.decisions.statements.parsing import subject_cost
from steelyard.decisions.statements.tokens import Token, words_of
from steelyard.decisions.statements.turning import SOUGHT, clause_of_question
from steelyard.decisions.words import word_set

#: What "any" is asked of before a clause: "any chance we can meet".
_CHANCES = word_set("chance way possibility hope")
#: What leads from a noun to what it is of: "complaint about the price".
_OF = word_set("of for about from against")
_MAX_PHRASE, _MAX_NOUNS = 6, 3
#: What a noun and what is said of it may cost.
_MAX_COST = 3.6
_MARKS = word_set("or and not no yes , any anything anyone anybody some something someone")
_POINTING = word_set("this that these those")
_NAMING = word_set("the my your his her its our their")
_THIS = (Token("This", "", "this"),)


def clause_of_any(tokens: Tokens) -> Clause:
    """Return the clause of a question without a verb: "any chance that" is "is there any chance that".

    Raise ``DeclinedError`` where it may be a sentence: "any member may object".
    """
    classes = [classes_of(token) for token in tokens]
    clause = next((i for i, own in enumerate(classes) if {"R", "S"} & own.keys()), len(tokens))
    head = next((i for i in range(1, clause) if _is_noun(classes[i])), 0)
    while head and head + 1 < clause and _is_noun(classes[head + 1]):
        head += 1
    rest = classes[head + 1 : clause]
    noun = tokens[1 : head + 1]
    if (
        head
        and tokens[head + 1 : head + 2]
        and tokens[head + 1].word in SOUGHT
        and not is_plural(noun)
    ):
        # "Any refund requested" asks whether one is.
        article = "any" if is_mass(noun) else indefinite_article(noun[0].word)
        return clause_of_question((*words_of(f"is {article}"), *tokens[1:]))
    is_sentence = any("X" in own for own in rest) and tokens[head].word not in _CHANCES
    # "Any customer complained"; but "any errors logged" are some.
    has_verb = not is_plural(noun) and any("W" in own for own in rest) if noun else True
    if is_sentence or has_verb or "F" in classes[1] or tokens[head].word == "idea":
        raise DeclinedError
    there, verb = Token("There", "", "there"), "are" if is_plural(noun) else "is"
    return Clause((there,), verb, (Token("any", " ", "any"), *tokens[1:]))


def _is_noun(classes: Mapping[str, float]) -> bool:
    return classes.get("N", 9.0) < min(classes.get("M", 9.0), classes.get("E", 9.0), 2.0)


def clause_of_phrase(tokens: Tokens) -> Clause:
    """Return the clause in which a phrase alone is said of the text; ``DeclinedError`` where it is unsure."""
    if tokens[0].word in INDEFINITE and tokens[1:]:
        if tokens[1].word == "else" or {"P", "H"} & classes_of(tokens[1]).keys():
            # "Anything about a refund" asks whether there is something.
            return Clause(words_of("there"), "is", tokens)
        return clause_of_question((*words_of("is"), *tokens))
    if tokens[0].word in {"no", "not"}:
        return _clause_of_denial(tokens)
    first = classes_of(tokens[0], is_first=True)
    is_person = tokens[0].word in NOMINATIVES | {"you", "u"}
    if (
        len(tokens) > _MAX_PHRASE
        or {"U", "Y"} & first.keys()
        or _MARKS & _words(tokens)
        or is_person
    ):
        raise DeclinedError
    if "Z" in first and first["Z"] < first.get("N", 9.0) and len(tokens) > 1:
        base = base_of(tokens[0].word, "third") or ""
        return Clause(_THIS, "does", (*words_of(base), *tokens[1:]))
    text = tokens[0].text
    is_acronym = len(text) > 1 and text.isupper()
    start = replace(tokens[0], text=text if is_acronym else text[:1].lower() + text[1:], before=" ")
    phrase = (start, *tokens[1:])
    if _is_state(tokens, first):
        return Clause(_THIS, "is", phrase)
    return _clause_of_still(phrase) or _clause_of_thing_and_state(phrase) or _clause_of_noun(phrase)


def _clause_of_denial(tokens: Tokens) -> Clause:
    """Return the clause of "not urgent", "no errors" and "no reply needed"."""
    if len(tokens) == 1:
        raise DeclinedError
    if tokens[0].word == "not":
        clause = clause_of_phrase(tokens[1:])
        if clause.subject != _THIS or clause.auxiliary != "is":
            raise DeclinedError
        return replace(clause, rest=(tokens[0], *clause.rest))
    sought = next((i for i, token in enumerate(tokens) if token.word in SOUGHT), len(tokens))
    nouns, verb = tokens[1:sought], "are" if is_plural(tokens[1:sought] or tokens) else "is"
    if nouns and sought < len(tokens):
        return clause_of_question((*words_of(verb), *tokens))
    if not 0 < len(nouns) < _MAX_NOUNS or not _is_thing(nouns):
        raise DeclinedError
    return Clause(words_of("there"), verb, (*words_of("no"), *nouns))


def _likely_classes(tokens: Tokens) -> set[str]:
    """Return the classes that the last word may well be of."""
    last = tokens[-1]
    if last.word in DEEDS or (last.word.endswith("ing") and is_mass(tokens[-1:])):
        return {"N"}
    classes = classes_of(last, is_first=len(tokens) == 1)
    return {name for name, cost in classes.items() if cost < 1.0}


def _is_state(tokens: Tokens, first: Mapping[str, float]) -> bool:
    """Return whether a phrase says what the text is like: "urgent", "safe for kids", "over budget"."""
    likely = _likely_classes(tokens)
    is_lone = len(tokens) == 1 or (len(tokens) == 2 and "A" in first)
    if tokens[0].word == "never" and tokens[-1].word in INTRANSITIVE:
        # "Never replied" says it of somebody.
        raise DeclinedError
    if (is_lone and likely & {"M", "E", "I"} and "N" not in likely) or first.keys() & {"P", "H"}:
        return True
    if "D" in first and _is_thing(tokens):
        # "The usual complaint", but "both parties signed" and "my order late" say something of it.
        if tokens[0].word in _POINTING:
            raise DeclinedError
        return True
    after = classes_of(tokens[1]).keys() if len(tokens) > 1 else set()
    if {"D", "Q"} & after and min(first, key=lambda name: first[name]) in "AI":
        # "Already a customer", "requesting a call".
        return True
    is_led = {"P", "H", "T"} & after
    return bool(is_led) and min(first.get(name, 9.0) for name in "MEI") < first.get("N", 9.0)


def _clause_of_still(phrase: Tokens) -> Clause | None:
    """Return the clause of "patient still on oxygen"; None of another."""
    at = next((i for i, token in enumerate(phrase) if token.word in {"still", "already"}), 0)
    nouns, rest = phrase[:at], phrase[at + 1 :]
    if not 0 < at <= _MAX_NOUNS or not rest or not _is_noun(classes_of(nouns[-1])):
        return None
    if not {"P", "H", "M", "I", "E"} & classes_of(rest[0]).keys() or "V" in classes_of(rest[0]):
        return None
    return Clause((*words_of("the"), *nouns), "are" if is_plural(nouns) else "is", phrase[at:])


def _clause_of_thing_and_state(phrase: Tokens) -> Clause | None:
    """Return the clause of "refund wanted", "customer satisfied" or "order late"; None of another."""
    sought = [i for i, token in enumerate(phrase) if token.word in SOUGHT]
    size = sought[0] if sought else len(phrase) - 1
    if sought and phrase[size].word == "asked" and phrase[size + 1 :]:
        return None
    size -= phrase[size - 1].word in ADVERBS
    nouns, likely = phrase[:size], _likely_classes(phrase)
    is_over = phrase[-1].word in {"over", "down", "off"}
    is_state = (
        (is_over or likely & {"E", "M", "I"})
        and "N" not in likely
        and not (phrase[-1].word.endswith("ing") and not is_plural(nouns))
    )
    if not (sought or is_state) or not 0 < len(nouns) <= _MAX_NOUNS:
        return None
    classes = classes_of(nouns[-1])
    is_named = nouns[0].word in _NAMING
    if "D" in classes_of(nouns[0]) and not is_named:
        # "Both parties signed" what?
        return None
    if not _is_noun(classes) and not (sought and "N" in classes):
        return None
    # A refund is wanted: there may be none. The customer is satisfied.
    many = is_plural(nouns)
    article = indefinite_article(nouns[0].word) if sought else "the"
    is_bare = many or is_mass(nouns) or nouns[-1].text.isupper()
    lacks_article = is_named or (bool(sought) and is_bare)
    subject = nouns if lacks_article else (*words_of(article), *nouns)
    return Clause(subject, "are" if many else "is", phrase[size:])


def _is_thing(nouns: Tokens) -> bool:
    """Return whether words are a noun alone: "further errors"."""
    return _is_noun(classes_of(nouns[-1])) and subject_cost(nouns) < _MAX_COST


def _clause_of_noun(phrase: Tokens) -> Clause:
    """Return the clause of "duplicate", "complaint about the price" or "shortness of breath"."""
    of = next((i for i, token in enumerate(phrase) if token.word in _OF), len(phrase))
    named, last = phrase[:of], phrase[-1]
    first = classes_of(phrase[0])
    after = classes_of(phrase[1]) if len(phrase) > 1 else {}
    is_done = min(first, key=lambda name: first[name]) in "EW"
    if (
        "D" in first
        or (is_done and {"D", "Q"} & after.keys())
        or ("Z" in first and _is_noun(after))
    ):
        # "This customer", "liked the food", "leaks data".
        raise DeclinedError
    if not 0 < of <= _MAX_NOUNS or last.word.endswith(" back") or not last.word[0].isalpha():
        raise DeclinedError
    is_noun = classes_of(named[-1], is_first=of == 1).get("N", 9.0) < 1.0 or is_mass(named)
    is_deed = of == len(phrase) and _likely_classes(phrase) == {"N"}
    is_headed = head_of(named) is named[-1] and (is_noun or is_deed)
    if not is_headed or subject_cost(phrase) > _MAX_COST:
        raise DeclinedError
    # "Shortness of breath" is not counted, whatever breath is.
    if is_mass(named):
        return Clause(_THIS, "is", phrase)
    if is_plural(named):
        return Clause((Token("There", "", "there"),), "are", phrase)
    return Clause(_THIS, "is", (*words_of(indefinite_article(named[0].word)), *phrase))


def _words(tokens: Tokens) -> set[str]:
    return {token.word for token in tokens}
