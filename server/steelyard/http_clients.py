"""Clients of HTTP, all opened here: each has a bound, and goes nowhere that it was not sent."""

from __future__ import annotations

from typing import Any

import httpx


def open_http(*, timeout: httpx.Timeout | float | None, **options: Any) -> httpx.Client:
    """Return a client with a bound of each wait in seconds; ``None`` where its requests have bounds.

    It follows no redirect, and takes neither proxies nor certificates from the environment, unless
    options of httpx's client say so.
    """
    return httpx.Client(
        timeout=timeout, **{"follow_redirects": False, "trust_env": False, **options}
    )


def open_async_http(*, timeout: httpx.Timeout | float | None, **options: Any) -> httpx.AsyncClient:
    """Return a client as ``open_http`` does, whose answers are awaited."""
    return httpx.AsyncClient(
        timeout=timeout, **{"follow_redirects": False, "trust_env": False, **options}
    )
