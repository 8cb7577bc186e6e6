"""The word classes that a token may have, and the cost of each."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache

from steelyard.decisions.statements.lexicon import base_of, is_listed, uses_of
from steelyard.decisions.statements.tokens import (
    ADVERBIAL,
    COMPOUND_PREPOSITIONS,
    STATED,
    TIME,
    Token,
    tokenize,
)
from steelyard.decisions.words import word_set

DETERMINERS = word_set(
    "a an the this that these those some any no every each my your his her its our their all both "
    "either neither half another many much few several most more less fewer enough"
)
PRONOUNS = word_set(
    "i you he she it we they me him us them himself herself itself themselves myself yourself "
    "ourselves someone somebody something anyone anybody anything everyone everybody everything "
    "nobody nothing there none u"
)
#: Pronouns that are subjects alone.
NOMINATIVES = word_set("i he she we they")
RELATIVES = word_set(
    "that who whom whose which what where when why how whether if whoever whatever"
)
CONJUNCTIONS = word_set("and or but nor & /")
FINITE = word_set(
    "is are was were am can could will would shall should may might must cannot has have had do does "
    "did isn't aren't wasn't weren't don't doesn't didn't hasn't haven't hadn't can't couldn't won't "
    "wouldn't shouldn't it's he's she's there's"
)
#: Prepositions that say where and when; the others often belong to the noun before them.
_PLACE = word_set(
    "in at near after before during within since until by under inside outside behind over above "
    "below through throughout among across along around beside beyond upon amid past"
)
_PREPOSITIONS = word_set(
    "on for from with about against between into out off up down without besides onto per via worth "
    "toward towards despite including excluding except like unlike regarding concerning according as than to versus vs plus minus "
    "instead"
)
_ADVERBS = word_set(
    "forth not very too quite rather just only also even still already almost always often sometimes usually "
    "never again ever soon now then here there once twice maybe "
    "perhaps well away back together else yet anymore longer so enough more most less least far ago "
    "first last later earlier better worse ahead apart offline home much "
    "somewhere anywhere nowhere everywhere instead overall right straight both all"
)
#: Closed classes: a letter, what it costs, and its words. A word may be of several.
_CLOSED = (
    ("B", 0.0, word_set("all both half such either neither")),
    ("D", 0.0, DETERMINERS - {"that"}),
    ("Y", 0.0, word_set("few many several more most less fewer enough much")),
    ("L", 0.0, word_set("here there")),
    ("L", 0.5, word_set("above below")),
    ("M", 0.3, word_set("later earlier better worse first last right straight overall far")),
    (
        "Q",
        1.0,
        word_set(
            "this these those some any all both either neither many much few several most more each "
            "another"
        ),
    ),
    ("Q", 0.8, word_set("her his one")),
    ("Q", 0.0, PRONOUNS | word_set("mine yours hers ours theirs")),
    ("D", 1.2, frozenset(("that",))),
    ("Q", 1.6, frozenset(("that",))),
    ("H", 0.0, _PLACE),
    ("P", 0.0, _PREPOSITIONS),
    ("F", 0.0, frozenset(("of",))),
    ("P", 1.0, frozenset(("because",))),
    ("T", 0.0, frozenset(("to",))),
    ("A", 0.3, _ADVERBS),
    ("R", 0.0, RELATIVES),
    (
        "S",
        0.3,
        word_set(
            "if because although though while when since until unless before after once "
            "as than whereas so"
        ),
    ),
    ("C", 0.0, CONJUNCTIONS),
    ("X", 0.0, FINITE),
    ("V", 0.0, word_set("be have do")),
    ("E", 0.0, word_set("been had done")),
    ("I", 0.0, word_set("being having doing")),
)
#: Words of closed classes that are of open ones too.
_ALSO_OPEN = word_set("like past have do less more plus")
_CLOSED_ONLY = (
    DETERMINERS
    | PRONOUNS
    | RELATIVES
    | CONJUNCTIONS
    | FINITE
    | _PLACE
    | _PREPOSITIONS
    | word_set("be been being having doing done of because")
) - _ALSO_OPEN
#: A month, a name and a value in code, where they have a capital.
_CAPITALISED = word_set("may will none")
_NUMBERS = word_set(
    "two three four five six seven eight nine ten eleven twelve twenty thirty forty fifty hundred "
    "thousand million"
)
_DAYS = word_set("today yesterday tomorrow tonight online abroad upstairs")
#: What words that are one noun end with: "step one", "the text below", "pull request".
_NUMBERED = _NUMBERS | word_set(
    "one below above request requests call calls base bases care speech itself himself herself themselves "
    "statement statements loop loops block blocks clause clauses branch branches"
)
#: What words that are one noun, or a verb and its adverb, end with: "follow up", "money back".
_OF_PHRASAL = word_set("up ups off offs out outs in ins over back down")
_AFTER_DEED = word_set("up off out over down")
#: Letters of a word in capitals that is a name.
_ACRONYM = range(2, 6)
#: Words that together are said of something, or of how it is done.
_LEADING = ("in ", "on ", "at ", "under ", "off ", "out of ")
_TITLES = tuple(f"{title}{end}" for title in ("mr", "mrs", "ms", "dr", "prof") for end in " .")
_ORDINALS = word_set("first second third fourth fifth next")
_CLASSES_OF = {
    **{word: {"Y": 0.0, "N": 0.6} for word in _NUMBERS},
    **{word: {"M": 0.0, "A": 1.5, "N": 1.5} for word in _ORDINALS},
    **{word: {"M": 0.0, "L": 0.6, "A": 1.5, "N": 1.5} for word in ("first", "next")},
    **{word: {"A": 2.0, "L": 0.0, "S": 1.5} for word in ("once", "twice")},
    **{mark: {"P": 0.0} for mark in ("<", ">", "<=", ">=", "=", "==", "!=")},
    "one": {"Y": 0.0, "N": 0.6, "Q": 0.5},
    "last": {"M": 0.0, "A": 1.5, "N": 1.5, "V": 0.8},
    "will": {"X": 0.0, "N": 1.5},
    **{word: {"L": 0.0, "A": 1.2} for word in _DAYS},
    **{
        word: {"M": 0.0, "L": 0.5}
        for word in ("early", "late", "overnight", "daily", "weekly", "monthly", "yearly")
    },
}
_NO_ADVERBS = word_set("family assembly anomaly monopoly belly july italy ally tally")
#: Nouns in "ing".
DEEDS = word_set(
    "meeting warning hearing booking listing filing ruling recording greeting rating posting swelling bleeding "
    "training shipping housing parking building painting opening ending finding spelling wording setting "
    "smoking gambling bullying testing monitoring feeling drawing landing briefing funding billing pricing packaging formatting"
)
#: A word after "help" costs less than this as a verb where it is one.
_HELPED = 1.3
_LEADING_TO_VERB = word_set(
    "try tries trying want wants wanting wanted need needs needed going able unable willing plan plans planning "
    "attempt attempts attempting intend intends intending refuse refuses refused likely supposed ready hoping"
)
_APPEAR = word_set("act behave feel look read seem smell sound taste work")
INDEFINITE = word_set(
    "something anything nothing everything somebody anybody nobody someone anyone"
)
#: What an adjective costs less behind one of them: "something illegal".
LIKELY_AFTER_INDEFINITE = 1.4
#: Those of whom it is open whether "the person writing a review" writes one.
SOMEBODY = word_set("person man woman guy one")
#: Participles that often stand alone behind their noun.
_NAMED = word_set("shown given stated named listed quoted specified depicted pictured")
_BEHIND_NOUNS = word_set("due available payable outstanding")
_POSSESSIVES = word_set("my your his her its our their")
#: Nouns that are adjectives before a word.
_AFTER_ADJECTIVE = {"subject": "to", "short": "of"}
#: The most that a class of a word costs where the word is hardly ever of that class.
_RARE = 4.5
#: A question asks for the classes of each of its words several times.
_CACHED_WORDS = 4096
_FORMS = (("E", "participle"), ("W", "past"), ("I", "gerund"), ("Z", "third"))


def classes_of(token: Token, *, is_first: bool = False) -> Mapping[str, float]:
    """Return the classes of a token, each a letter, with its cost.

    A adverb, B word before a determiner, C conjunction, D determiner, E past participle, F "of",
    G genitive, H preposition of place or time, I gerund, L adverb that may end a subject,
    M adjective, N noun, O mark, P preposition, Q pronoun, R relative or question word,
    S subordinator, T "to", U number in digits, V base form, W past, X auxiliary, Y number in words or
    amount, Z third person.

    >>> from steelyard.decisions.statements.tokens import tokenize
    >>> [sorted(classes_of(token)) for token in tokenize("the customer wants it")]
    [['D'], ['N'], ['N', 'Z'], ['Q']]
    """
    return _classes_of_word(token.text, token.word, is_first)


@lru_cache(_CACHED_WORDS)
def _classes_of_word(text: str, word: str, is_first: bool) -> Mapping[str, float]:
    token = Token(text, "", word)
    fixed = _CLASSES_OF.get(word) or _classes_of_form(token)
    if fixed is not None:
        return fixed
    classes: dict[str, float] = {}
    for name, cost, words in _CLOSED:
        if word in words:
            classes[name] = min(cost, classes.get(name, cost))
    is_name = not is_first and token.text[0].isupper() and token.text != "I"
    if is_name and word in _CAPITALISED:
        return _classes_of_name(word)
    if word in _CLOSED_ONLY:
        return classes
    is_acronym = token.text.isupper() and len(word) in _ACRONYM and uses_of(word).adjective < 0.5
    if is_name and is_acronym:
        return {"N": 0.1, "M": 2.0}
    if is_name and not token.text.isupper():
        return _classes_of_name(word)
    if not classes or is_listed(word) or word in _ALSO_OPEN or word.endswith("ly"):
        _add_open_classes(classes, word)
    return classes


def _classes_of_form(token: Token) -> Mapping[str, float] | None:
    """Return the classes of a mark, a quotation, a number or a genitive."""
    word = token.word
    if token.is_compound:
        return _classes_of_compound(word)
    if not token.is_word and not word.isalnum():
        return {"C": 0.0} if word in CONJUNCTIONS else {"O": 0.0}
    if not word[0].isalnum():
        return {"N": 0.0, "M": 1.5, "U": 0.5} if word[-1].isdigit() else {"N": 0.0, "M": 1.5}
    if " (" in word:
        return classes_of(tokenize(token.text.partition(" (")[0])[0])
    if word[0].isdigit() or word.endswith(")"):
        return {"U": 0.0, "N": 0.6} if word[0].isdigit() else {"N": 0.0}
    is_genitive = word.endswith(("'s", "s'")) and word not in FINITE and len(word) > 2
    return {"G": 0.0} if is_genitive else None


def _classes_of_compound(word: str) -> dict[str, float]:
    """Return the classes of several words that are read as one."""
    if word.startswith(_TITLES):
        return {"G": 0.0} if word.endswith("'s") else {"N": 0.0}
    is_leading = word in COMPOUND_PREPOSITIONS
    if is_leading or ADVERBIAL.fullmatch(word):
        # "The fees paid in advance".
        is_last = word.startswith(("in ", "by ", "at ", "for ", "on "))
        return {"P": 0.0} if is_leading else {"A": 0.0} | ({"L": 0.8} if is_last else {})
    if TIME.fullmatch(word):
        return {"L": 0.0, "A": 1.2, "N": 0.8}
    last = word.rpartition(" ")[2]
    if last == "than" or last in _OF_PHRASAL:
        is_verb = last[-1] != "s" and last != "back"
        return {"D": 0.0} if last == "than" else {"N": 0.2} | ({"V": 0.2} if is_verb else {})
    if len(last) == 1 or last[0].isdigit() or last in _NUMBERED:
        return {"N": 0.0}
    # "The goods bought in good faith returned".
    is_place = STATED.fullmatch(word) or word.startswith(_LEADING)
    return {"M": 0.0} | ({"L": 0.4} if is_place else {})


def _classes_of_name(word: str) -> dict[str, float]:
    classes = {"N": 0.1, "M": 2.0}
    opened: dict[str, float] = {}
    _add_open_classes(opened, word)
    return {name: cost + 2.5 for name, cost in opened.items()} | classes


def _add_open_classes(classes: dict[str, float], word: str) -> None:
    uses = uses_of(word)
    is_form = _add_verb_forms(classes, word)
    if word in DEEDS:
        classes["N"] = 0.4
    if "I" in classes and not uses.verb:
        classes.setdefault("N", 1.8)
        classes.setdefault("M", 1.8)
    elif "W" in classes and "E" not in classes and not is_listed(word):
        # "Went" is a form of a verb alone.
        pass
    elif "E" in classes and not uses.verb:
        classes.setdefault("M", 0.8)
        classes.setdefault("N", _cost(uses.noun) if is_listed(word) else 4.0)
    elif word.endswith("ed") and len(word) > 5 and not is_listed(word):
        # Of a verb that is not listed.
        classes |= {"E": 0.4, "W": 0.5, "M": 1.0, "N": 4.0}
    elif not is_form:
        for name, share in (("N", uses.noun), ("M", uses.adjective), ("V", uses.verb)):
            if share > 0:
                classes[name] = min(classes.get(name, _RARE), _cost(share))
        classes.setdefault("N", _RARE)
    if word.endswith("ly") and word not in _NO_ADVERBS and not uses.verb and uses.adjective < 0.9:
        classes |= {"A": 0.0, "N": 2.0}
    if uses.verb:
        classes.setdefault("V", _cost(uses.verb))


def _add_verb_forms(classes: dict[str, float], word: str) -> bool:
    """Add the inflected forms of a verb that a word may be; return whether it is one of them alone."""
    is_form = False
    for name, form in _FORMS:
        base = base_of(word, form)
        if base is None:
            continue
        if base == word:
            # "Read", "put", "cost".
            if name == "E":
                classes.setdefault("E", 0.4)
        elif name == "Z":
            uses = uses_of(base)
            classes["Z"] = _cost(uses.verb / (uses.verb + uses.noun))
            classes["N"] = _cost(uses.noun / (uses.verb + uses.noun))
            is_form = True
        else:
            classes.setdefault(name, 0.3)
            is_form = is_form or name in {"E", "I"}
    return is_form


def _cost(share: float) -> float:
    return min(_RARE, -math.log(share)) if share > 0 else _RARE


def classes_in_order(tokens: Sequence[Token]) -> list[dict[str, float]]:
    """Return the classes of tokens, with costs changed by their neighbours."""
    classes = [dict(classes_of(token)) for token in tokens]
    for token, own, after, following in zip(tokens, classes, classes[1:], tokens[1:], strict=False):
        _weigh_verb(token, own, following, after)
        if following.word == "than" and token.word.endswith("er"):
            own.setdefault("M", 0.3)
        if following.word == _AFTER_ADJECTIVE.get(token.word, "than") and "M" in own:
            # "Higher than", "subject to".
            own.pop("N", None)
            own["M"] = min(own["M"], 0.3)
        if token.word in {"a", "an", "the"} and "X" in after:
            # "A must".
            after.clear()
            after["N"] = 0.0
        if token.word in _BEHIND_NOUNS and after.keys() & {"M", "E"}:
            # "The amount due clear".
            own["L"] = 0.0
        if following.word == "back" and (
            token.word in _POSSESSIVES or token.word == "the" or "G" in own
        ):
            # "On her back".
            after |= {"N": 0.0, "A": 2.0, "M": 2.0}
        if following.word == "home" and not {"P", "H"}.isdisjoint(own):
            # "At home" is a place, and nothing follows it as an adverb.
            after.pop("A", None)
        if following is tokens[-1] and (
            (token.word in SOMEBODY and "I" in after) or ("N" in own and following.word in _NAMED)
        ):
            # "The person asking", "the name shown".
            after["L"] = 0.3
        if "I" in own and following.word in _AFTER_DEED:
            # "Signing up" before "require".
            after.setdefault("L", 0.6)
        if token.word in _OF_PHRASAL and following.word in {"still", "already"}:
            # "Commented out" before "still needed".
            own["L"] = 0.3
        if token.word in INDEFINITE and "M" in after:
            # "Something illegal".
            after["M"] -= LIKELY_AFTER_INDEFINITE
    return classes


def _weigh_verb(
    token: Token, own: dict[str, float], following: Token, after: dict[str, float]
) -> None:
    """Change the costs of two words of which one is a verb."""
    if token.word == "help" and "V" in own and after.get("V", 9.0) < _HELPED:
        # "Help close the deal".
        own["A"] = 0.0
    if following.word == "help" and min(own, key=lambda name: own[name]) in "NEWZLQ":
        # "The information help people decide".
        after["N"] += 2.0
    if token.word in _LEADING_TO_VERB and following.word == "to":
        # "Trying to trick somebody".
        after.pop("P", None)
    if token.word == "to" and "P" not in own:
        after.setdefault("V", 0.5)
        after.pop("N", None)
    if token.word in _APPEAR and following.word == "like":
        # "Sound like" is no sound that likes.
        own["V"] = 0.0
        after.pop("V", None)
        # "Sounds like he is late".
        after["S"] = 0.3
    if token.word == "being" and "E" in after:
        after.pop("M", None)
