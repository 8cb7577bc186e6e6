"""The use case of ``POST /v1/decisions``: answer a request in the shape of OpenAI and LiteLLM.

Scoring, charging and replays are those of every decision (``steelyard.serving.service``).
"""

from __future__ import annotations

import functools

import msgspec
from msgspec import Struct

from steelyard.decisions.named import NamedRequest
from steelyard.decisions.wire import DecideResponse
from steelyard.dialects.openai.mapping import Questionnaire, named_answers
from steelyard.dialects.openai.wire import (
    Answer,
    DecisionsResponse,
    DecisionsUsage,
    OutputTokensDetails,
)
from steelyard.operations.write import Write
from steelyard.serving.service import DecisionService


class OpenAIDecisionService:
    """Answers requests in OpenAI's shape."""

    def __init__(self, decisions: DecisionService) -> None:
        self._decisions = decisions

    async def answer(self, write: Write, read: Questionnaire | NamedRequest) -> Struct:
        """Answer a request, as ``DecisionService.decide`` does."""
        if isinstance(read, NamedRequest):
            return await self._decisions.decide(write, read, _respond_named)
        respond = functools.partial(_respond, read)
        return await self._decisions.decide(write, read.decide_request(), respond)


def _respond(read: Questionnaire, answer: DecideResponse) -> DecisionsResponse:
    probabilities = {
        place: list(result.probabilities.values()) for place, result in answer.decisions.items()
    }
    return _response(answer, read.answers(probabilities))


def _respond_named(answer: DecideResponse) -> DecisionsResponse:
    return msgspec.structs.replace(
        _response(answer, named_answers(answer.decisions)),
        decision=answer.decision,
        actions={name: result.action for name, result in answer.decisions.items()},
        rule=answer.rule,
    )


def _response(answer: DecideResponse, answers: list[Answer]) -> DecisionsResponse:
    input_tokens, n_written = answer.usage.input_tokens, answer.usage.n_written
    output_tokens = len(answers) + n_written
    return DecisionsResponse(
        id=answer.id,
        model=answer.model,
        answers=answers,
        usage=DecisionsUsage(
            input_tokens=input_tokens,
            output_tokens=output_tokens,
            total_tokens=input_tokens + output_tokens,
            output_tokens_details=OutputTokensDetails(reasoning_tokens=n_written),
        ),
        charge=answer.charge,
        timing_ms=answer.timing_ms,
        fallback=answer.fallback,
        warnings=answer.warnings,
    )
