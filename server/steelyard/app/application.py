"""The application factory: one Sanic application per call, with nothing shared between two."""

from __future__ import annotations

from typing import Any

from sanic import Sanic
from sanic.config import Config

from steelyard.alarms.figures import AlarmFigures
from steelyard.alarms.golden_checks import GoldenRowChecks
from steelyard.alarms.watching import Watcher
from steelyard.app.rooms import routes as routes_of_rooms
from steelyard.app.services import ApiServices
from steelyard.http import routes as http_routes
from steelyard.http.access import Origins, TrustedProxies
from steelyard.http.connection import QuietSignals
from steelyard.http.cors import Preflights
from steelyard.http.errors import answer_error
from steelyard.http.metrics import Metrics
from steelyard.http.pipeline import Drain, begin, finish, pipe
from steelyard.http.routing import Route
from steelyard.http.transfers import RECEIVED_BYTES, SENT_BYTES, Transfers
from steelyard.ids import new_id
from steelyard.mcp import mounted
from steelyard.serving.routes import HEALTH_ROUTES
from steelyard.serving.scorer_metrics import ScorerFigures

#: Every route: those of rooms, and those about the server itself. None ends with a slash or redirects.
ROUTES: tuple[Route, ...] = (
    *routes_of_rooms(),
    *http_routes.DOCUMENTS,
    *HEALTH_ROUTES,
    *http_routes.FIGURES,
)

#: Clients keep idle connections for 180 s; the server must not close them first.
_KEEP_ALIVE_S = 200
#: Beyond the deadline of an answer and the time of a body, before Sanic ends a request itself.
_MARGIN_S = 30


def create_app(services: ApiServices) -> Sanic[Any, Any]:
    """Build an application that answers with the services given."""
    settings = services.settings
    # Sanic's own environment variables are not read: settings have one source. TOUCHUP rewrites
    # methods of shared classes and so breaks a second application in the process. What is left of
    # a body after its refusal is read past up to REQUEST_MAX_SIZE; its own bound is the route's.
    config = Config(
        {
            "ACCESS_LOG": False,
            "FALLBACK_ERROR_FORMAT": "json",
            "KEEP_ALIVE_TIMEOUT": _KEEP_ALIVE_S,
            "MOTD": False,
            "REQUEST_MAX_SIZE": max(settings.body_bytes, settings.upload_bytes),
            "REQUEST_TIMEOUT": settings.body_timeout_s,
            "RESPONSE_TIMEOUT": settings.deadline_s + settings.body_timeout_s + _MARGIN_S,
            "TOUCHUP": False,
        },
        env_prefix=None,
    )
    app: Sanic[Any, Any] = Sanic(
        new_id("steelyard"),
        config=config,
        configure_logging=False,
        signal_router=QuietSignals(),
        strict_slashes=True,
    )
    app.ctx.services = services
    app.ctx.origins = Origins(settings)
    app.ctx.proxies = TrustedProxies(settings.trusted_proxies)
    app.ctx.preflights = Preflights(ROUTES)
    app.ctx.drain = Drain()
    app.ctx.received = Transfers(RECEIVED_BYTES)
    app.ctx.sent = Transfers(SENT_BYTES)
    app.ctx.agents = mounted.Agents()
    app.ctx.metrics = Metrics()
    app.ctx.metrics.watch(ScorerFigures(services.models, app.ctx.metrics.registry).read)
    watcher, golden = services.get(Watcher), services.get(GoldenRowChecks)
    app.ctx.metrics.watch(AlarmFigures(watcher, golden, app.ctx.metrics.registry).read)
    for route in (*ROUTES, mounted.ROUTE):
        path = route.path.replace("{", "<").replace("}", ":str>")
        app.add_route(
            pipe(route),
            path,
            methods=route.methods,
            name=route.name,
            stream=True,
            unquote=True,
            # Not said, it is guessed from each handler's source, which is parsed for that.
            error_format="json",
        )
    app.exception(Exception)(answer_error)
    app.register_middleware(begin, "request")
    app.register_middleware(finish, "response")
    app.after_server_stop(_forget)
    return app


async def _forget(app: Sanic[Any, Any]) -> None:
    await app.ctx.agents.stop()
    Sanic.unregister_app(app)
