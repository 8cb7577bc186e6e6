"""The room of decisions; its one route is the linter's."""

from steelyard.decisions.lint.routes import ROUTES
from steelyard.room import Room

ROOM = Room(
    name="decisions",
    after=("http",),
    nouns=("lint",),
    routes=ROUTES,
)
