"""The answers of all teachers together: counts, agreement by decision and by teacher."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from msgspec import Struct

from steelyard.calibration.agreement import DecisionVotes
from steelyard.decisions.kinds import Decision
from steelyard.evaluations.measures.sampling import ratio_measures
from steelyard.labeling.judging import Judgment, Weighting, verdict_of
from steelyard.labeling.wire import DecisionAgreement, TeacherAgreement
from steelyard.proof.differences import Bootstrap
from steelyard.wire.measures import Measure

#: Decisions whose agreement is reported, those most asked.
MAX_DECISIONS = 64


@dataclass(frozen=True, slots=True)
class Judged:
    """A row: its decisions, and each teacher's answers."""

    decisions: Sequence[Decision]
    judgments: Sequence[Judgment]


class Summary(Struct, frozen=True, kw_only=True):
    """The figures kept of a job whose labels are ready."""

    valid_rows: int
    agreement_rows: int
    error_rows: int
    decisions: list[DecisionAgreement]
    teachers: list[TeacherAgreement]


class _Agreements:
    """How often other teachers said the same as each, by row."""

    def __init__(self, n_teachers: int) -> None:
        self._same: list[list[float]] = []
        self._pairs: list[list[float]] = []
        self._n_teachers = n_teachers

    def add(self, labels: Sequence[Mapping[str, str]]) -> None:
        """Add the labels that a row's teachers gave its decisions."""
        same, pairs = [0.0] * self._n_teachers, [0.0] * self._n_teachers
        for teacher, other in itertools.permutations(range(self._n_teachers), 2):
            both = labels[teacher].keys() & labels[other].keys()
            pairs[teacher] += len(both)
            same[teacher] += sum(labels[teacher][name] == labels[other][name] for name in both)
        self._same.append(same)
        self._pairs.append(pairs)

    def measures(self) -> list[Measure | None]:
        """Return the shares, teacher by teacher; ``None`` without a teacher."""
        return ratio_measures(
            np.asarray(self._same),
            np.asarray(self._pairs),
            Bootstrap(),
            are_proportions=[True] * self._n_teachers,
        )


def summarize(rows: Iterable[Judged], teachers: Sequence[str], weighting: Weighting) -> Summary:
    """Summarize the answers of one row or more."""
    n_rows = n_valid = n_agreed = n_errors = 0
    decision_votes: dict[str, DecisionVotes] = {}
    answered = [0] * len(teachers)
    beside = _Agreements(len(teachers))
    for row in rows:
        n_rows += 1
        verdict = verdict_of(row.judgments, weighting)
        n_valid += verdict.is_valid
        n_agreed += verdict.has_agreement
        n_errors += any(judgment.probabilities is None for judgment in row.judgments)
        labels = [judgment.labels for judgment in row.judgments]
        beside.add(labels)
        for decision in row.decisions:
            votes = [label[decision.id] for label in labels if label]
            decision_votes.setdefault(decision.id, DecisionVotes()).add(
                decision.outcomes.names, votes, is_ordinal=decision.kind == "ordinal"
            )
        for place, label in enumerate(labels):
            answered[place] += bool(label)
    most = sorted(decision_votes, key=lambda name: (-len(decision_votes[name]), name))[
        :MAX_DECISIONS
    ]
    return Summary(
        valid_rows=n_valid,
        agreement_rows=n_agreed,
        error_rows=n_errors,
        decisions=[
            DecisionAgreement(
                decision_id=name,
                alpha=decision_votes[name].alpha(),
                agreement=decision_votes[name].share(),
            )
            for name in most
        ],
        teachers=[
            TeacherAgreement(model=name, answered=n, errors=n_rows - n, with_others=share_of_pairs)
            for name, n, share_of_pairs in zip(teachers, answered, beside.measures(), strict=True)
        ],
    )
