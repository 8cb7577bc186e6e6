"""``GET /v1/capabilities`` with its alias ``/v1/onehot``, and ``GET /v1/recipes``."""

from __future__ import annotations

from steelyard.discovery.service import DiscoveryService
from steelyard.discovery.wire import Discovery
from steelyard.http.routing import REVIEWERS, Access, Call, row
from steelyard.serving.recipes_wire import RecipeList


async def get_capabilities(call: Call) -> Discovery:
    """Return the server's features; the account's own models are among the models."""
    return await call.service(DiscoveryService).discover(call.caller)


async def get_recipes(call: Call) -> RecipeList:
    """Return ready-made decisions."""
    return call.service(DiscoveryService).recipes()


ROUTES = (
    *(
        row(
            f"GET {path}",
            get_capabilities,
            "Return what this server can do: models, recipes, limits, prices.",
            access=Access.KEYED,
            roles=REVIEWERS,
            tags=("discovery",),
            is_inference=True,
        )
        for path in ("/v1/capabilities", "/v1/onehot")
    ),
    row(
        "GET /v1/recipes",
        get_recipes,
        "List ready-made decisions for common needs.",
        access=Access.PUBLIC,
        tags=("discovery",),
        is_inference=True,
    ),
)
