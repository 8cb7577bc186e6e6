"""Thresholds of a route whose accuracy holds with a stated confidence, not on the fitted rows alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from msgspec import Struct

from steelyard.calibration.certify import last_passed, missing_rows, run_tests
from steelyard.serving.routed.fitting import frontier_thresholds
from steelyard.serving.routed.walking import Figures, Side, deciders, route_figures

#: Thresholds that are tested at most.
_MAX_CANDIDATES = 50
_FIRST = frozenset({0})


class CertifiedAccuracy(Struct, frozen=True, kw_only=True):
    """That a route is right at least so often, and with what confidence."""

    accuracy: float
    confidence: float


@dataclass(frozen=True, slots=True)
class RouteTest:
    """The cheapest thresholds that are certified, or the most accurate where none are."""

    thresholds: tuple[float, ...]
    certified: CertifiedAccuracy | None
    held_out: Figures
    #: Further evaluation rows that would certify these; None where no number would.
    missing_rows: int | None


def certify_route(
    training: Side, held_out: Side, *, accuracy: float, confidence: float
) -> RouteTest:
    """Return the cheapest thresholds that are right at least so often, by the held-out rows.

    Training rows choose which thresholds are tested and in which order, from the most accurate on to
    cheaper ones; held-out rows test them, and the first that fails ends it.
    """
    candidates = frontier_thresholds(training, _MAX_CANDIDATES)
    right = np.stack([model.right for model in held_out.models])
    everything = np.arange(len(held_out))
    wrong = np.stack(
        [1 - right[deciders(held_out, thresholds), everything] for thresholds in candidates], axis=1
    )
    tests = run_tests(wrong, np.ones_like(wrong), held_out.rows, error=1 - accuracy)
    passed = last_passed(tests, _FIRST, confidence=confidence)
    thresholds = candidates[passed or 0]
    return RouteTest(
        thresholds=thresholds,
        certified=None
        if passed is None
        else CertifiedAccuracy(accuracy=accuracy, confidence=confidence),
        held_out=route_figures(held_out, "route", thresholds),
        missing_rows=0
        if passed is not None
        else missing_rows(
            tests, _FIRST, n_rows=len(held_out.context_tokens), confidence=confidence
        ),
    )
