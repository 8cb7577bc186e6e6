"""The proof of a rewritten decision: one test on rows that the search never saw.

The original and the candidate are scored on the same evaluation rows. A bootstrap over contexts of
the differences of their log losses tells how large a gain chance alone makes: the noise band. A
gain beyond it is better with 95 % confidence, one-sided, so at most one search in twenty that
found nothing is called an improvement.

A model that knows nothing of a question loses less the less sure it is, and words can make it less
sure. So an improvement must also lose less, beyond the noise, than telling every row the shares of
the labels of the training rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from steelyard.prompt_tuning.wire import OutcomeRecall, TuningTest, Verdict
from steelyard.proof.differences import Bootstrap, Paired
from steelyard.proof.margins import noise_band

FloatArray = NDArray[np.float64]

#: One-sided confidence of a verdict, and its quantile of the normal distribution.
CONFIDENCE = 0.95
#: The least probability that a loss is taken of.
LEAST_PROBABILITY = 1e-9
#: Evaluation contexts below which nothing is called proven.
LEAST_CONTEXTS = 20


class WordingProof(msgspec.Struct, frozen=True, kw_only=True):
    """A verdict, why it is no better, and the numbers behind it."""

    verdict: Verdict
    reasons: list[str]
    noise_band: float
    test: TuningTest


def losses_of(probabilities: FloatArray, targets: FloatArray) -> FloatArray:
    """Return the log loss of each row."""
    losses: FloatArray = -(targets * np.log(np.clip(probabilities, LEAST_PROBABILITY, 1.0))).sum(-1)
    return losses


def noise_of(losses: FloatArray, contexts: NDArray[np.int64]) -> float:
    """Return how far chance alone moves the mean of some losses: half their 95 % interval."""
    low, high = np.quantile(_resampled(losses, contexts), [0.025, 0.975])
    return float(high - low) / 2


def prove(
    original: FloatArray,
    tuned: FloatArray,
    targets: FloatArray,
    contexts: NDArray[np.int64],
    label_shares: FloatArray,
    names: Sequence[str],
) -> WordingProof:
    """Return the verdict on a candidate from the probabilities of both wordings."""
    before, after = losses_of(original, targets), losses_of(tuned, targets)
    shares = losses_of(np.broadcast_to(label_shares, targets.shape), targets)
    gains, over_shares = before - after, shares - after
    gain, band = float(gains.mean()), _band(gains, contexts)
    n_contexts = len(np.unique(contexts))
    reasons = []
    if gain <= 0:
        verdict: Verdict = "no_improvement"
        reasons.append("On the evaluation rows it loses no less than the original.")
    else:
        if n_contexts < LEAST_CONTEXTS:
            reasons.append(
                f"{n_contexts} evaluation contexts prove nothing; {LEAST_CONTEXTS} are needed."
            )
        if gain <= band:
            reasons.append(
                f"Its gain of {gain:.4f} on the evaluation rows is within the noise of {band:.4f}."
            )
        if over_shares.mean() <= _band(over_shares, contexts):
            reasons.append(
                "It is not surely better than telling every row the shares of the labels; the "
                "model reads too little of this decision out of the context."
            )
        verdict = "inconclusive" if reasons else "improved"
    spread = np.quantile(_resampled(gains, contexts), [0.025, 0.975])
    test = TuningTest(
        rows=len(targets),
        contexts=n_contexts,
        original_loss=float(before.mean()),
        tuned_loss=float(after.mean()),
        gain=gain,
        gain_low=float(spread[0]),
        gain_high=float(spread[1]),
        label_shares_loss=float(shares.mean()),
        original_accuracy=_accuracy(original, targets),
        tuned_accuracy=_accuracy(tuned, targets),
        recall=_recall(original, tuned, targets, names),
    )
    return WordingProof(verdict=verdict, reasons=reasons, noise_band=band, test=test)


def shares_of(targets: FloatArray) -> FloatArray:
    """Return the share of each outcome among labels, none of them 0."""
    counts = targets.sum(axis=0) + 0.5
    shares: FloatArray = counts / counts.sum()
    return shares


def _band(gains: FloatArray, contexts: NDArray[np.int64]) -> float:
    """Return the gain that chance alone reaches in one search of twenty."""
    n_contexts = len(np.unique(contexts))
    return noise_band(float(gains.mean()), _resampled(gains, contexts), n_contexts, CONFIDENCE)


def _resampled(values: FloatArray, contexts: NDArray[np.int64]) -> FloatArray:
    values = values[:, None]
    return Paired(np.zeros_like(values), values, contexts).resampled(Bootstrap())


def _accuracy(probabilities: FloatArray, targets: FloatArray) -> float:
    return float((probabilities.argmax(-1) == targets.argmax(-1)).mean())


def _recall(
    original: FloatArray, tuned: FloatArray, targets: FloatArray, names: Sequence[str]
) -> dict[str, OutcomeRecall]:
    labels = targets.argmax(-1)
    outcome_recalls: dict[str, OutcomeRecall] = {}
    for place, name in enumerate(names):
        mine = labels == place
        shares = [
            float((probabilities[mine].argmax(-1) == place).mean()) if mine.any() else None
            for probabilities in (original, tuned)
        ]
        outcome_recalls[name] = OutcomeRecall(
            rows=int(mine.sum()), original=shares[0], tuned=shares[1]
        )
    return outcome_recalls
