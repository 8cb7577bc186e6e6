"""Thresholds of a route whose accuracy holds with a stated confidence, not on the fitted rows alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from steelyard.calibration.certify import last_passed, missing_rows, run_tests
from steelyard.serving.routed.figures import CertifiedAccuracy, Figures
from steelyard.serving.routed.fitting import frontier_thresholds
from steelyard.serving.routed.walking import Side, deciders, route_figures
from steelyard.wire.measures import interval_text

#: Thresholds that are tested at most.
_MAX_CANDIDATES = 50
_FIRST = frozenset({0})


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


def explain_failure(test: RouteTest, n_rows: int, accuracy: float, confidence: float) -> str:
    """Return why so many held-out rows do not certify an accuracy, and how many would."""
    measured = test.held_out.accuracy
    high = measured.value if measured.high is None else measured.high
    below = f", all of it below {accuracy:g}" if high < accuracy else ""
    ends = interval_text(measured.low, measured.high, form=".4g", to=" to ", is_bounded=False)
    remedy = (
        f"Answered alike, {test.missing_rows:,} more evaluation rows would certify it."
        if test.missing_rows is not None
        else "While that is so, no number of rows would; require less or name a better model."
    )
    return (
        f"{n_rows} evaluation rows cannot certify an accuracy of {accuracy:g} with a confidence of "
        f"{confidence:g}. The most accurate thresholds of the training rows are right in "
        f"{measured.value:.4g} ({ends}) of the held-out decisions{below}. {remedy}"
    )
