"""How the two clients hold their connections."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import httpx

from steelyard.client.options import ClientOptions

#: Seconds that an idle connection is kept; servers keep theirs longer.
KEEP_ALIVE_S = 180.0


def http_arguments(options: ClientOptions) -> dict[str, Any]:
    """Give the arguments of httpx's clients.

    No redirect is followed, and a server on this machine is called without the proxies of the
    environment.
    """
    return {
        "follow_redirects": False,
        "limits": httpx.Limits(max_connections=None, keepalive_expiry=KEEP_ALIVE_S),
        "trust_env": not options.is_loopback,
    }


class BoundedStream(httpx.SyncByteStream):
    """The bytes of an answer, which must be whole by a time: httpx bounds each wait alone.

    Parameters
    ----------
    stream : httpx.SyncByteStream
        The bytes.
    ends_at : float
        Reading of ``time.monotonic`` after which no more are read.
    """

    def __init__(self, stream: httpx.SyncByteStream, ends_at: float) -> None:
        self._stream = stream
        self._ends_at = ends_at

    def __iter__(self) -> Iterator[bytes]:
        """Give the bytes as they come; raises ``httpx.ReadTimeout`` when the time is over."""
        for chunk in self._stream:
            if time.monotonic() >= self._ends_at:
                raise httpx.ReadTimeout("")
            yield chunk

    def close(self) -> None:
        """Close the stream."""
        self._stream.close()
