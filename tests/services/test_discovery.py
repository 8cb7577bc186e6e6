"""What discovery warns of, by what waits."""

from __future__ import annotations

import asyncio

import pytest

from kept_lines import base_models
from operating import LOCAL
from steelyard.services.discovery import DiscoveryService, PublishedLimits
from steelyard.services.fine_tune_jobs import Waiting
from steelyard.settings import read_settings

LIMITS = PublishedLimits.of(
    read_settings({"fine_tune_queue": 5, "fine_tune_queue_per_account": 2}, environ={})
)


@pytest.mark.parametrize(
    ("total", "of_account", "codes"),
    [
        (4, 1, []),
        (4, 2, ["tenant_queue_full"]),
        (5, 0, ["queue_full"]),
        (6, 3, ["tenant_queue_full", "queue_full"]),
    ],
)
@pytest.mark.parametrize("training_available", [True, False])
def test_full_queues(total, of_account, codes, training_available):
    async def waiting(caller):
        assert caller == LOCAL
        return Waiting(total=total, of_account=of_account)

    with base_models() as models:
        service = DiscoveryService(models, LIMITS, waiting, training_available=training_available)
        found = asyncio.run(service.discover(LOCAL))
    told = [warning.code for warning in found.warnings]
    assert told == (codes if training_available else [])
