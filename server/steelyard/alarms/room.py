"""The room of drift."""

from __future__ import annotations

from collections.abc import Callable

from steelyard.alarms.routes import ROUTES
from steelyard.alarms.tables import alarm_feedback
from steelyard.alarms.watching import Watcher
from steelyard.room import House, Room


def _sweep(house: House) -> Callable[[], object]:
    return house.get(Watcher).sweep


ROOM = Room(
    name="alarms",
    routes=ROUTES,
    sweeps=(_sweep,),
    decisions=(alarm_feedback.c.decision_id,),
)
