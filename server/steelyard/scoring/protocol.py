"""The seam between decisions and engines: the interface of every scorer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from steelyard.decisions.rendering import RenderedRequest
from steelyard.decisions.statements import Reading


@dataclass(frozen=True, slots=True)
class Thought:
    """Text that a judge wrote since its first answer was not sure; it answered again with it in view."""

    text: str
    n_tokens: int
    #: The logits of the first answer.
    first: NDArray[Any]
    #: Milliseconds of processor time since that; ``None`` where the system does not say.
    cpu_ms: float | None = None


class RouteStepScore(NamedTuple):
    """A model of a route that was asked, its top probability, and the tokens that it wrote."""

    model: str
    p_top: float
    n_written: int = 0


@dataclass(frozen=True, slots=True)
class ScoredDecision:
    """A scorer's answer to one decision, in outcome order.

    ``logits`` are uncalibrated unless it says otherwise, similarity channel included, of shape
    (n_outcomes,); ``marker_vectors``, (n_outcomes, width), are those at the outcomes' marker
    tokens: features for heads. ``route`` has each model of a route, or step of a ladder, that was asked,
    with its top probability; the last one decided. ``is_unread`` says that the context is in a language
    that the model does not read, so that its answer is next to nothing.
    """

    #: float32, or float64 of a connected model.
    logits: NDArray[Any]
    marker_vectors: NDArray[np.float32]
    is_calibrated: bool = False
    route: tuple[RouteStepScore, ...] = ()
    is_unread: bool = False
    #: The share of training rows that lie further out than the context, and whether it is unlike
    #: them; where that was asked.
    novelty: tuple[float, bool] | None = None
    #: What a judge corrected it by without labels.
    calibration: str = ""
    #: Whether a fine-tuned model did not train on the decision as it is worded.
    is_untrained: bool = False
    #: Probability of the next token that a language model gave to the outcomes' labels together.
    mass: float | None = None
    #: The probability that the text does not say, of an engine that knows; and why an answer is to be
    #: trusted less, a sentence.
    unstated: float | None = None
    doubt: str = ""
    #: What a yes/no question was read as by a model that judges statements.
    reading: Reading | None = None
    #: A judge's text before this answer, and milliseconds of processor time of all of it; of judges
    #: that may think.
    thought: Thought | None = None
    cpu_ms: float | None = None


#: Where a pass runs.
Place = Literal["triton", "in-process", "none"]


@dataclass(frozen=True, slots=True)
class EngineStatus:
    """Where an engine's passes go, and how that went."""

    remote: str | None
    place: Place
    reason: str | None
    passes: Mapping[Place, int]
    faults: Mapping[str, int]
    n_changes: int


class Scorer(Protocol):
    """An engine that reads requests and gives logits.

    Every implementation is invariant: a decision's logits depend on
    its own context, question and outcomes alone, and permuting outcomes permutes them.
    Implementations are safe to call from several threads.
    """

    @property
    def name(self) -> str:
        """Name of the base model, such as ``steelyard-base-2``."""

    @property
    def engine(self) -> str:
        """Engine and precision, such as ``onnxruntime-int8``."""

    def score(self, requests: Sequence[RenderedRequest]) -> list[list[ScoredDecision]]:
        """Score every decision of every request, in the order given."""

    def close(self) -> None:
        """Release the engine; a later ``score`` raises ``EngineUnavailableError``."""
