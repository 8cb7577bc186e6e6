"""Alternatives: "or" that asks which of two is declined, "or" that asks whether either is turned."""

from __future__ import annotations

from steelyard.decisions.statements.classes import classes_of
from steelyard.decisions.statements.clauses import BE, DO, HAVE, Clause, DeclinedError
from steelyard.decisions.statements.lexicon import base_of
from steelyard.decisions.words import word_set

#: Words of which two with "or" between them are of a kind: something is amiss.
_AMISS = word_set(
    "abandoned abusive aggressive alarming angry annoyed anxious ashamed bad biased bitter blocked boring "
    "broken bullying cancelled cheated clumsy confused confusing corrupt corrupted cracked cruel damaged "
    "dangerous deceptive defamatory defective degrading delayed deleted demeaning depressed derogatory dismissive "
    "desperate dirty disappointed discriminatory dishonest disrespectful disturbing doubtful dubious "
    "expired explicit exploitative extremist fake false faulty fearful fraudulent frightened frustrated "
    "graphic harassing harmful hateful hostile hurtful ignored illegal inaccurate inappropriate "
    "incomplete inconsistent incorrect indecent injured insecure insulting invalid irrelevant irritated "
    "late libellous lost malicious manipulated manipulative mean misleading missing mistaken misspelled "
    "mocking negligent obscene obsolete offensive outdated overdue poor pornographic profane provocative "
    "racist rejected rude sad ironic sarcastic scared sexist sexual slow spam spoiled stolen stressed "
    "suspicious threatening tired toxic ugly unclear unfair unhappy unlawful unreadable unsafe "
    "unsuitable upset vague violent void vulgar weak worried wrong "
    "abuse attack belittle blackmail bully cheat curse deceive degrade demean harass harm hurt injure "
    "insult intimidate kill lie mislead mock ridicule shame stalk steal swear threaten"
)
#: Verbs of which only one can be so, or at which somebody decides.
_OPPOSED = tuple(
    map(
        word_set,
        (
            "approve grant accept allow confirm agree uphold support reject refuse deny decline disagree",
            "dismiss forbid overturn oppose support uphold allow",
            "buy sell rent",
            "stay leave keep return cancel renew continue stop quit end start begin pause resume go come",
            "win lose gain pass fail succeed",
            "increase decrease rise fall grow shrink improve worsen",
            "open close lock unlock",
            "love hate like dislike praise criticise criticize recommend",
            "wait reply answer ask act send receive give take pay",
        ),
    )
)
_DUTIES = word_set("should shall must")
_AFTER_OR = word_set(
    "is are was were do does did has have had can could will would should may might must what which who "
    "whom whose when where why how if whether just merely simply rather only instead "
    "mine yours hers ours theirs"
)
#: What "or" opens upwards or downwards: "three or more".
_OPEN_ENDED = word_set(
    "more less fewer higher lower later earlier longer shorter older younger over under above below so better worse"
)
#: A word costs less than this as a verb where it may well be one.
_MAYBE_VERB = 1.3


def refuse_alternatives(clause: Clause) -> None:
    """Raise where "or" asks which of two things is so.

    "Is it a bug or a question?" has no yes and no; "does he want tea or coffee" has. Raise
    ``DeclinedError`` for the first.
    """
    words = [token.word for token in clause.rest]
    for at, word in enumerate(words):
        if word == "or":
            _refuse_alternative(clause, words, at)


def _refuse_alternative(clause: Clause, words: list[str], at: int) -> None:
    if not 0 < at < len(words) - 1:
        raise DeclinedError
    before, after = words[at - 1], words[at + 1]
    if _is_apart(clause, words, at):
        raise DeclinedError
    sides = [classes_of(clause.rest[place]).keys() for place in (at - 1, at + 1)]
    # "The short or the long version".
    is_again = clause.auxiliary in BE and after in words[:at] and {"P", "H"} & sides[1]
    is_short = words[at - 2 : at - 1] == ["the"] == words[at + 1 : at + 2]
    if (
        is_again
        or (is_short and _is_adjective(clause, at - 1))
        or all({"P", "H"} & side and "N" not in side for side in sides)
    ):
        # "Before or after the call".
        raise DeclinedError
    if "either" in words[:at] or after in _OPEN_ENDED:
        return
    if before in _AMISS and after in _AMISS:
        return
    classes_before, classes_after = classes_of(clause.rest[at - 1]), classes_of(clause.rest[at + 1])
    if "A" in classes_before and "A" in classes_after:
        return
    is_verb = classes_after.get("V", _MAYBE_VERB) < _MAYBE_VERB
    if "E" in classes_after and clause.auxiliary in HAVE and "been" not in words[:at]:
        # "Has he complained or threatened".
        bases = [base_of(word, "participle") or word for word in (*words[:at], after)]
        if _are_compatible(bases[:-1], bases[-1]):
            return
    is_infinitive = clause.auxiliary in BE | DO or "to" in words[:at]
    if is_verb and is_infinitive and _are_compatible(words[:at], after):
        return
    if is_verb or "E" in classes_after or clause.auxiliary in _DUTIES:
        raise DeclinedError
    # "Is it late or early", "a bug or a question": one of two states.
    first = set(classes_of(clause.rest[0]))
    if clause.auxiliary in BE and (at == 1 or not {"I", "E", "P", "H"} & first):
        raise DeclinedError


def _is_apart(clause: Clause, words: list[str], at: int) -> bool:
    """Return whether "or" begins another question, or what a comma parts from the first."""
    # "Sued, left, or posted it" is a list.
    is_parted = words[at - 1] == "," and "," not in words[: at - 1]
    return words[at + 1] in _AFTER_OR or (is_parted and clause.auxiliary not in DO)


def _is_adjective(clause: Clause, place: int) -> bool:
    classes = classes_of(clause.rest[place])
    return classes.get("M", 9.0) < classes.get("N", 9.0)


def _are_compatible(before: list[str], verb: str) -> bool:
    """Return whether a verb is no opposite of those before it, so that both may be so."""
    return not any({word, verb} <= opposites for opposites in _OPPOSED for word in before)
