"""How the two clients hold their connections."""

from __future__ import annotations

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
