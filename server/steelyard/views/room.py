"""The room of views of the workbench."""

from __future__ import annotations

from steelyard.errors import errors_of
from steelyard.errors import views as errors
from steelyard.house import House
from steelyard.room import Room
from steelyard.views import tables
from steelyard.views.routes import ROUTES
from steelyard.views.service import Views


def _open(house: House) -> tuple[object, ...]:
    return (Views(house.state, house.writes),)


ROOM = Room(
    name="views",
    after=("http",),
    tables=(tables.views,),
    errors=errors_of(errors),
    routes=ROUTES,
    open=_open,
)
