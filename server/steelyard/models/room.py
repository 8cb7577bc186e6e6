"""The room of models by name."""

from steelyard.models import opening
from steelyard.models.judge_routes import JUDGE_ROUTES
from steelyard.models.routes import ROUTES
from steelyard.models.setups import SETUPS, ModelSetups
from steelyard.room import JobKind, Room, jobs_of, no_models

ROOM = Room(
    name="models",
    after=("families",),
    nouns=("judges", "routes", "setups"),
    routes=(*ROUTES, *JUDGE_ROUTES),
    base=opening.open_base,
    open=opening.open_models,
    jobs=(
        jobs_of(ModelSetups, opening.open_measuring, no_models, in_server=True),
        # A long download keeps no check waiting.
        JobKind(opening.open_downloads, None, SETUPS.has_unfinished, no_models, in_server=True),
    ),
)
