"""Sanic's signals, at no cost to a request that nobody listens to.

Sanic looks up a listener sixteen times in a request. Its own way to leave that out rewrites methods
of classes that all applications of a process share, which a second application does not survive.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

from sanic.signals import SignalRouter

_OF_A_REQUEST = "http."


class QuietSignals(SignalRouter):
    """Signals that know whether any of a request's has a listener."""

    def __init__(self) -> None:
        super().__init__()
        self._hears_requests = True

    def finalize(self, *args: Any, **kwargs: Any) -> None:
        """Take no more listeners, as Sanic does when it starts to serve."""
        super().finalize(*args, **kwargs)
        self._hears_requests = any(
            route.path.lstrip(self.delimiter).startswith(_OF_A_REQUEST) for route in self.routes
        )

    def reset(self) -> None:
        """Take listeners again."""
        self._hears_requests = True
        super().reset()  # type: ignore[no-untyped-call]

    async def dispatch(self, event: str | Enum, **options: Any) -> Any:
        """Dispatch a signal to its listeners; a request's own without any is dropped."""
        if not self._hears_requests and self.format_event(event).startswith(_OF_A_REQUEST):
            return None
        return await super().dispatch(event, **options)
