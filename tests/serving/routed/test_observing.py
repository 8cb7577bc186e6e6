"""Answers of a route's models to rows, gathered into figures; a server stands behind."""

from __future__ import annotations

import msgspec
import pytest

from steelyard.calibration.temperature import TemperatureTable
from steelyard.decisions.wire import DecideResponse
from steelyard.errors import EngineUnavailableError
from steelyard.scoring.hashing import HashingScorer, WordCounter
from steelyard.serving.decide import DecideService
from steelyard.serving.routed.observing import observe
from support.datasets.dataset_rows import DECISIONS, REFUND, ROUTE, make_row_dict

ROW = make_row_dict(
    "Invoice 118 was paid twice, and nobody at all has answered the three letters about it.",
    decisions=list(DECISIONS),
    targets={"route": {"billing": 1.0}, "refund": {"yes": 0.75, "no": 0.25}},
)


@pytest.fixture
def ask():
    """Return a function that asks the test double under any name, and counts its requests."""
    decide = DecideService(
        model_name="any", temperatures=TemperatureTable(), tokenizer=WordCounter()
    )

    def ask(model, row) -> DecideResponse:
        ask.asked.append([one["id"] for one in row["decisions"]])
        prepared = decide.prepare({"context": row["context"], "decisions": row["decisions"]})
        if model in ask.broken:
            raise EngineUnavailableError(f"{model} is away.")
        [scored] = HashingScorer(model, name=model).score([prepared.rendered])
        return decide.finish(prepared, scored)

    ask.asked, ask.broken = [], set()
    return ask


def test_labelled_decisions_alone_are_asked_and_their_tokens_are_the_requests(ask):
    side, failures = observe(ask, [ROW, make_row_dict("x", targets={})], {"a": 1, "b": 10})
    assert ask.asked == [["route", "refund"]] * 2
    assert not failures
    assert len(side) == 2
    told = ask("a", {**ROW, "decisions": [ROUTE, REFUND]}).usage.input_tokens
    assert side.context_tokens.sum() + side.decision_tokens.sum() == pytest.approx(told)
    alone = [ask("a", {**ROW, "decisions": [one]}).usage.input_tokens for one in (ROUTE, REFUND)]
    for n in range(2):
        tokens = side.context_tokens[0] + side.decision_tokens[n]
        assert tokens == pytest.approx(alone[n], rel=0.2)


def test_figures_are_those_of_the_answers(ask):
    side, _ = observe(ask, [ROW], {"a": 1, "b": 10})
    for model in side.models:
        results = ask(model.model, {**ROW, "decisions": [ROUTE, REFUND]}).decisions
        for n, name in enumerate(("route", "refund")):
            result = msgspec.to_builtins(results[name])
            assert model.p_top[n] == result["p_top"]
            assert model.right[n] == (result["top"] == {"route": "billing", "refund": "yes"}[name])


def test_a_row_that_a_model_does_not_answer_counts_for_none(ask):
    ask.broken.add("b")
    side, failures = observe(ask, [ROW, ROW], {"a": 1, "b": 10})
    assert len(side) == 0
    assert failures == {"b is away.": 2}
