"""``POST /v1/decide``."""

from __future__ import annotations

from sanic import HTTPResponse, Request

from steelyard.api.bodies import json_response, read_json_bytes


async def post_decide(request: Request) -> HTTPResponse:
    """Answer one context's decisions."""
    body = read_json_bytes(request)
    return json_response(await request.app.ctx.services.answers.answer_async(body))
