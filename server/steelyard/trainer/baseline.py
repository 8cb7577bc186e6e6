"""The text baseline that every fine-tune is shown beside: TF-IDF and logistic regression.

Of words, pairs of words and runs of characters: as strong as such a baseline is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline, make_union

from steelyard.scoring.head_specs import log_softmax
from steelyard.scoring.heads import canonical_order, fingerprint
from steelyard.trainer.calibrating import fit_temperature
from steelyard.trainer.data import tells_apart
from steelyard.trainer.rows import TuningRow

Doubles = NDArray[np.float64]

#: Inverse of the penalty: little of it, since a temperature follows.
_STRENGTH = 30.0
_STEPS = 300
_WORD = r"(?u)\w+"
#: Lengths of runs of characters.
_RUNS = (2, 4)
#: Texts from which on a word must be in two of them.
_MANY_TEXTS = 1_000
#: One text in so many is held out for the temperature, and no fewer are.
_HELD_OUT, _LEAST_HELD_OUT = 5, 10
#: Share of the prior that is spread evenly: an outcome never seen is not impossible.
_EVEN = 0.01


@dataclass(frozen=True, slots=True, eq=False)
class _Fitted:
    """One decision's model; ``classes`` are the outcomes that it gives probabilities of."""

    model: Pipeline | None
    classes: NDArray[np.intp]
    prior: Doubles
    temperature: float = 1.0


class TextBaseline:
    """A model of each decision by its words; see ``fit_baseline``."""

    def __init__(self, fitted: dict[str, _Fitted]) -> None:
        self._fitted = fitted

    def probabilities(self, rows: Sequence[TuningRow]) -> list[Doubles]:
        """Return the probabilities of every row's outcomes, in the row's order of outcomes.

        They are equal for a decision without training rows.
        """
        by_row: list[Doubles | None] = [None] * len(rows)
        places: dict[str, list[int]] = defaultdict(list)
        for i, row in enumerate(rows):
            places[fingerprint(row.decision)].append(i)
        for name, members in places.items():
            fitted = self._fitted.get(name)
            n_outcomes = len(rows[members[0]].decision.outcomes)
            shares = np.full((len(members), n_outcomes), 1 / n_outcomes)
            if fitted is not None:
                shares = _predict(fitted, [rows[i].context for i in members])
            for i, share in zip(members, shares, strict=True):
                in_order = np.empty(n_outcomes)
                in_order[canonical_order(rows[i].decision)] = share
                by_row[i] = in_order
        return [probabilities for probabilities in by_row if probabilities is not None]


def fit_baseline(
    rows: Sequence[TuningRow], *, method: Literal["sft", "reward"], seed: int = 0
) -> TextBaseline:
    """Fit the baseline of every decision."""
    places: dict[str, list[int]] = defaultdict(list)
    for i, row in enumerate(rows):
        places[fingerprint(row.decision)].append(i)
    fitted = {}
    for name, asking in sorted(places.items()):
        members = asking
        if method == "reward":
            # A row whose outcomes all earn the same teaches nothing, here or in the heads.
            members = [i for i in asking if tells_apart(rows[i].labels)] or asking
        targets = np.array([_target(rows[i], method) for i in members])
        contexts = [rows[i].context for i in members]
        # Equal contexts are held out together, whatever the order of the rows.
        draws = [int(rows[i].context_sha256[:8], 16) for i in members]
        is_validation = np.array([(draw + seed) % _HELD_OUT == 0 for draw in draws])
        fitted[name] = _fit_tempered(contexts, targets, is_validation)
    return TextBaseline(fitted)


def _target(row: TuningRow, method: str) -> Doubles:
    labels = row.labels[canonical_order(row.decision)]
    if method == "reward":
        labels = (labels == labels.max()).astype(np.float64)
    share: Doubles = labels / labels.sum()
    return share


def _fit_tempered(
    contexts: Sequence[str], targets: Doubles, is_validation: NDArray[np.bool_]
) -> _Fitted:
    """Fit on all rows; fit the temperature on held-out rows, by a fit on the others."""
    fitted = _fit(contexts, targets)
    fitted_on, validation = (
        np.flatnonzero(~is_validation).tolist(),
        np.flatnonzero(is_validation).tolist(),
    )
    if len(validation) < _LEAST_HELD_OUT or not fitted_on:
        return fitted
    part = _fit([contexts[i] for i in fitted_on], targets[fitted_on])
    shares = _predict(part, [contexts[i] for i in validation])
    tempered = fit_temperature(np.log(shares), targets[validation].astype(np.float32))
    return replace(fitted, temperature=tempered.temperature)


def _fit(contexts: Sequence[str], targets: Doubles) -> _Fitted:
    n_outcomes = targets.shape[1]
    prior = (1 - _EVEN) * targets.mean(axis=0) + _EVEN / n_outcomes
    # A soft target is a row for each outcome that has a share, weighing that share.
    rows, labels = np.nonzero(targets)
    classes = np.unique(labels)
    texts = [contexts[i] for i in rows.tolist()]
    if len(classes) < 2 or not any(any(ch.isalnum() for ch in text) for text in contexts):
        return _Fitted(None, classes, prior)
    weights = targets[rows, labels]
    if len(texts) >= _MANY_TEXTS:
        # Texts that share no word, such as codes, leave no word that two of them have.
        with suppress(ValueError):
            return _Fitted(_fit_model(texts, labels, weights, least=2), classes, prior)
    return _Fitted(_fit_model(texts, labels, weights, least=1), classes, prior)


def _fit_model(
    texts: list[str], labels: NDArray[np.intp], weights: Doubles, *, least: int
) -> Pipeline:
    """Fit on n-grams that at least so many texts have."""
    model: Pipeline = make_pipeline(
        make_union(
            TfidfVectorizer(
                sublinear_tf=True, ngram_range=(1, 2), token_pattern=_WORD, min_df=least
            ),
            TfidfVectorizer(sublinear_tf=True, ngram_range=_RUNS, analyzer="char_wb", min_df=least),
        ),
        LogisticRegression(
            C=_STRENGTH,
            max_iter=_STEPS,
            tol=1e-5,
            solver="newton-cg",  # a tenth of the default's steps, and no threads that wait on each other
        ),
    )
    return model.fit(texts, labels, logisticregression__sample_weight=weights)


def _predict(fitted: _Fitted, contexts: Sequence[str]) -> Doubles:
    if fitted.model is None:
        return np.tile(fitted.prior, (len(contexts), 1))
    shares = np.tile(_EVEN * fitted.prior, (len(contexts), 1))
    shares[:, fitted.classes] += (1 - _EVEN) * fitted.model.predict_proba(contexts)
    # The temperature takes the place of the penalty that is not there.
    total: Doubles = np.exp(log_softmax(np.log(shares) / fitted.temperature))
    return total
