"""Text that a connected chat model or judge writes."""

from __future__ import annotations

from typing import Any

from steelyard.serving.connected.answers import member
from steelyard.serving.connected.declared import ConnectedModel


async def write_text(
    name: str, model: ConnectedModel, engine: Any, messages: list[dict[str, str]], max_tokens: int
) -> str:
    """Return a model's text after messages; ``engine`` takes its requests, and its errors are raised."""
    if model.wire == "gguf":
        return str(await engine.write(messages, max_tokens))
    body = {
        "model": model.model or name,
        "messages": messages,
        "max_tokens": max_tokens,
        "temperature": 0,
    }
    answer = await engine.post("/v1/chat/completions", body)
    return str(member(member(member(member(answer, "choices"), 0), "message"), "content"))
