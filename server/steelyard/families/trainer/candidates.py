"""The candidates for a decision's head: what each reads, how it is fitted, what it becomes.

``embedding``  linear in the context's vector, beside its similarity to each outcome's text
``landmarks``  linear in how near the context's vector is to those of chosen contexts
``ngrams``     linear in hashed n-grams of words and characters
``base``       the base's logits at another temperature, with an offset for each outcome
``markers``    the base's logits, corrected by each outcome's marker vector
``parent``     what the parent's head says

Each is fitted on some rows and gives logits of others. What is fitted on rewards gives the rewards
it expects instead, which serve as logits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from steelyard.families.trainer.crossfit import Indices
from steelyard.families.trainer.data import DecisionData
from steelyard.families.trainer.linear import LinearFit, fit_linear
from steelyard.families.trainer.markers import MarkerFit, fit_markers
from steelyard.families.trainer.rewards import fit_ridge
from steelyard.scoring.head_specs import (
    BaseMember,
    Floats,
    Inputs,
    LinearMember,
    MarkerMember,
    Member,
    ParentMember,
    nearness,
)
from steelyard.scoring.heads import Head

Tensors = dict[str, NDArray[Any]]

PARENT = "parent"

#: Contexts that stand as landmarks, at most, and the least rows that are worth having them.
MOST_LANDMARKS = 1_000
LEAST_LANDMARK_ROWS = 300
#: How sharply nearness falls, where the mean squared distance from the mean is 1.
_SHARPNESS = 0.5
#: Rows, at most, for n-grams to be fitted in the space that they span; and the least part of it.
MOST_SPANNING_ROWS = 2_500
_LEAST_SPAN = 1e-6
_MANY_ROWS_PENALTY = (0.1,)
#: What a similarity of 1 adds to a logit before anything is learned.
_SIMILARITY_SCALE = 10.0
#: Offsets for outcomes of the base are held back: it knows the outcomes by their words.
_BASE_BIAS_PENALTY = 1.0
_STEPS, _SPARSE_STEPS = 50, 40


class Fitted(Protocol):
    """A candidate fitted on some rows."""

    def logits(self, rows: Indices) -> NDArray[Any]:
        """Return logits of rows, of shape (n, n_outcomes)."""
        ...

    def export(self) -> tuple[Member, Tensors]:
        """Return what serves: the member, and its tensors."""
        ...


class Candidate(Protocol):
    """A way to answer a decision."""

    @property
    def name(self) -> str:
        """One of those in the module's table."""
        ...

    @property
    def penalties(self) -> tuple[float, ...]:
        """Penalties to choose from, falling; none where there is nothing to choose."""
        ...

    @property
    def needs_base(self) -> bool:
        """Whether it reads the base's scores."""
        ...

    def fit(self, rows: Indices, penalty: float, start: Any = None) -> Fitted:
        """Fit on rows, perhaps starting from another fit."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """A matrix of features with the way back to what is served."""

    matrix: Any  # float32 (n, n_features), dense or sparse
    offsets: tuple[Floats, ...] = ()  # each (n, n_outcomes)


class LinearCandidate:
    """What is linear in a block: of the vectors, of landmarks or of n-grams."""

    needs_base = False

    def __init__(
        self, name: str, data: DecisionData, block: Block, penalties: tuple[float, ...], export: Any
    ) -> None:
        self.name = name
        self.penalties = penalties
        self._data = data
        self._block = block
        self._export = export

    def fit(self, rows: Indices, penalty: float, start: Any = None) -> LinearFitted:
        """Fit on rows."""
        block = self._block
        features = block.matrix[rows]
        if self._data.rewards is not None:
            fit = fit_ridge(features, self._data.rewards[rows], penalty)
            fit = LinearFit(fit.weights, fit.bias, np.zeros(len(block.offsets), np.float32))
        else:
            fit = fit_linear(
                features,
                self._data.targets[rows],
                penalty,
                offsets=[offset[rows] for offset in block.offsets],
                first_scales=[_SIMILARITY_SCALE] * len(block.offsets),
                start=None if start is None else start.fit,
                most_steps=_STEPS if isinstance(features, np.ndarray) else _SPARSE_STEPS,
            )
        return LinearFitted(fit, block, self._export)


@dataclass(frozen=True, slots=True, eq=False)
class LinearFitted:
    """A fitted ``LinearCandidate``."""

    fit: LinearFit
    block: Block
    exported: Any

    def logits(self, rows: Indices) -> Floats:
        """Return logits of rows."""
        return self.fit.logits(
            self.block.matrix[rows], [offset[rows] for offset in self.block.offsets]
        )

    def export(self) -> tuple[Member, Tensors]:
        """Return what serves."""
        member, tensors = self.exported(self.fit)
        return member, tensors


def embedding_candidate(data: DecisionData) -> LinearCandidate:
    """Make ``embedding``; the data has vectors."""
    vectors, outcomes = _vectors_of(data)
    centre, scale = _standard(vectors)
    block = Block((vectors - centre) / scale, (vectors @ outcomes.T,))

    def export(fit: LinearFit) -> tuple[Member, Tensors]:
        # Similarity is linear in the vector too, so that outcomes' vectors are not needed to serve.
        weights = fit.weights / scale + fit.scales[0] * outcomes.T
        bias = fit.bias - (centre / scale) @ fit.weights
        return LinearMember(name="embedding", has_embedding=True), {
            "embedding": weights.astype(np.float32),
            "bias": bias.astype(np.float32),
        }

    return LinearCandidate("embedding", data, block, (3.0, 1.0, 0.3, 0.1, 0.03), export)


def landmark_candidate(data: DecisionData, seed: int) -> LinearCandidate:
    """Make ``landmarks``: a Nyström approximation of a Gaussian kernel; the data has vectors.

    Williams and Seeger, "Using the Nyström Method to Speed Up Kernel Machines", NIPS 2000.
    """
    vectors, outcomes = _vectors_of(data)
    _, scale = _standard(vectors)
    sharpness = _SHARPNESS / scale**2
    n_landmarks = min(MOST_LANDMARKS, len(vectors))
    chosen = np.sort(np.random.default_rng(seed).choice(len(vectors), n_landmarks, replace=False))
    # Rounded as they are stored, so that what serves is what was fitted.
    landmarks = np.unique(vectors[chosen].astype(np.float16), axis=0).astype(np.float32)
    values, directions = eigh(nearness(landmarks, landmarks, sharpness).astype(np.float64))
    whitening = (directions / np.sqrt(np.maximum(values, 1e-6 * values[-1]))).astype(np.float32)
    mapped = nearness(vectors, landmarks, sharpness) @ whitening
    centre, spread = _standard(mapped)
    block = Block((mapped - centre) / spread, (vectors @ outcomes.T,))

    def export(fit: LinearFit) -> tuple[Member, Tensors]:
        member = LinearMember(name="landmarks", has_embedding=True, sharpness=float(sharpness))
        return member, {
            "embedding": (fit.scales[0] * outcomes.T).astype(np.float32),
            "landmarks": landmarks.astype(np.float16),
            "nearness": (whitening @ fit.weights / spread).astype(np.float32),
            "bias": (fit.bias - (centre / spread) @ fit.weights).astype(np.float32),
        }

    return LinearCandidate("landmarks", data, block, (1.0, 0.1, 0.01), export)


def ngram_candidate(data: DecisionData) -> LinearCandidate:
    """Make ``ngrams``; the data has n-grams.

    Where rows are fewer than n-grams by far, weights are fitted in the space that the rows span,
    which holds the best of them (the representer theorem), and is much smaller.
    """
    table, matrix = data.table, data.ngrams
    back: Any = None
    penalties: tuple[float, ...] = (1.0, 0.3, 0.1, 0.03)
    if matrix.shape[0] <= MOST_SPANNING_ROWS:
        values, directions = eigh((matrix @ matrix.T).toarray().astype(np.float64))
        kept = values > _LEAST_SPAN * values[-1]
        roots = np.sqrt(values[kept])
        back = matrix.T @ (directions[:, kept] / roots).astype(np.float32)
        features: Any = (directions[:, kept] * roots).astype(np.float32)
    else:
        # The long fits: one penalty, which serves where rows are many.
        features, penalties = matrix, _MANY_ROWS_PENALTY

    def export(fit: LinearFit) -> tuple[Member, Tensors]:
        weights = fit.weights if back is None else back @ fit.weights
        return LinearMember(name="ngrams", table=table.name), {
            "ngrams": weights.astype(np.float16),
            "bias": fit.bias,
        }

    return LinearCandidate("ngrams", data, Block(features), penalties, export)


class BaseCandidate:
    """``base``: rows that the base did not read have no logits."""

    name = "base"
    needs_base = True
    penalties: tuple[float, ...] = ()

    def __init__(self, data: DecisionData) -> None:
        self._data = data

    def fit(self, rows: Indices, penalty: float, start: Any = None) -> BaseFitted:
        """Fit a temperature and an offset for each outcome."""
        del penalty, start
        logits = _base_logits(self._data)
        nothing = np.zeros((len(rows), 0), np.float32)
        fit = fit_linear(
            nothing,
            self._data.targets[rows],
            0.0,
            offsets=[logits[rows]],
            first_scales=[1.0],
            bias_penalty=_BASE_BIAS_PENALTY,
        )
        # Evidence turned upside down is noise of a small sample.
        return BaseFitted(max(float(fit.scales[0]), 1e-3), fit.bias, logits)


@dataclass(frozen=True, slots=True, eq=False)
class BaseFitted:
    """A fitted ``BaseCandidate``."""

    scale: float
    bias: Floats
    base: Floats

    def logits(self, rows: Indices) -> Floats:
        """Return logits of rows."""
        return self.scale * self.base[rows] + self.bias

    def export(self) -> tuple[Member, Tensors]:
        """Return what serves."""
        return BaseMember(name="base", temperature=1 / self.scale), {"bias": self.bias}


class MarkerCandidate:
    """``markers``: rows that the base did not read have none."""

    name = "markers"
    needs_base = True
    penalties = (100.0, 10.0, 1.0)

    def __init__(self, data: DecisionData) -> None:
        self._data = data

    def fit(self, rows: Indices, penalty: float, start: Any = None) -> MarkerFitted:
        """Fit on rows."""
        markers, logits = self._data.markers, _base_logits(self._data)
        assert markers is not None  # noqa: S101  # there is no such candidate without them
        fit = fit_markers(
            markers[rows],
            logits[rows],
            self._data.targets[rows],
            penalty,
            start=None if start is None else start.fit,
        )
        return MarkerFitted(fit, markers, logits)


@dataclass(frozen=True, slots=True, eq=False)
class MarkerFitted:
    """A fitted ``MarkerCandidate``."""

    fit: MarkerFit
    markers: Floats
    base: Floats

    def logits(self, rows: Indices) -> Floats:
        """Return logits of rows."""
        return self.fit.logits(self.markers[rows], self.base[rows])

    def export(self) -> tuple[Member, Tensors]:
        """Return what serves."""
        fit = self.fit
        return MarkerMember(name="markers", sharpness=fit.sharpness), {
            "centre": fit.centre, "shared": fit.shared, "own": fit.own, "bias": fit.bias,
        }  # fmt: skip


class ParentCandidate:
    """``parent``: nothing is fitted."""

    name = PARENT
    penalties: tuple[float, ...] = ()

    def __init__(self, data: DecisionData, head: Head) -> None:
        self.needs_base = head.needs_base
        self._head = head
        self._logs = np.zeros(data.targets.shape, np.float32)
        if not head.needs_base:
            # Arrays as they are: of marker vectors, a copy would write out what nobody reads.
            inputs = Inputs(list(data.contexts), data.vectors, data.base, data.markers)
            self._logs[:] = head.evaluate(inputs)
        elif len(rows := np.flatnonzero(data.is_scored)):
            inputs = Inputs(
                [data.contexts[i] for i in rows],
                None if data.vectors is None else data.vectors[rows],
                None if data.base is None else data.base[rows],
                None if data.markers is None else data.markers[rows],
            )
            self._logs[rows] = head.evaluate(inputs)

    def fit(self, rows: Indices, penalty: float, start: Any = None) -> ParentFitted:
        """Return the parent as it is."""
        del rows, penalty, start
        return ParentFitted(self._head, self._logs)


@dataclass(frozen=True, slots=True, eq=False)
class ParentFitted:
    """The parent's head on the rows."""

    head: Head
    logs: Floats

    def logits(self, rows: Indices) -> Floats:
        """Return log probabilities of rows."""
        return self.logs[rows]

    def export(self) -> tuple[Member, Tensors]:
        """Return what serves."""
        tensors = {f"parent.{name}": tensor for name, tensor in self.head.tensors.items()}
        return ParentMember(name=PARENT, head=self.head.spec), tensors


