from __future__ import annotations

import numpy as np
import pytest

from steelyard.decisions.rendering import RenderedDecision, RenderedRequest
from steelyard.errors import EngineUnavailableError
from steelyard.scoring.hashing import HashingScorer, WordCounter
from steelyard.scoring.protocol import Scorer


def make_request(
    context: str = "c", question: str = "q", outcomes: tuple[str, ...] = ("a", "b", "d")
) -> RenderedRequest:
    return RenderedRequest(context, (RenderedDecision("single", question, outcomes),))


def logits(request: RenderedRequest, **options: object) -> np.ndarray:
    return HashingScorer(**options).score([request])[0][0].logits


def test_logits_are_the_same_on_every_machine():
    expected = [1.539051, -0.302004, -0.886577]
    assert logits(make_request()) == pytest.approx(expected, abs=1e-4)


def test_everything_that_is_read_matters_and_nothing_else_does():
    base = logits(make_request())
    for other in (
        make_request(context="C"),
        make_request(question="Q"),
        make_request(context="cq", question=""),
    ):
        assert not np.array_equal(logits(other), base)
    assert not np.array_equal(logits(make_request(), key="other"), base)
    assert logits(make_request(outcomes=("d", "x", "a")))[[2, 0]].tolist() == base[[0, 2]].tolist()


def test_a_batch_scores_each_request_as_alone():
    requests = [make_request(context=str(index)) for index in range(5)]
    together = HashingScorer().score(requests)
    for request, scored in zip(requests, together, strict=True):
        assert np.array_equal(scored[0].logits, logits(request))


def test_shapes_and_types():
    scorer: Scorer = HashingScorer(width=3, scale=0.5)
    scored = scorer.score([make_request()])[0][0]
    assert scored.marker_vectors.shape == (3, 3)
    assert {scored.logits.dtype.name, scored.marker_vectors.dtype.name} == {"float32"}
    assert (abs(scored.logits) <= 0.5).all()
    assert (scorer.name, scorer.engine) == ("hashing", "hashing")


def test_a_closed_scorer_is_unavailable():
    scorer = HashingScorer()
    scorer.close()
    with pytest.raises(EngineUnavailableError):
        scorer.score([make_request()])


@pytest.mark.parametrize("width", [0, 16])
def test_widths_outside_the_bounds_are_refused(width):
    with pytest.raises(ValueError, match="1 to 15"):
        HashingScorer(width=width)


def test_words_and_marks_are_counted():
    assert [WordCounter().count(text) for text in ("", "a", "a b, c!", "über\n{1}")] == [0, 1, 5, 4]
