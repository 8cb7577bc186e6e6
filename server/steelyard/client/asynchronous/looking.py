"""Looks at work that goes on without the client, until it is over."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from steelyard.client.waiting import AsyncLook, Looking

T = TypeVar("T")


async def look_until(
    look: AsyncLook[T], is_over: Callable[[T], bool], looking: Looking, poll_s: float
) -> T:
    """Look again and again, over failures that may pass, and return the answer that ends it."""
    while True:
        with looking:
            answer = await look()
        if not looking.is_silent and is_over(answer):
            return answer
        await asyncio.sleep(poll_s)
