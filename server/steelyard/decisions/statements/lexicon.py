"""How often an English word is a noun, an adjective and a verb, and of which verb it is a form.

``lexicon.txt`` has a word a line with three digits, the shares of its uses as a noun, an adjective
and a verb in the project's training texts, or as estimated where those lack a common verb; a word
that is a noun alone is left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import resources

from steelyard.decisions.statements.inflection import (
    gerund,
    irregular_verbs,
    participle,
    past,
    third_person,
)
from steelyard.decisions.words import singular

_ADJECTIVE_ENDINGS = ("al", "ous", "ful", "ive", "able", "ible", "less", "ic", "ish", "ary", "est")

#: "Off-topic", "high-risk".
_ADJECTIVE_PREFIXES = (
    "off-",
    "on-",
    "out-of-",
    "non-",
    "anti-",
    "pro-",
    "well-",
    "all-",
    "high-",
    "low-",
    "long-",
    "short-",
    "full-",
)
#: Second forms of past and participle.
_OTHER_FORMS = {
    "burnt": "burn",
    "dreamt": "dream",
    "learnt": "learn",
    "lit": "light",
    "spelt": "spell",
    "spoilt": "spoil",
}
#: The digits of a word that is not listed.
_UNLISTED = "000"
_VERB_ENDINGS = ("ise", "ize", "ify")
_VERB_PREFIXES = ("re", "sub", "mis", "over", "under")
#: A verb with a prefix is one whose share of uses as a verb is larger.
_SURE_VERB = 0.6
_NOUN_ENDINGS = ("ity", "ncy", "ory", "ogy", "ery")


@dataclass(frozen=True, slots=True)
class Uses:
    """Shares of a word's uses, from 0 to 1."""

    noun: float
    adjective: float
    verb: float


@cache
def _lexicon() -> dict[str, str]:
    """Return the three digits of every listed word."""
    text = resources.files(__package__).joinpath("lexicon.txt").read_text("utf-8")
    words = text.split()
    return dict(zip(words[::2], words[1::2], strict=True))


@cache
def _uses(digits: str) -> Uses:
    return Uses(*(int(digit) / 9 for digit in digits))


@cache
def _verb_forms() -> dict[str, dict[str, str]]:
    """Return, for each kind of form, the base of every form."""
    bases = [word for word, digits in _lexicon().items() if digits[2] != "0"]
    forms = {"third": third_person, "past": past, "participle": participle, "gerund": gerund}
    tables = {kind: {form(base): base for base in bases} for kind, form in forms.items()}
    # "Cancelled" and "canceled" are both written.
    for kind, ending in (("past", "ed"), ("participle", "ed"), ("gerund", "ing")):
        for base in bases:
            if base not in irregular_verbs() and base.endswith(("l", "p", "t", "r")):
                tables[kind].setdefault(base + ending, base)
    tables["participle"] = (
        _OTHER_FORMS | {"gotten": "get", "proven": "prove"} | tables["participle"]
    )
    tables["past"] = _OTHER_FORMS | tables["past"]
    return tables


def uses_of(word: str) -> Uses:
    """Return the shares of a word in lower case, by its ending where it is not listed.

    >>> uses_of("customer").noun, uses_of("refundable").adjective
    (1.0, 0.9)
    """
    listed = _lexicon().get(word)
    if listed is not None:
        return _uses(listed)
    if "-" in word:
        return _uses_of_compound(word)
    repeated = _uses(_lexicon().get(_without_prefix(word), _UNLISTED))
    if repeated.verb > _SURE_VERB:
        return Uses(max(repeated.noun, 0.3), repeated.adjective, repeated.verb)
    stem = singular(word)
    singular_uses = _uses(_lexicon().get(stem, _UNLISTED))
    if stem != word and singular_uses.noun > 0:
        return Uses(singular_uses.noun, 0.0, 0.0)
    return _uses_by_ending(word)


def _uses_by_ending(word: str) -> Uses:
    if word.endswith(_ADJECTIVE_ENDINGS) and len(word) > 4:
        return Uses(0.1, 0.9, 0.0)
    if word.endswith(("ed", "ing")) and len(word) > 5 and not word.endswith("eed"):
        return Uses(0.2, 0.8, 0.0)
    if word.endswith("y") and len(word) > 4 and not word.endswith(_NOUN_ENDINGS):
        return Uses(0.3, 0.7, 0.0)
    if word.endswith(_VERB_ENDINGS) and len(word) > 5:
        return Uses(0.1, 0.0, 0.9)
    return Uses(1.0, 0.0, 0.0)


def _uses_of_compound(word: str) -> Uses:
    last = word.rpartition("-")[2]
    if base_of(last, "participle") or base_of(last, "gerund"):
        return Uses(0.1, 0.9, 0.0)
    if word.startswith(("re-", "un-", "over-", "under-", "mis-", "double-")) and uses_of(last).verb:
        return uses_of(last)
    uses = uses_of(last)
    if word.startswith(_ADJECTIVE_PREFIXES):
        return Uses(0.1, 0.9, 0.0)
    return Uses(max(uses.noun, 0.3), max(uses.adjective, 0.5), 0.0)


def is_listed(word: str) -> bool:
    """Return whether a word has shares of its own."""
    return word in _lexicon()


def base_of(word: str, form: str) -> str | None:
    """Return the verb that a word is a ``third``, ``past``, ``participle`` or ``gerund`` of.

    >>> base_of("wants", "third"), base_of("sent", "participle"), base_of("bed", "past")
    ('want', 'send', None)
    """
    forms = _verb_forms()[form]
    base = forms.get(word)
    if base is not None or is_listed(word):
        return base
    # "Sublicenses", "rehired".
    inner = _without_prefix(word)
    base = forms.get(inner)
    is_irregular = form == "participle" and not inner.endswith("ed") and inner != base
    is_verb = base is not None and (is_irregular or uses_of(base).verb > _SURE_VERB)
    return f"{word[: len(word) - len(inner)]}{base}" if is_verb and inner != word else None


def _without_prefix(word: str) -> str:
    """Return a verb without the prefix that repeats or qualifies it; another word as it is."""
    prefix = next((each for each in _VERB_PREFIXES if word.startswith(each)), "")
    return word[len(prefix) :] if len(word) - len(prefix) > 2 else word
