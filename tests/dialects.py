"""A decision service for tests of the dialects: the hashing scorer, nothing stored or charged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from factories import make_service
from steelyard.decisions.validation import ValidRequest
from steelyard.scoring.hashing import HashingScorer
from steelyard.services.caller import Caller
from steelyard.services.decide import Prepared, unknown_model
from steelyard.services.reply import Reply
from steelyard.wire.decide import DecideResponse

CALLER = Caller("local", None, "full", "127.0.0.1")


@dataclass
class StubModels:
    names: tuple[str, ...] = ("hashing",)


@dataclass
class StubDecisions:
    """Scores at once; keeps what it was asked to run."""

    models: StubModels = field(default_factory=StubModels)
    ran: list[dict[str, Any]] = field(default_factory=list)

    def read(self, request: ValidRequest) -> Prepared:
        if request.model is not None and request.model not in self.models.names:
            raise unknown_model(request.model, self.models.names)
        return make_service().prepare_request(request)

    async def quote(self, caller: Caller, request: Prepared) -> int:
        assert caller is CALLER
        return request.input_tokens

    async def run(
        self,
        caller: Caller,
        *,
        request: Prepared,
        encode: Callable[[DecideResponse], Any],
        **how: Any,
    ) -> Reply:
        self.ran.append({"caller": caller, "request": request, **how})
        scored = HashingScorer().score([request.rendered])[0]
        answer = make_service().finish(request, scored)
        return Reply(msgspec.json.encode(encode(answer)))
