"""The parts of a head as its file lists them: members, their combination, calibration.

A member gives every outcome a logit. A head is one member, or a blend of several (a weighted sum of
their log probabilities), or a blend that a LightGBM booster corrects, outcome by outcome. The result is
calibrated, step by step.

Here: the parts and their computations, for one context or many. Not here: files
(``steelyard.scoring.heads``), how parts are fitted (``steelyard.trainer``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from msgspec import Meta, Struct
from numpy.typing import NDArray

from steelyard.scoring.ngrams import MANY, NgramTable
from steelyard.scoring.protocol import ScoredDecision

#: Log probabilities below this are read as this: a member's impossible outcomes stay comparable.
LEAST_LOG = -20.0

Floats = NDArray[np.float32]
Tensors = Mapping[str, NDArray[Any]]


class LinearMember(Struct, frozen=True, kw_only=True, tag="linear"):
    """Logits linear in the context's vector, in how near it is to landmarks, or in its n-grams.

    Tensors: ``bias`` (n_outcomes,); ``embedding`` (width, n_outcomes) where ``has_embedding``;
    ``landmarks`` (n_landmarks, width) and ``nearness`` (n_landmarks, n_outcomes) where ``sharpness``
    is given, ``exp(-sharpness * squared distance)`` being how near a landmark is; ``ngrams``
    (n_columns, n_outcomes) where ``table`` names the table of columns.
    """

    name: str
    has_embedding: bool = False
    sharpness: float | None = None
    table: str | None = None


class MarkerMember(Struct, frozen=True, kw_only=True, tag="marker"):
    """The base's logits, sharpened and corrected by each outcome's marker vector.

    Tensors: ``centre`` (width,), ``shared`` (width,), ``own`` (n_outcomes, width), ``bias``
    (n_outcomes,).
    """

    name: str
    sharpness: float


class BaseMember(Struct, frozen=True, kw_only=True, tag="base"):
    """The base's logits, divided by a temperature; an outcome's ``bias`` (n_outcomes,) is added."""

    name: str
    temperature: float


class EvidenceMember(Struct, frozen=True, kw_only=True, tag="evidence"):
    """A reader's evidence: its log probabilities times a scale, and linear in its probabilities.

    Tensors: ``weights`` (n_outcomes + 1, n_outcomes), the last row of "the text does not say"; ``bias``
    (n_outcomes,).
    """

    name: str
    scale: float


class ParentMember(Struct, frozen=True, kw_only=True, tag="parent"):
    """The head of the parent model; its tensors are under ``parent.``."""

    name: str
    head: HeadSpec


class Calibration(Struct, frozen=True, kw_only=True):
    """One step of calibration: a temperature, then a curve through which each probability goes."""

    temperature: Annotated[float, Meta(gt=0)]
    curve: Literal["none", "beta", "isotonic"] = "none"
    a: float = 1.0
    b: float = 1.0
    c: float = 0.0
    x: list[float] = []
    y: list[float] = []


Member = LinearMember | MarkerMember | BaseMember | EvidenceMember | ParentMember


class HeadSpec(Struct, frozen=True, kw_only=True):
    """A head."""

    fingerprint: str
    kind: str
    question: str
    outcomes: list[str]
    members: list[Member]
    weights: list[float]
    prior: list[float]
    booster: str | None
    calibration: list[Calibration]


@dataclass(frozen=True, slots=True)
class Inputs:
    """The inputs of heads for one context or many; each is None where no head needs it.

    ``embedding`` is float32 of shape (n, width); ``logits``, the base's, of shape (n, n_outcomes)
    and ``markers`` of shape (n, n_outcomes, width), both with outcomes in canonical order, as those of
    ``evidence`` are: a reader's log probabilities, (n, n_outcomes + 1), the last of "not said".
    """

    texts: Sequence[str]
    embedding: Floats | None = None
    logits: Floats | None = None
    markers: Floats | None = None
    evidence: Floats | None = None


def log_softmax(logits: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return log probabilities along the last axis."""
    shifted = logits.astype(np.float64) - logits.max(axis=-1, keepdims=True)
    logs: NDArray[np.float64] = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return logs


def nearness(vectors: Floats, landmarks: Floats, sharpness: float) -> Floats:
    """Return how near vectors are to landmarks, (n, n_landmarks): 1 where equal, 0 far away."""
    squares = (vectors**2).sum(axis=1)[:, None] + (landmarks**2).sum(axis=1)
    distances = squares - 2 * (vectors @ landmarks.T)
    near: Floats = np.exp(-sharpness * np.maximum(distances, 0)).astype(np.float32)
    return near


