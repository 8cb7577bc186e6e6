"""Where a predicate begins behind words that are whole without it: "asked to leave" before "given a reason"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from steelyard.decisions.statements.lexicon import base_of
from steelyard.decisions.statements.tokens import Token
from steelyard.decisions.words import word_set

#: Verbs of giving and naming: "was given a refund".
OF_TWO_OBJECTS = word_set(
    "allow appoint ask assign award bring call charge consider cost deem deny do elect fine forgive give grant "
    "guarantee hand label leave lend make name offer owe pay promise quote read refuse sell send serve show spare "
    "teach tell title wish write have get"
)
#: Verbs whose form in "ing" leads to a participle: "is getting paid".
_OF_FEELING = word_set(
    "get feel look be become go sound stay remain keep seem have end start come stand sit lie"
)
OBJECTS = word_set("this it him her them me us you")
#: Adverbs of a predicate, which hardly stand inside one: "commented out still needed".
_STILL = word_set("still already") | {"no longer"}
_AGAIN = _STILL | {"not"}
#: Two words in a row that compare what is left of them.
_COMPARED = {("one", "of"), ("more", "than"), ("less", "than")}
_BOUNDS = word_set("above below over under")
#: A word costs less than this as a noun where it hardly is another.
SURE_NOUN = 0.5


def begins_again(
    tokens: Sequence[Token], classes: Sequence[Mapping[str, float]], place: int
) -> bool:
    """Return whether what stands before a place is whole: "commented out" before "still needed"."""
    if place == 1 and tokens[0].is_compound and "M" in classes[0]:
        # "On duty" before "known to the police".
        return is_best(classes[1], "EMDY") or _says_more(tokens, classes, 1)
    if not place:
        return False
    if tokens[place].word in _AGAIN:
        after = classes[place + 1 : place + 2]
        is_place = tokens[place].word in _STILL and bool(after) and is_best(after[0], "PHD")
        is_begun = is_place or _says_more(tokens, classes, place + 1)
    else:
        is_begun = (
            _begins_behind_object(tokens, classes, place)
            or _begins_behind_deed(tokens, classes, place)
            or _has_object(tokens, classes, place)
        )
    return is_begun and not any(is_best(own, "CRSX") for own in classes[:place])


def _begins_behind_object(
    tokens: Sequence[Token], classes: Sequence[Mapping[str, float]], place: int
) -> bool:
    """Return whether a predicate follows: "promised to her" before "paid out", not "to her paid assistant"."""
    if tokens[place].word not in OBJECTS or tokens[place - 1].word in {"as", "than"}:
        return False
    is_led = not {"P", "T", "H"}.isdisjoint(classes[place - 1])
    is_before_noun = any(is_noun(own) for own in classes[place + 1 : place + 3])
    return is_led and not is_before_noun and _says_more(tokens, classes, place + 1)


def _begins_behind_deed(
    tokens: Sequence[Token], classes: Sequence[Mapping[str, float]], place: int
) -> bool:
    """Return whether a predicate follows: "made after signing" before "initialled by both"."""
    after, behind = classes[place + 1 : place + 2], classes[place + 2 : place + 3]
    if "I" not in classes[place]:
        return False
    is_led = not {"P", "H", "F"}.isdisjoint(classes[place - 1])
    is_deed = is_led and is_best(classes[place], "I") and not leads_to_state(tokens[place].word)
    is_whole = not behind or not {"P", "H"}.isdisjoint(behind[0])
    return is_deed and bool(after) and is_whole and is_best(after[0], "EWM")


def _has_object(
    tokens: Sequence[Token], classes: Sequence[Mapping[str, float]], place: int
) -> bool:
    """Return whether a participle behind others has an object: "asked to leave" before "given a reason"."""
    if "E" not in classes[place]:
        return False
    is_led = is_best(classes[place - 1], "NVL") and tokens[place - 1].word != "be"
    is_given = base_of(tokens[place].word, "participle") in OF_TWO_OBJECTS
    after = classes[place + 1 : place + 2]
    return is_led and is_given and bool(after) and is_best(after[0], "DQR")


def _says_more(tokens: Sequence[Token], classes: Sequence[Mapping[str, float]], place: int) -> bool:
    """Return whether a predicate begins at a place, behind adverbs."""
    while place < len(tokens) - 1 and is_best(classes[place], "A"):
        place += 1
    if place >= len(tokens):
        return False
    return (
        not {"E", "M", "I"}.isdisjoint(classes[place])
        or is_bounded(tokens, classes, place)
        or begins_predicate(tokens, classes, place)
    )


def begins_predicate(
    tokens: Sequence[Token], classes: Sequence[Mapping[str, float]], adverbs: int
) -> bool:
    """Return whether words behind a noun and adverbs say something of it: "subject to the cap", "on leave"."""
    token, own = tokens[adverbs], classes[adverbs]
    behind = classes[adverbs + 1] if adverbs + 1 < len(classes) else {}
    other = min(own.get("N", 9.0), own.get("E", 9.0))
    is_adjective = own.get("M", 9.0) < other and token.word not in {
        "other",
        "available",
    }
    is_led = is_adjective and behind.keys() & {"P", "T", "H", "F"} and "N" not in behind
    is_compared = (token.word == "as" and "M" in behind) or not _COMPARED.isdisjoint(
        pairwise(other.word for other in tokens[: adverbs + 2])
    )
    return bool(
        is_led
        or is_compared
        or (is_adjective and token.is_compound)
        or token.word
        in {"part of", "worth", "better", "worse", "enough", "being", "getting", "becoming"}
        or "about to" in [other.word for other in tokens[:adverbs]]
        # "Placed on Sunday" before "what she wants".
        or (token.word == "what" and not adverbs)
    )


def is_best(classes: Mapping[str, float], names: str) -> bool:
    """Return whether a word is most likely of one of the classes named."""
    return min(classes, key=classes.__getitem__) in names


def is_bounded(tokens: Sequence[Token], classes: Sequence[Mapping[str, float]], place: int) -> bool:
    """Return whether a bound of a figure stands at a place: "above 38"."""
    return place + 1 < len(tokens) and tokens[place].word in _BOUNDS and "U" in classes[place + 1]


def is_noun(classes: Mapping[str, float]) -> bool:
    """Return whether a word hardly is anything but a noun."""
    return classes.get("N", 9.0) < SURE_NOUN and "D" not in classes


def leads_to_state(gerund: str) -> bool:
    """Return whether a participle may follow: "is being asked", "is getting paid"."""
    return gerund == "being" or base_of(gerund, "gerund") in _OF_FEELING
