"""The clients against a running server: every method answers with the wire's struct."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

import steelyard
from steelyard.accounts.wire import AccountSummary
from steelyard.client import AsyncClient, Client, DecideAnswer, LintAnswer
from steelyard.decisions.wire import EstimateResponse
from steelyard.dialects.openai.wire import DecisionsResponse
from steelyard.dialects.systemone.wire import SystemOneResponse, TranslateResponse
from steelyard.discovery.wire import Discovery
from steelyard.errors import (
    IdempotencyConflictError,
    InvalidRequestError,
    NotFoundError,
    PayloadTooLargeError,
)
from steelyard.ids import new_id
from steelyard.models.wire import Model, ModelList, ModelReadiness
from steelyard.serving.recipes_wire import RecipeList

pytestmark = pytest.mark.usefixtures("every_response_is_checked")

DECISIONS = [{"id": "refund", "kind": "binary", "question": "Money back?"}]
QUESTIONS = {"refund": {"type": "noul", "instructions": "Money back?"}}
PREDICATE = [{"type": "predicate", "name": "refund", "instructions": "Money back?"}]


@pytest.fixture(scope="module")
def server():
    with steelyard.embed(engine="hashing", body_bytes=100_000) as running:
        yield running


@pytest.fixture(params=[Client, AsyncClient])
def ask(request, server) -> Callable[..., Any]:
    """Call a method of either client and give its answer."""

    def ask_blocking(use: Callable[[Any], Any], **options: Any) -> Any:
        with steelyard.connect(server.url, **options) as client:
            return use(client)

    def ask_async(use: Callable[[Any], Any], **options: Any) -> Any:
        async def main() -> Any:
            async with steelyard.connect_async(server.url, **options) as client:
                return await use(client)

        return asyncio.run(main())

    return ask_blocking if request.param is Client else ask_async


@pytest.mark.parametrize(
    ("use", "kind"),
    [
        (lambda client: client.decide("Paid twice.", DECISIONS), DecideAnswer),
        (lambda client: client.estimate("Paid twice.", DECISIONS), EstimateResponse),
        (lambda client: client.playground("Paid twice.", DECISIONS), DecideAnswer),
        (lambda client: client.lint("Paid twice.", DECISIONS), LintAnswer),
        (lambda client: client.decisions("hashing", "Paid twice.", PREDICATE), DecisionsResponse),
        (lambda client: client.systemone("Paid twice.", QUESTIONS), SystemOneResponse),
        (lambda client: client.systemone_estimate("Paid twice.", QUESTIONS), EstimateResponse),
        (lambda client: client.translate("Paid twice.", QUESTIONS), TranslateResponse),
        (lambda client: client.models.list(), ModelList),
        (lambda client: client.models.get("hashing"), Model),
        (lambda client: client.models.ready("hashing"), ModelReadiness),
        (lambda client: client.capabilities(), Discovery),
        (lambda client: client.recipes(), RecipeList),
        (lambda client: client.account.get(), AccountSummary),
    ],
)
def test_every_method_answers(ask, use, kind):
    assert isinstance(ask(use), kind)


def test_health_and_readiness(ask):
    assert ask(lambda client: client.health()).version == steelyard.__version__
    assert "state" in ask(lambda client: client.ready()).parts


def test_a_stored_answer_takes_feedback(ask):
    answer = ask(lambda client: client.decide("Paid twice.", DECISIONS, store=True))
    assert answer.stored
    recorded = ask(lambda client: client.feedback(answer.id, {"refund": {"yes": 0.5, "no": 0.5}}))
    assert recorded.recorded == ["refund"]
    with pytest.raises(InvalidRequestError) as raised:
        ask(lambda client: client.feedback(answer.id, {"refund": "maybe"}))
    assert raised.value.details[0]["path"] == ["body", "outcomes", "refund"]
    assert raised.value.request_id.startswith("req_")


def test_one_key_is_one_answer(ask):
    key = new_id("test")

    def decide(context):
        return lambda client: client.decide(context, DECISIONS, idempotency_key=key)

    first = ask(decide("Paid twice."))
    assert ask(decide("Paid twice.")) == first
    with pytest.raises(IdempotencyConflictError):
        ask(decide("Paid once."))


def test_estimates_are_exact_decimals(ask):
    quote = ask(lambda client: client.estimate("Paid twice.", DECISIONS))
    assert Decimal(quote.maximum_charge_usd) == 0


def test_a_translated_request_can_be_decided(ask):
    translated = ask(lambda client: client.translate("Paid twice.", QUESTIONS))
    answer = ask(lambda client: client.decide(**translated.request))
    jev = ask(lambda client: client.systemone("Paid twice.", QUESTIONS))
    assert answer.decisions["refund"].probabilities["yes"] == jev.answers["refund"].noul


def test_compressed_bodies_are_read(ask):
    long = "Paid twice. " * 500
    plain = ask(lambda client: client.decide(long, DECISIONS))
    packed = ask(lambda client: client.decide(long, DECISIONS), gzip_over=100)
    assert packed.decisions == plain.decisions


def test_refusals_are_their_classes(ask):
    with pytest.raises(NotFoundError, match="nobody"):
        ask(lambda client: client.models.get("nobody"))
    with pytest.raises(PayloadTooLargeError):
        ask(lambda client: client.decide("x" * 200_000, DECISIONS))
    with pytest.raises(InvalidRequestError) as raised:
        ask(lambda client: client.decide("x", [{"id": "a", "question": "", "outcomes": ["b"]}]))
    paths = [detail["path"] for detail in raised.value.details]
    assert ["body", "decisions", 0, "outcomes"] in paths


def test_an_answer_shows_itself(ask):
    answer = ask(lambda client: client.decide("Paid twice.", DECISIONS))
    assert "<table" in answer._repr_html_()
    assert "Paid twice" not in answer._repr_html_()
