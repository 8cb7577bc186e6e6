"""The SystemOne use cases: answer, estimate or translate a request in TypeSafe's shape.

Scoring, charging and replays are those of every decision (``steelyard.serving.service``).
"""

from __future__ import annotations

import functools
from typing import Any

import msgspec
from msgspec import Struct

from steelyard.caller import LOCAL_ACCOUNT, Caller
from steelyard.decisions.named import NamedRequest
from steelyard.decisions.validation import ValidRequest
from steelyard.decisions.wire import DecideResponse, EstimateResponse
from steelyard.dialects.systemone.mapping import SystemOneQuestionnaire, named_answers
from steelyard.dialects.systemone.wire import Answer, SystemOneResponse, SystemOneUsage
from steelyard.operations.write import Write
from steelyard.serving.registry import ModelRegistry
from steelyard.serving.service import DecisionService


class SystemOneService:
    """Answers requests in TypeSafe's shape."""

    def __init__(self, decisions: DecisionService, models: ModelRegistry) -> None:
        self._decisions = decisions
        self._models = models

    async def answer(self, write: Write, read: SystemOneQuestionnaire | NamedRequest) -> Struct:
        """Answer a request, as ``DecisionService.decide`` does."""
        if isinstance(read, NamedRequest):
            return await self._decisions.decide(write, read, _respond_named)
        is_paid = write.caller.account_id != LOCAL_ACCOUNT
        asks_for_ours = is_paid or write.key is not None or not read.is_foreign_model
        respond = functools.partial(_respond, read, "" if asks_for_ours else "x_")
        return await self._decisions.decide(write, self._request(read), respond)

    async def estimate(
        self, caller: Caller, read: SystemOneQuestionnaire | NamedRequest
    ) -> EstimateResponse:
        """Return the highest price of a request; nothing runs, and nothing is held."""
        request = read if isinstance(read, NamedRequest) else self._request(read)
        return await self._decisions.estimate(caller, request)

    def _request(self, read: SystemOneQuestionnaire) -> ValidRequest:
        is_ours = read.model in self._models.names
        return read.decide_request(read.model if is_ours or not read.is_foreign_model else None)


def _respond(
    read: SystemOneQuestionnaire, prefix: str, answer: DecideResponse
) -> SystemOneResponse:
    probabilities = {
        name: list(result.probabilities.values()) for name, result in answer.decisions.items()
    }
    return _response(answer, read.answers(probabilities), prefix)


def _respond_named(answer: DecideResponse) -> SystemOneResponse:
    return msgspec.structs.replace(
        _response(answer, named_answers(answer.decisions), ""),
        decision=answer.decision,
        actions={name: result.action for name, result in answer.decisions.items()},
        rule=answer.rule,
    )


def _response(answer: DecideResponse, answers: dict[str, Answer], prefix: str) -> SystemOneResponse:
    ours: dict[str, Any] = {
        "id": answer.id,
        "charge": answer.charge,
        "timing_ms": answer.timing_ms,
        "fallback": answer.fallback,
        "warnings": answer.warnings,
    }
    return SystemOneResponse(
        model=answer.model,
        answers=answers,
        usage=SystemOneUsage(
            input_tokens=answer.usage.input_tokens,
            output_tokens=len(answers) + answer.usage.n_written,
        ),
        **{prefix + name: value for name, value in ours.items()},
    )
