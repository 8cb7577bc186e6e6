"""The application factory: one Sanic application per call, with nothing shared between two."""

from __future__ import annotations

from typing import Any

from sanic import Request, Sanic
from sanic.config import Config
from sanic.response import BaseHTTPResponse

from steelyard.api.errors import answer_error
from steelyard.api.routes import decide, health, lint, playground
from steelyard.api.services import ApiServices
from steelyard.api.tracing import REQUEST_ID_HEADER, get_request_id
from steelyard.ids import new_id

#: Method, path and handler of every route. None ends with a slash and none redirects.
ROUTES = (
    ("POST", "/v1/decide", decide.post_decide),
    ("POST", "/v1/playground/decide", playground.post_playground_decide),
    ("POST", "/v1/lint", lint.post_lint),
    ("GET", "/v1/health", health.get_health),
    ("GET", "/health", health.get_health),
)

#: Clients keep idle connections for 180 s; the server must not close them first.
_KEEP_ALIVE_S = 200


def create_app(services: ApiServices) -> Sanic[Any, Any]:
    """Build an application that answers with the services given.

    Parameters
    ----------
    services : ApiServices
        What the routes call; the caller closes what lies behind them.

    Returns
    -------
    sanic.Sanic
        An application with a name of its own, which leaves Sanic's registry when it stops.
    """
    # Sanic's own environment variables are not read: settings have one source. TOUCHUP rewrites
    # methods of shared classes and so breaks a second application in the process.
    config = Config(
        {
            "ACCESS_LOG": False,
            "FALLBACK_ERROR_FORMAT": "json",
            "KEEP_ALIVE_TIMEOUT": _KEEP_ALIVE_S,
            "MOTD": False,
            "REQUEST_MAX_SIZE": services.body_bytes,
            "RESPONSE_TIMEOUT": services.deadline_s + 30,
            "TOUCHUP": False,
        },
        env_prefix=None,
    )
    app = Sanic(new_id("steelyard"), config=config, configure_logging=False, strict_slashes=True)
    app.ctx.services = services
    for method, path, handler in ROUTES:
        app.add_route(handler, path, methods=[method], name=_route_name(method, path))
    app.exception(Exception)(answer_error)
    app.register_middleware(_add_request_id, "response")
    app.after_server_stop(_forget)
    return app


async def _add_request_id(request: Request, response: BaseHTTPResponse) -> None:
    """Name the request on every response, an error's included."""
    response.headers.setdefault(REQUEST_ID_HEADER, get_request_id(request))


async def _forget(app: Sanic[Any, Any]) -> None:
    Sanic.unregister_app(app)


def _route_name(method: str, path: str) -> str:
    return f"{method}{path}".lower().replace("/", "_")
