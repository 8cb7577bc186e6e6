"""Laws that every answer of the packed scorer keeps, whatever is asked.

On the shipped model where there is one, else on one with random weights: the laws are of the
layout and the graph, and hold for any weights.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from steelyard.decisions.rendering import RenderedDecision, RenderedRequest
from steelyard.scoring.assets import MANIFEST, BaseModel
from steelyard.scoring.packing import CONTEXT_LENGTH, OUTCOME_LENGTH, QUESTION_LENGTH
from steelyard.scoring.shipped import BASE
from steelyard.serving.decide import DecideService
from support.decisions.factories import decided
from support.decisions.strategies import requests
from support.models.random_model import WORDS

#: What two ways of computing one probability may differ by.
TOLERANCES = {"onnxruntime-float32": 1e-5, "onnxruntime-int8": 1e-3}
#: A pass over a model of the real size takes a while.
fewer = settings(
    max_examples=1, deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)


@pytest.fixture(scope="module", params=list(TOLERANCES))
def model(request: pytest.FixtureRequest, load: Callable[[str, str], BaseModel]) -> BaseModel:
    source = "shipped" if (BASE / MANIFEST).exists() else "random"
    return load(source, request.param)


@st.composite
def texts(draw: st.DrawFn, limit: int) -> str:
    """Words, of a number that may pass the limit where a text starts another window."""
    n_words = draw(
        st.integers(1, 12)
        | st.integers(1, 12)
        | st.integers(limit - 3, limit + 3)
        | st.integers(limit, 2 * limit + 40)
    )
    first, step = draw(st.integers(0, len(WORDS) - 1)), draw(st.sampled_from([1, 3, 7, 9]))
    words = [WORDS[(first + step * i) % len(WORDS)] for i in range(n_words)]
    if draw(st.booleans()):
        words[draw(st.integers(0, n_words - 1))] = draw(st.text(min_size=1, max_size=8))
    return " ".join(words)


@st.composite
def decisions(draw: st.DrawFn, kinds: Sequence[str] = ("single", "binary", "ordinal")):
    kind = draw(st.sampled_from(kinds))
    if kind == "binary":
        outcomes = ["yes", "no"]
    else:
        outcomes = draw(st.lists(texts(OUTCOME_LENGTH), min_size=2, max_size=4, unique=True))
        # Long lists of short outcomes too.
        outcomes += [f"label {index}" for index in range(draw(st.sampled_from([0, 0, 0, 30])))]
    return RenderedDecision(kind, draw(texts(QUESTION_LENGTH)), tuple(outcomes))


rendered = st.builds(
    RenderedRequest,
    texts(CONTEXT_LENGTH),
    st.lists(decisions(), min_size=1, max_size=3).map(tuple),
)


def probabilities(model: BaseModel, *asked: RenderedRequest) -> list[list[np.ndarray]]:
    """Return every decision's calibrated probabilities, all requests scored in one call."""
    return [
        [
            model.temperatures.probabilities(score.logits, decision.kind)
            for decision, score in zip(request.decisions, scored, strict=True)
        ]
        for request, scored in zip(asked, model.scorer.score(asked), strict=True)
    ]


def assert_same(
    model: BaseModel, found: Sequence[np.ndarray], expected: Sequence[np.ndarray]
) -> None:
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert one.shape == other.shape
        assert abs(one - other).max() <= TOLERANCES[model.scorer.engine]


@fewer
@given(rendered)
def test_every_decision_has_a_distribution(model: BaseModel, request_: RenderedRequest) -> None:
    (found,) = probabilities(model, request_)
    for decision, values in zip(request_.decisions, found, strict=True):
        assert values.shape == (len(decision.outcomes),)
        assert np.isfinite(values).all()
        assert (values >= 0).all()
        assert values.sum() == pytest.approx(1, abs=1e-6)


@fewer
@given(texts(CONTEXT_LENGTH), decisions(kinds=["single"]), st.data())
def test_permuting_outcomes_permutes_probabilities(
    model: BaseModel, context: str, decision: RenderedDecision, data
) -> None:
    order = data.draw(st.permutations(range(len(decision.outcomes))))
    shuffled = replace(decision, outcomes=tuple(decision.outcomes[i] for i in order))
    one, other = (
        probabilities(model, RenderedRequest(context, (asked,)))[0][0]
        for asked in (decision, shuffled)
    )
    assert_same(model, [other], [one[order]])


@fewer
@given(rendered, st.data())
def test_other_decisions_change_nothing(model: BaseModel, request_: RenderedRequest, data) -> None:
    (together,) = probabilities(model, request_)
    order = data.draw(st.permutations(range(len(together))))
    asked = [request_.decisions[i] for i in order]
    added = data.draw(decisions())
    place = data.draw(st.integers(0, len(asked)))
    asked.insert(place, added)
    (others,) = probabilities(model, replace(request_, decisions=tuple(asked)))
    del others[place]
    assert_same(model, others, [together[i] for i in order])
    for index, decision in enumerate(request_.decisions):
        (alone,) = probabilities(model, replace(request_, decisions=(decision,)))
        assert_same(model, alone, [together[index]])


@fewer
@given(st.lists(rendered, min_size=2, max_size=3))
def test_the_rest_of_a_batch_changes_nothing(
    model: BaseModel, asked: list[RenderedRequest]
) -> None:
    for request_, batched in zip(asked, probabilities(model, *asked), strict=True):
        assert_same(model, batched, probabilities(model, request_)[0])


@fewer
@given(st.lists(rendered, min_size=1, max_size=2), st.integers(5, 30))
def test_many_short_neighbours_change_nothing(
    model: BaseModel, asked: list[RenderedRequest], n_neighbours: int
) -> None:
    neighbours = [
        RenderedRequest(f"order {index}", (RenderedDecision("binary", "Paid?", ("yes", "no")),))
        for index in range(n_neighbours)
    ]
    batched = probabilities(model, *neighbours, *asked, *neighbours)
    for index, request_ in enumerate(asked, start=n_neighbours):
        assert_same(model, batched[index], probabilities(model, request_)[0])
    assert_same(model, batched[0], batched[n_neighbours + len(asked)])


@fewer
@given(texts(CONTEXT_LENGTH), texts(QUESTION_LENGTH), texts(OUTCOME_LENGTH), st.integers(2, 5))
def test_equal_texts_are_equally_probable(
    model: BaseModel, context: str, question: str, outcome: str, n_outcomes: int
) -> None:
    decision = RenderedDecision("single", question, (outcome,) * n_outcomes)
    ((values,),) = probabilities(model, RenderedRequest(context, (decision,)))
    assert_same(model, [values], [np.full(n_outcomes, 1 / n_outcomes)])


@fewer
@given(requests())
def test_answers_are_distributions_and_independence_changes_nothing(model: BaseModel, request_):
    service = DecideService(
        model_name=model.scorer.name, temperatures=model.temperatures, tokenizer=model.tokenizer
    )
    answers = [
        decided(
            service,
            {**request_, "independent": independent},
            lambda asked: model.scorer.score([asked])[0],
        ).decisions
        for independent in (True, False)
    ]
    assert list(answers[0]) == [decision["id"] for decision in request_["decisions"]]
    assert answers[0] == answers[1]
    for result in answers[0].values():
        values = result.probabilities.values()
        assert all(0 <= value <= 1 for value in values)
        assert math.fsum(values) == pytest.approx(1, abs=1e-6)
        assert result.top == next(
            name for name, value in result.probabilities.items() if value == max(values)
        )
