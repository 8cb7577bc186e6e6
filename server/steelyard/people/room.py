"""The room of the console."""

from __future__ import annotations

from collections.abc import Callable

from steelyard.people import operator_routes
from steelyard.people.routes import ROUTES
from steelyard.people.session_service import Sessions
from steelyard.room import House, Room


def _sweep(house: House) -> Callable[[], object]:
    return house.get(Sessions).sweep


ROOM = Room(
    name="people",
    nouns=("account", "auth", "operator"),
    routes=(*ROUTES, *operator_routes.ROUTES),
    sweeps=(_sweep,),
)
