"""The scores of a model's answers to the behaviour suite: one figure a behaviour."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steelyard.calibration.metrics import ece, pad_rows
from steelyard.decisions.rendering import RenderedDecision, RenderedRequest
from steelyard.wire.limits import MAX_DECISIONS
from steelyard_base_recipe.behaviour.rows import NAMINGS, NONE, BehaviourRow

#: Probabilities of one decision's outcomes.
Answer = NDArray[np.float64]
#: What a probability says where it is held against what was right.
TRUSTED = (0.8, 0.9)


@dataclass(frozen=True, slots=True)
class BehaviourFigure:
    """One line of the table: a measure, its value, its rows and its target."""

    name: str
    value: float
    n: int
    target: str


def answer_all(
    rows: Sequence[BehaviourRow],
    ask: Callable[[RenderedRequest], list[Answer]],
    report: Callable[[int], None] | None = None,
) -> list[Answer]:
    """Return the answer to every row; rows of one context are asked together."""
    by_context: dict[str, list[int]] = {}
    for i, row in enumerate(rows):
        by_context.setdefault(row.context, []).append(i)
    answers: dict[int, Answer] = {}
    for context, places in by_context.items():
        for start in range(0, len(places), MAX_DECISIONS):
            part = places[start : start + MAX_DECISIONS]
            decisions = [
                RenderedDecision(rows[i].kind, rows[i].question, rows[i].outcomes) for i in part
            ]
            part_answers = ask(RenderedRequest(context, tuple(decisions)))
            answers.update(zip(part, part_answers, strict=True))
        if report is not None:
            report(len(answers))
    return [answers[i] for i in range(len(rows))]


def figures(rows: Sequence[BehaviourRow], answers: Sequence[Answer]) -> list[BehaviourFigure]:
    """Return a figure for each behaviour, from the rows and the answer to each."""
    answered = _Answered(rows, answers)
    return [
        *_polarity(answered),
        *_stated(answered),
        *_wording(answered),
        *_outcomes(answered),
        *_trust(answered),
    ]


class _Answered:
    """Rows with their answers, found by group and key."""

    def __init__(self, rows: Sequence[BehaviourRow], answers: Sequence[Answer]) -> None:
        self.pairs = list(zip(rows, answers, strict=True))

    def group(self, *names: str) -> list[tuple[BehaviourRow, Answer]]:
        return [(row, p) for row, p in self.pairs if row.group.split(":")[0] in names]

    def exactly(self, name: str) -> list[tuple[BehaviourRow, Answer]]:
        return [(row, p) for row, p in self.pairs if row.group == name]

    def beside(
        self, first: str, pairs: Sequence[tuple[BehaviourRow, Answer]]
    ) -> list[tuple[BehaviourRow, Answer, BehaviourRow, Answer]]:
        """Put the row of a group beside each row that has its key."""
        by_key = {row.key: (row, p) for row, p in self.group(first)}
        return [(*by_key[row.key], row, p) for row, p in pairs]


def _polarity(answered: _Answered) -> list[BehaviourFigure]:
    measured = []
    for name, pairs in [
        ("all wordings", answered.group("negated")),
        *((made, answered.exactly(f"negated: {made}")) for made in ("opposite", "false", "not")),
    ]:
        both = answered.beside("asked", pairs)
        flips = [p.argmax() != q.argmax() for _, p, _, q in both]
        measured.append(_share(f"negated question, {name}: answers that flip", flips, ">= .70"))
        yes = np.array([[p[0], q[0]] for _, p, _, q in both])
        correlation = float(np.corrcoef(yes.T)[0, 1]) if np.ptp(yes, axis=0).all() else 0.0
        label = f"negated question, {name}: correlation of p(yes) with its negation's"
        measured.append(BehaviourFigure(label, correlation, len(both), "< 0"))
    opposite = answered.beside("asked", answered.exactly("negated: opposite"))
    above = [(p[0] > q[0]) == (row.right == 0) for row, p, _, q in opposite]
    measured.append(_share("true question above its opposite", above, ">= .80"))
    measured.append(
        _share("true claim above its denial", _hits(answered.group("claims")), ">= .80")
    )
    checks = answered.group("asked", "negated")
    measured.append(_share("yes/no questions: accuracy", _hits(checks), "high"))
    share = [p.argmax() == 0 for _, p in checks]
    measured.append(_share("yes/no questions: share of yes, of .50 that are", share, ".40 to .60"))
    return measured


def _stated(answered: _Answered) -> list[BehaviourFigure]:
    stated, silent = answered.group("stated"), answered.group("not stated")
    area = _area([p[0] for _, p in stated], [p[0] for _, p in silent])
    return [
        _share("stated: answered yes", [p.argmax() == 0 for _, p in stated], "high"),
        _share("not stated: answered yes", [p.argmax() == 0 for _, p in silent], "low"),
        BehaviourFigure("stated or not: AUC of p(yes)", area, len(stated) + len(silent), ">= .90"),
    ]


def _wording(answered: _Answered) -> list[BehaviourFigure]:
    measured = [_share("choice: accuracy", _hits(answered.group("choice")), "high")]
    for name, group, target in (
        ("200 irrelevant words", answered.group("distracted"), "<= .15"),
        ("question paraphrased", answered.group("paraphrased"), "<= .05"),
        *((f"names {style}", answered.exactly(f"named: {style}"), "<= .03") for style in NAMINGS),
    ):
        both = answered.beside("choice", group)
        changes = [p.argmax() != q.argmax() for _, p, _, q in both]
        measured.append(_share(f"{name}: answers that change", changes, target))
        measured.append(_share(f"{name}: accuracy", _hits(group), "as of choice"))
    return measured


def _outcomes(answered: _Answered) -> list[BehaviourFigure]:
    def none(pairs: Sequence[tuple[BehaviourRow, Answer]]) -> list[float]:
        return [float(p[row.outcomes.index(NONE)]) for row, p in pairs]

    absent, present = answered.group("none right"), answered.group("none offered")
    traps = answered.group("trap")
    caught = [row.outcomes[p.argmax()] == row.group.removeprefix("trap: ") for row, p in traps]
    levels = answered.group("ordinal")
    errors = [abs(int(p.argmax()) - (row.right or 0)) for row, p in levels]
    return [
        _share("none of these is right: chosen", _hits(absent), "high"),
        BehaviourFigure(
            "none of these is right or not: AUC of its probability",
            _area(none(absent), none(present)),
            len(absent) + len(present),
            ">= .75",
        ),
        _share("words of a wrong outcome: accuracy", _hits(traps), "high"),
        _share("words of a wrong outcome: it is chosen", caught, "low"),
        BehaviourFigure(
            "ordinal: mean error in levels", float(np.mean(errors)), len(errors), "<= .80"
        ),
    ]


def _trust(answered: _Answered) -> list[BehaviourFigure]:
    measured = []
    for name, groups in (
        ("choices", ("choice", "claims", "none offered", "none right", "trap")),
        ("yes/no", ("asked", "negated", "stated", "not stated")),
    ):
        pairs = answered.group(*groups)
        top = np.array([p.max() for _, p in pairs])
        hits = np.array(_hits(pairs))
        within = (top >= TRUSTED[0]) & (top < TRUSTED[1])
        value = float(hits[within].mean()) if within.any() else float("nan")
        label = f"{name}: right where the top probability is .8 to .9"
        measured.append(BehaviourFigure(label, value, int(within.sum()), ".75 to .95"))
        loss = -np.mean([np.log(max(float(p[row.right]), 1e-6)) for row, p in pairs])
        measured.append(BehaviourFigure(f"{name}: log loss", float(loss), len(pairs), "low"))
        right = pad_rows([np.eye(len(p))[row.right] for row, p in pairs])
        error = ece(pad_rows([p for _, p in pairs]), right)
        measured.append(BehaviourFigure(f"{name}: calibration error", error, len(pairs), "<= .06"))
    return measured


def _share(name: str, values: Sequence[bool], target: str) -> BehaviourFigure:
    return BehaviourFigure(name, float(np.mean(values)), len(values), target)


def _hits(pairs: Sequence[tuple[BehaviourRow, Answer]]) -> list[bool]:
    return [int(p.argmax()) == row.right for row, p in pairs]


def _area(positive: Sequence[float], negative: Sequence[float]) -> float:
    """Return how often a number of the first is above one of the second; ties count half."""
    first, second = np.array(positive)[:, None], np.array(negative)[None, :]
    return float(((first > second) + 0.5 * (first == second)).mean())
