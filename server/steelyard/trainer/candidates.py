"""The candidates for a decision's head: the features, the fit and the result of each.

``embedding``  linear in the context's vector, beside its similarity to each outcome's text
``landmarks``  linear in how near the context's vector is to those of chosen contexts
``ngrams``     linear in hashed n-grams of words and characters
``base``       the base's logits at another temperature, with an offset for each outcome
``markers``    the base's logits, corrected by each outcome's marker vector
``evidence``   the evidence of a reader: how likely its statement is true, false, or not said
``parent``     the logits of the parent's head

Each is fitted on some rows and gives logits of others. One fitted on rewards gives the rewards
it expects instead, which serve as logits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.sparse import csr_array, hstack

from steelyard.scoring.head_specs import (
    BaseMember,
    EvidenceMember,
    Floats,
    Inputs,
    LinearMember,
    MarkerMember,
    Member,
    ParentMember,
    nearness,
)
from steelyard.scoring.heads import Head
from steelyard.trainer.crossfit import Indices
from steelyard.trainer.data import DecisionData, ngram_matrix
from steelyard.trainer.linear import SCALE_PENALTY, LinearFit, fit_linear, fit_ridge
from steelyard.trainer.markers import fit_markers

Tensors = dict[str, NDArray[Any]]

PARENT, WORDS = "parent", "ngrams"

#: Contexts that stand as landmarks, at most, and the least rows that are worth having them.
MOST_LANDMARKS = 1_000
LEAST_LANDMARK_ROWS = 300
#: How sharply nearness falls, where the mean squared distance from the mean is 1.
_SHARPNESS = 0.5
#: Rows, at most, for n-grams to be fitted in the space that they span; and the least part of it.
MOST_SPANNING_ROWS = 2_500
_LEAST_SPAN = 1e-6
#: The mean squared length of a text's static vector, where that of its n-grams is 1.
_STATIC_SHARE = 0.25
_MANY_ROWS_PENALTY = (0.1,)
#: What a similarity of 1 adds to a logit before anything is learned.
_SIMILARITY_SCALE = 10.0
#: Offsets for outcomes of the base are held back: it knows the outcomes by their words.
_BASE_BIAS_PENALTY = 1.0
#: Held near 1: with 20 rows a reader's evidence parts most of them, and a free scale makes it sure.
_EVIDENCE_SCALE_PENALTY = 4.0
_STEPS, _SPARSE_STEPS = 50, 40


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """A candidate fitted on some rows."""

    logits: Callable[[Indices], NDArray[Any]]  # of rows, (n, n_outcomes)
    export: Callable[[], tuple[Member, Tensors]]  # what serves: the member, and its tensors
    fit: Any = None  # where another fit may start
    head: Head | None = None  # the parent's, where this is it


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A way to answer a decision."""

    name: str
    fit: Callable[[Indices, float, Fitted | None], Fitted]
    #: To choose from, falling; none where there is nothing to choose.
    penalties: tuple[float, ...] = ()
    needs_base: bool = False
    needs_evidence: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """A matrix of features, and logits that are added to its linear part."""

    matrix: Any  # float32 (n, n_features), dense or sparse
    offsets: tuple[Floats, ...] = ()  # each (n, n_outcomes)
    first_scale: float = _SIMILARITY_SCALE  # of the offsets, before anything is learned
    scale_penalty: float = SCALE_PENALTY


def linear_candidate(
    name: str,
    data: DecisionData,
    block: Block,
    penalties: tuple[float, ...],
    export: Callable[[LinearFit], tuple[Member, Tensors]],
) -> Candidate:
    """Make a candidate that is linear in a block: in vectors, landmarks or n-grams."""

    def fit(rows: Indices, penalty: float, start: Fitted | None) -> Fitted:
        features = block.matrix[rows]
        if data.rewards is not None:
            ridge = fit_ridge(features, data.rewards[rows], penalty)
            scales = np.zeros(len(block.offsets), np.float32)
            fitted = LinearFit(ridge.weights, ridge.bias, scales)
        else:
            fitted = fit_linear(
                features,
                data.targets[rows],
                penalty,
                offsets=[offset[rows] for offset in block.offsets],
                first_scales=[block.first_scale] * len(block.offsets),
                scale_penalty=block.scale_penalty,
                start=None if start is None else start.fit,
                most_steps=_STEPS if isinstance(features, np.ndarray) else _SPARSE_STEPS,
            )

        def logits(rows: Indices) -> Floats:
            return fitted.logits(block.matrix[rows], [offset[rows] for offset in block.offsets])

        return Fitted(logits, lambda: export(fitted), fitted)

    return Candidate(name, fit, penalties)


