"""Words that stand in questions and denials alone, such as "any" and "ever", and those that deny."""

from __future__ import annotations

from collections.abc import Sequence

from steelyard.decisions.statements.classes import classes_of
from steelyard.decisions.statements.clauses import ADVERBS, BE, Clause, DeclinedError, Tokens
from steelyard.decisions.statements.lexicon import uses_of
from steelyard.decisions.statements.nouns import indefinite_article, is_mass, is_plural
from steelyard.decisions.statements.tokens import Token, words_of
from steelyard.decisions.words import word_set

_SOME = {
    "any": "some",
    "anyone": "someone",
    "anybody": "somebody",
    "anything": "something",
    "anywhere": "somewhere",
    "anyone's": "someone's",
    "anybody's": "somebody's",
}
_ANY = {some: anything for anything, some in _SOME.items()}
_YES = {"nobody": "somebody", "nothing": "something", "none": "some", "neither": "either"}
_NOTHING = word_set("no nobody nothing none")
#: Words before which "any" stays; "at any time", "without any".
_BEFORE_ANY = word_set("without than before if")
#: Words behind which "any" is none of some: "unable to log in on any device".
_DENYING = word_set(
    "without unable unwilling unlikely impossible reluctant refuse refuses refused fail fails failed deny denies denied "
    "prevail override supersede precedence forbid forbids forbade forbidden prohibit prohibits prohibited prevent prevents prevented avoid avoids avoided"
)
_AFTER_ANY = word_set(
    "time moment point stage case rate event day date hour way weather condition conditions circumstances"
)
_REPLY = word_set("say answer reply")
_DEGREES = word_set("good better worse different easier faster cheaper closer")
#: Where a verb of leave stands before it, "any" often means every.
_LEAVE = word_set("can could may might")


def without_negation(rest: Tokens) -> tuple[Tokens, str]:
    """Return the words without a "not" or "never" of the verb, and that word; nothing where none is."""
    places = [i for i, token in enumerate(rest) if token.word in {"not", "never"}]
    if not places:
        return rest, ""
    at = places[0]
    if at > 1 or (at == 1 and rest[0].word not in ADVERBS):
        return rest, ""
    if len(places) > 1 or len(rest) == 1:
        raise DeclinedError
    return rest[:at] + rest[at + 1 :], rest[at].word


def without_nothing(rest: Tokens) -> Tokens | None:
    """Return the words with some of that which they say there is none of; None where there is all."""
    for i, token in enumerate(rest):
        if i and not {"R", "S", "X"}.isdisjoint(classes_of(token)):
            # "Files it has no permission for" says what of.
            return None
        following = rest[i + 1].word if i + 1 < len(rest) else ""
        if token.word == "no" and _is_comparison(rest[i + 1 :]):
            return (*rest[:i], *rest[i + 1 :])
        if token.word == "no longer" and i < 2:
            return (*rest[:i], *words_of("still"), *rest[i + 1 :])
        is_reply = token.word == "no" and not following and rest[max(i - 1, 0)].word in _REPLY
        if is_reply or (i and not {"P", "H", "F"}.isdisjoint(classes_of(rest[i - 1]))):
            # "With no address" says how, and "say no" what; neither denies.
            continue
        if token.word in _NOTHING and token.text != "None":
            is_idiom = following in {"more", "matter"}
            if is_idiom or any(other.word in _NOTHING | {"not"} for other in rest[i + 1 :]):
                raise DeclinedError
            return (*rest[:i], *something(rest[i:]))
    return None


def _is_comparison(words: Sequence[Token]) -> bool:
    """Return whether words begin as "more than" and "higher than" do."""
    first, _, second = " ".join(token.word for token in words[:2]).partition(" ")
    return second.partition(" ")[0] == "than" and first.endswith(("er", "more", "less", "worse"))


def is_nothing(subject: Sequence[Token]) -> bool:
    """Return whether a subject denies its clause."""
    return subject[0].word in _NOTHING | {"neither"}


