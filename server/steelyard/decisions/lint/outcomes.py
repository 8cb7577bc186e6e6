"""Rules about the outcomes of a single decision: they are distinct and leave nothing out."""

from __future__ import annotations

import re

from steelyard.decisions.lint.exits import describes_way_out, leave_nothing_over
from steelyard.decisions.lint.scales import NUMBERS
from steelyard.decisions.lint.similarity import contained_pairs, is_contrast, near_pairs
from steelyard.decisions.lint.subjects import Subject
from steelyard.decisions.words import content_words, name_words, normalise, word_set
from steelyard.wire.violations import show

#: From this many outcomes on, names without descriptions are reported.
MIN_DESCRIBED = 4
#: A name of this many words describes itself.
_TELLING_WORDS = 4
#: More outcomes than this are better decided in two steps.
MANY_OUTCOMES = 26
#: A name of more characters needs a description to be short; one of more than the second is told
#: so in any case.
LONG_NAME, LONGEST_NAME = 80, 500

_NUMBERED_NAME = re.compile(
    r"(?:answer|bucket|case|category|choice|class|group|item|label|option|outcome|type|value)"
    r"[\s_#.:-]*(?:\d+|[a-z])\Z"
)
_EMPTY_NAMES = word_set(
    "asdf bar blah etc foo misc misc. miscellaneous stuff tbd thing things todo various xxx"
)
_BARE_NUMBER = re.compile(r"[+-]?\d+(?:[.,]\d+)?\Z", re.ASCII)
_ASKS_FOR_NUMBER = re.compile(
    r"\b(?:how (?:many|much|old|often|long)|number|year|rating|stars?|score|code|version|quantity|"
    r"page|count|size|digits?|grade)\b"
)


def no_way_out(subject: Subject) -> str | None:
    """Find outcomes that leave no answer for a case that fits none of them.

    Probabilities sum to 1 over the outcomes given, so that such a case still gets one of them, at
    times with a high probability. Yes and no, a scale and pairs such as accepted and rejected leave
    nothing over and pass.
    """
    if subject.ways_out or subject.is_yes_no or subject.scale is not None:
        return None
    if leave_nothing_over(subject.names) or any(map(describes_way_out, subject.descriptions)):
        return None
    return (
        "No outcome takes a case that fits none of them, so it gets one of them all the same. Add "
        'one such as "other" or "unclear".'
    )


def vague_outcome(subject: Subject) -> str | None:
    """Find names without a description that mean nothing: a letter, a number, *option 1*.

    The model reads an outcome's name and description and nothing else of it: it cannot know the meaning
    of a name in the caller's code.
    """
    if subject.is_yes_no or subject.scale is not None:
        return None
    asks_for_number = any(
        _ASKS_FOR_NUMBER.search(sentence.text) for sentence in subject.question.sentences
    )
    vague = [
        name
        for name, description in zip(subject.names, subject.descriptions, strict=True)
        if not description and _is_vague(name, asks_for_number=asks_for_number)
    ]
    # One letter among words may be one: the language C, size M.
    if not vague or (len(vague) == 1 and len(vague[0]) == 1 and vague[0].isalpha()):
        return None
    return (
        f"{_list(vague)} {_say(vague, 'says', 'say')} nothing of the outcome and "
        f"{_say(vague, 'has', 'have')} no description. Use a telling name, or describe it."
    )


def _is_vague(name: str, *, asks_for_number: bool) -> bool:
    text = normalise(name)
    if _BARE_NUMBER.match(text):
        return not asks_for_number
    if len(text) <= 1:
        # One letter of a script such as Chinese is a word; so is an emoji. "?" is a way out.
        return text.isascii() and (text == "" or text.isalnum())
    return text in _EMPTY_NAMES or _NUMBERED_NAME.match(text) is not None


def missing_descriptions(subject: Subject) -> str | None:
    """Find four or more outcomes of which none is described, or some are and others not.

    A name is a word or two; where the border between two outcomes lies stands in descriptions.
    Described beside bare ones, outcomes are also compared unequally. Ways out, such as *other*, and
    names of several words need none.
    """
    if subject.is_yes_no or subject.scale is not None:
        return None
    bare = [
        name
        for name, description in zip(subject.names, subject.descriptions, strict=True)
        if not description
    ]
    wanting = [
        name
        for name in bare
        if name not in subject.ways_out and len(name_words(name)) < _TELLING_WORDS
    ]
    if not wanting:
        return None
    if len(bare) < len(subject.names):
        return (
            f"{_list(wanting)} {_say(wanting, 'has', 'have')} no description and other outcomes do. "
            "Describe each in a few words."
        )
    if len(bare) < MIN_DESCRIBED:
        return None
    return f"None of the {len(bare)} outcomes is described. Describe each in a few words."


