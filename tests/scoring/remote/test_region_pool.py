"""Regions of a server that unmaps them late, never, or does not answer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("grpc")

from tritonclient.utils import InferenceServerException

from steelyard.scoring.remote import region_pool as module
from steelyard.scoring.remote.region_pool import MAX_MAPPED, RegionPool
from steelyard.scoring.remote.shared_region import SHARED

pytestmark = pytest.mark.skipif(not SHARED.is_dir(), reason="no shared memory here")


class Server:
    """Maps regions; ``fault`` is raised in place of unmapping one."""

    def __init__(self) -> None:
        self.regions: set[str] = set()
        self.fault: Exception | None = None
        self.n_asked = 0

    def register(self, name: str, size: int) -> None:
        assert Path(SHARED, name).stat().st_size == size
        self.regions.add(name)

    def unregister(self, name: str) -> None:
        self.n_asked += 1
        if self.fault is not None:
            raise self.fault
        self.regions.discard(name)


def in_use() -> InferenceServerException:
    text = "Cannot unregister shared memory region 'a', it is currently in use."
    return InferenceServerException(text, status="StatusCode.INTERNAL")


def silent() -> InferenceServerException:
    return InferenceServerException("Deadline Exceeded", status="StatusCode.DEADLINE_EXCEEDED")


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
def pool(server: Server) -> Iterator[RegionPool]:
    pool = RegionPool(server.register, server.unregister, may_share=True)
    yield pool
    server.fault = None
    pool.close()
    assert not server.regions


def let_go(pool: RegionPool, n_regions: int) -> None:
    """Use regions and discard them."""
    regions = [pool.borrow(1) for _ in range(n_regions)]
    for region in regions:
        assert region is not None
        pool.discard(region)


def test_refused_unmappings_are_repeated_until_done(pool, server):
    server.fault = in_use()
    let_go(pool, 3)
    pool.ask_again()
    assert (len(server.regions), server.n_asked) == (3, 6)
    server.fault = None
    pool.ask_again(1)
    assert (len(server.regions), server.n_asked) == (2, 7)
    pool.ask_again()
    assert (len(server.regions), server.n_asked) == (0, 9)
    pool.ask_again()
    assert server.n_asked == 9


def test_one_that_stays_in_use_does_not_keep_the_others(pool, server):
    server.fault = in_use()
    let_go(pool, 2)
    first, second = pool._held
    pool.ask_again(1)
    assert pool._held == [second, first]


def test_a_server_that_unmaps_nothing_is_given_only_so_much(pool, server):
    server.fault = in_use()
    let_go(pool, MAX_MAPPED)
    assert pool.borrow(1) is None
    assert pool.shares
    assert len(server.regions) == MAX_MAPPED
    server.fault = None
    pool.ask_again(1)
    pool.give_back(pool.borrow(1))
    server.fault = in_use()
    pool.discard(pool.borrow(1))
    assert pool.borrow(1) is None


@pytest.mark.parametrize("fault", [silent(), ValueError("Cannot invoke RPC on closed channel!")])
def test_a_server_that_does_not_answer_is_asked_once(pool, server, fault):
    server.fault = in_use()
    let_go(pool, 3)
    server.fault, server.n_asked = fault, 0
    pool.ask_again()
    assert server.n_asked == 1
    assert len(pool._held) == 3


def test_closing_asks_again_and_keeps_nothing_that_comes_back(pool, server):
    kept, lent = pool.borrow(1), pool.borrow(1)
    pool.give_back(kept)
    server.fault = in_use()
    let_go(pool, 1)  # the one that waited
    server.fault = None
    pool.close()
    assert server.regions == {lent.name}
    pool.give_back(lent)
    assert not server.regions


def test_a_region_too_large_to_keep_is_let_go_of(pool, server, monkeypatch):
    monkeypatch.setattr(module, "REUSED_REGION", 0)
    pool.give_back(pool.borrow(1))
    assert not server.regions
    assert pool.borrow(1) is not None
    [name] = server.regions
    server.unregister(name)


def test_sharing_stops_and_resumes_where_it_is_allowed(server):
    for may_share in (True, False):
        pool = RegionPool(server.register, server.unregister, may_share=may_share)
        assert pool.stop() is may_share
        assert not pool.stop()
        assert not pool.shares
        pool.resume()
        assert pool.shares is may_share
