"""The joint of subject and rest: what the words around it say that the order of classes does not.

Each rule looks at one place where the subject of a question may end and returns what the reading
costs more there; less than nothing where the words speak for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from steelyard.decisions.statements.classes import (
    INDEFINITE,
    LIKELY_AFTER_INDEFINITE,
    NOMINATIVES,
    classes_of,
)
from steelyard.decisions.statements.lexicon import base_of
from steelyard.decisions.statements.nouns import head_of, is_mass, is_plural
from steelyard.decisions.statements.predicates import (
    OBJECTS,
    OF_TWO_OBJECTS,
    SURE_NOUN,
    begins_again,
    begins_predicate,
    is_best,
    is_bounded,
    is_noun,
    leads_to_state,
)
from steelyard.decisions.statements.tokens import ADDING, Token
from steelyard.decisions.words import word_set

_UNUSUAL, _UNLIKELY, _HARDLY, _NEVER = 1.0, 2.0, 3.0, 4.5
_INDEFINITE_ARTICLES = ("a", "an", "any", "some", "no", "another")
_DEGREES = ("too", "very", "still", "already")
_HAVE = ("have", "has", "had", "having")
#: Words that belong to the next one: "more expensive", "already hired".
_OF_NEXT = word_set(
    "more most less least too very so quite rather as not only just also still already even than "
    "within during until per via despite"
)
#: Adverbs of a deed that is a subject: "is buying it now wise".
_OF_DEEDS = word_set("back now again today here online first early late")
#: Participles that are no state: "customer complained".
INTRANSITIVE = word_set(
    "complained apologised apologized replied responded agreed arrived died lied happened occurred appeared "
    "disappeared waited objected resigned consented cooperated fainted failed passed succeeded crashed left "
    "worked started ended stopped escalated churned relapsed improved worsened fell rose grew"
)
#: Verbs after which a state is theirs: "was left alone".
_OF_STATE = word_set(
    "believe bear bury call consider declare deem deliver find hold judge keep leave make mark paint play prove rate "
    "render return rule sell send serve set ship think turn wash"
)
#: What a deed is said to be: "the intent is to greet".
_AIMS = word_set("intent intention aim goal purpose objective point job task duty role")
#: What is said to be that something is so.
_CLAIMS = word_set(
    "problem problems issue fact point reason claim complaint concern idea view answer conclusion result news truth "
    "argument rule condition catch trouble worry fear hope advantage explanation"
)
#: Adverbs of a sentence, which stand before its verb.
_OF_SENTENCE = word_set(
    "certainly definitely probably really actually likely clearly also still always"
)
#: Words that say where a figure stands: "off by one", "above 38".
_SHIFTS = word_set("off up down")
_STATES = ({"M", "N"}, {"M", "N", "V"})
#: "Supported by the evidence presented": what is said of a source behind it.
_SOURCES = word_set(
    "evidence data text texts information facts figures numbers context passage documents sources examples details"
)
_CITED = word_set("presented provided given cited quoted supplied")
_UNITS = (
    "per ",
    *word_set(
        "year month week day hour minute met centimet kilomet mile inch foot feet floor dollar euro pound percent "
        "word character line sentence paragraph page"
    ),
)
#: What an amount may be, and what bounds one: "more than three pages long".
_MEASURES = word_set("long wide high tall deep thick late early old away")
_BOUNDS_OF_AMOUNT = word_set("least most about over under almost nearly exactly around") | {
    "more than",
    "less than",
    "fewer than",
}
_NO_STATE = word_set("only again too also already still yet ever just even not either first")
#: Prepositions that a form in "ing" goes with.
_OF_DEED = word_set("for of about without by from with before after instead")
#: Prepositions that lead to nothing said of the subject.
_NO_PREDICATE = frozenset(ADDING) | word_set("according regarding despite because than")
_VERBAL = frozenset("EIVWZXRPH")
#: Words that begin another phrase than the noun before them.
_BEGIN_PHRASE = frozenset("PHRSXVFT")


@dataclass(frozen=True, slots=True)
class Joint:
    """A place where a subject may end, behind its first ``size`` words."""

    tokens: Sequence[Token]
    #: The words of the tokens, and their classes.
    words: Sequence[str]
    classes: Sequence[dict[str, float]]
    size: int
    #: What the rest begins with: a key of ``parsing.STARTS``.
    start: str
    is_plural_verb: bool

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
    rules = _RULES + _RULES_OF_BEING if joint.is_of_being else _RULES
    if joint.start == "participle":
        rules = (*_RULES, _cost_of_second_predicate)
    return sum(rule(joint) for rule in rules)


def _cost_of_bare_noun(joint: Joint) -> float:
    """Return the cost of "are the people minors", which is likely, and of "is the profile picture of her"."""
    own, rest = joint.classes[joint.size], joint.tokens[joint.size :]
    is_noun = own.get("N", 9.0) < SURE_NOUN and not {"M", "E", "I", "A", "L"} & own.keys()
    if is_noun and len(rest) > 1 and not (is_plural(rest) or is_mass(rest)):
        return _UNUSUAL
    if not joint.is_plural_verb and "D" in own and "of" not in joint.words:
        # "This report the customer mentions" before "on the list".
        head = head_of(rest[1:]) if rest[1:] else rest[0]
        is_verb = is_plural((head,)) and "Z" in classes_of(head)
        if rest[0].word == "the" and joint.size > 1 and is_verb:
            return _UNLIKELY
    is_plural_alone = joint.is_before_last and is_plural(joint.tokens[joint.size :])
    if not is_plural_alone or "I" in joint.classes[joint.size - 1]:
        return 0.0
    if not joint.is_plural_verb:
        return _UNUSUAL
    # "Their health care" before "providers" may be one noun.
    is_short = joint.size > 1 and "D" in joint.classes[joint.size - 2]
    return -2 * _UNLIKELY if is_short else -_HARDLY


def _cost_of_parted_phrase(joint: Joint) -> float:
    """Return the cost of parting "something illegal", "six years" and "received yesterday"."""
    words, classes, size = joint.words, joint.classes, joint.size
    before, word = words[size - 1], words[size]
    last, own, is_inside = classes[size - 1], classes[size], size > 1
    after = classes[size + 1] if not joint.is_before_last else {}
    # "Authorised to do so", but "encrypted data".
    behind = classes[size + 2] if size + 2 < len(classes) else {"P": 0.0}
    is_state = "E" in after and bool({"P", "H", "T"} & behind.keys())
    is_noun = own.get("N", 9.0) < SURE_NOUN
    rules = (
        # "After six years", "forty years old".
        (is_inside and is_noun and _is_number(joint, size - 1), _HARDLY),
        (_is_amount(joint.tokens, classes, size - 1), _NEVER),
        (
            joint.is_before_last
            and word in _MEASURES
            and not _BOUNDS_OF_AMOUNT.isdisjoint(words[size - 3 : size - 2])
            and not {"U", "Y"}.isdisjoint(classes[size - 2]),
            2 * _NEVER,
        ),
        # "Someone in our team", "calling made" before "difficult".
        (before in INDEFINITE and not {"P", "H"}.isdisjoint(own), _UNUSUAL),
        (size < 4 and "M" in own and base_of(before, "participle") in _OF_STATE, _UNLIKELY),
        # "The hotel" before "worth the money".
        (word in {"worth", "part of"} or (word == "as" and "M" in after), -_UNUSUAL),
        # "This offer" before "help".
        (
            size == 1 and before in {"this", "that"} and own.get("N", 9.0) < own.get("V", 9.0),
            _UNUSUAL,
        ),
        # "The employee agree" before "with it".
        (
            size == 3
            and words[0] in {"a", "an", "the"}
            and last.get("N", 0.0) > last.get("V", 9.0) + _HARDLY,
            _NEVER,
        ),
        (is_inside and before in INDEFINITE and "M" in own, LIKELY_AFTER_INDEFINITE),
        # "Only available" before "online".
        (
            is_inside and "L" in own and is_best(last, "M") and is_best(classes[size - 2], "A"),
            _HARDLY,
        ),
        # "Received yesterday", but not "received yesterday from".
        (bool(after) and "A" in own and "L" in own, _UNUSUAL),
        (is_inside and "P" in last and "L" in classes[size - 2], _UNUSUAL),
        # "The person signing" before "authorised".
        ("I" in own and is_state and not leads_to_state(word), _HARDLY),
        # "Only" alone is said of nothing.
        (joint.is_before_last and (word in _NO_STATE or _is_manner(word, own)), _NEVER),
        # "The text here" before "mean".
        (not joint.is_of_being and word in {"here", "there"}, _UNUSUAL),
        # "Conflict with the system" before "prompt".
        (
            joint.start == "base"
            and joint.is_before_last
            and own.get("N", 9.0) < own.get("V", 9.0),
            _UNUSUAL,
        ),
        # "Does he wants" has no subject "he wants".
        (
            joint.start == "base"
            and size < 4
            and "R" not in classes[0]
            and NOMINATIVES.isdisjoint(words[1:size])
            and last.get("Z", 9.0) + _HARDLY < last.get("N", 9.0),
            _NEVER,
        ),
    )
    return sum(cost for is_parted, cost in rules if is_parted)


def _cost_of_parted_words(joint: Joint) -> float:
    """Return the cost of parting words that go together: "the best one", "twice as long", "10% higher"."""
    words, classes, size = joint.words, joint.classes, joint.size
    before, word = words[size - 1], words[size]
    last, own, is_inside = classes[size - 1], classes[size], size > 1
    after = classes[size + 1] if not joint.is_before_last else {}
    rules = (
        # "More expensive", "the best one", "longer than".
        (is_inside and before in _OF_NEXT, _HARDLY),
        # "Earnings" before "per share", "Los" before "Angeles".
        (word == "per", _HARDLY),
        (_is_within_name(joint), _UNUSUAL),
        (
            word in {"one", "ones", "than"}
            and last.get("M", 9.0) < _UNLIKELY
            and words[size + 1 : size + 2] != ["of"],
            _HARDLY,
        ),
        # "Must be made", "something illegal".
        (before in {"be", "been", "is", "are", "was", "were"} and "E" in own, _HARDLY),
        # "The order" before "had been placed".
        (joint.is_of_being and word in {"had", "has", "have", "got"}, _NEVER),
        # "Counted as time" before "worked".
        (
            joint.is_of_being and size > 1 and joint.is_before_last and word in INTRANSITIVE,
            _UNLIKELY,
        ),
        # "10%" before "higher", "twice" before "as long".
        (before.endswith("%") and (word.endswith("er") or word in {"more", "less"}), _NEVER),
        (before == "twice" and word == "as", _NEVER),
        # "The only option" before "left".
        (word == "left" and "only" in words[max(size - 3, 0) : size], _NEVER),
        # "Worth" before "mentioning", "as good" before "as new".
        (before == "worth" or (word == "as" and words[size - 2 : size - 1] == ["as"]), _NEVER),
        # "Before being" before "asked", "we have" before "already sent", "all" before "the places".
        (before == "being", _NEVER),
        (before in _HAVE and "A" in own and "E" in after, _HARDLY),
        (size == 1 and before in {"all", "both"} and word == "the", _NEVER),
    )
    return sum(cost for is_parted, cost in rules if is_parted)


def _is_within_name(joint: Joint) -> bool:
    """Return whether the words on both sides have capitals: "Los Angeles"."""
    before, after = joint.tokens[joint.size - 1].text, joint.tokens[joint.size].text
    return before[:1].isupper() and after[:1].isupper() and len(after) > 1


def _cost_of_parted_deed(joint: Joint) -> float:
    """Return the cost of parting "stopping suddenly"; a gain behind "calling it again"."""
    if "I" not in joint.classes[0]:
        return 0.0
    word = joint.words[joint.size]
    if joint.size == 1:
        # "Calling" before "someone a clown a violation".
        is_object = not {"D", "Q", "P", "H"}.isdisjoint(joint.classes[1])
        return _HARDLY if is_object and len(joint.words) > 3 else 0.0
    if word in {"a", "an"} and len(joint.tokens) - joint.size > 2:
        # "Calling him" before "a liar against the rules".
        is_direct = all({"P", "H"}.isdisjoint(own) for own in joint.classes[1 : joint.size])
        is_named = is_direct and base_of(joint.words[0], "gerund") in OF_TWO_OBJECTS
        return 2 * _NEVER if is_named else 0.0
    is_manner = word.endswith("ly") and word not in _OF_SENTENCE
    cost = 2 * _UNLIKELY if is_manner or word in _OF_DEEDS else 0.0
    is_done = joint.size > 2 and joint.words[joint.size - 1] in _OF_DEEDS
    return cost - _UNLIKELY if is_done else cost


def _cost_of_odd_predicate(joint: Joint) -> float:
    """Return the cost of "is a clown a violation", "is according to him" and "he gives for is leaving"."""
    word, size = joint.words[joint.size], joint.size
    after = joint.classes[size + 1] if not joint.is_before_last else {}
    cost = 2 * _NEVER if _has_article_behind_noun(joint) else 0.0
    cost += _NEVER if _has_article_in_predicate(joint) else 0.0
    # "The version" before "of the app".
    is_part = joint.words[size : size + 2] == ["of", "the"]
    cost += _UNUSUAL if word in _NO_PREDICATE or is_part else 0.0
    own = joint.classes[size]
    # "The employee is agree".
    is_verb = own.get("V", 9.0) + _HARDLY < min(own.get(name, 9.0) for name in "NMEIAPL")
    cost += _NEVER if is_verb else 0.0
    before, last = joint.words[size - 1], joint.classes[size - 1]
    is_deed = before in _OF_DEED and "I" in joint.classes[size]
    # "She sent one of" before "the reasons", "she spoke" before "to angry".
    is_stranded = before == "of" and "D" in joint.classes[size]
    is_parted = word == "to" and not {"W", "Z"}.isdisjoint(last) and "N" not in last
    cost += _UNLIKELY if is_deed or is_stranded or is_parted else 0.0
    # "Why he cannot log" before "in that it is late".
    is_led = not {"P", "H"}.isdisjoint(own) and bool(after) and joint.words[size + 1] == "that"
    # "The hotel we stayed" before "at more expensive than".
    is_led = is_led or (word != "as" and _leads_to_no_noun(joint.classes[size:]))
    cost += _HARDLY if is_led else 0.0
    return cost + (_UNLIKELY if word == "even" and "S" in after else 0.0)


def _leads_to_no_noun(classes: Sequence[Mapping[str, float]]) -> bool:
    """Return whether words begin with a preposition, adverbs and an adjective with no noun behind it."""
    place = 1
    while place < len(classes) and is_best(classes[place], "AY"):
        place += 1
    is_state = place < len(classes) and is_best(classes[place], "M")
    is_alone = is_state and (place + 1 == len(classes) or is_best(classes[place + 1], "PHTS"))
    return is_alone and is_best(classes[0], "PH")


def _has_article_in_predicate(joint: Joint) -> bool:
    """Return whether the rest is a noun with "a" and another behind it: "a clown a violation"."""
    words, classes = joint.words[joint.size :], joint.classes[joint.size :]
    nouns = [place for place, own in enumerate(classes) if own.get("N", 9.0) < SURE_NOUN][:1]
    return (
        joint.is_of_being
        and "D" in classes[0]
        and any(place < 3 and words[place + 1 : place + 2] in (["a"], ["an"]) for place in nouns)
    )


def _is_manner(word: str, classes: Mapping[str, float]) -> bool:
    """Return whether a word says how something is done alone: "quickly"."""
    return word.endswith("ly") and "A" in classes and not {"M", "L"} & classes.keys()


def _has_article_behind_noun(joint: Joint) -> bool:
    """Return whether the subject has "a" behind a noun, and no verb before that has an object."""
    if not joint.is_of_being:
        return False
    for place in range(1, joint.size):
        own, before = joint.classes[place], joint.classes[place - 1]
        if _VERBAL & own.keys() and "N" not in own:
            return False
        is_member = joint.words[place : place + 2] == ["one", "of"]
        if (is_member or joint.words[place] in {"a", "an"}) and before.get("N", 9.0) < SURE_NOUN:
            return True
    return False


def _is_number(joint: Joint, place: int) -> bool:
    """Return whether a number stands at a place that names no noun before it: "six", not "room 6"."""
    classes = joint.classes
    is_name = place > 0 and classes[place - 1].get("N", 9.0) < SURE_NOUN
    return bool({"U", "Y"} & classes[place].keys()) and not is_name


def _is_amount(tokens: Sequence[Token], classes: Sequence[Mapping[str, float]], place: int) -> bool:
    """Return whether a number stands at a place, and a unit behind it: "4 years old"."""
    unit = tokens[place + 1].word if place + 1 < len(tokens) else ""
    return not {"U", "Y"}.isdisjoint(classes[place]) and unit.startswith(_UNITS)


def _cost_of_nominative(joint: Joint) -> float:
    """Return the cost of a subject of several words that ends with "they": "does it sound like they"."""
    *before, last = joint.words[: joint.size]
    is_inside = bool(before) and last in NOMINATIVES and before[-1] not in {"and", "or", "than"}
    return _HARDLY if is_inside else 0.0


def _cost_of_first_word(joint: Joint) -> float:
    """Return the cost of "the item is they ordered"; of "to be paid", "the aim is to" and "what", a gain."""
    first, *after = joint.words[joint.size : joint.size + 2]
    is_relative = {"P", "H"} & joint.classes[joint.size].keys() and after in (["which"], ["whom"])
    is_relative = is_relative or (first in {"who", "whose"} and joint.size > 1)
    if first in NOMINATIVES or is_relative:
        return _HARDLY
    if first == "that" and after and joint.words[joint.size - 1] not in _CLAIMS:
        # "The file" before "that it edited".
        is_odd = joint.words[joint.size - 1] == "it" and "D" in joint.classes[joint.size + 1]
        # "The parcel" before "that never came".
        is_odd = is_odd or is_best(joint.classes[joint.size + 1], "QAXZWV")
        return _NEVER if is_odd or "Q" in joint.classes[joint.size + 1] else 0.0
    is_deed = any("I" in own for own in joint.classes[: joint.size])
    last = joint.classes[joint.size - 1]
    is_thing = not is_deed and last.get("N", 9.0) < last.get("M", 9.0)
    is_later = any(_is_deed(own) for own in joint.classes[joint.size + 2 :])
    if (
        first == "to"
        and not is_later
        and ((after == ["be"] and is_thing) or joint.words[joint.size - 1] in _AIMS)
    ):
        return -_HARDLY
    if [first, *after] == ["not", "to"]:
        # "The decision not to operate".
        return _HARDLY
    is_fused = first in {"what", "how"} or (first == "why" and joint.size == 1)
    return -_UNLIKELY if is_fused else 0.0


def _is_deed(classes: Mapping[str, float]) -> bool:
    return min(classes, key=classes.__getitem__) == "I"


def _cost_of_been(joint: Joint) -> float:
    """Return the cost of "been" without a "have" before it in its part, unless it begins the rest."""
    if "been" not in joint.words:
        return 0.0
    at = joint.words.index("been")
    first = joint.size if at >= joint.size else 0
    is_led = first == joint.size and all("A" in own for own in joint.classes[first:at])
    if is_led or set(_HAVE).intersection(joint.words[first:at]):
        return 0.0
    return _NEVER if first and joint.start == "participle" else _UNLIKELY


def _cost_of_second_predicate(joint: Joint) -> float:
    """Return the cost of a predicate that the rest has behind the one it begins with.

    "Measured at home too high", "returned by the helper checked for null": what stands in front is
    likelier a part of the subject.
    """
    tokens, classes = joint.tokens[joint.size :], joint.classes[joint.size :]
    if "R" in classes[0]:
        return 0.0
    is_definite, is_owned, cost = False, False, 0.0
    for i, own in enumerate(classes):
        if begins_again(tokens, classes, i):
            return _HARDLY
        if own.keys() & {"D", "G"}:
            # "The language the user" before "asked for".
            is_owned = i > 0 and classes[i - 1].get("N", 9.0) < SURE_NOUN
            is_definite = tokens[i].word not in _INDEFINITE_ARTICLES
        elif own.keys() & _BEGIN_PHRASE and "N" not in own:
            is_definite = False
        is_time = "L" in own and i > 0 and not is_bounded(tokens, classes, i)
        if (is_owned and "N" in own) or _is_amount(tokens, classes, i):
            continue
        is_deed = i > 0 and "I" in classes[i - 1]
        is_object = is_deed and tokens[i].word in OBJECTS and not _keeps(tokens[i - 1])
        if is_time or is_object or "U" in own or is_noun(own):
            is_known = is_definite or is_object or "U" in own or tokens[i].text[0].isupper()
            is_known = is_known or tokens[i].is_compound
            if not is_known and is_bounded(tokens, classes, i + 1) and is_plural(tokens[i : i + 1]):
                # "Suitable for children under 12" is one phrase.
                continue
            behind = _cost_behind_noun(tokens[i + 1 :], classes[i + 1 :], is_time, is_known)
            cost = max(cost, behind)
    return cost


def _keeps(gerund: Token) -> bool:
    """Return whether a verb says what its object becomes or stays: "making it clear"."""
    return base_of(gerund.word, "gerund") in _OF_STATE


def _cost_behind_noun(
    tokens: Sequence[Token], classes: Sequence[dict[str, float]], is_time: bool, is_known: bool
) -> float:
    """Return the cost of what follows a noun as a predicate."""
    adverbs = 0
    if tokens and tokens[-1].word in _NO_STATE:
        # "Asking for permission first".
        tokens, classes = tokens[:-1], classes[:-1]
    while adverbs < len(tokens) - 1 and "A" in classes[adverbs]:
        adverbs += 1
    if not tokens:
        return 0.0
    own = classes[adverbs]
    noun = own.get("N", 9.0)
    is_last = adverbs == len(tokens) - 1 and (is_time or "L" not in own)
    is_degree = adverbs > 0 and tokens[adverbs - 1].word in _DEGREES
    states = "MIE" if is_degree else "MI"
    is_state = (is_last or is_degree) and min(own.get(name, 9.0) for name in states) < noun
    is_over = is_known and tokens[adverbs].word == "over" and adverbs == len(tokens) - 1
    after = classes[adverbs + 1] if adverbs + 1 < len(classes) else {}
    # "Off by one", "above 38".
    is_off = tokens[adverbs].word in _SHIFTS and not {"P", "H"}.isdisjoint(after)
    is_over = (
        is_over
        or _is_amount(tokens, classes, adverbs)
        or is_off
        or tokens[adverbs].text.strip("$€£¥%") != tokens[adverbs].text
        or is_bounded(tokens, classes, adverbs)
    )
    if is_state or is_over or begins_predicate(tokens, classes, adverbs):
        return _HARDLY if is_known or is_time else _UNLIKELY
    is_article = tokens[adverbs].word in {"a", "an"}
    if not is_article and own.get("E", 9.0) >= noun:
        return 0.0
    if is_time and not is_article:
        # "Made here" before "supported by evidence".
        return _HARDLY
    if is_known:
        return _UNLIKELY if is_last or is_article else _UNUSUAL
    return _UNUSUAL / 2


def _cost_of_parted_source(joint: Joint) -> float:
    """Return the cost of parting "the evidence" and "presented", where one more word is said of it or none."""
    words, size = joint.words, joint.size
    if words[size] not in _CITED or words[size - 1] not in _SOURCES:
        return 0.0
    is_led = any("E" in own for own in joint.classes[: size - 1])
    is_state = len(words) - size == 2 and not {"I", "M"}.isdisjoint(joint.classes[-1])
    return _NEVER if is_state or (joint.is_before_last and is_led) else 0.0


def _cost_of_object(joint: Joint) -> float:
    """Return the cost of "is mocked a child": what is done to the subject has no object."""
    for place in range(joint.size, len(joint.tokens) - 1):
        token, own, after = joint.tokens[place], joint.classes[place], joint.tokens[place + 1]
        if {"D", "H", "P", "N", "R", "S"} & own.keys() and "E" not in own:
            return 0.0
        is_passive = "E" in own and base_of(token.word, "participle") not in OF_TWO_OBJECTS
        if is_passive and after.word in {"a", "an", "the"}:
            return _NEVER
        if (
            "E" in own
            and _is_sure_state(joint, place + 1)
            and base_of(token.word, "participle") not in _OF_STATE
        ):
            # "The position advertised" before "open to all".
            return _NEVER
        last = joint.classes[-1]
        is_state = last.keys() in _STATES and last["M"] < last["N"]
        if "E" in own and is_state and place == len(joint.tokens) - 2:
            # "The costs are claimed reasonable", but "was left alone".
            return 0.0 if base_of(token.word, "participle") in _OF_STATE else _NEVER
    return 0.0


def _is_sure_state(joint: Joint, place: int) -> bool:
    """Return whether an adjective stands at a place, with what it leads to and no noun: "open to all"."""
    own = joint.classes[place]
    behind = joint.classes[place + 1] if place + 1 < len(joint.classes) else {}
    is_adjective = own.get("M", 9.0) < min(own.get(name, 9.0) for name in "NALEI")
    # "Warned in writing before".
    return (
        is_adjective
        and "L" not in own
        and bool({"P", "H", "T"} & behind.keys())
        and "N" not in behind
    )


_RULES: tuple[Callable[[Joint], float], ...] = (
    _cost_of_parted_phrase,
    _cost_of_parted_words,
    _cost_of_parted_deed,
    _cost_of_nominative,
    _cost_of_been,
)
#: Where the verb before the subject is "is" or another form of it.
_RULES_OF_BEING: tuple[Callable[[Joint], float], ...] = (
    _cost_of_bare_noun,
    _cost_of_odd_predicate,
    _cost_of_first_word,
    _cost_of_parted_source,
    _cost_of_object,
    _cost_of_second_predicate,
)
