"""How a family would learn from more rows, and whether it would pass; pure.

Small linear heads on vectors of the contexts stand for the family: the family's gain from adapting
comes on top. They are fitted on an eighth, a quarter, a half and all of the training rows, and a curve
``floor + slope * n ** -power`` through their errors says how far off enough rows are.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from steelyard.growth.wire import LearningEstimate
from steelyard.proof.margins import level_of
from steelyard.wire.measures import Measure

FloatArray = NDArray[np.float64]

#: The chance of passing from which a family is trained.
ENOUGH = 0.5
#: Rows of each side that the heads take at most; the newest of them.
MAX_ROWS = 4_000
#: Held-out decisions and training rows below which there is no curve.
MIN_EVALUATION, MIN_ROWS = 30, 40

_FRACTIONS = (0.125, 0.25, 0.5, 1.0)
_POWERS = (0.25, 0.35, 0.5, 0.7, 1.0)
_RIDGES = (0.1, 1.0, 10.0)
_DRAWS, _REPEATS = 200, 3
_WORDS = 512
#: Rows beyond those there are that are looked ahead to, as a multiple.
_GROW, _MOST = 1.1, 50.0
_NORMAL = NormalDist()


@dataclass(frozen=True, slots=True)
class Labelled:
    """Vectors of contexts, shape (n, width), and the place of the right outcome of each, shape (n,)."""

    vectors: FloatArray
    labels: NDArray[np.intp]


def word_vectors(texts: Sequence[str]) -> FloatArray:
    """Return a unit vector of the words of each text, (n_texts, 512)."""
    vectors = np.zeros((len(texts), _WORDS))
    for vector, text in zip(vectors, texts, strict=True):
        for word in text.lower().split():
            hashed = zlib.crc32(word.encode("utf-8", "surrogatepass"))
            vector[hashed % _WORDS] += 1.0 if hashed & 1024 else -1.0
    norms = np.sqrt((vectors**2).sum(axis=1, keepdims=True))
    unit: FloatArray = vectors / np.maximum(norms, 1e-9)
    return unit


def fit_and_miss(training: Labelled, evaluation: Labelled) -> NDArray[np.bool_]:
    """Return which held-out rows a linear head of the training rows gets wrong."""
    n_outcomes = int(max(training.labels.max(), evaluation.labels.max())) + 1
    targets = np.eye(n_outcomes)[training.labels]
    mean = training.vectors.mean(axis=0)
    inputs, base = training.vectors - mean, targets.mean(axis=0)
    # Of two forms the smaller: as many equations as rows, or as numbers of a vector.
    is_wide = inputs.shape[1] > len(inputs)
    gram = inputs @ inputs.T if is_wide else inputs.T @ inputs
    values, vectors = np.linalg.eigh(gram)
    values = np.maximum(values, 0)
    best: tuple[float, FloatArray] | None = None
    for ridge in _RIDGES:
        if is_wide:
            inverse = vectors / (values + ridge) @ vectors.T
            dual = inverse @ (targets - base)
            weights = inputs.T @ dual
            # Each row as if it had been left out: the error by which the ridge is chosen.
            left_out = targets - dual / np.diag(inverse)[:, None]
        else:
            inverse = vectors / (values + ridge) @ vectors.T
            weights = inverse @ inputs.T @ (targets - base)
            hat = np.einsum("ij,jk,ik->i", inputs, inverse, inputs)
            residual = targets - base - inputs @ weights
            left_out = targets - residual / np.maximum(1 - hat, 1e-6)[:, None]
        missed = float((left_out.argmax(axis=1) != training.labels).mean())
        if best is None or missed < best[0]:
            best = missed, weights
    assert best is not None  # noqa: S101  there are ridges
    scores = (evaluation.vectors - mean) @ best[1] + base
    wrong: NDArray[np.bool_] = scores.argmax(axis=1) != evaluation.labels
    return wrong


def fit_curve(sizes: FloatArray, errors: FloatArray) -> tuple[float, float, float]:
    """Return floor, slope and power of the curve through some errors, none below 0."""
    best = (float("inf"), (float(errors.mean()), 0.0, 1.0))
    for power in _POWERS:
        falling = sizes**-power
        centred = falling - falling.mean()
        slope = max(0.0, float((centred * errors).sum() / max((centred**2).sum(), 1e-12)))
        floor = float(errors.mean() - slope * falling.mean())
        if floor < 0:
            floor, slope = 0.0, float((falling * errors).sum() / (falling**2).sum())
        loss = float(((floor + slope * falling - errors) ** 2).sum())
        if loss < best[0]:
            best = loss, (floor, slope, power)
    return best[1]


def estimate(
    sides: Mapping[str, tuple[Labelled, Labelled]],
    model_error: Measure,
    *,
    margin: float,
    n_comparisons: int,
    seed: int = 0,
) -> LearningEstimate:
    """Return whether a family trained now would pass, and how many rows are missing.

    ``sides`` has training and held-out rows of each decision, some of each; ``model_error`` is that of
    the model that answers now. A family is drawn for every resample of the held-out rows; its pairs with
    the other model are taken as independent, which makes the estimate rather too careful.
    """
    rng = np.random.default_rng(seed)
    n = max(len(training.labels) for training, _ in sides.values())
    m = sum(len(evaluation.labels) for _, evaluation in sides.values())
    sizes = np.array([max(8, round(n * fraction)) for fraction in _FRACTIONS], dtype=np.float64)
    misses = np.stack([_misses(sides, fraction, rng) for fraction in _FRACTIONS])
    # Of those drawn, and the last as they were.
    draws = rng.integers(0, m, size=(_DRAWS, m))
    curves = [fit_curve(sizes, misses[:, draw].mean(axis=1)) for draw in draws]
    curve = fit_curve(sizes, misses.mean(axis=1))
    spread = np.sqrt(model_error.value * (1 - model_error.value) / max(model_error.n, 1))
    before = np.clip(rng.normal(model_error.value, spread, _DRAWS), 0.001, 0.999)

    def chance(n_rows: float) -> float:
        errors = np.array([_at(each, n_rows) for each in curves])
        return _passing(errors, before, m * n_rows / n, margin, n_comparisons)

    now, more = chance(n), 0 if chance(n) >= ENOUGH else None
    n_rows = float(n)
    while more is None and n_rows < n * _MOST:
        n_rows *= _GROW
        if chance(n_rows) >= ENOUGH:
            more = round(n_rows) - n
    return LearningEstimate(
        rows=n,
        evaluation=m,
        curve=[
            (int(size), round(float(error), 4))
            for size, error in zip(sizes, misses.mean(axis=1), strict=True)
        ],
        error=round(_at(curve, n), 4),
        model_error=model_error,
        chance=round(now, 3),
        more_rows=more,
    )


def _misses(
    sides: Mapping[str, tuple[Labelled, Labelled]], fraction: float, rng: np.random.Generator
) -> FloatArray:
    """Return how often each held-out row of all decisions is missed at a fraction of the rows."""
    columns = []
    for training, evaluation in sides.values():
        size = max(8, round(len(training.labels) * fraction))
        repeats = 1 if fraction == 1.0 else _REPEATS
        total = np.zeros(len(evaluation.labels))
        for _ in range(repeats):
            chosen = rng.permutation(len(training.labels))[:size]
            part = Labelled(training.vectors[chosen], training.labels[chosen])
            total += fit_and_miss(part, evaluation)
        columns.append(total / repeats)
    return np.concatenate(columns)


def _at(curve: tuple[float, float, float], n: float) -> float:
    floor, slope, power = curve
    return float(min(floor + slope * n**-power, 1.0))


def _passing(
    family: FloatArray, before: FloatArray, m: float, margin: float, n_comparisons: int
) -> float:
    """Return the mean chance that an interval over so many held-out rows stays above the margin."""
    gain = before - family
    spread = np.sqrt((before * (1 - family) + family * (1 - before) - gain**2) / m)
    reach = level_of(n_comparisons)
    steps = (gain + margin) / np.maximum(spread, 1e-9) - reach
    return float(np.mean([_NORMAL.cdf(float(step)) for step in steps]))