def overlapping_outcomes(subject: Subject) -> str | None:
    """Find two outcomes nearly equal in name or description, or a name that is part of another.

    A case of the one is then a case of the other, and its probability is split between them, so
    that neither reaches a threshold. Descriptions do not mend a name that is part of another; texts
    that differ in a word such as *not* or *before* pass as opposites.
    """
    if subject.is_yes_no or subject.scale is not None:
        return None
    names = [name_words(name) for name in subject.names]
    for first, second in near_pairs([frozenset(words) for words in names]):
        if not is_contrast(frozenset(names[first]), frozenset(names[second])) and not (
            _are_reordered_numbers(names[first], names[second])
        ):
            return _overlap(subject, first, second, "are nearly the same name")
    for first, second in contained_pairs(names):
        if subject.names[first] not in subject.ways_out:
            return _overlap(subject, first, second, "overlap: one name is part of the other")
    described = [(place, text) for place, text in enumerate(subject.descriptions) if text]
    contents = [content_words(text) for _, text in described]
    for left, right in near_pairs(contents):
        (first, text), (second, other_text) = described[left], described[right]
        if normalise(text) == normalise(other_text) or is_contrast(contents[left], contents[right]):
            continue
        return _overlap(subject, first, second, "have nearly the same description")
    return None


def _overlap(subject: Subject, first: int, second: int, how: str) -> str:
    first, second = sorted((first, second))
    return (
        f"{show(subject.names[first])} and {show(subject.names[second])} {how}. Merge them, or "
        "describe what sets one apart from the other."
    )


def _are_reordered_numbers(first: tuple[str, ...], second: tuple[str, ...]) -> bool:
    """Return whether two names have the same words in another order that matters: scores, routes."""
    has_order = any(word.isdigit() or word in {"to", "from", "over", "than"} for word in first)
    return first != second and has_order


def duplicate_descriptions(subject: Subject) -> str | None:
    """Find the same description on two outcomes or levels.

    Nothing but the name then sets them apart, and a level's name is often a number. Most are left
    over from copying.
    """
    places: dict[str, int] = {}
    for place, description in enumerate(subject.descriptions):
        text = normalise(description)
        if not text:
            continue
        if text in places:
            return (
                f"{show(subject.names[places[text]])} and {show(subject.names[place])} have the same "
                "description. Say what sets each apart."
            )
        places[text] = place
    return None


def too_many_outcomes(subject: Subject) -> str | None:
    """Find more than 26 outcomes.

    The more there are, the thinner the probabilities and the more of them overlap. A coarse decision
    first, and one among the few that it leaves, is more accurate and easier to act on.
    """
    n_outcomes = len(subject.names)
    if n_outcomes <= MANY_OUTCOMES:
        return None
    return (
        f"There are {n_outcomes} outcomes. Decide among a few groups first, and then within the "
        "group, in a second request."
    )


def binary_as_single(subject: Subject) -> str | None:
    """Find yes and no, or true and false, as the two outcomes of a single decision.

    The kind ``binary`` asks the same, is calibrated for such questions and has no outcomes to spell.
    """
    if not subject.is_yes_no:
        return None
    return (
        'The outcomes are yes and no. Make the kind "binary" and leave outcomes out, or keep only '
        'descriptions of "yes" and "no" there.'
    )


def scale_as_single(subject: Subject) -> str | None:
    """Find outcomes that are levels in order: low, medium, high, or 1 to 5.

    The kind ``ordinal`` knows their order and adds the expected level, and its rubric describes each
    level. Numbers that descriptions give another meaning are no scale.
    """
    if subject.scale is None:
        return None
    is_numbers = subject.scale == NUMBERS
    if is_numbers and all(subject.descriptions) and not _rates(subject):
        return None
    return (
        f'The outcomes are {subject.scale}. Make the kind "ordinal", list them from low to high, '
        "and say in rubric what each level means."
    )


def _rates(subject: Subject) -> bool:
    words = {word for sentence in subject.question.sentences for word in sentence.words}
    return not words.isdisjoint(("how", "rate", "rating", "score", "grade", "level", "severity"))


def long_outcome_names(subject: Subject) -> str | None:
    """Find names of over 500 characters, or of over 80 without a description.

    A name comes back in the answer as a key that code compares. The text belongs in the description,
    where the model reads it just as well.
    """
    longest = [name for name in subject.names if len(name) > LONGEST_NAME]
    long = [
        name
        for name, description in zip(subject.names, subject.descriptions, strict=True)
        if len(name) > LONG_NAME and not description
    ]
    names = longest or long
    if not names:
        return None
    bound = LONGEST_NAME if longest else LONG_NAME
    return (
        f"{_list(names)} {_say(names, 'is a name', 'are names')} of over {bound} characters. Use a "
        "short name, and put the text in its description."
    )


def _list(names: list[str]) -> str:
    """Return one or two names, and how many more there are."""
    if len(names) <= 2:
        return " and ".join(map(show, names))
    return f"{show(names[0])}, {show(names[1])} and {len(names) - 2} more"


def _say(names: list[str], singular: str, plural: str) -> str:
    return singular if len(names) == 1 else plural
