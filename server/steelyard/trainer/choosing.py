"""The choice of a decision's head: candidates compared on rows that they were not fitted on.

Every candidate is cross-validated in folds of contexts. A head is the candidate, or the blend of them,
of the lowest cross-validated log loss. A candidate that costs more to serve is taken only where it is
better beyond noise: a booster, one that reads the base's scores, which is thirty times the context's
own tokens on a decision of 77 outcomes, and a reader's evidence.

A parent's head would look better than it is on rows that it was trained on. Where few others are
there, it stays as it is, and a newly fitted head takes its place only if it is better on those few.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.scoring.head_specs import Floats, log_softmax, pair_features
from steelyard.scoring.heads import Head
from steelyard.trainer.blending import blend, correct, fit_booster, fit_weights
from steelyard.trainer.calibrating import (
    cross_fitted,
    fit_temperature,
    is_better,
    row_losses,
)
from steelyard.trainer.candidates import PARENT, WORDS, Candidate, Fitted, list_candidates
from steelyard.trainer.crossfit import Indices, assign_folds
from steelyard.trainer.data import DecisionData

Doubles = NDArray[np.float64]

BLEND, STACKER = "blend", "stacker"
#: Blends by what they cost to serve: whether one reads a reader's evidence, and the base's scores.
_BLENDS = {
    (False, False): BLEND,
    (False, True): f"{BLEND} with base",
    (True, False): f"{BLEND} with evidence",
    (True, True): f"{BLEND} with base and evidence",
}

#: Heads of parents within each other, at most: a deeper one may be taken whole, not blended.
MOST_DEPTH = 3
#: Rows that nothing was trained on, at least, for them alone to decide; and that the base read, at
#: least, for it to be compared. With fewer than the latter nothing is compared with a parent.
_LEAST_UNSEEN, _LEAST_SCORED = 30, 8
#: Rows up to which every fold helps to choose a penalty; with more the first fold does.
_EVERY_FOLD_ROWS = 2_500
#: Rows, at least, for a booster to learn from.
_STACKER_ROWS = 300
#: A part of a blend below this is left out of it.
_LEAST_WEIGHT = 0.03
_NO_PENALTY = 0.0
_SIDE_BY_SIDE = 2


@dataclass(slots=True, eq=False)
class Crossed:
    """A candidate, cross-validated."""

    candidate: Candidate
    penalty: float
    rows: Indices  # those that it can answer
    logs: Doubles  # (n, n_outcomes) log probabilities by folds; zeros elsewhere than in rows
    start: Fitted

    def refit(self) -> Fitted:
        """Fit on all of its rows."""
        return self.candidate.fit(self.rows, self.penalty, self.start)


@dataclass(slots=True, eq=False)
class Option:
    """A head that might be: one candidate, a blend, or a blend with a booster."""

    name: str
    members: list[Crossed]
    weights: list[float]
    rows: Indices  # where it was judged
    logs: Doubles  # (n_rows, n_outcomes) log probabilities there, by folds
    losses: Doubles  # of each row, in nats, at a cross-fitted temperature
    booster: str | None = None

    @property
    def cost(self) -> tuple[bool, bool]:
        """Whether it reads a reader's evidence, and whether the base's scores."""
        return _cost_of(self.members)


@dataclass(slots=True, eq=False)
class HeadChoice:
    """The choice, and its candidates."""

    option: Option
    options: list[Option] = field(default_factory=list)
    folds: Indices = field(default_factory=lambda: np.zeros(0, np.intp))
    keeps_parent: bool = False

    @property
    def words(self) -> Option | None:
        """The one that reads words alone; ``None`` where contexts have none."""
        return next((option for option in self.options if option.name == WORDS), None)


def choose_head(
    data: DecisionData,
    parent: Head | None,
    seed: int,
    on_step: Callable[[], None],
    *,
    may_keep: bool = True,
) -> HeadChoice | None:
    """Compare the candidates of a decision."""
    folds = assign_folds(data.names, data.targets.argmax(axis=1), seed)
    judged = ~data.is_seen
    # Enough unseen rows in one fold alone could not be cross-fitted.
    few_unseen = judged.sum() < _LEAST_UNSEEN or len(np.unique(folds[judged])) < 2
    if few_unseen:
        judged[:] = True
    # What reads the base is judged where it was read: of unseen rows, as many as of the others.
    least_scored = _LEAST_SCORED if judged.all() else _LEAST_UNSEEN
    crossed: list[Crossed] = []
    aside: Candidate | None = None
    for candidate in list_candidates(data, parent, seed):
        rows = _answered(candidate, data)
        at = rows[judged[rows]]
        enough = len(at) >= least_scored and len(np.unique(folds[at])) > 1
        if candidate.name == PARENT and (few_unseen or not enough):
            aside = candidate
        elif enough or not candidate.needs_base:
            crossed.append(cross_validate(candidate, data, rows, folds))
        on_step()
    if not crossed:
        return None
    judge = _Judge(data, folds, judged)
    options = [judge.single(member) for member in crossed]
    if parent is not None and parent.depth >= MOST_DEPTH:
        crossed = [member for member in crossed if member.candidate.name != PARENT]
    dearest = _cost_of(crossed)
    for cost, name in _BLENDS.items():
        members = [member for member in crossed if _is_within(_cost_of([member]), cost)]
        if _is_within(cost, dearest):
            # A blend that left out what it may cost is another one, measured on fewer rows.
            options += [made for made in judge.blends(members, name) if made.cost == cost]
    best = pick(options)
    # What reads words alone stays linear in them, a thousandth of the base's work.
    reads_more = data.vectors is not None or data.base is not None
    if len(best.rows) >= _STACKER_ROWS and reads_more and not is_too_deep(best, parent):
        stacked = judge.stacked(best, seed)
        options.append(stacked)
        if stacked.booster is not None and is_better(stacked.losses, best.losses):
            best = stacked
    on_step()
    keeps = may_keep and aside is not None and not _is_beaten(aside, best, data)
    return HeadChoice(best, options, folds, keeps)


def is_too_deep(option: Option, parent: Head | None) -> bool:
    """Return whether anything on top of an option would nest a head beyond the bound."""
    if parent is None or parent.depth < MOST_DEPTH:
        return False
    return any(member.candidate.name == PARENT for member in option.members)


def _answered(candidate: Candidate, data: DecisionData) -> Indices:
    """Return the rows that a candidate can answer."""
    every = np.arange(len(data.contexts))
    return every[data.is_scored] if candidate.needs_base else every


def _is_beaten(parent: Candidate, option: Option, data: DecisionData) -> bool:
    """Return whether an option is better than the parent on the rows that neither was fitted on."""
    answered = _answered(parent, data)
    unseen = answered[~data.is_seen[answered]]
    common, _, at = np.intersect1d(unseen, option.rows, assume_unique=True, return_indices=True)
    if len(common) < _LEAST_SCORED:
        return False
    logs = log_softmax(parent.fit(common, _NO_PENALTY, None).logits(common))
    return is_better(option.losses[at], row_losses(logs, data.targets[common]))


def cross_validate(
    candidate: Candidate, data: DecisionData, rows: Indices, folds: Indices
) -> Crossed:
    """Choose a candidate's penalty, and predict every row by a fit that did not see its context."""
    names = np.unique(folds[rows]).tolist()
    penalties = candidate.penalties or (_NO_PENALTY,)
    choosing = names if len(rows) <= _EVERY_FOLD_ROWS else names[:1]
    paths = {fold: _fit_path(candidate, data, rows, folds, fold, penalties) for fold in choosing}
    # A path stops where its loss rises: compare the steps that every fold reached.
    n_common = min(len(path) for path in paths.values())
    inside = np.concatenate([rows[folds[rows] == fold] for fold in choosing])
    losses = []
    for step in range(n_common):
        logs = np.concatenate([paths[fold][step][1] for fold in choosing])
        tempered = fit_temperature(logs, data.targets[inside])
        cooled = log_softmax(logs / tempered.temperature)
        losses.append(float(row_losses(cooled, data.targets[inside]).mean()))
    at = int(np.argmin(losses))
    predicted = np.zeros((len(folds), data.n_outcomes))

    def predict(fold: int) -> Doubles:
        if fold in paths:
            return paths[fold][at][1]
        fitted = candidate.fit(rows[folds[rows] != fold], penalties[at], None)
        return log_softmax(fitted.logits(rows[folds[rows] == fold]))

    # Folds side by side: products with sparse matrices take one core each.
    with ThreadPoolExecutor(_SIDE_BY_SIDE) as pool:
        for fold, logs in zip(names, pool.map(predict, names), strict=True):
            predicted[rows[folds[rows] == fold]] = logs
    return Crossed(candidate, penalties[at], rows, predicted, paths[choosing[0]][at][0])


