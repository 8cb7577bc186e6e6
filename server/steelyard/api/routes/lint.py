"""``POST /v1/lint``: what about a decide request makes its answers worse; no model runs."""

from __future__ import annotations

from sanic import HTTPResponse, Request

from steelyard.api.bodies import json_response, read_json_bytes
from steelyard.services.lint import lint_async


async def post_lint(request: Request) -> HTTPResponse:
    """Answer with the warnings on how decisions are asked."""
    return json_response(await lint_async(read_json_bytes(request)))
