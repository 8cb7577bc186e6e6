"""Rows that are alike: embedded once for all who ask, behind the requests, and stopped at the end."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import numpy as np
import pytest

from steelyard.caller import LOCAL_ACCOUNT, Caller
from steelyard.datasets import row_service as service_module
from steelyard.datasets.frames import vectors as vectors_module
from steelyard.datasets.row_service import DatasetRows
from steelyard.datasets.searches import SimilarRows
from steelyard.errors import EngineUnavailableError, TooManyRowsError
from support.datasets.dataset_rows import make_rows
from support.datasets.opened_datasets import OpenedDatasets
from support.waiting import check_that_it_stays_so, until

CALLER = Caller(LOCAL_ACCOUNT, None, "full", "test")
N_ROWS = 12


class Letters:
    """Vectors of the counts of digits; of texts that come together only when a test lets them."""

    def __init__(self):
        self.read = []
        self.embedding, self.may_embed = threading.Event(), threading.Event()

    def __call__(self, texts):
        if len(texts) > 1:
            self.embedding.set()
            assert self.may_embed.wait(60)
        self.read += texts
        counts = np.array([[1 + text.count(x) for x in "0123456789"] for text in texts], "f4")
        return counts / np.linalg.norm(counts, axis=1, keepdims=True)

    async def began(self):
        await until(self.embedding.is_set)


class Opened(OpenedDatasets):
    """The service of one server, and its embedding."""

    def __init__(self, folder):
        super().__init__(folder)
        self.embed = Letters()
        self.rows = DatasetRows(self.datasets, self.store, embed=self.embed, scorer="letters")

    def close(self):
        self.embed.may_embed.set()
        self.rows.close()
        super().close()

    def dataset(self, start=0, n_rows=N_ROWS):
        return self.create(make_rows(n_rows, start), evaluation_fraction="1")["id"]

    async def similar(self, dataset_id, **asked):
        request = SimilarRows(**{"context": "Invoice 7", "limit": 3, **asked})
        found = await self.rows.similar(CALLER, dataset_id, request)
        return [row.index for row in found.data]


@pytest.fixture
def opened(tmp_path):
    with closing(Opened(tmp_path)) as opened:
        yield opened


def test_rows_are_embedded_once_for_all_callers_and_block_no_others(opened):
    dataset_id = opened.dataset()

    async def ask():
        with ThreadPoolExecutor(2) as pool:
            asyncio.get_running_loop().set_default_executor(pool)
            calls = [asyncio.create_task(opened.similar(dataset_id)) for _ in range(4)]
            try:
                await opened.embed.began()
                for _ in range(20):
                    assert await asyncio.wait_for(asyncio.to_thread(lambda: "other work"), 10)
                assert not any(call.done() for call in calls)
            finally:
                opened.embed.may_embed.set()
            return await asyncio.gather(*calls)

    answers = asyncio.run(ask())
    assert answers[0][0] == 7
    assert answers == [answers[0]] * 4
    assert len(opened.embed.read) == 4 + N_ROWS
    assert opened.rows._vectors._making == {}
    assert asyncio.run(opened.similar(dataset_id)) == answers[0]
    assert len(opened.embed.read) == 5 + N_ROWS


def test_who_leaves_takes_nothing_from_others_and_leaves_no_work(opened):
    first, second = opened.dataset(), opened.dataset(100)

    async def ask():
        gone, stays = (asyncio.create_task(opened.similar(first)) for _ in range(2))
        await opened.embed.began()
        unwanted = asyncio.create_task(opened.similar(second))
        await until(lambda: len(opened.rows._vectors._making) == 2)
        for task in (gone, unwanted):
            task.cancel()
        await asyncio.wait({gone, unwanted})
        opened.embed.may_embed.set()
        return await stays

    assert asyncio.run(ask())[0] == 7
    assert "Invoice 100 was paid twice." not in opened.embed.read
    assert opened.rows._vectors._making == {}
    assert asyncio.run(opened.similar(second, context="Invoice 107"))[0] == 7


def test_vectors_of_a_gone_caller_serve_the_next(opened):
    dataset_id = opened.dataset()

    async def leave():
        call = asyncio.create_task(opened.similar(dataset_id))
        await opened.embed.began()
        call.cancel()
        await asyncio.wait({call})
        again = asyncio.create_task(opened.similar(dataset_id))
        await check_that_it_stays_so(lambda: not again.done(), 0.1)
        opened.embed.may_embed.set()
        return await again

    assert asyncio.run(leave())[0] == 7
    assert len(opened.embed.read) == 2 + N_ROWS


def test_a_failure_is_everybodys_and_the_next_one_tries_again(opened, monkeypatch):
    dataset_id = opened.dataset()
    opened.embed.may_embed.set()

    def fail(texts):
        if len(texts) > 1:
            raise EngineUnavailableError("The engine is gone.")
        return opened.embed(texts)

    async def ask():
        calls = [opened.similar(dataset_id) for _ in range(2)]
        return await asyncio.gather(*calls, return_exceptions=True)

    with monkeypatch.context() as patch:
        patch.setattr(opened.rows, "_embed", fail)
        assert [type(error) for error in asyncio.run(ask())] == [EngineUnavailableError] * 2
    assert asyncio.run(opened.similar(dataset_id))[0] == 7


def test_embedding_ends_with_the_server(opened, monkeypatch):
    monkeypatch.setattr(vectors_module, "_BATCH", 4)
    dataset_id = opened.dataset()

    async def ask():
        call = asyncio.create_task(opened.similar(dataset_id))
        await opened.embed.began()
        ending = asyncio.create_task(asyncio.to_thread(opened.rows.close))
        await until(opened.rows._vectors._stopped.is_set)
        opened.embed.may_embed.set()
        with pytest.raises(EngineUnavailableError, match="stopping"):
            await call
        await ending

    asyncio.run(ask())
    assert len(opened.embed.read) == 1 + 4


def test_more_rows_than_are_compared_are_not_embedded(opened, monkeypatch):
    monkeypatch.setattr(service_module, "MAX_COMPARED", N_ROWS - 1)
    with pytest.raises(TooManyRowsError, match=str(N_ROWS)):
        asyncio.run(opened.similar(opened.dataset()))
    assert opened.embed.read == []
