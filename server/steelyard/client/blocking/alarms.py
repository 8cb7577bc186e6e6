"""``client.alarms``: what is watched of an account's models, and what is no longer as it was."""

# Made of asynchronous/alarms.py by scripts/blocking_client.py: edit that one.

from __future__ import annotations

from collections.abc import Iterator, Sequence

from steelyard.alarms.wire import Alarm
from steelyard.client import alarm_calls as calls
from steelyard.client.blocking.resource import Resource
from steelyard.client.calls import blocking_method as _method


class Alarms(Resource):
    """What is watched of an account's models, and what is no longer as it was: ``client.alarms``."""

    get = _method(calls.get)
    acknowledge = _method(calls.acknowledge)
    rules = _method(calls.rules)
    set_rule = _method(calls.set_rule)

    def list(
        self,
        *,
        state: str | Sequence[str] | None = None,
        model: str | None = None,
        page_size: int = 200,
    ) -> Iterator[Alarm]:
        """Iterate over alarms, newest first."""
        return self._iterate(
            lambda cursor: calls.page(state=state, model=model, limit=page_size, cursor=cursor)
        )
