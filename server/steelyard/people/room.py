"""The room of the console."""

from __future__ import annotations

from steelyard.errors import errors_of
from steelyard.errors import people as errors
from steelyard.people import operator_routes
from steelyard.people.opening import open_people
from steelyard.people.routes import ROUTES
from steelyard.people.session_service import Sessions
from steelyard.room import Room


def _sweep(sessions: Sessions) -> None:
    sessions.sweep()


ROOM = Room(
    name="people",
    after=("billing", "models"),
    nouns=("account", "auth", "operator"),
    errors=errors_of(errors),
    routes=(*ROUTES, *operator_routes.ROUTES),
    open=open_people,
    sweeps=(_sweep,),
)
