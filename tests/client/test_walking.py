"""Iterating over datasets, whose order is that of their last use, while they are used."""

from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace

import steelyard
from steelyard.client.walking import DatasetWalk
from steelyard.datasets.wire import DatasetPage
from support.datasets.dataset_rows import make_rows
from support.servers.live_server import live_server

#: More than a walk of any of these tests takes, were it to go on.
ENOUGH = 40


@pytest.fixture
def client():
    with (
        live_server(jobs="off", dataset_min_rows=1) as server,
        steelyard.connect(server.url) as client,
    ):
        yield client


@pytest.fixture
def made(client):
    return [
        client.datasets.create(f"d{number}", evaluation=make_rows(1, number)).id
        for number in range(7)
    ]


def use(client, dataset_id):
    client.evaluations.create(dataset_id, ["hashing"])


@pytest.mark.parametrize("page_size", [1, 2, 3, 7, 200])
def test_datasets_used_in_the_loop_come_once(client, made, page_size):
    given = []
    for one in client.datasets.iterate(page_size=page_size):
        given.append(one.id)
        assert len(given) < ENOUGH
        use(client, one.id)
    assert given == made[::-1]


def test_a_dataset_that_is_used_before_its_turn_is_not_passed_over(client, made):
    given = []
    for one in client.datasets.iterate(page_size=2):
        if not given:
            use(client, made[0])
            use(client, made[2])
        given.append(one.id)
    assert sorted(given) == sorted(made)


def test_a_dataset_is_given_that_is_listed_by_an_earlier_use_than_its_making(client, made):
    """As one of a labeling job: it counts as used since the job began."""
    newest, *others = client.datasets.iterate()
    labelled = replace(newest, used_at=newest.created_at - 20.0)
    listed = [labelled, *(replace(item, created_at=item.created_at - 3_600.0) for item in others)]
    assert len(listed) == len(made)
    assert DatasetWalk().take(DatasetPage(data=listed, has_more=False, next_cursor=None)) == listed


def test_datasets_made_by_the_loop_do_not_come(client, made):
    given = []
    for one in client.datasets.iterate(page_size=2):
        given.append(one.id)
        assert len(given) < ENOUGH
        use(client, one.id)
        client.datasets.create("copy", make_rows(2, 200))
    assert given == made[::-1]


def test_asynchronously(client, made):
    async def walk():
        given = []
        async with steelyard.connect_async(client.url) as other:
            async for one in other.datasets.iterate(page_size=2):
                given.append(one.id)
                assert len(given) < ENOUGH
                use(client, one.id)
        return given

    assert asyncio.run(walk()) == made[::-1]


def test_no_datasets(client):
    assert list(client.datasets.iterate()) == []
