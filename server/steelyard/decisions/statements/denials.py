"""Clauses as statements and their negations."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from steelyard.decisions.statements.classes import classes_of
from steelyard.decisions.statements.clauses import (
    BE,
    DO,
    HAVE,
    Clause,
    DeclinedError,
    Tokens,
    inflect,
    predicate,
    write,
)
from steelyard.decisions.statements.nouns import is_plural
from steelyard.decisions.statements.polarity import (
    any_for_some,
    is_nothing,
    some_for_any,
    something,
    still_for_any_more,
    without_ever,
    without_negation,
    without_nothing,
    without_yet,
)
from steelyard.decisions.statements.tokens import words_of
from steelyard.decisions.words import word_set

_NO = {
    "a": "no",
    "an": "no",
    "any": "no",
    "some": "no",
    "someone": "no one",
    "anyone": "no one",
    "somebody": "nobody",
    "anybody": "nobody",
    "something": "nothing",
    "anything": "nothing",
    "anyone's": "no one's",
    "anybody's": "nobody's",
    "either": "neither",
}
_SOME = word_set("some something someone somebody any anything anyone anybody")
_UNIVERSAL = word_set("all every each everyone everybody everything both")
#: Amounts, which no single word denies.
_AMOUNTS = word_set(
    "most many much few fewer several half less more enough only just almost nearly about over under "
    "exactly up little lots plenty numerous various"
)
_AFTER_A = word_set("few lot couple number bit little great majority minority handful")
#: Adverbs beside which "not" does not deny a sentence, and words that hang on another clause.
_UNDENIED = word_set(
    "probably perhaps maybe possibly hardly barely rarely seldom scarcely apparently obviously"
)
#: Words beside which "or" in a subject asks whether it is one of them at all.
_ASKING = word_set("ever any anyone anybody anything else")
#: What is said of a kind of thing.
_GENERIC = word_set(
    "usual normal common typical standard customary rare legal lawful valid binding"
)
_STRANDED = word_set("anymore nor neither")
_STRANDED_PAIRS = {
    ("any", "more"),
    ("any", "longer"),
    ("as", "any"),
    ("only", "if"),
    ("if", "so"),
    ("than", "any"),
    ("no", "more"),
    ("not", "only"),
}
#: "There is going to be".
_ABOUT_TO = word_set("going supposed bound meant said about")
_DO_OF = {"has": "does", "have": "do", "had": "did"}
_NOT = {"might": "could not", "can": "cannot"}


def both_ways(clause: Clause) -> tuple[str, str]:
    """Return a clause as a statement and its negation; ``DeclinedError`` where no rule gives that."""
    rest = still_for_any_more(clause)
    if rest is not clause.rest:
        clause = replace(clause, rest=rest)
    _refuse_open(clause)
    if len(clause.subject) == 1 and clause.subject[0].word == "there":
        return _both_of_there(clause)
    rest, denier = without_negation(clause.rest)
    plain = replace(clause, rest=rest)
    affirmed = _affirm(plain)
    if denier and clause.subject[0].word in _SOME:
        # "Something is not": not the same as "nothing is".
        raise DeclinedError
    if denier and rest[0].word == "still":
        # "Still not here" is denied by "here".
        return _affirm(clause), _affirm(replace(plain, rest=rest[1:]))
    if denier:
        return _deny(plain, is_never=denier == "never"), affirmed
    positive = without_nothing(rest)
    if positive is not None:
        if _denied_subject(plain) is not None or is_nothing(clause.subject):
            raise DeclinedError
        return affirmed, _affirm(replace(plain, rest=positive))
    if is_nothing(clause.subject):
        if clause.auxiliary == "must":
            # "No one must" is more than that it is no duty.
            raise DeclinedError
        return affirmed, _affirm(replace(plain, subject=something(clause.subject)))
    return affirmed, _deny(plain)


def _refuse_open(clause: Clause) -> None:
    words = [token.word for token in clause.rest]
    subject = {token.word for token in clause.subject}
    is_adverbial = words[0] in {"both", "all", "each"} and clause.auxiliary not in BE
    if (
        not _UNDENIED.isdisjoint(words[:3])
        or not _STRANDED.isdisjoint(words)
        or not _STRANDED_PAIRS.isdisjoint(pairwise(words))
        or ("only" in words and "if" in words[words.index("only") :])
        or _asks_again(clause.rest)
        or "nor" in subject - {clause.subject[0].word}
        or (_has_or(clause.subject) and _ASKING.isdisjoint(subject.union(words)))
        or ("," in subject and "and" not in subject)
        or ("and" in subject and clause.subject[0].word in {"a", "an"})
        or (clause.subject[0].word in {"a", "an"} and _is_share(clause.subject))
        or (is_adverbial and is_plural(clause.subject))
        or (clause.is_possession and words[0] in {"either", "neither"})
    ):
        raise DeclinedError


def _has_or(subject: Tokens) -> bool:
    """Return whether a subject is one of several: "her mother or sister", not "either of them or both"."""
    if subject[0].word == "either":
        return False
    # "Two or more people" is an amount.
    words = [token.word for token in subject]
    return any(word == "or" and after not in {"more", "fewer"} for word, after in pairwise(words))


def _asks_again(rest: Tokens) -> bool:
    """Return whether a second question follows: "did he apologise, and was it sincere"."""
    return any(
        conjunction.word in {"and", "but"}
        and auxiliary.word in BE | DO | HAVE
        and classes_of(following).keys() & {"D", "Q"}
        for conjunction, auxiliary, following in zip(rest, rest[1:], rest[2:], strict=False)
    )


def _is_share(words: Tokens) -> bool:
    """Return whether words are such as "a third of the bikes"."""
    return len(words) > 2 and words[1].word in {"third", "quarter"} and words[2].word == "of"


def _affirm(clause: Clause) -> str:
    rest = some_for_any(clause, without_ever(clause.rest))
    subject = some_for_any(clause, clause.subject)
    is_single = clause.auxiliary in {"is", "was", "has", "does"}
    if (
        is_single
        and [token.word for token in subject[:2]] == ["some", "of"]
        and is_plural(subject[2:])
    ):
        # "Does any of the steps fail".
        subject = (*words_of("one"), *subject[1:])
    return write(clause, subject, predicate(clause, rest))


def _deny(clause: Clause, *, is_never: bool = False) -> str:
    is_contrast = any(", not " in token.text for token in clause.subject) or _has_or(clause.subject)
    if is_contrast or _is_amount(clause.subject) or _has_second_verb(clause):
        affirmed = _affirm(clause)
        start = affirmed if clause.lead else affirmed[:1].lower() + affirmed[1:]
        return f"It is not the case that {start}"
    subject = _denied_subject(clause)
    if subject is None:
        return _deny_verb(clause, is_never=is_never)
    if is_never or (clause.auxiliary == "must" and subject[0].word != "not"):
        raise DeclinedError
    rest = any_for_some(clause, without_yet(clause.rest))
    return write(clause, subject, predicate(clause, rest))


def _deny_verb(clause: Clause, *, is_never: bool) -> str:
    rest = any_for_some(clause, clause.rest)
    first = rest[0].word
    if is_never or first in {"ever", "sometimes"}:
        return _around(clause, "never", rest[1:] if first in {"ever", "sometimes"} else rest)
    if first == "still":
        return _around(clause, "no longer", rest[1:])
    auxiliary = clause.auxiliary
    if clause.is_possession:
        auxiliary, rest = _DO_OF[auxiliary], (*words_of("have"), *rest)
    verb = _NOT.get(auxiliary, f"{auxiliary} not")
    if auxiliary == "must":
        # Where one must not, one may not; where one need not, it is no duty.
        verb = "do not have to" if is_plural(clause.subject) else "does not have to"
    return write(clause, clause.subject, (*words_of(verb), *rest))


def _around(clause: Clause, adverb: str, rest: Tokens) -> str:
    """Return the sentence with an adverb that denies, at its place by the verb."""
    if not rest:
        raise DeclinedError
    words = words_of(adverb)
    if clause.auxiliary in DO:
        return write(clause, clause.subject, (*words, *inflect(rest, clause.auxiliary)))
    return write(clause, clause.subject, (*words_of(clause.auxiliary), *words, *rest))


def _has_second_verb(clause: Clause) -> bool:
    """Return whether a "not" of the first verb leaves a later one as it is: "called and asked", "glad but late"."""
    for conjunction, token in pairwise(clause.rest):
        classes = classes_of(token)
        is_past = clause.auxiliary == "did" and "W" in classes and "V" not in classes
        is_finite = is_past or classes.get("Z", 9.0) < classes.get("N", 9.0)
        is_contrast = conjunction.word in {",", "and"} and token.word == "not"
        if conjunction.word == "but" or is_contrast or (conjunction.word == "and" and is_finite):
            return True
    return False


def _is_amount(subject: Tokens) -> bool:
    """Return whether a subject is a number or an amount of things, such as "most of the bikes"."""
    first = subject[0].word
    after = subject[1].word if len(subject) > 1 else ""
    if first == "one":
        return after not in {"", "of"}
    if first in {"a", "an"}:
        return after in _AFTER_A
    is_number = "Y" in classes_of(subject[0]) or (first[0].isdigit() and bool(after))
    return (
        first.partition(" ")[0] in _AMOUNTS
        or is_number
        or (first == "at" and after in {"least", "most"})
    )


def _denied_subject(clause: Clause) -> Tokens | None:
    """Return the subject that denies the clause by itself; None where the verb is denied."""
    first, rest = clause.subject[0].word, clause.subject[1:]
    after = rest[0].word if rest else ""
    if first in _UNIVERSAL:
        is_each = first == "each" and after != "of"
        return (*words_of("not every" if is_each else f"not {first}"), *rest)
    if first in {"any", "some"} and after in {"", "of"}:
        return (*words_of("none"), *rest)
    if first == "one" and after == "of":
        return (*words_of("none"), *rest)
    is_kind = clause.auxiliary in BE and "D" in classes_of(clause.rest[0])
    is_kind = is_kind or (clause.auxiliary in BE and clause.rest[0].word in _GENERIC)
    is_kind = is_kind or any("R" in classes_of(token) for token in clause.subject[2:])
    if first in {"a", "an"} and (is_kind or clause.auxiliary not in BE | DO | HAVE):
        # "A tenant cannot", "a permit is a must": of every one.
        return None
    if first == "either":
        # "Either clause 4 or clause 5" does; "neither clause 4 nor clause 5".
        nor = words_of("nor")[0]
        return (*words_of("neither"), *(nor if token.word == "or" else token for token in rest))
    return (*words_of(_NO[first]), *rest) if first in _NO else None


def _both_of_there(clause: Clause) -> tuple[str, str]:
    """Return the statement that something exists, and its denial."""
    rest = clause.rest
    if "already" in [token.word for token in rest[:2]]:
        plain = tuple(token for token in rest[:2] if token.word != "already") + rest[2:]
        _, negation = _both_of_there(replace(clause, rest=plain))
        return write(
            clause, clause.subject, predicate(clause, some_for_any(clause, rest))
        ), negation
    verbs: Tokens = ()
    # "Has there ever been a case" is denied by "no case".
    is_denied = rest[0].word == "not"
    rest = rest[1:] if is_denied or rest[0].word == "ever" else rest
    while rest and rest[0].word in {"be", "been", "have", "also", "really"}:
        verbs, rest = (*verbs, rest[0]), rest[1:]
    is_of_being = clause.auxiliary in BE or {"be", "been"} & {token.word for token in verbs}
    if not rest or not is_of_being or rest[0].word == "," or _is_verb(rest):
        raise DeclinedError
    if rest[0].word == "not":
        is_denied, rest = True, rest[1:]
    front = (*words_of(clause.auxiliary), *verbs)
    affirmed = write(clause, clause.subject, (*front, *some_for_any(clause, without_ever(rest))))
    if rest[0].word in {"no", "nobody", "nothing", "none"}:
        if is_denied:
            raise DeclinedError
        return affirmed, write(clause, clause.subject, (*front, *something(without_ever(rest))))
    denied = write(clause, clause.subject, _nothing_there(clause, front, without_yet(rest)))
    return (denied, affirmed) if is_denied else (affirmed, denied)


def _is_verb(rest: Tokens) -> bool:
    """Return whether words begin with a verb and its object: "is there exist a copy"."""
    first = classes_of(rest[0])
    is_led = len(rest) > 1 and "D" in classes_of(rest[1])
    return is_led and min(first, key=first.__getitem__) == "V"


def _nothing_there(clause: Clause, front: Tokens, rest: Tokens) -> Tokens:
    first, after = rest[0].word, rest[1].word if len(rest) > 1 else ""
    if first == "still":
        return (front[0], *words_of("no longer"), *front[1:], *any_for_some(clause, rest[1:]))
    if first in {"any", "some"} and after in {"of", "more", "one"}:
        raise DeclinedError
    if first in _NO and after not in _AFTER_A:
        return (*front, *words_of(_NO[first]), *rest[1:])
    classes = set(classes_of(rest[0]))
    is_bare = first not in _ABOUT_TO and (
        "M" in classes or not {"U", "Y", "D", "A", "L", "P", "H", "Q"} & classes
    )
    if is_bare and first not in _AMOUNTS | {"a", "an", "such"}:
        return (*front, *words_of("no"), *rest)
    return (front[0], *words_of("not"), *front[1:], *rest)
