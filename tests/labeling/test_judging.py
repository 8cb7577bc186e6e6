"""The result of judgments on a row: votes, calibrated probabilities, agreement, errors."""

from __future__ import annotations

import pytest

from steelyard.labeling.judging import Judgment, verdict_of


def said(yes, *, is_calibrated=False, **further):
    found = {"refund": {"yes": yes, "no": 1 - yes}, **further}
    return Judgment(probabilities=found, is_calibrated=is_calibrated)


FAILED = Judgment(error="The teacher is away.")


def test_votes_count_one_each_and_a_failure_none():
    verdict = verdict_of([said(0.9), said(0.6), said(0.2), FAILED], "votes")
    assert verdict.targets["refund"] == pytest.approx({"yes": 2 / 3, "no": 1 / 3})
    assert verdict.is_valid
    assert not verdict.has_agreement


def test_calibrated_probabilities_count_and_others_vote():
    verdict = verdict_of([said(0.6, is_calibrated=True), said(0.9)], "probabilities")
    assert verdict.targets["refund"] == pytest.approx({"yes": 0.8, "no": 0.2})
    assert verdict_of([said(0.6, is_calibrated=True)], "votes").targets["refund"] == {"yes": 1.0}


def test_agreement_is_on_all_decisions_of_all_teachers():
    route = {"route": {"billing": 1.0, "support": 0.0}}
    other = {"route": {"billing": 0.4, "support": 0.6}}
    assert verdict_of([said(0.9, **route), said(0.6, **route)], "votes").has_agreement
    assert not verdict_of([said(0.9, **route), said(0.9, **other)], "votes").has_agreement
    assert not verdict_of([said(0.9, **route), FAILED], "votes").has_agreement


def test_without_an_answer_a_row_is_not_valid():
    verdict = verdict_of([FAILED, FAILED], "votes")
    assert (verdict.is_valid, verdict.has_agreement, verdict.targets) == (False, False, {})


def test_the_first_of_equals_is_the_label():
    assert said(0.5).labels == {"refund": "yes"}