def embedding_candidate(data: DecisionData) -> Candidate:
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

    return linear_candidate("embedding", data, block, (3.0, 1.0, 0.3, 0.1, 0.03), export)


def landmark_candidate(data: DecisionData, seed: int) -> Candidate:
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

    return linear_candidate("landmarks", data, block, (1.0, 0.1, 0.01), export)


def ngram_candidate(data: DecisionData) -> Candidate:
    """Make ``ngrams``; the data has n-grams.

    Where its columns have static vectors, a text's own is learned from too, and its similarity to that
    of each outcome's words: both are linear in n-grams, whose weights take them in.

    Where rows are fewer than n-grams by far, weights are fitted in the space that the rows span,
    which holds the best of them (the representer theorem), and is much smaller.
    """
    table, matrix, static = data.table, data.ngrams, data.static
    similarity: Floats | None = None
    offsets: tuple[Floats, ...] = ()
    if static is not None:
        vectors = matrix @ static
        squares = max(float((vectors**2).sum(axis=1).mean()), 1e-6)
        static = static * np.float32(np.sqrt(_STATIC_SHARE / squares))
        vectors = matrix @ static
        similarity = _unit(ngram_matrix(data.decision.outcomes, table) @ static).T
        offsets = (vectors @ similarity,)
        matrix = hstack([matrix, csr_array(vectors)], format="csr")
    back: Any = None
    penalties: tuple[float, ...] = (1.0, 0.3, 0.1, 0.03)
    if matrix.shape[0] <= MOST_SPANNING_ROWS:
        values, directions = eigh((matrix @ matrix.T).toarray().astype(np.float64))
        spanning = values > _LEAST_SPAN * values[-1]
        roots = np.sqrt(values[spanning])
        back = (directions[:, spanning] / roots).astype(np.float32)
        features: Any = (directions[:, spanning] * roots).astype(np.float32)
    else:
        # The long fits: one penalty, which serves where rows are many.
        features, penalties = matrix, _MANY_ROWS_PENALTY

    def export(fit: LinearFit) -> tuple[Member, Tensors]:
        weights = fit.weights if back is None else matrix.T @ (back @ fit.weights)
        if static is not None:
            of_vectors = weights[len(table) :] + fit.scales[0] * similarity
            weights = weights[: len(table)] + static @ of_vectors
        return LinearMember(name=WORDS, table=table.name), {
            "ngrams": weights.astype(np.float16),
            "bias": fit.bias,
        }

    block = Block(features, offsets, first_scale=1.0)
    return linear_candidate(WORDS, data, block, penalties, export)


def base_candidate(data: DecisionData) -> Candidate:
    """Make ``base``: a temperature and an offset for each outcome; the data has base logits."""
    base = _base_logits(data)

    def fit(rows: Indices, *_: object) -> Fitted:
        nothing = np.zeros((len(rows), 0), np.float32)
        fitted = fit_linear(
            nothing,
            data.targets[rows],
            0.0,
            offsets=[base[rows]],
            first_scales=[1.0],
            bias_penalty=_BASE_BIAS_PENALTY,
        )
        # A scale below 0 is noise of a small sample.
        scale = max(float(fitted.scales[0]), 1e-3)
        member = BaseMember(name="base", temperature=1 / scale)
        return Fitted(
            lambda rows: scale * base[rows] + fitted.bias, lambda: (member, {"bias": fitted.bias})
        )

    return Candidate("base", fit, needs_base=True)


def marker_candidate(data: DecisionData) -> Candidate:
    """Make ``markers``; the data has marker vectors."""
    markers, base = data.markers, _base_logits(data)
    assert markers is not None  # noqa: S101  # there is no such candidate without them

    def fit(rows: Indices, penalty: float, start: Fitted | None) -> Fitted:
        begun = None if start is None else start.fit
        fitted = fit_markers(markers[rows], base[rows], data.targets[rows], penalty, start=begun)
        tensors = {name: getattr(fitted, name) for name in ("centre", "shared", "own", "bias")}
        member = MarkerMember(name="markers", sharpness=fitted.sharpness)
        return Fitted(
            lambda rows: fitted.logits(markers[rows], base[rows]), lambda: (member, tensors), fitted
        )

    return Candidate("markers", fit, (100.0, 10.0, 1.0), needs_base=True)


