"""Looks at work that goes on without the client, until it is over."""

# Made of asynchronous/looking.py by scripts/blocking_client.py: edit that one.

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from steelyard.client.waiting import Look, Looking

T = TypeVar("T")


def look_until(look: Look[T], is_over: Callable[[T], bool], looking: Looking, poll_s: float) -> T:
    """Look again and again, over failures that may pass, and return the answer that ends it."""
    while True:
        with looking:
            answer = look()
        if not looking.is_silent and is_over(answer):
            return answer
        time.sleep(poll_s)
