"""The room of named decisions."""

from __future__ import annotations

from steelyard.errors import errors_of
from steelyard.errors import named as errors
from steelyard.house import House
from steelyard.named import tables
from steelyard.named.routes import ROUTES
from steelyard.named.served import ServedDecisions
from steelyard.named.service import NamedDecisions
from steelyard.room import Room
from steelyard.serving.service import DecisionService


def _open(house: House) -> tuple[object, ...]:
    served = ServedDecisions(house.state)
    house.get(DecisionService).register_named(served.open)
    return served, NamedDecisions(house.state, house.writes, served)


ROOM = Room(
    name="named",
    after=("serving",),
    nouns=("named-decisions",),
    tables=(
        tables.named_decisions,
        tables.named_versions,
        tables.named_aliases,
        tables.named_moves,
    ),
    errors=errors_of(errors),
    routes=ROUTES,
    open=_open,
)
