"""The room of payments."""

from __future__ import annotations

from steelyard.billing.amounts import referral_nano_of
from steelyard.billing.providers import open_provider
from steelyard.billing.routes import ROUTES
from steelyard.billing.service import PurchaseService
from steelyard.billing.topping_up import TopUps
from steelyard.errors import errors_of
from steelyard.errors import purchases as errors
from steelyard.house import House
from steelyard.room import Room


def _open(house: House) -> tuple[object, ...]:
    purchases = PurchaseService(
        house.state,
        open_provider(house.settings),
        accounts_enabled=house.has_accounts,
        referral_nano=referral_nano_of(house.settings),
    )
    if house.has_accounts:
        house.tick(
            TopUps(house.state, purchases).tick,
            name="steelyard-top-ups",
            failure="Could not look after purchases",
        )
    return (purchases,)


ROOM = Room(
    name="billing",
    after=("http",),
    errors=errors_of(errors),
    events=("purchase.paid",),
    routes=ROUTES,
    open=_open,
)
