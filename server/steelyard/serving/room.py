"""The room of serving."""

from __future__ import annotations

from steelyard.accounts.rate_limits import TokenAllowance
from steelyard.errors import errors_of
from steelyard.errors import serving as errors
from steelyard.house import House
from steelyard.operations.service import OperationLog
from steelyard.room import Room
from steelyard.serving.registry import ModelRegistry
from steelyard.serving.routes import ROUTES
from steelyard.serving.service import DecisionService
from steelyard.serving.tables import model_declarations


def _open(
    house: House, registry: ModelRegistry, operations: OperationLog, allowance: TokenAllowance
) -> tuple[object, ...]:
    return (
        DecisionService(
            registry,
            operations,
            allowance,
            deadline_s=house.settings.deadline_s,
            storing=house.settings.store,
        ),
    )


ROOM = Room(
    name="serving",
    after=("accounts", "scoring"),
    nouns=("decide", "playground"),
    tables=(model_declarations,),
    errors=errors_of(errors),
    routes=ROUTES,
    open=_open,
)
