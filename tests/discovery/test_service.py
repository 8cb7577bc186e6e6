"""The warnings of discovery, by the waiting work."""

from __future__ import annotations

import asyncio

import pytest

from steelyard.discovery.service import DiscoveryService, full_queues, published_limits
from steelyard.families.fine_tuning.service import Waiting
from steelyard.labeling.wire import TeacherList
from steelyard.settings import read_settings
from support.accounts.operating import LOCAL
from support.families.stored_lineage import base_models

LIMITS = published_limits(
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
def test_full_queues(total, of_account, codes):
    async def waiting(caller):
        assert caller == LOCAL
        return Waiting(total=total, of_account=of_account)

    async def nobody(caller):
        return TeacherList(available=False, data=[], defaults={}, limits={})

    with base_models() as models:
        service = DiscoveryService(
            models,
            LIMITS,
            warnings=[full_queues(LIMITS, waiting)],
            teachers=nobody,
            training_available=True,
        )
        found = asyncio.run(service.discover(LOCAL))
    assert [warning.code for warning in found.warnings] == codes
