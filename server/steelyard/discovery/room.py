"""The room of the server's features."""

from __future__ import annotations

from steelyard.discovery.routes import ROUTES
from steelyard.discovery.service import DiscoveryService, full_queues, published_limits
from steelyard.families.fine_tuning.service import FineTuneJobs
from steelyard.families.lineage.fees import Tariff
from steelyard.house import House
from steelyard.labeling.teachers import Teachers
from steelyard.models.service import FamilyModels
from steelyard.room import Room
from steelyard.serving.registry import ModelRegistry


def _open(
    house: House,
    registry: ModelRegistry,
    teachers: Teachers,
    family_models: FamilyModels,
    fine_tunes: FineTuneJobs,
) -> tuple[object, ...]:
    limits = published_limits(house.settings)
    return (
        DiscoveryService(
            registry,
            limits,
            tariff=Tariff.of(house.settings),
            hour_nano=house.settings.keep_warm_price,
            models=[family_models.models],
            warnings=[full_queues(limits, fine_tunes.waiting)],
            teachers=teachers.available,
            training_available=True,
        ),
    )


ROOM = Room(
    name="discovery",
    after=("labeling", "models"),
    nouns=("capabilities", "onehot", "recipes"),
    routes=ROUTES,
    open=_open,
)
