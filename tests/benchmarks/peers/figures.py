"""Figures of rounds: percentiles within a round, and medians of rounds with their range."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from peers.load import Answers

#: A round's figures, by the name that the results file has for them.
FIGURES = ("p50_ms", "p95_ms", "p99_ms", "decisions_s", "cpu_ms", "peak_mb")


def percentile(values: Sequence[float], share: float) -> float:
    """Return the least value that so large a share of the values is at most (nearest rank)."""
    ordered = sorted(values)
    return ordered[max(1, math.ceil(share * len(ordered))) - 1]


def round_figures(
    answers: Answers, questions: int, cpu_s: float, peak_mb: float
) -> dict[str, float | int | dict[str, int]]:
    """Return a round's figures; those of time are left out where nothing was answered."""
    n = len(answers.milliseconds)
    found: dict[str, Any] = {
        "n": n,
        "errors": dict(answers.errors),
        "seconds": round(answers.seconds, 4),
        "peak_mb": round(peak_mb, 1),
    }
    if n:
        found |= {
            "p50_ms": percentile(answers.milliseconds, 0.50),
            "p95_ms": percentile(answers.milliseconds, 0.95),
            "p99_ms": percentile(answers.milliseconds, 0.99),
            "decisions_s": n * questions / answers.seconds,
            "cpu_ms": cpu_s * 1e3 / (n * questions),
        }
    return found


def spread(rounds: Sequence[Mapping[str, Any]], name: str) -> tuple[float, float, float] | None:
    """Return the median of a figure over rounds, its least and its largest."""
    values = [one[name] for one in rounds if name in one]
    return (median(values), min(values), max(values)) if values else None
