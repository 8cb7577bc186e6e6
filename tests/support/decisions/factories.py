"""Valid requests to start a test from, and the services that answer them without a model."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from steelyard.calibration.temperature import TemperatureTable
from steelyard.decisions.kinds import Decision, Outcomes
from steelyard.decisions.policy import Policy
from steelyard.decisions.wire import DecideResponse
from steelyard.errors import InvalidRequestError
from steelyard.scoring.hashing import HashingScorer, WordCounter
from steelyard.serving.decide import DecideLimits, DecideService


def make_decision_dict(**fields: Any) -> dict[str, Any]:
    """A valid single decision; a field given as ``...`` is left out."""
    decision: dict[str, Any] = {
        "id": "route",
        "question": "Who should own this?",
        "outcomes": {"billing": "Money already taken", "support": None, "other": None},
    }
    decision.update(fields)
    return {name: value for name, value in decision.items() if value is not ...}


def make_request_dict(*decisions: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """A valid request; without decisions, with one of every kind."""
    if not decisions:
        decisions = (
            make_decision_dict(),
            {"id": "refund", "kind": "binary", "question": "Does the writer want money back?"},
            {
                "id": "urgency",
                "kind": "ordinal",
                "question": "How urgent is it?",
                "outcomes": ["1", "3", "5"],
                "rubric": ["can wait", "this week", None],
            },
        )
    request = {
        "context": "Invoice 118 was paid twice.",
        "decisions": [copy.deepcopy(decision) for decision in decisions],
        **fields,
    }
    return {name: value for name, value in request.items() if value is not ...}


def make_decision(
    names: tuple[str, ...] = ("a", "b", "c"),
    *,
    kind: Any = "single",
    policy: Policy | None = None,
) -> Decision:
    """A valid decision as the domain knows it."""
    return Decision("d", kind, "Which?", Outcomes(names, (None,) * len(names)), policy)


def make_service(
    *,
    temperatures: TemperatureTable | None = None,
    max_input_tokens: int = 65_536,
    warns: bool = False,
) -> DecideService:
    """A service whose model is named ``hashing``."""
    return DecideService(
        model_name="hashing",
        temperatures=temperatures or TemperatureTable(),
        tokenizer=WordCounter(),
        limits=DecideLimits(max_input_tokens=max_input_tokens),
        warns=warns,
    )


def decided(service: DecideService, payload: Any, score: Callable[..., Any]) -> DecideResponse:
    """The answer to a request as a callable scores it."""
    prepared = service.prepare(payload)
    return service.finish(prepared, score(prepared.rendered))


def answer(payload: Any, *, service: DecideService | None = None) -> DecideResponse:
    """Answer a request with the hashing scorer."""
    scorer = HashingScorer()
    return decided(service or make_service(), payload, lambda rendered: scorer.score([rendered])[0])


def violations_of(payload: Any) -> dict[tuple[Any, ...], str]:
    """Return path to type of everything that a request is refused for; empty when it is valid."""
    try:
        make_service().prepare(payload)
    except InvalidRequestError as error:
        return {violation.path: violation.type for violation in error.violations}
    return {}