def _fit_path(
    candidate: Candidate,
    data: DecisionData,
    rows: Indices,
    folds: Indices,
    fold: int,
    penalties: Sequence[float],
) -> list[tuple[Fitted, Doubles]]:
    """Fit with falling penalties, each from where the last one ended, until the loss rises."""
    inside, outside = rows[folds[rows] == fold], rows[folds[rows] != fold]
    path: list[tuple[Fitted, Doubles]] = []
    fitted: Fitted | None = None
    is_alone = len(rows) > _EVERY_FOLD_ROWS
    best = np.inf
    for penalty in penalties:
        fitted = candidate.fit(outside, penalty, fitted)
        logs = log_softmax(fitted.logits(inside))
        path.append((fitted, logs))
        if is_alone:
            cooled = log_softmax(logs / fit_temperature(logs, data.targets[inside]).temperature)
            loss = float(row_losses(cooled, data.targets[inside]).mean())
            if loss > best:
                break
            best = loss
    return path


def pick(options: Sequence[Option]) -> Option:
    """Pick the option of the lowest loss; one that costs more must be better beyond noise."""
    by_loss = sorted(options, key=lambda option: (option.cost, float(option.losses.mean())))
    [best, *rivals] = [next(same) for _, same in groupby(by_loss, lambda option: option.cost)]
    for rival in rivals:
        common, mine, its = np.intersect1d(
            rival.rows, best.rows, assume_unique=True, return_indices=True
        )
        if len(common) and is_better(rival.losses[mine], best.losses[its]):
            best = rival
    return best