def linear_logits(
    member: LinearMember, tensors: Tensors, tables: Mapping[str, NgramTable], inputs: Inputs
) -> NDArray[np.float64]:
    """Return a linear member's logits, of shape (n, n_outcomes)."""
    logits = np.tile(tensors["bias"].astype(np.float64), (len(inputs.texts), 1))
    if member.has_embedding:
        assert inputs.embedding is not None  # noqa: S101  # the head names its inputs
        logits += inputs.embedding @ tensors["embedding"].astype(np.float32, copy=False)
    if member.sharpness is not None:
        assert inputs.embedding is not None  # noqa: S101
        landmarks = tensors["landmarks"].astype(np.float32, copy=False)
        near = nearness(inputs.embedding, landmarks, member.sharpness)
        logits += near @ tensors["nearness"].astype(np.float32, copy=False)
    if member.table is not None:
        weights, table = tensors["ngrams"], tables[member.table]
        texts = inputs.texts
        vectors = table.vectors(texts) if len(texts) >= MANY else map(table.vector, texts)
        for row, (places, values) in enumerate(vectors):
            logits[row] += values @ weights[places].astype(np.float32)
    return logits


def marker_logits(member: MarkerMember, tensors: Tensors, inputs: Inputs) -> NDArray[np.float64]:
    """Return a marker member's logits, of shape (n, n_outcomes)."""
    assert inputs.logits is not None  # noqa: S101
    assert inputs.markers is not None  # noqa: S101
    centred = inputs.markers - tensors["centre"]
    weights = tensors["shared"] + tensors["own"]
    corrected = np.einsum("nkw,kw->nk", centred, weights, dtype=np.float64) + tensors["bias"]
    logits: NDArray[np.float64] = member.sharpness * inputs.logits.astype(np.float64) + corrected
    return logits


def evidence_of(scored: ScoredDecision) -> Floats:
    """Return a reader's log probabilities of a decision's outcomes, in their order, and of "not said"."""
    unstated = scored.unstated or 0.0
    stated = log_softmax(scored.logits) + np.log1p(-unstated)
    logs = np.append(stated, np.log(unstated) if unstated else LEAST_LOG)
    return np.asarray(np.maximum(logs, LEAST_LOG), np.float32)


def evidence_logits(
    member: EvidenceMember, tensors: Tensors, inputs: Inputs
) -> NDArray[np.float64]:
    """Return an evidence member's logits, of shape (n, n_outcomes)."""
    assert inputs.evidence is not None  # noqa: S101
    logs = inputs.evidence.astype(np.float64)
    weighed = np.einsum("ne,ek->nk", np.exp(logs), tensors["weights"], dtype=np.float64)
    logits: NDArray[np.float64] = member.scale * logs[:, :-1] + weighed + tensors["bias"]
    return logits


def calibrate(logs: NDArray[np.float64], steps: Sequence[Calibration]) -> NDArray[np.float64]:
    """Return calibrated log probabilities, (n, n_outcomes), from logits or log probabilities.

    No curve changes the order of outcomes; the isotonic one is kept from making ties.
    """
    for step in steps:
        logs = log_softmax(logs / step.temperature)
        if step.curve == "beta":
            least = np.maximum(logs, 2 * LEAST_LOG)
            rest = np.log(-np.expm1(np.minimum(least, -1e-12)))
            odds = step.a * least - step.b * rest + step.c
            logs = log_softmax(-np.logaddexp(0, -odds))
        elif step.curve == "isotonic":
            p = np.exp(logs)
            mapped = np.interp(p, step.x, step.y)
            # A share of the uncurved probability keeps outcomes apart that a step would join.
            logs = log_softmax(np.log(0.98 * mapped + 0.02 * p + 1e-9))
    return logs


def pair_features(
    logs: Sequence[NDArray[np.float64]],
    blended: NDArray[np.float64],
    base_logits: Floats | None,
    prior: NDArray[np.float64],
    lengths: NDArray[np.float64],
) -> Floats:
    """Return a booster's features of each context and outcome, (n, n_outcomes, n_features).

    Each member's log probability, and how far it is from that member's largest; the same of the
    blend; the base's logit less its mean; the prior (log share in training); the logarithm of the
    length in characters.
    """
    n, k = blended.shape
    columns = []
    for probabilities in (*logs, blended):
        clipped = np.maximum(probabilities, LEAST_LOG)
        columns += [clipped, clipped - clipped.max(axis=1, keepdims=True)]
    if base_logits is not None:
        columns.append(base_logits - base_logits.mean(axis=1, keepdims=True))
    columns.append(np.broadcast_to(prior, (n, k)))
    columns.append(np.broadcast_to(np.log1p(lengths)[:, None], (n, k)))
    return np.stack(columns, axis=-1).astype(np.float32)
