"""``GET /v1/health`` and its alias ``/health``: that the server lives, and what runs here."""

from __future__ import annotations

from sanic import HTTPResponse, Request

from steelyard.api.bodies import json_response
from steelyard.version import __version__


async def get_health(request: Request) -> HTTPResponse:
    """Say that the server answers, with its version, model and engine."""
    services = request.app.ctx.services
    return json_response(
        {
            "status": "ok",
            "version": __version__,
            "model": services.model,
            "engine": services.engine,
        }
    )
