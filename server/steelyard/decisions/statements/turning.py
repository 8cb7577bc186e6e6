"""Questions, statements and phrases as clauses."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from steelyard.decisions.statements.alternatives import refuse_alternatives
from steelyard.decisions.statements.classes import classes_in_order, classes_of
from steelyard.decisions.statements.clauses import Clause, DeclinedError, Tokens
from steelyard.decisions.statements.lexicon import base_of
from steelyard.decisions.statements.nouns import head_of, indefinite_article, is_mass, is_plural
from steelyard.decisions.statements.parsing import (
    MARGIN,
    SubjectSplit,
    rest_cost,
    split_subject,
    subject_cost,
)
from steelyard.decisions.statements.tokens import Token, join, words_of
from steelyard.decisions.words import word_set

#: What follows the subject, by the auxiliary; keys of ``parsing.STARTS``.
KINDS = {
    **dict.fromkeys(word_set("is are was were am"), "be"),
    **dict.fromkeys(word_set("has have had"), "participle"),
    **dict.fromkeys(
        word_set("do does did can could will would shall should may might must"), "base"
    ),
}
_NOT_CONTRACTED = word_set("am can will shall may")
_CONTRACTED = {f"{word}n't": word for word in KINDS if word not in _NOT_CONTRACTED}
_CONTRACTED |= {"won't": "will", "can't": "can", "shan't": "shall"}
#: Contractions as they are written and as they are typed in haste, and the auxiliary of each.
CONTRACTIONS = {word.replace("'", ""): verb for word, verb in _CONTRACTED.items()} | _CONTRACTED
CONTRACTIONS["cannot"] = "can"
_PERSONS = word_set("i you he she it we they")
#: What is said of a thing that may not be there.
_SOUGHT = word_set(
    "needed required wanted requested asked mentioned offered promised recommended planned present visible "
    "missing attached"
)
#: Participles that are no state: "customer complained".
_INTRANSITIVE = word_set(
    "complained apologised apologized replied responded agreed arrived died lied happened occurred appeared "
    "disappeared waited objected resigned consented cooperated fainted"
)
#: Those of whom it is open whether "the person writing a review" writes one.
_SOMEBODY = word_set("person man woman guy one")
#: Those that "is" is asked of, and what makes them a part of a longer subject all the same.
_ALONE, _AFTER_PERSON = (
    word_set("i you he she we they"),
    word_set("and or who that which , two three"),
)
#: What a noun of a verb and its adverb ends with.
_PARTICLES = word_set("up out off over back")
QUESTION_WORDS = word_set("what which who whom whose when where why how")
#: What reading a sentence may cost: so much, and so much for each word.
_COST, _COST_OF_WORD = 4.5, 0.45
_FORMS = (("does", "third", "Z"), ("did", "past", "W"), ("do", "", "V"))
#: What "any" is asked of before a clause: "any chance we can meet".
_CHANCES = word_set("chance way possibility hope")
_MAX_PHRASE, _MAX_NOUNS = 6, 3
_LEAD = re.compile(
    r"(?:according to|based on|given|judging (?:by|from)|in|for|on|from|at|overall|after|before|if|when|"
    r"once|under|within|during|as|with|by|unless|assuming|currently|today|apart from|besides)\b",
    re.IGNORECASE,
)


def starts_asking(tokens: Sequence[Token]) -> bool:
    """Return whether a sentence begins with an auxiliary."""
    return tokens[0].word in KINDS or tokens[0].word in CONTRACTIONS


def clause_of_question(tokens: Tokens) -> Clause:
    """Return the clause that a question asks about; it may stand behind a condition.

    Raise ``DeclinedError`` where the end of its subject is not certain.
    """
    if starts_asking(tokens):
        return _clause_of_auxiliary(tokens)
    for i in range(1, len(tokens) - 2):
        if tokens[i].word == "," and starts_asking(tokens[i + 1 :]):
            lead = tokens[: i + 1]
            if not _LEAD.match(join(lead)):
                break
            clause = _clause_of_auxiliary(tokens[i + 1 :])
            return replace(clause, lead=lead)
    raise DeclinedError


def _clause_of_auxiliary(tokens: Tokens) -> Clause:
    auxiliary = CONTRACTIONS.get(tokens[0].word, tokens[0].word)
    # "Is not the bill paid?" asks whether it is.
    rest = tokens[2:] if tokens[1:2] and tokens[1].word == "not" else tokens[1:]
    if len(rest) < 2:
        raise DeclinedError
    if rest[0].word == "there":
        return Clause(rest[:1], auxiliary, rest[1:])
    ends_at_person = KINDS[auxiliary] == "be" and rest[0].word in _ALONE
    is_done = KINDS[auxiliary] == "participle" and "E" in classes_of(rest[1])
    if (ends_at_person and rest[1].word not in _AFTER_PERSON) or (
        rest[0].word in _PERSONS and (KINDS[auxiliary] == "base" or is_done)
    ):
        clause = Clause(rest[:1], auxiliary, rest[1:])
        refuse_alternatives(clause)
        return clause
    if (
        KINDS[auxiliary] == "be"
        and rest[1].word in _SOMEBODY
        and rest[3:]
        and "I" in classes_of(rest[2])
        and rest[3].word in {"a", "an"}
    ):
        # "Is the person writing a decision maker?"
        raise DeclinedError
    is_plural_verb = auxiliary in {"are", "were"}
    split = split_subject(rest, KINDS[auxiliary], is_plural_verb=is_plural_verb)
    is_possession = False
    if KINDS[auxiliary] == "participle":
        owned = split_subject(rest, "noun")
        if owned is not None and (split is None or owned.cost + 1.0 < split.cost):
            split, is_possession = owned, True
    size = _certain_size(split, rest)
    clause = Clause(rest[:size], auxiliary, rest[size:], is_possession=is_possession)
    refuse_alternatives(clause)
    return clause


def _certain_size(split: SubjectSplit | None, words: Tokens) -> int:
    if split is None or split.margin < MARGIN or split.cost > _COST + _COST_OF_WORD * len(words):
        raise DeclinedError
    size = split.size
    first = classes_of(words[1])
    if (
        size > 1
        and words[0].word in {"this", "that"}
        and first.get("M", 9.0) + 1.5 < first.get("N", 9.0)
        and {"P", "H", "T"} & classes_of(words[2]).keys()
    ):
        # "Is this safe for kids under 12": no noun stands before "for".
        return 1
    if (
        words[size + 1 : size + 2]
        and words[size + 1].word == ","
        and "N" in classes_of(words[size])
    ):
        raise DeclinedError
    if words[size].word == "ago":
        # "More than a year ago" is one phrase.
        raise DeclinedError
    following = words[min(size + 1, len(words) - 1)]
    is_phrasal = words[size].word in _PARTICLES and "V" in classes_of(words[size - 1])
    if (is_phrasal and {"E", "M", "I"} & classes_of(following).keys()) or (
        words[size].word == "for" and following.word.endswith(" back")
    ):
        # "A wash out severe" is a noun of two words; "who asked for money back" one clause.
        raise DeclinedError
    # "Anyone else" is one subject.
    return size + 1 if words[size].word == "else" and size + 1 < len(words) else size


def clause_of_statement(tokens: Tokens) -> Clause:
    """Return the clause of a sentence that states something.

    Raise ``DeclinedError`` where its verb is not certain.
    """
    if not tokens or starts_asking(tokens):
        raise DeclinedError
    clauses = sorted(
        (item for place in range(1, len(tokens)) for item in _clauses_at(tokens, place)),
        key=lambda item: item[0],
    )
    if not clauses:
        raise DeclinedError
    (cost, clause), *others = clauses
    is_close = bool(others) and others[0][0] - cost < MARGIN
    if is_close or cost > _COST + _COST_OF_WORD * len(tokens):
        raise DeclinedError
    if len(tokens) <= _MAX_NOUNS and subject_cost(tokens) + MARGIN < cost:
        # "Five stars" is no sentence of somebody called five.
        raise DeclinedError
    refuse_alternatives(clause)
    return clause


def _clauses_at(tokens: Tokens, place: int) -> Iterator[tuple[float, Clause]]:
    """Yield the clauses whose verb stands at a place, with the cost of each reading."""
    subject, rest = tokens[:place], tokens[place + 1 :]
    word = tokens[place].word
    auxiliary = CONTRACTIONS.get(word, word)
    denial = words_of("not") if word in CONTRACTIONS else ()
    if subject[0].word == "there":
        if place == 1 and auxiliary in KINDS and rest:
            yield 0.0, Clause(subject, auxiliary, (*denial, *rest))
        return
    cost = subject_cost(subject)
    if auxiliary in KINDS and rest:
        plain = rest[1:] if rest[0].word == "not" and len(rest) > 1 else rest
        price, owned = _rest_cost(plain, KINDS[auxiliary]), float("inf")
        if KINDS[auxiliary] == "participle":
            owned = _rest_cost(rest, "noun")
        clause = Clause(subject, auxiliary, (*denial, *rest), is_possession=owned < price)
        yield cost + min(price, owned), clause
    adverbs: Tokens = ()
    if "A" in classes_of(tokens[place]) and rest:
        adverbs, word, rest = (tokens[place],), rest[0].word, rest[1:]
    classes = classes_of(tokens[place + len(adverbs)])
    for auxiliary, form, name in _FORMS:
        base = base_of(word, form) if form else word
        # "Invoice sent", "refund requested by her": somebody else did so.
        is_short = len(tokens) <= _MAX_NOUNS and subject[0].word not in _PERSONS
        is_headline = not {"D", "Q", "G"} & classes_of(subject[0]).keys()
        is_passive = is_headline and rest[0].word == "by" if rest else is_short or word in _SOUGHT
        is_bare = name == "W" and "E" in classes and is_passive and word not in _INTRANSITIVE
        if (
            is_bare
            or base is None
            or name not in classes
            or (auxiliary == "do" and not is_plural(subject))
        ):
            continue
        verb = words_of(base)
        price = _rest_cost((*verb, *rest), "base") - classes_of(verb[0])["V"] + classes[name] + 0.3
        yield cost + price, Clause(subject, auxiliary, (*adverbs, *verb, *rest))


def _rest_cost(tokens: Tokens, kind: str) -> float:
    return rest_cost(classes_in_order(tokens), kind)


def _words(tokens: Tokens) -> set[str]:
    return {token.word for token in tokens}


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
    """Return the clause in which an adjective, a noun or a verb alone is said of the text.

    Raise ``DeclinedError`` where it is none of them for certain.
    """
    marks = word_set("or and not no yes , any anything anyone anybody some something someone")
    is_number = not {"U", "Y"}.isdisjoint(classes_of(tokens[0]))
    if len(tokens) > _MAX_PHRASE or is_number or not marks.isdisjoint(_words(tokens)):
        raise DeclinedError
    this = (Token("This", "", "this"),)
    first = classes_of(tokens[0], is_first=True)
    if "Z" in first and first["Z"] < first.get("N", 9.0) and len(tokens) > 1:
        base = base_of(tokens[0].word, "third") or ""
        return Clause(this, "does", (*words_of(base), *tokens[1:]))
    text = tokens[0].text
    is_acronym = len(text) > 1 and text.isupper()
    rest = (
        Token(text if is_acronym else text[:1].lower() + text[1:], " ", tokens[0].word),
        *tokens[1:],
    )
    last = classes_of(tokens[-1], is_first=len(tokens) == 1)
    likely = {name for name, cost in last.items() if cost < 1.0}
    is_lone = len(tokens) == 1 or (len(tokens) == 2 and "A" in first)
    if (is_lone and likely & {"M", "E", "I"} and "N" not in likely) or {"D", "P"} & first.keys():
        return Clause(this, "is", rest)
    sought = next((i for i, token in enumerate(tokens) if token.word in _SOUGHT), len(tokens) - 1)
    nouns = tokens[:sought]
    is_new = tokens[sought].word in _SOUGHT
    is_state = is_new or ("E" in likely and "N" not in likely)
    if is_state and 0 < len(nouns) <= _MAX_NOUNS and _is_noun(classes_of(nouns[-1])):
        # "Refund wanted": a refund is; "customer satisfied": the customer is.
        many = is_plural(nouns)
        article = indefinite_article(rest[0].word) if is_new else "the"
        lacks = is_new and (many or is_mass(nouns))
        subject = rest[:sought] if lacks else (*words_of(article), *rest[:sought])
        return Clause(subject, "are" if many else "is", rest[sought:])
    is_noun = "N" in likely and len(tokens) <= _MAX_NOUNS and head_of(tokens) is tokens[-1]
    is_noun = is_noun and not tokens[-1].word.endswith(" back")
    if not is_noun or subject_cost(tokens) > 3.0 or not tokens[-1].word[0].isalpha():
        raise DeclinedError
    # "Shortness of breath" is not counted, whatever breath is.
    named = tokens[: next((i for i, token in enumerate(tokens) if token.word == "of"), None)]
    if is_mass(named):
        return Clause(this, "is", rest)
    if is_plural(named):
        return Clause((Token("There", "", "there"),), "are", rest)
    return Clause(this, "is", (*words_of(indefinite_article(rest[0].word)), *rest))
