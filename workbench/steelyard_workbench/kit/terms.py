"""The exact terms of the field for the everyday words on pages, shown where a pointer rests on a word.

Sentences of the server, which say the exact terms, are put into everyday words here too.
"""

from __future__ import annotations

import re

_TERMS = {
    "answers to choose from": "outcomes",
    "answers": "outcomes",
    "better on nothing": "dominated: another model is nowhere worse and somewhere better",
    "gap between sure and right": "expected calibration error (ECE)",
    "changed by small edits": "flips under pressure",
    "combined models": "routes",
    "for": "side: training or evaluation",
    "how sure and right": "reliability: calibration in bins",
    "loss": "log loss, in nats",
    "share right": "accuracy",
    "random start (seed)": "seed",
    "right answer": "the expected outcome, or target",
    "right": "accuracy, with a 95 % interval",
    "rows for the check": "evaluation rows, held out",
    "squared miss": "Brier score",
    "model line": "family",
    "model line right": "how often the family is right",
    "text": "context",
    "texts": "contexts",
    "to train on": "training rows",
    "for the check": "evaluation rows, held out",
    "what changed": "flips: answers that differ between the two",
    "versions in use": "aliases, each with the version that it points to",
}
#: By exact term in sentences of the server the everyday words; what holds another comes before it.
_EVERYDAY = {
    'the kind "binary" and leave outcomes out': "the kind “yes or no” and leave the answers out",
    'the kind "ordinal"': "the kind “levels in order”",
    "in rubric": "after a colon",
    "or give statement": "or write what yes to it states",
    "held-out rows": "rows for the check",
    "evaluation decisions": "decisions for the check",
    "evaluation rows": "rows for the check",
    "calibration error": "gap between sure and right",
    "text baseline": "answer by words alone",
    "log loss": "loss",
    " nats": "",
    "abstains": "leaves it to a person",
    "abstaining": "leaving it to a person",
    "aliases": "names",
    "alias": "name",
    "contexts": "texts",
    "context": "text",
    "families": "model lines",
    "family": "model line",
    "gates": "checks",
    "gate": "check",
    "outcomes": "answers",
    "outcome": "answer",
    "policies": "rules",
    "policy": "rule",
    "rubric": "description",
}
#: Quoted texts and parts of a longer name are a user's own, but for the kinds above.
_TERM = re.compile(
    r"(?<![\w:@-])(?:{})(?![\w@-])|\"[^\"]*\"|`[^`]*`".format("|".join(map(re.escape, _EVERYDAY))),
    re.IGNORECASE,
)


def term_of(words: str) -> str:
    """Return the exact term for everyday words; empty where they are exact.

    >>> term_of("Share right"), term_of("version")
    ('accuracy', '')
    """
    return _TERMS.get(words.lower(), "")


def everyday(sentence: str) -> str:
    """Return a sentence of the server in everyday words; what it quotes stays as it is.

    >>> everyday('No outcome takes a case that fits none of them. Add one such as "outcome".')
    'No answer takes a case that fits none of them. Add one such as "outcome".'
    >>> everyday("Family desk passed its gate on 40 held-out rows.")
    'Model line desk passed its check on 40 rows for the check.'
    >>> everyday("Family context-router was not moved.")
    'Model line context-router was not moved.'
    """

    def in_words(match: re.Match[str]) -> str:
        term = match[0]
        words = _EVERYDAY.get(term.lower(), term)
        return words[:1].upper() + words[1:] if term[:1].isupper() else words

    return _TERM.sub(in_words, sentence)
