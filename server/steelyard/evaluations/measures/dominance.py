"""Which of several models are not dominated: the best quality at their price and latency."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PricedModel:
    """A model's quality and price; a smaller ``loss`` is better, ``None`` is unknown."""

    loss: float
    price: float | None
    latency: float | None


def dominated(candidates: Sequence[PricedModel]) -> list[bool]:
    """Return for each whether another is nowhere worse than it and somewhere better.

    Latency is compared where both have one. One without a price is compared with none. Equal ones
    do not dominate each other.
    """
    return [any(_dominates(other, candidate) for other in candidates) for candidate in candidates]


def _dominates(candidate: PricedModel, other: PricedModel) -> bool:
    if candidate.price is None or other.price is None:
        return False
    pairs = [(candidate.loss, other.loss), (candidate.price, other.price)]
    if candidate.latency is not None and other.latency is not None:
        pairs.append((candidate.latency, other.latency))
    return all(ours <= theirs for ours, theirs in pairs) and any(
        ours < theirs for ours, theirs in pairs
    )