def evidence_candidate(data: DecisionData) -> Candidate:
    """Make ``evidence``; the data has a reader's."""
    logs = data.evidence
    assert logs is not None  # noqa: S101  # there is no such candidate without it

    def export(fit: LinearFit) -> tuple[Member, Tensors]:
        member = EvidenceMember(name="evidence", scale=float(fit.scales[0]))
        return member, {"weights": fit.weights, "bias": fit.bias}

    block = Block(
        np.exp(logs), (logs[:, :-1],), first_scale=1.0, scale_penalty=_EVIDENCE_SCALE_PENALTY
    )
    made = linear_candidate("evidence", data, block, (1.0, 0.3, 0.1), export)
    return replace(made, needs_evidence=True)


def parent_candidate(data: DecisionData, head: Head) -> Candidate:
    """Make ``parent``: nothing is fitted."""
    logs = np.zeros(data.targets.shape, np.float32)
    if not head.needs_base:
        # Arrays as they are: of marker vectors, a copy would write out what nobody reads.
        inputs = Inputs(list(data.contexts), data.vectors, data.base, data.markers, data.evidence)
        logs[:] = head.evaluate(inputs)
    elif len(rows := np.flatnonzero(data.is_scored)):
        inputs = Inputs(
            [data.contexts[i] for i in rows],
            None if data.vectors is None else data.vectors[rows],
            None if data.base is None else data.base[rows],
            None if data.markers is None else data.markers[rows],
            None if data.evidence is None else data.evidence[rows],
        )
        logs[rows] = head.evaluate(inputs)

    def export() -> tuple[Member, Tensors]:
        tensors = {f"parent.{name}": tensor for name, tensor in head.tensors.items()}
        return ParentMember(name=PARENT, head=head.spec), tensors

    fitted = Fitted(lambda rows: logs[rows], export, head=head)
    return Candidate(
        PARENT,
        lambda *_: fitted,
        needs_base=head.needs_base,
        needs_evidence=head.needs_evidence,
    )


def list_candidates(data: DecisionData, parent: Head | None, seed: int) -> Sequence[Candidate]:
    """Return the candidates that the data allows, without a parent's head that needs other features."""
    candidates: list[Candidate] = []
    has_vectors = data.vectors is not None
    if has_vectors:
        candidates.append(embedding_candidate(data))
        if len(data.contexts) >= LEAST_LANDMARK_ROWS:
            candidates.append(landmark_candidate(data, seed))
    if data.ngrams.nnz:
        candidates.append(ngram_candidate(data))
    if data.is_scored.any():
        candidates.append(base_candidate(data))
        if data.markers is not None and data.rewards is None:
            candidates.append(marker_candidate(data))
    if data.evidence is not None:
        candidates.append(evidence_candidate(data))
    if parent is not None and _can_ask(parent, data):
        candidates.append(parent_candidate(data, parent))
    return candidates


def _can_ask(parent: Head, data: DecisionData) -> bool:
    return (
        (data.vectors is not None or not parent.needs_embedding)
        and (bool(data.is_scored.any()) or not parent.needs_base)
        and (data.markers is not None or not parent.needs_markers)
        and (data.evidence is not None or not parent.needs_evidence)
    )


def _vectors_of(data: DecisionData) -> tuple[Floats, Floats]:
    assert data.vectors is not None  # noqa: S101  # there is no such candidate without them
    assert data.outcome_vectors is not None  # noqa: S101
    return data.vectors, data.outcome_vectors


def _base_logits(data: DecisionData) -> Floats:
    assert data.base is not None  # noqa: S101  # there is no such candidate without them
    return data.base


def _unit(vectors: Floats) -> Floats:
    """Return vectors of length one; those of zeros as they are."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1), np.float32)


def _standard(vectors: Floats) -> tuple[Floats, float]:
    """Return the mean vector, and the root of the mean squared distance from it."""
    centre = vectors.mean(axis=0)
    spread = float(np.sqrt(((vectors - centre) ** 2).sum(axis=1).mean()))
    return centre, spread if spread > 1e-6 else 1.0
