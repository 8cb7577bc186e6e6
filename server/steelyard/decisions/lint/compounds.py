"""Two questions in one: the parts that *and* and *or* join, and telling predicates from things.

``A refund or a replacement`` is one thing asked about, ``asks for a refund and threatens to leave``
are two. Only two things that the words beside the conjunction tell apart count; the rest passes.
"""

from __future__ import annotations

from collections.abc import Sequence

from steelyard.decisions.lint.sentences import (
    AUXILIARIES,
    DETERMINERS,
    PRONOUNS,
    WH_WORDS,
    Sentence,
    asks_yes_or_no,
    clause_start,
)
from steelyard.decisions.words import word_set

_LINKS = frozenset(("also", "then", "therefore", "so", "still", "even", "explicitly", "clearly"))


def _forms(stems: str) -> frozenset[str]:
    """Return the forms that follow an auxiliary or a noun: ask, asks, asking."""
    forms = set()
    for stem in stems.split():
        third = f"{stem}es" if stem.endswith(("s", "sh", "ch", "x")) else f"{stem}s"
        if stem.endswith("y") and stem[-2] not in "aeou":
            third = f"{stem[:-1]}ies"
        forms |= {stem, third, f"{stem[:-1] if stem.endswith('e') else stem}ing"}
    return frozenset(forms)


# Verbs that are hardly ever nouns.
_VERBS = _forms(
    "accept agree apologise apologize appear ask avoid belong complain confirm contain deny depend "
    "describe deserve disagree exist expect explain express follow get give happen imply include "
    "indicate involve keep know lack make mention obey provide reject remain require respect say "
    "seem send suggest take tell threaten understand violate want agree acknowledge go ignore admit "
    "apply arrive attach believe cite comply criticise criticize deliver encourage exceed hope "
    "identify intend meet mislead praise prefer promote quote recommend relate respond summarise "
    "summarize think wish"
) | word_set("gets getting goes going telling")
# Verbs that are nouns as well: two predicates only with an object or a clause behind them.
_VERBS_OR_NOUNS = _forms(
    "answer attack blame book buy call cancel change charge check claim close comment compare "
    "complete contact cost cover create cause damage delete demand display escalate fix handle "
    "help hurt insult invite leave link list look mark move need offer open order own pay plan "
    "promise propose question receive refer refund refuse remove repair replace reply report "
    "request reset resolve return review ship show sign solve state stop support thank transfer "
    "try update upgrade use warn work write"
)
_OBJECT_STARTS = DETERMINERS | PRONOUNS | frozenset(("to", "whether", "that"))
_PREPOSITIONS = word_set("about at by for from in into of on over to with without under between")
_HAVE = frozenset(("has", "have", "had"))
_BE = word_set("is are was were isn't aren't wasn't weren't")
#: What follows *and* in ``is it urgent and about billing``.
_PREDICATE_PREPOSITIONS = frozenset(("about", "from", "related", "due", "ready"))

# Adjectives by what they judge; two of one kind make one question (``clear and concise``).
_ADJECTIVES = {
    adjective: kind
    for kind, adjectives in enumerate(
        (
            "polite professional friendly courteous respectful kind calm empathetic warm",
            (
                "rude abusive angry hostile aggressive threatening offensive insulting frustrated upset "
                "harsh impatient unhappy annoyed"
            ),
            "clear concise readable simple understandable brief short",
            "correct accurate right true factual valid precise",
            "complete full thorough detailed exhaustive",
            "urgent critical time-sensitive pressing",
            "important serious severe",
            "safe harmless appropriate legal lawful compliant permitted",
            "helpful useful relevant actionable",
            "new recent fresh",
            "paid overdue billed",
            "original creative novel",
            "reproducible fixed resolved",
            "consistent coherent",
            "satisfied happy pleased",
        )
    )
    for adjective in adjectives.split()
}


