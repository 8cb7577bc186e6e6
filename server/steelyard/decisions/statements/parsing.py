"""Where the subject of a question ends: the cheapest way to read its words as classes, in order.

Two automata run over the words. One reads a subject from the left, with the complements of its noun (of
the bank, that she wrote, to appeal); the other reads the rest from the right. Their sum at each place
says how likely the subject ends there; where two places cost nearly the same, the question is declined.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from steelyard.decisions.statements.classes import classes_in_order
from steelyard.decisions.statements.joints import Joint, joint_cost
from steelyard.decisions.statements.nouns import is_plural
from steelyard.decisions.statements.tokens import Token

_INFINITE = float("inf")
#: Two places whose costs differ by less are both likely.
MARGIN = 0.6

#: A word costs less than this as a noun where it hardly is another, and a verb that does not agree more.
_SURE_NOUN, _MISMATCH = 0.5, 1.5

#: What a class may be followed by, and what that costs.
_ROWS = {
    "B": "D0 N.3 M.3 U.2 Y.2 G.2 E.8 I1 Q1.5 P1 H1 F.1",
    "D": "N0 M0 U.2 Y.2 G0 E.6 I.6 A.8 P3 H3",
    "L": "P.4 H.4 C.8 O1 S.8 A.6 E1.4 M.8 T.8 Q2 D2 I.8 F1",
    "G": "N0 M0 U.3 Y.3 E.6 I.8 A1 G.3 Q3 F.5",
    "U": "L1.5 N0 M1 G.3 P.5 H.5 U.4 Y.4 C.8 E2 I2.5 A1.5 R1 T1.5 O1 S1.5 D2 F.3",
    "Y": "L1.5 N0 M.3 G.3 P.5 H.5 U.4 Y.4 C.8 E2 I2.5 A1.5 R1 T1.5 O1 S1.5 D2 F0",
    "M": "N0 L1 M.3 U.6 Y.6 C.5 G.2 P.4 H.4 T.4 R.8 A1 O.8 E2.4 I1 S1 D2.5 Q2.5 F.5",
    "E": "N.3 B.5 L.4 P.1 H.1 A.4 D.4 Q.4 T.5 M.5 R.6 E2.4 I.8 C.7 U.6 Y.6 G.5 O1 S.6 F.3",
    "I": "N.5 B.4 L.4 P.2 H.2 A.4 D.2 Q.3 T.4 M.5 R.5 E.5 I1 C.8 U.5 Y.5 G.4 O1 S.7 F.3",
    "N": "N.5 L1.2 P.3 H1 R.6 C.8 T1.3 E1.6 I1.6 U.4 Y2.4 A1.6 O1.2 S1 M3.6 G.6 D2.6 Q2.6 V3 F0",
    "Q": "L1 P.6 H1 R.8 C.9 M1.6 A.8 T1.2 E1.4 I1.4 O1.2 S1 D1.6 Q2.6 N2.2 V2.6 U1.5 Y2.4 G1.5 F0",
    "A": "L.6 B1 M.2 A.4 E.3 I.3 P.4 H.4 D.8 N1 V.5 C.8 T.8 R.9 S.7 O1 Q.9 U.6 Y.6 Z.5 W.5 X1 G1 F.8",
    "P": "D0 B.2 L.6 N.4 M.3 Q.1 G.1 U.2 Y.2 I.5 R.7 P1.2 H1.6 A1.2 E1.5 T2 C2 O2 F.2",
    "T": "V0 D.4 N.6 M.6 Q.3 G.4 U.6 Y.6 I1 A1.5 E2 R.8",
    "R": "D.2 B.3 Q.1 N.5 M.6 G.3 U.6 Y.6 T.6 E2 I1 A1 C1.5 P1.5 H1.5 O2 F2",
    "S": "D.2 B.3 Q.1 N.6 M.7 G.4 U.6 Y.6 I.5 E.8 P1 H1 A.8 T1 R2",
    "C": "D.2 B.3 L.6 N.3 M.3 Q.4 G.3 U.4 Y.4 P.4 H.4 V.4 E.5 I.5 A.5 R.6 T.6 Z.8 W.8 X1 S1 C1 F.5",
    "V": "D0 B.1 L.4 N.5 M.5 Q0 P.3 H.3 A.4 R.3 T.3 G.2 U.3 Y.3 E.7 I.7 C2.2 S.6 O1 F.4",
    "X": "D.3 B.4 L.4 M.2 E0 I.1 V.1 A.3 P.4 H.4 N.8 Q.6 T.5 R.8 G.4 U.5 Y.5 C1.5 O1 F1.5",
    "O": "D.3 B.4 L.5 N.5 M.5 Q.5 P.5 H.5 C.2 A.5 R.5 S.4 E.8 I.6 G.4 U.4 Y.4 V1.5 O1 T1 F1",
}


#: Classes that are followed by what follows another.
_LIKE = {"F": "P", "Z": "V", "W": "V"}


def _costs(row: str) -> dict[str, float]:
    """Return a row of classes, each with a cost, as a mapping."""
    return {item[0]: float(item[1:]) for item in row.split()}


_FOLLOWS = {name: _costs(row) for name, row in _ROWS.items()}
# "Below about" is hardly a place.
_FOLLOWS["H"] = _FOLLOWS["P"] | _costs("P2.4")
_FOLLOWS |= {name: _FOLLOWS[other] for name, other in _LIKE.items()}
# "Cut off before he came".
_FOLLOWS["P"] = _FOLLOWS["P"] | _costs("S1")
#: Participles with nothing after them: hardly about the noun before.
_BARE = {"E": "K", "I": "K", "M": "m"}
#: Participles behind a noun: "the return accepted" leads to no object and to no state.
_FOLLOWS["e"] = {
    name: cost + (1.2 if name in "DQMYT" else 0.0) for name, cost in _FOLLOWS["E"].items()
}
_FOLLOWS["v"] = dict(_FOLLOWS["V"])
_FOLLOWS["j"] = _FOLLOWS["I"] | _costs("M1.5 E1.8 I2")
_FOLLOWS["p"] = _FOLLOWS["e"] | _costs("M2.5 E2.5")
# "The accused the owner" is no participle with an object.
_FOLLOWS["q"] = {name: cost for name, cost in _FOLLOWS["E"].items() if name not in "BDGQ"}
for _name, _row in _FOLLOWS.items():
    if "M" in _row:
        # "In wrong" is no place.
        _row["m"] = _row["M"] + (0.8 if _name in "PHF" else 0.0)
    _row["K"] = _row.get("E", 3.0)
_FOLLOWS["N"]["K"] = 3.2
#: Into a finite verb, from a clause that has none yet.
_INTO_VERB = _costs("N0 Q0 R.3 A.4 U.5 Y.5 L.5 M2 I1 E1.5 O1")
#: What a subject begins with.
_FIRST = _costs("D0 B0 L2 N.6 M.8 Q0 G.2 U.5 Y.3 I1.5 A1.8 R2.5 P4 H4 E2 T3")
#: Where a subject may end, and what that costs; in a clause about its noun also after a verb.
_LAST = _costs("N0 Q0 L.9 U.2 Y.8 M4.2 A4 I3.5 E3.5")
_LAST_IN_CLAUSE = _LAST | _costs("V.4 W.4 Z.6 P.6 H1 F.6 E1.5 L.5 I1.5 M1.2 A2 X2")
for _row in (_LAST, _LAST_IN_CLAUSE):
    # "The person being mocked" is whole, and "the reason for leaving".
    _row |= {"e": min(_row["E"], 3.2), "p": 0.8, "j": 1.0, "v": 0.8, "q": 2.0}
#: Where the rest is a base form, a participle is likelier the end of the subject.
_LAST_BEFORE_BASE = _LAST | _costs("I1 E1.2 e1.2")
#: Where a sentence may end.
_END = _costs("X2 D5 T2 C5 S5 O4 G2 R.8 P.8 H.8 F1")

#: What begins the rest after the subject, by the kind of the verb in front of the question.
STARTS = {
    "be": _costs("M0 E.1 I.1 P.5 H.5 F2.5 D.5 B.6 L.4 A.3 Q.8 U1.2 Y.4 G.6 T3 R2.5 N2.2 S2"),
    "base": _costs("V0 A.6 L3"),
    "participle": _costs("E0 A.4 L3"),
    "infinitive": _costs("T0"),
    "noun": _costs("D0 B.2 N.8 M.8 U.4 Y.3 Q.3 G.5"),
}

#: How far two readings of a question with "is" must be apart, by the classes that their rests begin with, where
#: that is more than ``MARGIN``: "on the list wrong" (H) and "wrong" (M) are both likely. So that more statements
#: of the training texts, made into questions, are declined that were read wrongly than rightly.
_DOUBTFUL = {
    "D": _costs("A4 P.7"),
    "E": _costs("A1.5"),
    "G": _costs("N2.5"),
    "H": _costs("E4 H1.5 N2.2 P1 U1.5"),
    "M": _costs("A1 E.9 I3 N1 Y2"),
    "N": _costs("D4 I1"),
    "P": _costs("N1.5 R2 U2"),
    "Q": _costs("D4 H1.5 M4"),
}

#: As far must a subject that ends with a preposition before a noun be from one that ends before both.
_STRANDED = 1.5

_SUBJECT = "subject"
#: Participles by what is before them: a noun, "being", a preposition, a determiner.
_BEHIND = {f"{noun}E": "e" for noun in "NQU"} | {f"{leading}I": "j" for leading in "PHF"}
_BEHIND |= {"IE": "p", "TV": "v"} | {f"{leading}E": "q" for leading in "DG"}
#: "The able to walk", "what the user wants done possible".
_UNLIKELY_IN_SUBJECT = frozenset(("MP", "MH", "MT", "EM"))
#: A clause has not begun, lacks its verb, or has it; of a filled one the noun before it may be the object.
_NONE, _OPEN, _DONE, _FILLED = 0, 1, 2, 3
#: "The tool that the agent picked" has its object in front.
_SECOND_OBJECT = 1.4
_State = tuple[str, int]


@dataclass(frozen=True, slots=True)
class SubjectSplit:
    """The number of words of a subject, the cost of that reading, and the distance to the next."""

    size: int
    cost: float
    margin: float


def split_subject(
    tokens: Sequence[Token], start: str, *, is_plural_verb: bool = False
) -> SubjectSplit | None:
    """Return where the subject of the words after an auxiliary ends.

    ``start`` is a key of ``STARTS``; ``is_plural_verb`` says that the auxiliary is "are" or "were".

    >>> from steelyard.decisions.statements.tokens import tokenize
    >>> words = tokenize("the problem that the user describes solved now")
    >>> split_subject(words, "be").size
    6
    """
    classes = classes_in_order(tokens)
    subjects = _subject_costs(_after_singulars(tokens, classes), before_base=start == "base")
    costs: dict[int, float] = {}
    words = [token.word for token in tokens]
    rests = _RestCosts(classes, start)
    for size in range(1, len(tokens)):
        if subjects[size - 1] == _INFINITE:
            continue
        rest = rests.behind(size)
        if rest == _INFINITE:
            continue
        joint = Joint(tokens, words, classes, size, start, is_plural_verb)
        costs[size] = subjects[size - 1] + rest + joint_cost(joint)
    if not costs:
        return None
    best, *others = sorted(costs, key=lambda size: costs[size])
    likely = [min(own, key=own.__getitem__) for own in classes]
    doubts = _DOUBTFUL.get(likely[best], {}) if start == "be" else {}
    margin = _INFINITE
    for size in others:
        doubt = MARGIN if tokens[size].is_compound else doubts.get(likely[size], MARGIN)
        if size == best - 1 and likely[size] in "PH" and likely[best] == "D":
            # "The room they were given on" before "the ground floor".
            doubt = max(doubt, _STRANDED)
        margin = min(margin, round(costs[size] - costs[best] - doubt + MARGIN, 6))
    return SubjectSplit(best, costs[best], margin)


def _after_singulars(
    tokens: Sequence[Token], classes: Sequence[dict[str, float]]
) -> list[dict[str, float]]:
    """Return the classes of words in a subject: verbs agree with the last words before them there."""
    costs = [dict(own) for own in classes]
    for before, token, own in zip(classes, tokens[1:], costs[1:], strict=False):
        is_noun = "U" in before or ("N" in before and before["N"] < _SURE_NOUN)
        if token.word in {"what", "how"} and "R" in own:
            own["R"] += _MISMATCH
        if is_noun and "V" in own and not is_plural((token,)):
            own["V"] += _MISMATCH
    return costs


def subject_cost(tokens: Sequence[Token]) -> float:
    """Return the cost of reading some words as one subject."""
    return _subject_costs(classes_in_order(tokens))[-1]


def _subject_costs(
    classes: Sequence[dict[str, float]], *, before_base: bool = False
) -> list[float]:
    """Return the cost of reading the first n words as a subject, for each n from 1."""
    states: dict[_State, float] = {
        (name, _OPEN if name == "R" else _NONE): cost + _FIRST[name]
        for name, cost in classes[0].items()
        if name in _FIRST
    }
    costs = [_last_cost(states, before_base=before_base)]
    for options in classes[1:]:
        states = _step(states, options, part=_SUBJECT)
        costs.append(_last_cost(states, before_base=before_base))
    return costs


def _last_cost(states: dict[_State, float], *, before_base: bool) -> float:
    ends = _LAST_BEFORE_BASE if before_base else _LAST
    best = _INFINITE
    for (name, clause), cost in states.items():
        if clause != _OPEN:
            last = (ends if clause == _NONE else _LAST_IN_CLAUSE).get(name, _INFINITE)
            best = min(best, cost + last)
    return best


def _is_adjective(classes: Mapping[str, float]) -> bool:
    """Return whether a word is likelier an adjective than a noun or an adverb."""
    return classes.get("M", 9.0) < min(classes.get("N", 9.0), classes.get("A", 9.0))


def rest_cost(classes: Sequence[Mapping[str, float]], start: str) -> float:
    """Return the cost of reading words as the rest of a question."""
    return _RestCosts(classes, start).behind(0)


class _RestCosts:
    """The cost of reading the last words of a question as its rest, behind each place."""

    def __init__(self, classes: Sequence[Mapping[str, float]], start: str) -> None:
        self._classes = classes
        self._start = start
        #: Of the last word, where another stands before it.
        self._final = {_BARE.get(name, name): cost for name, cost in classes[-1].items()}
        if start == "be" and {"K", "m"} <= self._final.keys():
            # What is said last is a participle, and no adjective before a noun.
            self._final["m"] += 1.0
        if start == "be" and "m" in self._final and _is_adjective(classes[-2:][0]):
            # "Due clear" are two predicates.
            self._final["m"] += 1.5
        self._ahead: dict[tuple[int, str, int], float] = {}

    def behind(self, size: int) -> float:
        """Return the cost of the words behind the first ``size``."""
        own = self._classes[size]
        is_alone = size == len(self._classes) - 1
        is_of_verb = self._start in {"base", "participle"}
        best = _INFINITE
        for name, price in own.items():
            cost = price + STARTS[self._start].get(name, _INFINITE)
            if name == "M" and own.get("N", 9.0) < price:
                # "Pressure" before another noun is none of its states.
                cost += 0.8
            if is_alone and is_of_verb and name not in "VE":
                # An adverb alone is no rest: "replied yet".
                continue
            if is_alone and not is_of_verb and name in "AP":
                # Nor is a preposition: "they complain about".
                cost += _MISMATCH
            if cost < best:
                clause = _OPEN if name == "R" else _NONE
                is_led = is_of_verb and not is_alone and name == "A"
                ahead = self._to_verb if is_led else self._cost_ahead
                best = min(best, cost + ahead(size, name, clause))
        return best

    def _to_verb(self, place: int, name: str, clause: int) -> float:
        """Return the cost of what follows an adverb that leads to the verb itself: "always want"."""
        verb = "V" if self._start == "base" else "E"
        options = self._options(place + 1)
        is_last = place + 2 == len(self._classes)
        verbs = {option: price for option, price in options.items() if option in {verb, "K"}}
        cost = self._cost_of_steps(place, name, clause, verbs, part="be")
        if "A" in options and not is_last:
            step = options["A"] + _FOLLOWS["A"]["A"]
            cost = min(cost, step + self._to_verb(place + 1, "A", clause))
        return cost

    def _cost_ahead(self, place: int, name: str, clause: int) -> float:
        """Return the cost of the words behind a place that is read as a class."""
        if place == len(self._classes) - 1:
            return _END.get(name, 0.0) + (2.5 if clause == _OPEN and name != "R" else 0.0)
        cost = self._ahead.get((place, name, clause))
        if cost is None:
            options = self._options(place + 1)
            cost = self._cost_of_steps(place, name, clause, options, part=self._start)
            self._ahead[place, name, clause] = cost
        return cost

    def _options(self, place: int) -> Mapping[str, float]:
        return self._final if place == len(self._classes) - 1 else self._classes[place]

    def _cost_of_steps(
        self, place: int, name: str, clause: int, options: Mapping[str, float], *, part: str
    ) -> float:
        best = _INFINITE
        for option, price in options.items():
            for target, after, step in _moves(name, clause, option, part):
                if price + step < best:
                    best = min(best, price + step + self._cost_ahead(place + 1, target, after))
        return best


def _step(
    states: dict[_State, float], options: Mapping[str, float], *, part: str
) -> dict[_State, float]:
    """Return the states after one more word."""
    after: dict[_State, float] = {}
    for (name, clause), cost in states.items():
        for option, price in options.items():
            for target, inside, step in _moves(name, clause, option, part):
                total = cost + price + step
                if total < after.get((target, inside), _INFINITE):
                    after[target, inside] = total
    return after


@cache
def _moves(name: str, clause: int, option: str, part: str) -> tuple[tuple[str, int, float], ...]:
    """Return the classes and clauses that a word of a class leads to, with the cost of each."""
    # Where the verb has been, an adverb leads to no other: "like this usually buy".
    again = 1.5 if name + option == "AV" and part in {"base", "participle"} else 0.0
    if clause == _FILLED and option == "E" and name in "ZW":
        # "The rights he grants limited".
        again = _SECOND_OBJECT
    if part == _SUBJECT and clause in {_DONE, _FILLED} and option == "E" and name in "NUQ":
        # "The costs he claims for the car" before "limited": that of the clause's last noun is rare.
        again = 0.8
    if part == _SUBJECT and name + option in _UNLIKELY_IN_SUBJECT:
        again = 1.0
    target = _BEHIND.get(name + option, option)
    moves = _clauses_after(name, clause, option, part=part)
    return tuple((target, inside, step + again) for inside, step in moves)


def _clauses_after(
    name: str, clause: int, option: str, *, part: str
) -> Iterable[tuple[int, float]]:
    """Yield the clauses that a class may lead to, with the cost of each."""
    if option in "XZWV" and clause == _OPEN and name in _INTO_VERB:
        yield _FILLED if name in "NQ" else _DONE, _INTO_VERB[name]
        return
    if option in "XZW" and name not in "ALC":
        return
    step = _FOLLOWS[name].get(option)
    if step is None:
        return
    if name == "N" and option == "V" and part == _SUBJECT:
        return
    if option in "RS":
        # "Needed before the agent can book" is hardly a part of the subject.
        is_odd = option == "S" and part == _SUBJECT and clause == _NONE
        yield _OPEN, step + (0.8 if is_odd else 0.0)
        if option == "S":
            yield clause, step + 0.8
    elif name in "NQUY" and option in "DQG":
        # "The drug she takes": a clause about the noun, with no word in front.
        yield _OPEN, step
        if part != _SUBJECT or clause == _DONE:
            # "Gave the customer a voucher", "that lent them the money"; hardly "is the customer a voucher".
            yield clause, step - 1.6 if part in {"base", "participle"} else step
    elif option == "H" and name in "NQU" and part != _SUBJECT:
        yield clause, 0.3
    elif name in "VZWEI" and option in "DBQNGMUY":
        is_second = clause == _FILLED and option in "DBQGM"
        yield clause, step + (_SECOND_OBJECT if is_second else 0.0)
        if part != _SUBJECT or clause in {_DONE, _FILLED}:
            # "Think the film is long".
            yield _OPEN, step + 1.3
    else:
        yield clause, step
