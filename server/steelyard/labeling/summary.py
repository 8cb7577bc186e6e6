"""What the answers of all teachers say together: counts, agreement by decision and by teacher."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from msgspec import Struct

from steelyard.decisions.kinds import Decision
from steelyard.labeling.agreement import krippendorff_alpha, share
from steelyard.labeling.judging import Judgment, Weighting, verdict_of
from steelyard.labeling.wire import DecisionAgreement, TeacherAgreement

#: Decisions of which agreement is told, those most asked.
MAX_DECISIONS = 64


@dataclass(frozen=True, slots=True)
class Judged:
    """A row: its decisions, and what each teacher said of it."""

    decisions: Sequence[Decision]
    judgments: Sequence[Judgment]


class Summary(Struct, frozen=True, kw_only=True):
    """What is kept of a job whose labels are ready."""

    valid_rows: int
    agreement_rows: int
    error_rows: int
    decisions: list[DecisionAgreement]
    teachers: list[TeacherAgreement]


class _Asked:
    """What was said of one decision, of all rows that ask it."""

    def __init__(self) -> None:
        self.votes: list[list[int]] = []
        self.places: dict[str, int] = {}
        self.is_ordinal = True

    def add(self, decision: Decision, labels: Iterable[str]) -> None:
        """Add the labels that a row's teachers gave it."""
        self.is_ordinal &= decision.kind == "ordinal"
        for name in decision.outcomes.names:
            self.places.setdefault(name, len(self.places))
        self.votes.append([self.places[label] for label in labels])

    def agreement(self, decision_id: str) -> DecisionAgreement:
        """Return how far the teachers agree on it."""
        paired = [votes for votes in self.votes if len(votes) > 1]
        return DecisionAgreement(
            decision_id=decision_id,
            alpha=krippendorff_alpha(paired, len(self.places), is_ordinal=self.is_ordinal),
            agreement=share(sum(len(set(votes)) == 1 for votes in paired), len(paired)),
        )


def summarize(rows: Iterable[Judged], teachers: Sequence[str], weighting: Weighting) -> Summary:
    """Return what the answers say together."""
    n_valid = n_agreed = n_errors = 0
    asked: dict[str, _Asked] = {}
    answered, right = [0] * len(teachers), [0] * len(teachers)
    n_rows, n_decided = 0, [0] * len(teachers)
    for row in rows:
        n_rows += 1
        verdict = verdict_of(row.judgments, weighting)
        n_valid += verdict.is_valid
        n_agreed += verdict.has_agreement
        n_errors += any(one.probabilities is None for one in row.judgments)
        labels = [one.labels for one in row.judgments]
        for decision in row.decisions:
            told = [one[decision.id] for one in labels if one]
            asked.setdefault(decision.id, _Asked()).add(decision, told)
        for place, said in enumerate(labels):
            answered[place] += bool(said)
            for name, label in said.items():
                targets = verdict.targets[name]
                n_decided[place] += 1
                right[place] += label == max(targets, key=targets.__getitem__)
    most = sorted(asked, key=lambda name: (-len(asked[name].votes), name))[:MAX_DECISIONS]
    return Summary(
        valid_rows=n_valid,
        agreement_rows=n_agreed,
        error_rows=n_errors,
        decisions=[asked[name].agreement(name) for name in most],
        teachers=[
            TeacherAgreement(
                model=name,
                answered=answered[place],
                errors=n_rows - answered[place],
                with_targets=share(right[place], n_decided[place]),
            )
            for place, name in enumerate(teachers)
        ],
    )