def find_join(sentence: Sentence, *, is_yes_no: bool, is_ordinal: bool) -> str | None:
    """Return the words that join two questions in one sentence.

    >>> from steelyard.decisions.lint.sentences import read_sentence
    >>> text = "Does the customer ask for a refund and threaten to leave?"
    >>> find_join(read_sentence(text), is_yes_no=True, is_ordinal=False)
    'and threaten'
    >>> text = "Does the customer ask for a refund or a replacement?"
    >>> find_join(read_sentence(text), is_yes_no=True, is_ordinal=False) is None
    True
    """
    words = sentence.words
    is_polar = asks_yes_or_no(words) or is_yes_no
    start = clause_start(words)
    for place, word in enumerate(words):
        if word == "both" and (is_polar or is_ordinal) and "and" in words[place + 2 : place + 10]:
            return "both ... and"
        if word not in {"and", "or"} or place <= start or (word == "or" and not is_yes_no):
            continue
        right = place + 1
        while right < len(words) and (words[right] in _LINKS or words[right] == ","):
            right += 1
        if right >= len(words) or words[place - 1] == "/" or words[right] == "/":
            continue
        if (
            _joins_clauses(sentence, place, right, is_polar=is_polar)
            or (is_polar and _joins_verbs(sentence, place, right))
            or (word == "and" and _joins_adjectives(words, place, right, is_ordinal=is_ordinal))
        ):
            return f"{word} {words[right]}"
    return None


def _joins_clauses(sentence: Sentence, place: int, right: int, *, is_polar: bool) -> bool:
    """Return whether a second question starts behind a conjunction: ``and how``, ``and is it``."""
    words = sentence.words
    before, first = words[place - 1], words[right]
    follows = words[right + 1] if right + 1 < len(words) else ""
    if first in WH_WORDS:
        # "Where and when" is one question, "or when it ..." may be a time, and what somebody says
        # "and why" is one message.
        is_tail = not follows.isalnum() and sentence.is_reported(place)
        is_time = words[place] == "or" and first in {"when", "where"}
        return before not in WH_WORDS and not is_time and not is_tail
    if first not in AUXILIARIES or before in AUXILIARIES or follows in {"", "not", "?"}:
        return False
    has_subject = follows in DETERMINERS or follows in PRONOUNS
    return has_subject or (is_polar and words[place] == "and" and follows.isalpha())


def _joins_verbs(sentence: Sentence, place: int, right: int) -> bool:
    """Return whether a verb with its own object stands on either side of a conjunction."""
    words = sentence.words
    before = words[place - 1]
    if right < len(words) - 1 and words[right].endswith("ly"):
        if before.endswith("ly"):  # explicitly or implicitly
            return False
        right += 1
    verb = words[right]
    has_object = right + 1 < len(words) and words[right + 1] in _OBJECT_STARTS
    if before == ",":
        before = words[place - 2] if place > 1 else ""
    is_verb_before = before in _VERBS or before in _VERBS_OR_NOUNS or before in _PREPOSITIONS
    start = clause_start(words)
    passes = (
        # Mention or imply that: two verbs share an object.
        (is_verb_before and not _is_noun(words, place - 1))
        # Too few words for a predicate to be among them.
        or place - start < 3
        # Asks us to call or send a message: either is what somebody asks.
        or (words[place] == "or" and sentence.is_reported(place))
        # Help with setting up or using it: things, not predicates.
        or (verb.endswith("ing") and words[start] not in _BE | _HAVE)
    )
    if passes:
        return False
    if verb in _VERBS:
        # Available and responding: a state, like an adjective.
        is_state = verb in _ADJECTIVES or (verb.endswith("ing") and not _has_more(words, right))
        return has_object or not is_state
    return verb in _VERBS_OR_NOUNS and has_object


def _has_more(words: Sequence[str], place: int) -> bool:
    return place + 1 < len(words) and words[place + 1].isalpha()


def _is_noun(words: Sequence[str], place: int) -> bool:
    """Return whether a word that may be a verb stands where a noun does: ``a refund and``."""
    before = words[place - 1] if place > 0 else ""
    return before in DETERMINERS or before in _PREPOSITIONS - {"to"}


def _joins_adjectives(words: Sequence[str], place: int, right: int, *, is_ordinal: bool) -> bool:
    """Return whether two judgements of different kinds are joined: ``urgent and important``."""
    start = clause_start(words)
    opener = words[start] if start < len(words) else ""
    if opener not in _BE and not (is_ordinal and opener == "how"):
        return False
    before, after = words[place - 1], words[right]
    if before in _ADJECTIVES and after in _ADJECTIVES:
        ends = right + 1 >= len(words) or not words[right + 1].isalpha() or opener == "how"
        return ends and _ADJECTIVES[before] != _ADJECTIVES[after]
    return after in _PREDICATE_PREPOSITIONS and before in _ADJECTIVES


def count_questions(sentences: Sequence[Sentence]) -> int:
    """Count the sentences that ask something of their own; ``Yes or no?`` does not."""
    return sum(
        sentence.is_question and not {"yes", "no"}.issubset(sentence.words)
        for sentence in sentences
    )
