"""Questions, statements and phrases as clauses."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from steelyard.decisions.statements.alternatives import refuse_alternatives
from steelyard.decisions.statements.classes import SOMEBODY, classes_in_order, classes_of
from steelyard.decisions.statements.clauses import ADVERBS, Clause, DeclinedError, Tokens
from steelyard.decisions.statements.joints import INTRANSITIVE
from steelyard.decisions.statements.lexicon import base_of
from steelyard.decisions.statements.nouns import is_plural
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
    "ought": "infinitive",
}
_NOT_CONTRACTED = word_set("am can will shall may")
_CONTRACTED = {f"{word}n't": word for word in KINDS if word not in _NOT_CONTRACTED}
_CONTRACTED |= {"won't": "will", "can't": "can", "shan't": "shall"}
#: Contractions as they are written and as they are typed in haste, and the auxiliary of each.
CONTRACTIONS = {word.replace("'", ""): verb for word, verb in _CONTRACTED.items()} | _CONTRACTED
CONTRACTIONS["cannot"] = "can"
#: Verbs that are auxiliaries too: "need he pay".
_HALF_AUXILIARIES = word_set("need dare")
_PERSONS = word_set("i you he she it we they")
#: What is said of a thing that may not be there.
SOUGHT = word_set(
    "needed required wanted requested asked mentioned offered promised recommended planned present visible "
    "missing attached included contained disclosed detected found involved provided shared identified exposed"
)
_NEEDED = word_set(
    "needed required wanted satisfied disappointed annoyed frustrated confused interested involved concerned "
    "worried convinced qualified entitled allowed based insured informed"
)
#: What names of persons end with.
_AGENTS = ("er", "or", "ist", "an", "ee", "ent", "ant", "child", "minor", "adult", "teen")
#: Those that "is" is asked of, and what makes them a part of a longer subject all the same.
_ALONE, _AFTER_PERSON = (
    word_set("i you he she it we they"),
    word_set("and or who that which , two three all alone"),
)
#: What a noun of a verb and its adverb ends with.
_PARTICLES = word_set("up out off over back")
#: What an aside begins with, as classes, and what shows that commas stand in a list.
_ASIDE = frozenset("AREIPHSDT")
_AFTER_LIST = word_set("and or but nor")
_CONDITIONS = word_set("if because unless")
QUESTION_WORDS = word_set("what which who whom whose when where why how")
#: What a question without a subject may cost.
_MAX_REST = 2.5
#: Words beside which "has" is an auxiliary.
_PERFECT = word_set("been already ever just")
#: The most words of a subject that "has" itself is said of.
_MAX_OWNER = 3
#: What reading a sentence may cost: so much, and so much for each word.
_COST, _COST_OF_WORD = 4.5, 0.45
_FORMS = (("does", "third", "Z"), ("did", "past", "W"), ("do", "", "V"))
#: The further cost of a past form that may be a participle of the noun before it.
_MAYBE_PASSIVE = 1.5
#: A word costs less than this as a base form where it may well be the verb of a question.
_SURE_VERB = 0.8
#: A statement of no more words may be a headline.
_MAX_HEADLINE = 3
_LEAD = re.compile(
    r"(?:according to|based on|given|judging (?:by|from)|in|for|on|from|at|overall|after|before|if|when|"
    r"once|under|within|during|as|with|by|unless|assuming|currently|today|apart from|besides|to the extent|"
    r"insofar|provided|where|since|because|even if|regardless|although|while|per|considering|despite)\b",
    re.IGNORECASE,
)


def starts_asking(tokens: Sequence[Token]) -> bool:
    """Return whether a sentence begins with an auxiliary."""
    return tokens[0].word in KINDS or tokens[0].word in CONTRACTIONS


def clause_of_question(tokens: Tokens) -> Clause:
    """Return the clause of a question, also behind a condition; ``DeclinedError`` for an unsure subject."""
    if starts_asking(tokens):
        return _clause_of_auxiliary(tokens)
    half = tokens[0].word.removesuffix("n't")
    if half in _HALF_AUXILIARIES:
        clause = _clause_of_auxiliary((*words_of("should"), *tokens[1:]))
        verb = words_of(f"{half} to")
        auxiliary = "do" if is_plural(clause.subject) else "does"
        return replace(clause, auxiliary=auxiliary, rest=(*verb, *clause.rest))
    for i in range(1, len(tokens) - 2):
        if tokens[i].word == "," and starts_asking(tokens[i + 1 :]):
            lead = tokens[: i + 1]
            if not _LEAD.match(join(lead)) or starts_asking(lead[1:]):
                break
            clause = _clause_of_auxiliary(tokens[i + 1 :])
            return replace(clause, lead=lead)
    raise DeclinedError


def _clause_of_auxiliary(tokens: Tokens) -> Clause:
    """Return the clause behind an auxiliary, also where its verb is inflected: "does he wants"."""
    try:
        return _clause_of_base(tokens)
    except DeclinedError:
        place = _inflected_place(tokens)
        if place is None:
            raise
        verb = words_of(_base_behind(tokens[0].word, tokens[place]))
        return _clause_of_base((*tokens[:place], *verb, *tokens[place + 1 :]))


def _inflected_place(tokens: Tokens) -> int | None:
    """Return the place of the one verb, inflected behind "does" or "did"; None where it may be another's.

    "Did the offer we received change it" has two.
    """
    places = [i for i in range(2, len(tokens)) if _base_behind(tokens[0].word, tokens[i])]
    if len(places) != 1:
        return None
    kinds = [classes_of(token) for token in tokens]
    begun = sum(not {"D", "R"}.isdisjoint(own) for own in kinds[1 : places[0]])
    has_verb = any(own.get("V", 9.0) < _SURE_VERB for own in kinds[2:])
    # "Everything he says" is a subject.
    is_clause = any(token.word in _PERSONS for token in tokens[2 : places[0]])
    return None if begun > 1 or has_verb or is_clause or "R" in kinds[1] else places[0]


def _base_behind(auxiliary: str, token: Token) -> str:
    """Return the verb of an inflected form that stands behind "does" or "did"; else nothing."""
    form, names = {"does": ("third", "ZX"), "did": ("past", "WEX")}.get(auxiliary, ("", ""))
    classes = classes_of(token)
    if not form or min(classes, key=lambda name: classes[name]) not in names:
        return ""
    base = base_of(token.word, form) or ""
    return "" if base in {"be", "do", token.word} else base


def _clause_of_base(tokens: Tokens) -> Clause:
    tokens = _with_asides(tokens)
    auxiliary = CONTRACTIONS.get(tokens[0].word, tokens[0].word)
    # "Is not the bill paid?" asks whether it is.
    is_denied = bool(tokens[1:2]) and tokens[1].word == "not"
    rest = tokens[2:] if is_denied else tokens[1:]
    if len(rest) < 2 or (is_denied and "I" in classes_of(rest[0])):
        # "Is not answering rude" may ask of either.
        raise DeclinedError
    if rest[0].word == "there":
        return Clause(rest[:1], auxiliary, rest[1:])
    ends_at_person = KINDS[auxiliary] == "be" and rest[0].word in _ALONE
    is_done = KINDS[auxiliary] == "participle" and "E" in classes_of(rest[1])
    if rest[1].word not in _AFTER_PERSON and (
        ends_at_person or (rest[0].word in _PERSONS and (KINDS[auxiliary] == "base" or is_done))
    ):
        if KINDS[auxiliary] == "base" and not {"V", "A"} & classes_of(rest[1]).keys():
            raise DeclinedError
        clause = Clause(rest[:1], auxiliary, rest[1:])
        refuse_alternatives(clause)
        return clause
    if (
        KINDS[auxiliary] == "be"
        and rest[1].word in SOMEBODY
        and rest[3:]
        and "I" in classes_of(rest[2])
        and rest[3].word in {"a", "an"}
        and rest[-1].word.endswith(_AGENTS)
    ):
        # "Is the person writing a decision maker?"
        raise DeclinedError
    is_plural_verb = auxiliary in {"are", "were"}
    # "Yet" is said of the whole.
    words = rest[:-1] if rest[-1].word == "yet" and rest[2:] else rest
    split = split_subject(words, KINDS[auxiliary], is_plural_verb=is_plural_verb)
    is_possession = False
    if KINDS[auxiliary] == "participle" and rest[1].word not in {"two", "three"}:
        owned = split_subject(words, "noun")
        # "Has the seller the right": of a short subject alone.
        if (
            owned is not None
            and owned.size <= _MAX_OWNER
            and _PERFECT.isdisjoint(_words(words))
            and not _is_participle(words[owned.size])
            and (split is None or owned.cost + 1.0 < split.cost)
        ):
            split, is_possession = owned, True
    size = _certain_size(split, words)
    clause = Clause(rest[:size], auxiliary, rest[size:], is_possession=is_possession)
    refuse_alternatives(clause)
    return clause


def _is_participle(token: Token) -> bool:
    classes = classes_of(token)
    return classes.get("E", 9.0) < min(classes.get("M", 9.0), classes.get("N", 9.0))


def _with_asides(tokens: Tokens) -> Tokens:
    """Return tokens with what stands between two commas as a part of the word before them.

    "Did the CFO, who is ill, sign" asks what "did the CFO sign" does.
    """
    commas = [i for i, token in enumerate(tokens) if token.word == ","]
    for start, end in pairwise(commas):
        begins = classes_of(tokens[start + 1]).keys()
        after = tokens[end + 1 : end + 2]
        is_name = tokens[start + 1].text[0].isupper() and tokens[start - 1].text.islower()
        is_aside = is_name or not begins.isdisjoint(_ASIDE)
        if tokens[start + 1].word in {"or", "but"}:
            # "The deposit, or part of it,"; but "likes, or tolerates, the plan" has two verbs.
            before = classes_of(tokens[start - 1])
            is_aside = before.get("N", 9.0) < before.get("V", 9.0)
        if (
            start < 2
            or tokens[start - 1].word == "there"
            or not after
            or after[0].word in _AFTER_LIST
            or not is_aside
        ):
            continue
        text = join(tokens[start - 1 : end + 1])
        named = replace(tokens[start - 1], text=text)
        return (*tokens[: start - 1], named, *_with_asides(tokens[end + 1 :]))
    return tokens


def clause_without_subject(tokens: Tokens) -> Clause:
    """Return the clause of a question about the text that does not name it: "has attachments".

    Raise ``DeclinedError`` where there may be a subject.
    """
    auxiliary, rest = tokens[0].word, tokens[1:]
    kind = {"is": "be", "was": "be", "has": "noun"}.get(auxiliary)
    if rest and rest[0].word == "be" and KINDS[auxiliary] == "base":
        # "Should be escalated".
        return Clause((Token("This", "", "this"),), auxiliary, rest)
    if kind is None or not rest or rest[0].text[0].isupper() or "Q" in classes_of(rest[0]):
        raise DeclinedError
    is_split = any(split_subject(rest, each) for each in {kind, KINDS[auxiliary]})
    if is_split or _rest_cost(rest, kind) > _MAX_REST:
        raise DeclinedError
    this = Token("This", "", "this")
    return Clause((this,), auxiliary, rest, is_possession=kind == "noun")


def _certain_size(split: SubjectSplit | None, words: Tokens) -> int:
    if split is None:
        raise DeclinedError
    size = split.size
    first = classes_of(words[1])
    if (
        words[0].word in {"this", "that"}
        and len(words) > 2
        and first.get("M", 9.0) + 1.5 < first.get("N", 9.0)
        and {"P", "H", "T"} & classes_of(words[2]).keys()
    ):
        # "Is this safe for kids under 12": no noun stands before "for".
        return 1
    # A subject that can end at one place alone may be odd: "should legal be copied in".
    most = _COST + _COST_OF_WORD * len(words) + min(split.margin / 4, 1.0)
    if split.margin < MARGIN or split.cost > most:
        raise DeclinedError
    if (
        words[size + 1 : size + 2]
        and words[size + 1].word == ","
        and min(kinds := classes_of(words[size]), key=lambda name: kinds[name]) == "N"
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


def clause_of_statement(tokens: Tokens, *, is_whole: bool = False) -> Clause:
    """Return the clause of a sentence that states something; ``is_whole`` says that it is no headline.

    Raise ``DeclinedError`` where its verb is not certain.
    """
    if not tokens or starts_asking(tokens):
        raise DeclinedError
    tokens = _with_asides(tokens)
    is_whole = is_whole or tokens[0].word in _PERSONS
    clauses = sorted(
        (
            item
            for place in range(1, len(tokens))
            for item in _clauses_at(tokens, place, is_whole=is_whole)
        ),
        key=lambda item: item[0],
    )
    if not clauses:
        raise DeclinedError
    (cost, clause), *others = clauses
    is_close = bool(others) and others[0][0] - cost < MARGIN
    if is_close or cost > _COST + _COST_OF_WORD * len(tokens):
        raise DeclinedError
    if len(tokens) <= _MAX_HEADLINE and subject_cost(tokens) + MARGIN < cost:
        # "Five stars" is no sentence of somebody called five.
        raise DeclinedError
    refuse_alternatives(clause)
    return clause


def _clauses_at(tokens: Tokens, place: int, *, is_whole: bool) -> Iterator[tuple[float, Clause]]:
    """Yield the clauses whose verb stands at a place, with the cost of each reading."""
    subject, rest = tokens[:place], tokens[place + 1 :]
    word = tokens[place].word
    auxiliary = CONTRACTIONS.get(word, word)
    denial = words_of("not") if word in CONTRACTIONS else ()
    if subject[0].word == "there":
        if place == 1 and auxiliary in KINDS and rest:
            yield 0.0, Clause(subject, auxiliary, (*denial, *rest))
        return
    is_adverb = place == 1 and subject[0].word in ADVERBS
    if is_adverb or not _CONDITIONS.isdisjoint(_words(subject)):
        # "Never replied", "mark it if the mail names a price".
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
        is_short = len(tokens) <= _MAX_HEADLINE and not is_whole
        is_named = {"D", "Q", "G"} & classes_of(subject[0]).keys()
        is_headline = subject[0].word == "no" or not is_named
        is_led = bool(rest) and (
            rest[0].word == "by" or (word in _NEEDED and "P" in classes_of(rest[0]))
        )
        if word == "left" and rest and rest[0].word == "to":
            # "Nothing left to do".
            continue
        if not rest and name == "V" and classes.get("M", 9.0) < classes.get("V", 0.0):
            # "Both signatures present".
            continue
        is_passive = is_headline and is_led if rest else is_short or word in SOUGHT
        # "Invoice paid late" has no object.
        is_without = is_headline and not is_whole and rest and _begins_adverbial(rest[0])
        is_passive = is_passive or bool(is_without)
        is_bare = name == "W" and "E" in classes and is_passive and word not in INTRANSITIVE
        if (
            is_bare
            or base is None
            or name not in classes
            or (auxiliary == "do" and not is_plural(subject))
        ):
            continue
        verb = words_of(base)
        price = _rest_cost((*verb, *rest), "base") - classes_of(verb[0])["V"] + classes[name] + 0.3
        if name == "W" and "E" in classes and rest and {"P", "H"} & classes_of(rest[0]).keys():
            # "The arguments passed to it" before "match".
            price += _MAYBE_PASSIVE
        yield cost + price, Clause(subject, auxiliary, (*adverbs, *verb, *rest))


def _begins_adverbial(token: Token) -> bool:
    """Return whether what begins with a word is no object of a verb before it: "late", "on time"."""
    classes = classes_of(token)
    return min(classes, key=lambda name: classes[name]) in "ALMEH"


def _rest_cost(tokens: Tokens, kind: str) -> float:
    return rest_cost(classes_in_order(tokens), kind)


def _words(tokens: Tokens) -> set[str]:
    return {token.word for token in tokens}