def something(words: Tokens) -> Tokens:
    """Return the positive form of a phrase that begins with a word of absence.

    >>> from steelyard.decisions.statements.tokens import join, tokenize
    >>> [join(something(tuple(tokenize(text)))) for text in ("no receipt", "nobody here")]
    ['a receipt', 'somebody here']
    """
    first, rest = words[0].word, words[1:]
    if first == "no" and rest:
        if rest[0].word == "one":
            return (*words_of("someone"), *rest[1:])
        if is_plural(rest) or is_mass(rest) or rest[-1].text.isupper():
            return (*words_of("some"), *rest)
        return (*words_of(indefinite_article(rest[0].word)), *rest)
    if first in _YES:
        return (*words_of(_YES[first]), *rest)
    raise DeclinedError


def still_for_any_more(clause: Clause) -> Tokens:
    """Return the rest with "still" for "anymore" at its end, and with "no longer" for "not anymore"."""
    rest, words = clause.rest, [token.word for token in clause.rest]
    # "Does it cost any more" asks for an amount.
    is_time = clause.auxiliary in BE and words[-2:] in (["any", "more"], ["any", "longer"])
    size = 2 if is_time else int(words[-1] == "anymore")
    is_denied = words[0] in {"not", "never"}
    if not size or len(rest) - is_denied <= size:
        return rest
    still = "no longer" if is_denied else "still"
    return (Token(still, " ", still), *rest[is_denied:-size])


def without_ever(rest: Tokens) -> Tokens:
    """Return the words without "ever", "yet" and "at all"."""
    words = [token.word for token in rest]
    if "ever" in words[:3]:
        at = words.index("ever")
        rest, words = rest[:at] + rest[at + 1 :], words[:at] + words[at + 1 :]
    for i in range(len(words) - 1):
        if words[i : i + 2] != ["at", "all"]:
            continue
        if i == 0 or i + 2 == len(words) or {"P", "H", "F"} & classes_of(rest[i + 2]).keys():
            rest = rest[:i] + rest[i + 2 :]
            break
    rest = without_yet(rest)
    if not rest:
        raise DeclinedError
    return rest


def without_yet(rest: Tokens) -> Tokens:
    """Return the words without "yet" at the end or before a verb."""
    if len(rest) > 1 and rest[-1].word == "yet":
        return rest[:-1]
    return rest[1:] if len(rest) > 1 and rest[0].word == "yet" else rest


def some_for_any(clause: Clause, tokens: Tokens) -> Tokens:
    """Return words of a clause as they stand where it is not denied."""
    words: list[Token] = []
    for i, token in enumerate(tokens):
        if token.word not in _SOME:
            words.append(token)
            continue
        before = tokens[i - 1].word if i else ""
        after = tokens[i + 1].word if i + 1 < len(tokens) else ""
        is_any = (
            before in _BEFORE_ANY
            or not _DENYING.isdisjoint(other.word for other in tokens[:i])
            or (before in {"at", "in", "on", "under"} and after in _AFTER_ANY)
        )
        # "Free of any trace".
        is_any = is_any or (before == "of" and i > 1 and tokens[i - 2].word in {"free", "clear"})
        if is_any:
            words.append(token)
            continue
        if (after in _DEGREES and i + 2 >= len(tokens)) or _is_comparative(tokens[i + 1 :]):
            # "Any good" is good.
            continue
        is_leave = clause.auxiliary in _LEAVE and (i > 0 or after != "of")
        if is_leave or before in {"every", "all"}:
            raise DeclinedError
        words += words_of(_SOME[token.word])
    return tuple(words)


def _is_comparative(words: Tokens) -> bool:
    """Return whether words begin with a comparative that no noun follows: "slower", "slower than"."""
    if not words or not words[0].word.endswith("er") or uses_of(words[0].word).noun > 0:
        return False
    return not {"N", "M"} & classes_of(words[1]).keys() if words[1:] else True


def any_for_some(clause: Clause, tokens: Tokens) -> Tokens:
    """Return words of a clause as they stand where its verb is denied."""
    if clause.auxiliary in BE:
        return tokens
    words = list(tokens)
    for i, token in enumerate(tokens):
        if not {"R", "S"}.isdisjoint(classes_of(token)):
            break
        after = tokens[i + 1].word if i + 1 < len(tokens) else ""
        is_kind = i > 0 and tokens[i - 1].word in {"least", "like"}
        if token.word in _ANY and after not in {"else's", "else"} and not is_kind:
            words[i : i + 1] = words_of(_ANY[token.word])
    return tuple(words)
