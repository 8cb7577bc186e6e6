"""The room of serving."""

from __future__ import annotations

from steelyard.accounts.rate_limits import TokenAllowance
from steelyard.accounts.store_owner import sweep_owned
from steelyard.errors import errors_of
from steelyard.errors import serving as errors
from steelyard.house import House
from steelyard.operations.service import OperationLog
from steelyard.room import Room, files_of
from steelyard.serving.connected.declarations import Declarations, files_of_models
from steelyard.serving.connected.files import ModelFiles
from steelyard.serving.connected.hosts import ModelHosts
from steelyard.serving.registry import ModelRegistry
from steelyard.serving.routes import ROUTES
from steelyard.serving.service import DecisionService
from steelyard.settings import home_of


def _open_base(house: House, declarations: Declarations) -> tuple[object, ...]:
    is_shared = house.state.is_shared
    if is_shared or declarations.files():
        store, home = house.frames("connected"), home_of(house.settings)
        house.tick(
            ModelFiles(declarations, store, home, is_shared=is_shared).tick,
            name="steelyard-model-files",
            failure="Could not store or fetch the files of connected models",
            interval_s=2.0,
        )
    return ()


def _open(
    house: House,
    registry: ModelRegistry,
    operations: OperationLog,
    allowance: TokenAllowance,
    declarations: Declarations,
) -> tuple[object, ...]:
    hosts = ModelHosts(house.state, registry, declarations.host)
    if house.state.is_shared:
        house.tick(
            hosts.tick,
            name="steelyard-model-hosts",
            failure="Could not write which models would answer here",
        )
    service = DecisionService(
        registry,
        operations,
        allowance,
        deadline_s=house.settings.deadline_s,
        storing=house.settings.store,
    )
    return hosts, service


def _sweep(house: House) -> None:
    if house.state.is_shared:
        sweep_owned(house.state, house.frames("connected"), files_of_models)


ROOM = Room(
    name="serving",
    after=("accounts", "scoring"),
    nouns=("decide", "playground"),
    errors=errors_of(errors),
    routes=ROUTES,
    base=_open_base,
    open=_open,
    files=(files_of("connected", "a connected model", files_of_models),),
    sweeps=(_sweep,),
)
