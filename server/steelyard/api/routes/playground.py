"""``POST /v1/playground/decide``: decide for trying out, with fewer decisions and nothing stored."""

from __future__ import annotations

from sanic import HTTPResponse, Request

from steelyard.api.bodies import json_response, read_json_bytes


async def post_playground_decide(request: Request) -> HTTPResponse:
    """Answer one context's decisions, at most 8 of them, free and unstored."""
    body = read_json_bytes(request)
    answers = request.app.ctx.services.answers
    return json_response(await answers.answer_async(body, playground=True))
