"""The services that routes need, handed to ``create_app`` by the composition root."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from steelyard.accounts.rate_limits import RequestLimits
from steelyard.accounts.service import AccountService
from steelyard.house import House
from steelyard.http.routing import ServiceOf
from steelyard.people.session_service import Sessions
from steelyard.serving.registry import ModelRegistry
from steelyard.settings import Settings
from steelyard.storage import State


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiServices:
    """The services of every request, and with ``get`` those of all rooms by their classes."""

    settings: Settings
    state: State
    models: ModelRegistry
    accounts: AccountService
    sessions: Sessions
    limits: RequestLimits
    get: ServiceOf

    @classmethod
    def of(cls, house: House) -> ApiServices:
        """Return the services that the rooms of a house opened."""
        return cls(
            settings=house.settings,
            state=house.state,
            models=house.get(ModelRegistry),
            accounts=house.get(AccountService),
            sessions=house.get(Sessions),
            limits=house.get(RequestLimits),
            # Not the house's own method: every request would go through its module for it.
            get=cast("ServiceOf", house.services.__getitem__),
        )
