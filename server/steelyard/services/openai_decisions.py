"""The use case of ``POST /v1/decisions``: answer a request in the shape of OpenAI and LiteLLM.

What this dialect says and how it maps to decisions is ``steelyard.decisions.openai``; scoring,
charging and replays are those of every decision (``steelyard.services.decisions``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from steelyard.decisions.openai import Questionnaire, read_decisions
from steelyard.services.bodies import read_body
from steelyard.services.caller import Caller
from steelyard.services.decisions import DecisionService, Read
from steelyard.services.operations import payload_sha256
from steelyard.services.reply import Reply
from steelyard.wire.decide import DecideResponse
from steelyard.wire.json_values import decode_json
from steelyard.wire.openai_decisions import DecisionsResponse, DecisionsUsage

#: The route under which idempotency keys are kept.
ROUTE = "POST /v1/decisions"


class OpenAIDecisionService:
    """Answers requests in OpenAI's shape.

    Parameters
    ----------
    decisions : steelyard.services.decisions.DecisionService
        Scores, charges and stores.
    """

    def __init__(self, decisions: DecisionService) -> None:
        self._decisions = decisions

    async def answer(self, caller: Caller, payload: bytes, key: str | None) -> Reply:
        """Answer a request, as ``DecisionService.decide`` does; raises what it raises."""
        read, request, sha256 = await read_body(self._open, payload)

        def encode(answer: DecideResponse) -> DecisionsResponse:
            return _respond(read, answer)

        return await self._decisions.run(
            caller,
            route=ROUTE,
            request=request,
            payload_sha256=sha256,
            key=key,
            encode=encode,
        )

    def _open(self, payload: bytes) -> tuple[Questionnaire, Read, str]:
        value: Mapping[str, Any] = decode_json(payload)
        read = read_decisions(value)
        return read, self._decisions.read(read.decide_request()), payload_sha256(value)


def _respond(read: Questionnaire, answer: DecideResponse) -> DecisionsResponse:
    probabilities = {
        place: list(result.probabilities.values()) for place, result in answer.decisions.items()
    }
    input_tokens, output_tokens = answer.usage.input_tokens, len(read.questions)
    return DecisionsResponse(
        id=answer.id,
        model=answer.model,
        answers=read.answers(probabilities),
        usage=DecisionsUsage(
            input_tokens=input_tokens,
            output_tokens=output_tokens,
            total_tokens=input_tokens + output_tokens,
        ),
        charge=answer.charge,
        timing_ms=answer.timing_ms,
        fallback=answer.fallback,
    )
