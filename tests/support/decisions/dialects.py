"""A decision service for tests of the dialects: the hashing scorer, nothing stored or charged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from msgspec import Struct

from steelyard.caller import Caller
from steelyard.decisions.validation import ValidRequest
from steelyard.decisions.wire import DecideResponse
from steelyard.operations.write import Write
from steelyard.scoring.hashing import HashingScorer
from steelyard.serving.decide import Prepared
from steelyard.serving.refusals import unknown_model
from support.decisions.factories import make_service
from support.servers.calling import LOCAL


@dataclass
class StubModels:
    names: tuple[str, ...] = ("hashing",)


@dataclass
class StubDecisions:
    """Scores at once; keeps its requests."""

    models: StubModels = field(default_factory=StubModels)
    ran: list[dict[str, Any]] = field(default_factory=list)

    def _prepare(self, request: ValidRequest) -> Prepared:
        if request.model is not None and request.model not in self.models.names:
            raise unknown_model(request.model, self.models.names)
        return make_service(warns=True).prepare_request(request)

    async def estimate(self, caller: Caller, request: ValidRequest) -> int:
        assert caller is LOCAL
        return self._prepare(request).input_tokens

    async def decide(
        self, write: Write, request: ValidRequest, tell: Callable[[DecideResponse], Struct]
    ) -> Struct:
        prepared = self._prepare(request)
        self.ran.append({"write": write, "request": prepared})
        scored = HashingScorer().score([prepared.rendered])[0]
        return tell(make_service().finish(prepared, scored))
