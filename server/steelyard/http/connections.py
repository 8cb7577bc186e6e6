"""A connection of which the head of a request must arrive in time, however it trickles in."""

from __future__ import annotations

from sanic.http import Stage
from sanic.server import HttpProtocol


class Connection(HttpProtocol):
    """Sanic's connection, with the bound on a request's head counted from its first byte.

    Sanic counts ``REQUEST_TIMEOUT`` from the last byte, so that a client which sends one now and
    then would hold its connection for days.
    """

    def data_received(self, data: bytes) -> None:
        """Take what arrived; in the middle of a head it earns no more time."""
        counted_from = self._time
        super().data_received(data)
        http = self.http  # not there before the connection's task has begun
        if http is not None and http.stage is Stage.REQUEST:
            self._time = counted_from
