"""``client.named_decisions``, and one of them: ``client.decision("support_triage")``."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING

from steelyard.client import named_calls as calls
from steelyard.client.asynchronous.resource import AsyncJobResource
from steelyard.client.calls import async_method as _method
from steelyard.client.waiting import COMPARISONS
from steelyard.named.comparison_wire import NamedComparison
from steelyard.named.wire import AliasMove, NamedDecision, NamedVersion

if TYPE_CHECKING:
    from steelyard.client.answers import DecideAnswer
    from steelyard.client.asynchronous.client import AsyncClient
    from steelyard.client.decide_calls import Context


class AsyncNamedDecisions(AsyncJobResource[NamedComparison]):
    """Decisions that an account has under names: ``client.named_decisions``."""

    _kind = COMPARISONS
    _look = staticmethod(calls.comparison)
    compare = _method(calls.compare)
    comparison = _method(calls.comparison)
    cancel_comparison = _method(calls.cancel_comparison)
    create = _method(calls.create)
    get = _method(calls.get)
    change = _method(calls.change)
    archive = _method(calls.archive)
    add_version = _method(calls.add_version)
    version = _method(calls.version)
    move = _method(calls.move)
    roll_back = _method(calls.roll_back)
    share = _method(calls.share)
    grow = _method(calls.grow)
    growth = _method(calls.growth)
    turn_growth = _method(calls.turn_growth)
    stop_growing = _method(calls.stop_growing)

    def list(
        self, *, archived: bool | None = None, page_size: int = 200
    ) -> AsyncIterator[NamedDecision]:
        """Iterate over named decisions, newest first."""
        return self._iterate(
            lambda cursor: calls.page(archived=archived, limit=page_size, cursor=cursor)
        )

    def versions(self, name: str, *, page_size: int = 200) -> AsyncIterator[NamedVersion]:
        """Iterate over the versions of a named decision, newest first."""
        return self._iterate(
            lambda cursor: calls.version_page(name, limit=page_size, cursor=cursor)
        )

    def history(self, name: str, *, page_size: int = 200) -> AsyncIterator[AliasMove]:
        """Iterate over the moves of its aliases, newest first."""
        return self._iterate(
            lambda cursor: calls.history_page(name, limit=page_size, cursor=cursor)
        )

    def comparisons(
        self, name: str | None = None, *, page_size: int = 200
    ) -> AsyncIterator[NamedComparison]:
        """Iterate over comparisons of versions, newest first."""
        return self._iterate(
            lambda cursor: calls.comparison_page(decision=name, limit=page_size, cursor=cursor)
        )


class AsyncDecision:
    """One named decision: ``client.decision("support_triage")``.

    Parameters
    ----------
    reference : str
        ``name``, ``name@alias`` or ``name@7``; ``production`` without either.
    """

    def __init__(self, client: AsyncClient, reference: str) -> None:
        self._client = client
        #: What requests name.
        self.reference = reference

    async def decide(
        self,
        context: Context,
        *,
        store: bool | None = None,
        metadata: Mapping[str, str | float | bool | None] | None = None,
        idempotency_key: str | None = None,
    ) -> DecideAnswer:
        """Answer the decision about one context: ``POST /v1/decide``."""
        call = calls.decide(
            self.reference, context, store=store, metadata=metadata, idempotency_key=idempotency_key
        )
        return await self._client.send(call)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.reference!r})"
