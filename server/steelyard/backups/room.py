"""The room of backups of this server's home."""

from __future__ import annotations

from functools import partial

from steelyard.backups.service import Backups
from steelyard.errors import QueueFullError, TenantQueueFullError
from steelyard.house import House
from steelyard.http.routing import Access, row
from steelyard.jobs.work import Work
from steelyard.models.judge_routes import check_operator
from steelyard.models.setup_run import SetupRuns
from steelyard.models.setups import SETUPS, ModelSetups
from steelyard.people.roles import ANYBODY
from steelyard.room import JobKind, Room, no_models
from steelyard.serving.connected.declarations import Declarations

_route = partial(
    row,
    access=Access.KEYED,
    tags=("operator",),
    # An operator need not be a member of any account.
    roles=ANYBODY,
    for_operators=True,
    check=check_operator,
)


def _open(house: House, setups: ModelSetups) -> tuple[object, ...]:
    return (Backups(house, setups),)


def _open_runs(house: House, declarations: Declarations, backups: Backups) -> Work:
    return SetupRuns(house.state, declarations, {"backup": backups.run})


ROOM = Room(
    name="backups",
    after=("models", "people"),
    routes=(
        _route(
            "GET /v1/backups",
            Backups.list,
            "List the backups of this server's home, and how far the one is that was begun last.",
        ),
        _route(
            "POST /v1/backups",
            Backups.make,
            "Begin a backup of this server's home, in a folder of the setting `backups`.",
            errors=(QueueFullError, TenantQueueFullError),
            is_repeatable=True,
        ),
    ),
    open=_open,
    jobs=(JobKind(_open_runs, None, SETUPS.has_unfinished, no_models, in_server=True),),
)