def list_candidates(data: DecisionData, parent: Head | None, seed: int) -> Sequence[Candidate]:
    """Return the candidates that the data allows.

    A parent's head that needs what the data has not is left out.
    """
    found: list[Candidate] = []
    has_vectors = data.vectors is not None
    if has_vectors:
        found.append(embedding_candidate(data))
        if len(data.contexts) >= LEAST_LANDMARK_ROWS:
            found.append(landmark_candidate(data, seed))
    if data.ngrams.shape[1]:
        found.append(ngram_candidate(data))
    if data.is_scored.any():
        found.append(BaseCandidate(data))
        if data.markers is not None and data.rewards is None:
            found.append(MarkerCandidate(data))
    if parent is not None and _can_ask(parent, data):
        found.append(ParentCandidate(data, parent))
    return found


def _can_ask(parent: Head, data: DecisionData) -> bool:
    return (
        (data.vectors is not None or not parent.needs_embedding)
        and (bool(data.is_scored.any()) or not parent.needs_base)
        and (data.markers is not None or not parent.needs_markers)
    )


def _vectors_of(data: DecisionData) -> tuple[Floats, Floats]:
    assert data.vectors is not None  # noqa: S101  # there is no such candidate without them
    assert data.outcome_vectors is not None  # noqa: S101
    return data.vectors, data.outcome_vectors


def _base_logits(data: DecisionData) -> Floats:
    assert data.base is not None  # noqa: S101  # there is no such candidate without them
    return data.base


def _standard(vectors: Floats) -> tuple[Floats, float]:
    """Return the mean vector, and the root of the mean squared distance from it."""
    centre = vectors.mean(axis=0)
    spread = float(np.sqrt(((vectors - centre) ** 2).sum(axis=1).mean()))
    return centre, spread if spread > 1e-6 else 1.0
