"""The application factory: one Sanic application per call, with nothing shared between two."""

from __future__ import annotations

from typing import Any

import msgspec
from sanic import Sanic
from sanic.config import Config

from steelyard.api.cors import answer_preflights
from steelyard.api.draining import Drain
from steelyard.api.errors import answer_error
from steelyard.api.metrics import Metrics
from steelyard.api.openapi import build_document
from steelyard.api.pipeline import begin, finish, pipe
from steelyard.api.routes import (
    account,
    dataset_rows,
    datasets,
    decide,
    decision_log,
    decisions,
    discovery,
    drafts,
    evaluations,
    families,
    feedback,
    fine_tuning,
    health,
    lint,
    llms,
    metrics,
    models,
    openapi,
    playground,
    systemone,
)
from steelyard.api.routing import Route
from steelyard.api.services import ApiServices
from steelyard.api.signals import QuietSignals
from steelyard.ids import new_id

#: Every route. None ends with a slash and none redirects.
ROUTES: tuple[Route, ...] = (
    *decide.ROUTES,
    *playground.ROUTES,
    *lint.ROUTES,
    *feedback.ROUTES,
    *systemone.ROUTES,
    *decisions.ROUTES,
    *decision_log.ROUTES,
    *discovery.ROUTES,
    *models.ROUTES,
    *datasets.ROUTES,
    *evaluations.ROUTES,
    *families.ROUTES,
    *fine_tuning.ROUTES,
    *dataset_rows.ROUTES,
    *drafts.ROUTES,
    *account.ROUTES,
    *openapi.ROUTES,
    *llms.ROUTES,
    *health.ROUTES,
    *metrics.ROUTES,
)

#: Clients keep idle connections for 180 s; the server must not close them first.
_KEEP_ALIVE_S = 200
#: Beyond the deadline of an answer and the time of a body, before Sanic ends a request itself.
_MARGIN_S = 30


def create_app(services: ApiServices) -> Sanic[Any, Any]:
    """Build an application that answers with the services given.

    Parameters
    ----------
    services : ApiServices
        What the routes call; the caller closes what lies behind them.

    Returns
    -------
    sanic.Sanic
        An application with a name of its own, which leaves Sanic's registry when it stops. It has
        no signal handlers: who runs it says when it stops (``steelyard.api.server``).
    """
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
    app.ctx.drain = Drain()
    app.ctx.metrics = Metrics(services.models)
    app.ctx.openapi = msgspec.json.encode(build_document(ROUTES))
    for route in ROUTES:
        path = route.path.replace("{", "<").replace("}", ":str>")
        app.add_route(
            pipe(route), path, methods=[route.method], name=route.name, stream=True, unquote=True
        )
    app.exception(Exception)(answer_error)
    app.register_middleware(begin, "request")
    app.register_middleware(answer_preflights(ROUTES), "request")
    app.register_middleware(finish, "response")
    app.after_server_stop(_forget)
    return app


async def _forget(app: Sanic[Any, Any]) -> None:
    Sanic.unregister_app(app)
