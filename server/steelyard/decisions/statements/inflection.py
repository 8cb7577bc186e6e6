"""Forms of English verbs: third person, past, participles, and back to the base."""

from __future__ import annotations

from functools import cache
from importlib import resources

from steelyard.decisions.words import word_set

_VOWELS = frozenset("aeiou")
#: Verbs of several syllables that double their last letter: the last syllable is stressed, or is
#: doubled in British spelling.
_DOUBLED = word_set(
    "abet abhor acquit admit allot annul befit cancel channel commit compel concur confer control counsel debug "
    "defer deter dispel embed emit enrol entrap equip excel expel forget format fulfil incur infer instal "
    "instil kidnap label level marshal model occur offset omit outbid patrol permit prefer program propel "
    "quarrel rebut recap recur refer regret remit repel resubmit signal sublet submit transfer "
    "transmit transit travel tunnel unplug unzip unwrap upset worship zigzag"
)
#: The verbs that are no auxiliaries only by their place: forms that no rule gives.
_THIRD = {"be": "is", "have": "has", "do": "does", "go": "goes", "undergo": "undergoes"}


@cache
def irregular_verbs() -> dict[str, tuple[str, str]]:
    """Return past and participle of each irregular verb."""
    text = resources.files(__package__).joinpath("irregular_verbs.txt").read_text("utf-8")
    rows = (line.split() for line in text.splitlines())
    return {base: (past, participle) for base, past, participle in rows}


def third_person(verb: str) -> str:
    """Return the form after ``he``.

    >>> [third_person(verb) for verb in ("want", "reply", "pass", "have", "say")]
    ['wants', 'replies', 'passes', 'has', 'says']
    """
    if verb in _THIRD:
        return _THIRD[verb]
    if verb.endswith("y") and verb[-2:-1] not in _VOWELS:
        return f"{verb[:-1]}ies"
    if verb.endswith(("s", "x", "z", "ch", "sh", "o")):
        return f"{verb}es"
    return f"{verb}s"


def past(verb: str) -> str:
    """Return the past.

    >>> [past(verb) for verb in ("pay", "stop", "reply", "agree", "refer", "offer", "apologise")]
    ['paid', 'stopped', 'replied', 'agreed', 'referred', 'offered', 'apologised']
    """
    if verb in irregular_verbs():
        return irregular_verbs()[verb][0]
    return f"{_stem(verb, 'ed')}ed"


def participle(verb: str) -> str:
    """Return the past participle.

    >>> [participle(verb) for verb in ("take", "send", "plan")]
    ['taken', 'sent', 'planned']
    """
    return irregular_verbs()[verb][1] if verb in irregular_verbs() else past(verb)


def gerund(verb: str) -> str:
    """Return the form in ``ing``.

    >>> [gerund(verb) for verb in ("take", "run", "lie", "see", "play")]
    ['taking', 'running', 'lying', 'seeing', 'playing']
    """
    if verb.endswith("ie"):
        return f"{verb[:-2]}ying"
    return f"{_stem(verb, 'ing')}ing"


def _stem(verb: str, ending: str) -> str:
    """Return a verb as it stands before an ending that begins with a vowel."""
    before = verb[-2:-1]
    if ending == "ed" and verb.endswith("y") and before not in _VOWELS:
        return f"{verb[:-1]}i"
    if verb.endswith("e") and (ending == "ed" or before not in {"e", "o", "y"}):
        return verb[:-1]
    if verb.endswith("ic"):
        return f"{verb}k"
    if _is_doubled(verb):
        return verb + verb[-1]
    return verb


def _is_doubled(verb: str) -> bool:
    if verb in _DOUBLED:
        return True
    if len(verb) < 3 or verb[-1] in "aeiouwxy" or verb[-2] not in _VOWELS:
        return False
    if verb[-3] in _VOWELS and not verb.startswith("qu"):
        return False
    # One syllable alone: one vowel, or the one after "qu".
    vowels = [letter for letter in verb.removeprefix("qu") if letter in "aeiouy"]
    return len(vowels) <= 1 or (verb.startswith("qu") and len(vowels) == 1)
