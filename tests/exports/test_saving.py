"""An export that breaks off on its way is asked for again, and is on the disk whole or not at all."""

from __future__ import annotations

import asyncio

import httpx
import pytest

from steelyard.client import AsyncClient, Client, ClientOptions, ServerUnreachableError
from support.servers.scripted_server import URL

WHOLE = [b"index,", b"side\r\n", b"0,training\r\n"]


class Breaking(httpx.SyncByteStream, httpx.AsyncByteStream):
    """Bytes of an answer; of one that breaks, the first ones alone."""

    def __init__(self, *, breaks):
        self.breaks = breaks

    def __iter__(self):
        yield WHOLE[0]
        if self.breaks:
            raise httpx.ReadError("broken")
        yield from WHOLE[1:]

    async def __aiter__(self):
        for piece in self:
            yield piece


@pytest.fixture(params=[Client, AsyncClient])
def export(request):
    """Export to a path by a client whose first answers break off; the reported bytes."""

    def export_to(path, n_broken, **options):
        left = iter(range(n_broken))
        told = []

        def answer(_):
            return httpx.Response(200, stream=Breaking(breaks=next(left, None) is not None))

        async def no_sleep(_):
            pass

        given = ClientOptions(URL, **options), httpx.MockTransport(answer)
        if request.param is Client:
            with Client(given[0], transport=given[1], sleep=lambda _: None) as client:
                client.datasets.export_to("ds_1", path, progress=told.append)
            return told

        async def ask():
            async with AsyncClient(given[0], transport=given[1], sleep=no_sleep) as client:
                await client.datasets.export_to("ds_1", path, progress=told.append)

        asyncio.run(ask())
        return told

    return export_to


def test_it_is_asked_for_again_from_its_beginning(export, tmp_path):
    path = tmp_path / "rows.csv"
    told = export(path, 2)
    assert path.read_bytes() == b"".join(WHOLE)
    assert told == [6, 6, 6, 12, 24]
    assert list(tmp_path.iterdir()) == [path]


def test_of_one_that_keeps_breaking_nothing_is_left(export, tmp_path):
    with pytest.raises(ServerUnreachableError):
        export(tmp_path / "rows.csv", 9, max_retries=2)
    assert list(tmp_path.iterdir()) == []
