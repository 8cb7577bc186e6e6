"""The room of named decisions that grow."""

from __future__ import annotations

from steelyard.growth.routes import ROUTES
from steelyard.growth.service import LOOK_S, Growths
from steelyard.house import House
from steelyard.room import Room


def _open(house: House) -> tuple[object, ...]:
    growths = Growths(house)
    house.tick(
        growths.tick,
        name="steelyard-growth",
        failure="Could not look at growths",
        interval_s=LOOK_S,
    )
    return (growths,)


ROOM = Room(
    name="growth",
    after=("alarms", "shadows", "named"),
    nouns=("named-decisions",),
    events=("decision.grown",),
    routes=ROUTES,
    open=_open,
)
