"""The joint of subject and rest: what the words around it say that the order of classes does not.

Each rule looks at one place where the subject of a question may end and returns what the reading
costs more there; less than nothing where the words speak for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from steelyard.decisions.statements.classes import INDEFINITE, LIKELY_AFTER_INDEFINITE, NOMINATIVES
from steelyard.decisions.statements.nouns import is_plural
from steelyard.decisions.statements.tokens import Token

_UNUSUAL, _UNLIKELY, _HARDLY = 1.0, 2.0, 3.0
#: A word costs less than this as a noun where it hardly is another.
_SURE_NOUN = 0.5
_INDEFINITE_ARTICLES = ("a", "an", "any", "some", "no", "another")
_DEGREES = ("too", "very", "still", "already")
_HAVE = ("have", "has", "had", "having")
#: Words that begin another phrase than the noun before them.
_BEGIN_PHRASE = frozenset("PHRSXVFT")


@dataclass(frozen=True, slots=True)
class Joint:
    """A place where a subject may end, behind its first ``size`` words."""

    tokens: Sequence[Token]
    classes: Sequence[dict[str, float]]
    size: int
    #: What the rest begins with: a key of ``parsing.STARTS``.
    start: str
    is_plural_verb: bool

    @property
    def words(self) -> list[str]:
        """The words of subject and rest."""
        return [token.word for token in self.tokens]

    @property
    def is_of_being(self) -> bool:
        """Whether the verb before the subject is "is" or another form of it."""
        return self.start == "be"

    @property
    def is_before_last(self) -> bool:
        """Whether one word is left for the rest."""
        return self.size == len(self.tokens) - 1


def joint_cost(joint: Joint) -> float:
    """Return what it costs more, or less, that the subject ends at a place."""
    return sum(rule(joint) for rule in _RULES)


def _cost_of_bare_plural(joint: Joint) -> float:
    """Return the cost of "are the people minors", which is likely, and of "is the hotel claims"."""
    is_plural_alone = joint.is_before_last and is_plural(joint.tokens[joint.size :])
    if not joint.is_of_being or not is_plural_alone:
        return 0.0
    return -_HARDLY if joint.is_plural_verb else _UNUSUAL


def _cost_of_parted_phrase(joint: Joint) -> float:
    """Return the cost of parting "something illegal", "stopping suddenly" and "received yesterday"."""
    own, before = joint.classes[joint.size], joint.tokens[joint.size - 1]
    cost = 0.0
    if joint.size > 1 and before.word in INDEFINITE and "M" in own:
        cost += LIKELY_AFTER_INDEFINITE
    if joint.size > 1 and "I" in joint.classes[0] and joint.words[joint.size].endswith("ly"):
        cost += _UNLIKELY
    if not joint.is_before_last and {"A", "L"} <= own.keys():
        cost += _UNUSUAL
    return cost


def _cost_of_nominative(joint: Joint) -> float:
    """Return the cost of a subject of several words that ends with "they": "does it sound like they"."""
    *before, last = joint.words[: joint.size]
    is_inside = bool(before) and last in NOMINATIVES and before[-1] not in {"and", "or", "than"}
    return _HARDLY if is_inside else 0.0


def _cost_of_first_word(joint: Joint) -> float:
    """Return the cost of "the item is they ordered", and of "they are to be paid", which is likely."""
    if not joint.is_of_being:
        return 0.0
    if joint.words[joint.size] in NOMINATIVES:
        return _HARDLY
    return -_UNUSUAL if joint.words[joint.size : joint.size + 2] == ["to", "be"] else 0.0


def _cost_of_been(joint: Joint) -> float:
    """Return the cost of "been" without a "have" before it in its part, unless it begins the rest."""
    if "been" not in joint.words:
        return 0.0
    at = joint.words.index("been")
    first = joint.size if at >= joint.size else 0
    is_led = first == joint.size and all("A" in own for own in joint.classes[first:at])
    return 0.0 if is_led or set(_HAVE).intersection(joint.words[first:at]) else _UNLIKELY


def _cost_of_second_predicate(joint: Joint) -> float:
    """Return the cost of a predicate that the rest has behind the one it begins with.

    "Measured at home too high", "returned by the helper checked for null": what stands in front is
    likelier a part of the subject.
    """
    if not joint.is_of_being:
        return 0.0
    tokens, classes = joint.tokens[joint.size :], joint.classes[joint.size :]
    is_definite = False
    for i, own in enumerate(classes):
        if own.keys() & {"D", "G"}:
            is_definite = tokens[i].word not in _INDEFINITE_ARTICLES
        elif own.keys() & _BEGIN_PHRASE and "N" not in own:
            is_definite = False
        is_time = "L" in own and i > 0
        if is_time or "U" in own or own.get("N", 9.0) < _SURE_NOUN:
            is_known = is_definite or "U" in own or tokens[i].text[0].isupper()
            cost = _cost_behind_noun(tokens[i + 1 :], classes[i + 1 :], is_time, is_known)
            if cost:
                return cost
    return 0.0


def _cost_behind_noun(
    tokens: Sequence[Token], classes: Sequence[dict[str, float]], is_time: bool, is_known: bool
) -> float:
    """Return the cost of what follows a noun as a predicate."""
    adverbs = 0
    while adverbs < len(tokens) - 1 and "A" in classes[adverbs]:
        adverbs += 1
    if not tokens:
        return 0.0
    own = classes[adverbs]
    noun = own.get("N", 9.0)
    is_last = adverbs == len(tokens) - 1 and (is_time or "L" not in own)
    is_degree = adverbs > 0 and tokens[adverbs - 1].word in _DEGREES
    if (is_last or is_degree) and min(own.get("M", 9.0), own.get("I", 9.0)) < noun:
        return _UNLIKELY
    is_article = tokens[adverbs].word in {"a", "an"}
    return _UNUSUAL if is_known and (is_article or own.get("E", 9.0) < noun) else 0.0


_RULES: tuple[Callable[[Joint], float], ...] = (
    _cost_of_bare_plural,
    _cost_of_parted_phrase,
    _cost_of_nominative,
    _cost_of_first_word,
    _cost_of_been,
    _cost_of_second_predicate,
)
