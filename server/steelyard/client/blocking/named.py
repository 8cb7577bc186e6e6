"""``client.named_decisions``, and one of them: ``client.decision("support_triage")``."""

# Made of asynchronous/named.py by scripts/blocking_client.py: edit that one.

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from steelyard.client import named_calls as calls
from steelyard.client.blocking.resource import JobResource, pages
from steelyard.client.calls import blocking_method as _method
from steelyard.named.comparison_wire import COMPARISON, NamedComparison

if TYPE_CHECKING:
    from steelyard.client.answers import DecideAnswer
    from steelyard.client.blocking.client import Client
    from steelyard.client.decide_calls import Context


class NamedDecisions(JobResource[NamedComparison]):
    """Decisions that an account has under names: ``client.named_decisions``."""

    noun = COMPARISON
    look = staticmethod(calls.comparison)
    comparisons = pages(calls.comparison_page)
    compare = _method(calls.compare)
    comparison = _method(calls.comparison)
    cancel_comparison = _method(calls.cancel_comparison)
    list = pages(calls.page)
    create = _method(calls.create)
    get = _method(calls.get)
    change = _method(calls.change)
    archive = _method(calls.archive)
    add_version = _method(calls.add_version)
    versions = pages(calls.version_page)
    version = _method(calls.version)
    move = _method(calls.move)
    roll_back = _method(calls.roll_back)
    history = pages(calls.history_page)
    share = _method(calls.share)
    grow = _method(calls.grow)
    growth = _method(calls.growth)
    turn_growth = _method(calls.turn_growth)
    stop_growing = _method(calls.stop_growing)


class Decision:
    """One named decision: ``client.decision("support_triage")``.

    Parameters
    ----------
    reference : str
        ``name``, ``name@alias`` or ``name@7``; ``production`` without either.
    """

    def __init__(self, client: Client, reference: str) -> None:
        self._client = client
        #: What requests name.
        self.reference = reference

    def decide(
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
        return self._client.send(call)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.reference!r})"
