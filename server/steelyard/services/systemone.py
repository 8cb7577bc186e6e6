"""The SystemOne use cases: answer, estimate or translate a request in TypeSafe's shape.

What this dialect says and how it maps to decisions is ``steelyard.decisions.systemone``; scoring,
charging and replays are those of every decision (``steelyard.services.decisions``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from steelyard.decisions.systemone import Questionnaire, read_systemone, translate_systemone
from steelyard.services.bodies import read_body
from steelyard.services.caller import Caller
from steelyard.services.decisions import DecisionService, Read
from steelyard.services.models import ModelRegistry
from steelyard.services.operations import payload_sha256
from steelyard.services.reply import Reply
from steelyard.wire.decide import DecideResponse
from steelyard.wire.estimate import EstimateResponse
from steelyard.wire.json_values import decode_json
from steelyard.wire.systemone import SystemOneResponse, SystemOneUsage, TranslateResponse

#: The route under which idempotency keys are kept.
ROUTE = "POST /v1/systemone"


class SystemOneService:
    """Answers requests in TypeSafe's shape.

    Parameters
    ----------
    decisions : steelyard.services.decisions.DecisionService
        Scores, charges and stores.
    models : steelyard.services.models.ModelRegistry
        The models here: one that is named like the other service's is asked under its own name.
    """

    def __init__(self, decisions: DecisionService, models: ModelRegistry) -> None:
        self._decisions = decisions
        self._models = models

    async def answer(self, caller: Caller, payload: bytes, key: str | None) -> Reply:
        """Answer a request, as ``DecisionService.decide`` does; raises what it raises."""
        read, request, sha256 = await read_body(self._open, payload)

        def encode(answer: DecideResponse) -> SystemOneResponse:
            return _respond(read, answer)

        return await self._decisions.run(
            caller,
            route=ROUTE,
            request=request,
            payload_sha256=sha256,
            key=key,
            encode=encode,
        )

    async def estimate(self, caller: Caller, payload: bytes) -> EstimateResponse:
        """Say what a request would cost at most; nothing runs, and nothing is held."""
        _, request, _ = await read_body(self._open, payload)
        return await self._decisions.quote(caller, request)

    async def translate(self, payload: bytes) -> TranslateResponse:
        """Give the decide request that asks the same; raises what ``translate_systemone`` does."""
        return await read_body(translate_systemone, payload)

    def _open(self, payload: bytes) -> tuple[Questionnaire, Read, str]:
        value: Mapping[str, Any] = decode_json(payload)
        read = read_systemone(value)
        is_ours = read.model in self._models.names
        model = read.model if is_ours or not read.is_foreign_model else None
        return read, self._decisions.read(read.decide_request(model)), payload_sha256(value)


def _respond(read: Questionnaire, answer: DecideResponse) -> SystemOneResponse:
    probabilities = {
        name: list(result.probabilities.values()) for name, result in answer.decisions.items()
    }
    return SystemOneResponse(
        id=answer.id,
        model=answer.model,
        answers=read.answers(probabilities),
        usage=SystemOneUsage(
            input_tokens=answer.usage.input_tokens, output_tokens=len(read.questions)
        ),
        charge=answer.charge,
        timing_ms=answer.timing_ms,
        fallback=answer.fallback,
    )
