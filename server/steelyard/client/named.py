"""``client.named_decisions``, and one of them: ``client.decision("support_triage")``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from steelyard.client import named_calls as calls
from steelyard.client.methods import HasCalls, Mode, answers, method, pages
from steelyard.client.resource import JobResource, Resource
from steelyard.named.comparison_wire import COMPARISON, NamedComparison

if TYPE_CHECKING:
    from steelyard.client.answers import DecideAnswer
    from steelyard.client.decide_calls import Context


class NamedDecisionResource(JobResource[Mode, NamedComparison]):
    """Decisions that an account has under names: ``client.named_decisions``."""

    noun = COMPARISON
    look = staticmethod(calls.comparison)
    comparisons = pages(calls.comparison_page)
    compare = method(calls.compare)
    estimate_comparison = method(calls.estimate_comparison)
    comparison = method(calls.comparison)
    cancel_comparison = method(calls.cancel_comparison)
    list = pages(calls.page)
    create = method(calls.create)
    get = method(calls.get)
    change = method(calls.change)
    archive = method(calls.archive)
    add_version = method(calls.add_version)
    versions = pages(calls.version_page)
    version = method(calls.version)
    move = method(calls.move)
    roll_back = method(calls.roll_back)
    history = pages(calls.history_page)
    share = method(calls.share)
    grow = method(calls.grow)
    growth = method(calls.growth)
    turn_growth = method(calls.turn_growth)
    stop_growing = method(calls.stop_growing)


class DecisionResource(Resource[Mode]):
    """One named decision: ``client.decision("support_triage")``.

    Its reference is ``name``, ``name@alias`` or ``name@7``; ``production`` without either.
    """

    def __init__(self, client: HasCalls[Mode], reference: str) -> None:
        super().__init__(client)
        #: What requests name.
        self.reference = reference

    @answers
    async def decide(
        self,
        context: Context,
        *,
        fields: Mapping[str, Any] | None = None,
        store: bool | Literal["features"] | None = None,
        metadata: Mapping[str, str | float | bool | None] | None = None,
        idempotency_key: str | None = None,
    ) -> DecideAnswer:
        """Answer the decision about one context: ``POST /v1/decide``."""
        call = calls.decide(
            self.reference,
            context,
            fields=fields,
            store=store,
            metadata=metadata,
            idempotency_key=idempotency_key,
        )
        return await self.answer_to(call)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.reference!r})"
