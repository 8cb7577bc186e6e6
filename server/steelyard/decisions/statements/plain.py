"""Negated yes/no questions without their negation, as base models of reading 4 and later read them.

These rules are part of a base model as it was measured: they stay as they are, whatever
``read_question`` learns.
"""

from __future__ import annotations

import re
from functools import lru_cache

from steelyard.decisions.words import STRAIGHT, word_set

#: What asks whether a statement is false.
_FALSE = re.compile(
    r"\s*(?P<start>is it|would it be|is the statement|is this) "
    r"(?:false|untrue|wrong|incorrect|not true|not right|not correct|not the case|not so)"
    r"(?P<say> to say| to conclude)?(?P<that>,? that|:) (?P<rest>\S.*)",
    re.IGNORECASE | re.DOTALL,
)
#: What asks whether a statement is true, up to the statement.
_TRUE = re.compile(
    r"\s*(?:is it|would it be) (?:true|right|correct|the case|so)(?: to say| to conclude)?(?:,? that|:) ",
    re.IGNORECASE,
)
#: Verbs whose "not" says that what follows is not so. Not "should", "must" and "may": not being
#: obliged and being obliged not to are two things.
_VERBS = word_set("is are was were am does do did has have had can could will would")
_CONTRACTED = {
    "isn't": "is",
    "aren't": "are",
    "wasn't": "was",
    "weren't": "were",
    "doesn't": "does",
    "don't": "do",
    "didn't": "did",
    "hasn't": "has",
    "haven't": "have",
    "hadn't": "had",
    "can't": "can",
    "cannot": "can",
    "couldn't": "could",
    "won't": "will",
    "wouldn't": "would",
}
#: Where one of these stands, what a "not" covers hangs on more than its place.
_SCOPES = word_set(
    "and or nor but if unless because since until while although though when whenever that which "
    "who whose whom whether why how where what all every everyone everybody everything each both "
    "any anyone anybody anything some someone somebody something most many much few several none "
    "nobody nothing never neither only just even always often hardly "
    "say says said claim claims claimed tell tells told think thinks thought believe believes "
    "believed write writes wrote state states stated mean means meant know knows knew"
)
#: What a "not" is not before: it then denies this word and not the verb.
_AFTER = word_set("to one yet necessarily entirely exactly quite very too so")
#: What a subject of two or three words begins with; any other has one word.
_DETERMINERS = word_set("the a an this that these those my your his her its our their")
_WORD = re.compile(r"[\w'\u2019]+")


@lru_cache(maxsize=1024)
def plain_question(question: str) -> tuple[str, bool]:
    """Return the question without its negations, and whether its answer is the other one then.

    >>> plain_question("Is it false that the invoice is paid?")
    ('Is it true that the invoice is paid?', True)
    >>> plain_question("Has the invoice not been paid?")
    ('Has the invoice been paid?', True)
    >>> plain_question("Is it untrue that the invoice is not paid?")
    ('Is it true that the invoice is paid?', False)
    >>> plain_question("Does the customer say that it is not paid?")
    ('Does the customer say that it is not paid?', False)
    """
    text, is_turned = question, False
    match = _FALSE.fullmatch(text)
    if match is not None:
        say = match["say"] or ""
        text = f"{match['start']} {'right' if say else 'true'}{say}{match['that']} {match['rest']}"
        is_turned = True
    opening = _TRUE.match(text)
    start = opening.end() if opening else 0
    affirmed = _affirmed(text[start:], is_question=not start)
    if affirmed is not None:
        text, is_turned = text[:start] + affirmed, not is_turned
    return text, is_turned


def _affirmed(clause: str, *, is_question: bool) -> str | None:
    """Return a clause without the negation of its verb; None where it has none or its scope is open."""
    matches = list(_WORD.finditer(clause))
    words = [match[0].translate(STRAIGHT).casefold() for match in matches]
    places = [i for i, word in enumerate(words) if word in {"not", "no"} or word in _CONTRACTED]
    if len(places) != 1 or not _SCOPES.isdisjoint(words):
        return None
    [at] = places
    verbs = [i for i, word in enumerate(words[:at]) if word in _VERBS]
    after = words[at + 1] if at + 1 < len(words) else ""
    # "Isn't it paid?" and "Is not the bill paid?" ask whether it is paid.
    is_short = words[at] in _CONTRACTED
    if at < (1 if is_short else 2) or after in _AFTER or (is_short and verbs):
        return None
    start, end = matches[at].span()
    if is_short:
        return clause[:start] + _CONTRACTED[words[at]] + clause[end:]
    instead = ""
    if words[at] == "no":
        is_there = is_question and words[1:at] == ["there"]
        if not is_there and after != "longer":
            return None
        instead = " still" if after == "longer" else " any"
        end = matches[at + 1].end() if after == "longer" else end
    # After a longer subject it may be of a noun: "Does it hold goods not yet paid?"
    longest = 3 if words[1] in _DETERMINERS else 1
    is_of_verb = verbs == [at - 1] or (is_question and verbs == [0] and at - 1 <= longest)
    return clause[:start].rstrip() + instead + clause[end:] if is_of_verb else None