def _cost_of(members: Sequence[Crossed]) -> tuple[bool, bool]:
    """Return whether some of the members read a reader's evidence, and whether the base's scores."""
    candidates = [member.candidate for member in members]
    return (
        any(candidate.needs_evidence for candidate in candidates),
        any(candidate.needs_base for candidate in candidates),
    )


def _is_within(cost: tuple[bool, bool], most: tuple[bool, bool]) -> bool:
    return all(mine <= its for mine, its in zip(cost, most, strict=True))


class _Judge:
    """Makes options and measures them on the rows that may judge."""

    def __init__(self, data: DecisionData, folds: Indices, judged: NDArray[np.bool_]) -> None:
        self._data = data
        self._folds = folds
        self._judged = judged

    def single(self, member: Crossed) -> Option:
        rows = self._rows([member])
        return self._option(member.candidate.name, [member], [1.0], rows, member.logs[rows])

    def blends(self, members: list[Crossed], name: str) -> list[Option]:
        """Return the blend of the candidates that add to it; no blend where only one does."""
        if len(members) < 2:
            return []
        rows = self._rows(members)
        weights = self._weights(members, rows)
        weighing = [
            member
            for member, weight in zip(members, weights, strict=True)
            if weight > _LEAST_WEIGHT
        ]
        if len(weighing) < 2:
            return []
        weights = self._weights(weighing, rows)
        logs = np.zeros((len(rows), self._data.n_outcomes))
        folds = self._folds[rows]
        for fold in np.unique(folds):
            inside = folds == fold
            fitted = self._weights(weighing, rows[~inside])
            logs[inside] = blend([member.logs[rows[inside]] for member in weighing], fitted)
        return [self._option(name, weighing, weights, rows, logs)]

    def stacked(self, option: Option, seed: int) -> Option:
        """Return an option with a booster on top, judged on the first fold alone where that has no gain."""
        data, rows = self._data, option.rows
        # Features by the blend as it will serve: its few weights remember no row.
        blended = blend([member.logs[rows] for member in option.members], option.weights)
        features = features_of(data, option.members, blended, rows)
        folds = self._folds[rows]
        targets, rewards = data.targets[rows], self._rewards(rows)
        logs = np.zeros_like(blended)
        first = folds == folds.min()
        for fold in np.unique(folds):
            inside, outside = folds == fold, folds != fold
            booster = fit_booster(
                features[outside],
                blended[outside],
                targets[outside],
                None if rewards is None else rewards[outside],
                seed,
            )
            logs[inside] = correct(booster, features[inside], blended[inside])
            if fold == folds.min():
                mine = row_losses(logs[first], targets[first]).mean()
                if mine >= row_losses(blended[first], targets[first]).mean():
                    at = np.flatnonzero(first)
                    losses = row_losses(logs[at], targets[at])
                    return Option(
                        STACKER, option.members, option.weights, rows[at], logs[at], losses
                    )
        made = self._option(STACKER, option.members, option.weights, rows, logs)
        made.booster = fit_booster(features, blended, targets, rewards, seed)
        return made

    def _rows(self, members: Sequence[Crossed]) -> Indices:
        chosen = self._judged
        if any(member.candidate.needs_base for member in members):
            chosen = chosen & self._data.is_scored
        return np.flatnonzero(chosen)

    def _weights(self, members: Sequence[Crossed], rows: Indices) -> list[float]:
        logs = [member.logs[rows] for member in members]
        return fit_weights(logs, self._data.targets[rows], self._rewards(rows))

    def _rewards(self, rows: Indices) -> Floats | None:
        return None if self._data.rewards is None else self._data.rewards[rows]

    def _option(
        self, name: str, members: list[Crossed], weights: list[float], rows: Indices, logs: Doubles
    ) -> Option:
        losses = cross_fitted(fit_temperature, logs, self._data.targets[rows], self._folds[rows])
        return Option(name, members, weights, rows, logs, losses)


def log_prior(data: DecisionData) -> Doubles:
    """Return the log share of each outcome, none of them impossible."""
    counts = data.targets.sum(axis=0, dtype=np.float64) + 1.0
    prior: Doubles = np.log(counts / counts.sum())
    return prior


def features_of(
    data: DecisionData, members: Sequence[Crossed], blended: Doubles, rows: Indices
) -> Any:
    """Return a booster's features of rows: see ``steelyard.scoring.head_specs.pair_features``."""
    reads_base = any(member.candidate.name in {"base", "markers"} for member in members)
    base = data.base[rows] if reads_base and data.base is not None else None
    lengths = np.array([len(data.contexts[i]) for i in rows], np.float64)
    logs = [member.logs[rows] for member in members]
    return pair_features(logs, blended, base, log_prior(data), lengths)
