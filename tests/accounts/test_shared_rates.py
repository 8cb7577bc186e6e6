"""Counters of the last minute that hosts share: slices, their rests, and a database away."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from contextlib import ExitStack, closing

import pytest
from sqlalchemy import create_engine, func, select, update

from steelyard.accounts.rate_limits import WINDOW_S, RateWindows
from steelyard.accounts.rate_store import RateRequest, lease, slice_of, sweep
from steelyard.accounts.shared_rates import SLICE_S, SharedRates
from steelyard.accounts.tables import rate_windows
from steelyard.errors import StorageUnavailableError
from steelyard.storage import open_counters, open_state
from support.waiting import next_turn

NUMBER = 1000


class Clock:
    def __init__(self) -> None:
        self.now = 50.0

    def __call__(self) -> float:
        return self.now


class OneTable:
    """A writer whose rows are in memory and whose minute does not pass."""

    def __init__(self) -> None:
        self.rows: dict[str, tuple[int, int, int]] = {}
        self.n_leases = 0
        self.is_away = False

    def submit(self, work):
        told: Future = Future()
        if self.is_away:
            told.set_exception(StorageUnavailableError("Away."))
            return told
        self.n_leases += 1
        slices = [slice_of(one, self.rows.get(one.key), NUMBER, 30.0) for one in work.args[0]]
        for one, got in zip(work.args[0], slices, strict=True):
            self.rows[one.key] = (got.number, got.previous, got.current)
        told.set_result(slices)
        return told


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def table():
    return OneTable()


@pytest.fixture
def hosts(table, clock):
    """Three hosts on one table."""
    with ExitStack() as stack:
        alone = [stack.enter_context(closing(RateWindows())) for _ in range(3)]
        yield [SharedRates(table, one, clock=clock) for one in alone]


def counted(host, n, limit=600, cost=1, who="a"):
    """Send as often, and return how many were let through."""

    async def send():
        return sum([await host.count("requests", who, limit, cost) is None for _ in range(n)])

    return asyncio.run(send())


def test_hosts_share_one_minute_and_ask_seldom(hosts, table, clock):
    passed = 0
    for turn in range(1200):
        clock.now += 0.02
        passed += counted(hosts[turn % 3], 1)
    # What the hosts still have of their slices is all that may be missing.
    assert 600 - 3 * 30 <= passed <= 600
    assert table.n_leases < 300


def test_a_small_limit_is_exact(hosts):
    assert sum(counted(host, 5, limit=9) for host in hosts) == 9


def test_callers_and_kinds_are_counted_apart(hosts):
    assert counted(hosts[0], 3, limit=1) == 1
    assert counted(hosts[0], 3, limit=1, who="b") == 1
    assert asyncio.run(hosts[0].count("tokens", "a", 1)) is None


def test_a_refusal_holds_for_a_while_without_asking(hosts, table, clock):
    counted(hosts[0], 1, limit=1)
    waits = [asyncio.run(hosts[1].count("requests", "a", 1)) for _ in range(50)]
    assert min(waits) > 0
    assert table.n_leases == 2
    clock.now += 1.1
    assert asyncio.run(hosts[1].count("requests", "a", 1)) > 0
    assert table.n_leases == 3


def test_a_larger_cost_is_refused_and_a_smaller_one_fits(hosts):
    assert counted(hosts[0], 1, limit=100, cost=80) == 1
    assert counted(hosts[1], 1, limit=100, cost=30) == 0
    assert counted(hosts[1], 1, limit=100, cost=20) == 1


def test_the_rest_of_a_slice_is_given_back(hosts, table, clock):
    counted(hosts[0], 20)
    [(_, _, current)] = table.rows.values()
    assert current > 20
    for _ in range(4):
        clock.now += 2 * SLICE_S + 0.1
        counted(hosts[0], 1)
    [(_, _, current)] = table.rows.values()
    assert current == 24


def test_one_that_sends_little_is_never_refused_early(hosts, clock):
    passed = 0
    for _ in range(59):
        clock.now += 1.0
        passed += counted(hosts[0], 1, limit=60)
    assert passed == 59


def test_waiting_requests_share_a_transaction(clock):
    class Slow(OneTable):
        def __init__(self):
            super().__init__()
            self.held = []

        def submit(self, work):
            told = Future()
            self.held.append((work, told))
            return told

        def let_go(self):
            held, self.held = self.held, []
            for work, told in held:
                told.set_result(OneTable.submit(self, work).result())

    table = Slow()
    with closing(RateWindows()) as alone:
        host = SharedRates(table, alone, clock=clock)

        async def send():
            together = [
                asyncio.ensure_future(host.count("requests", f"{n % 7}", 3)) for n in range(70)
            ]
            while not all(one.done() for one in together):
                await next_turn()
                table.let_go()
            return [one.result() for one in together]

        told = asyncio.run(send())
    assert told.count(None) == 7 * 3
    assert table.n_leases == 2


def test_a_host_counts_alone_while_the_database_is_away(hosts, table, clock, caplog):
    table.is_away = True
    assert counted(hosts[0], 10, limit=4) == 4
    assert counted(hosts[1], 10, limit=4) == 4
    assert "counts alone" in caplog.text
    table.is_away = False
    clock.now += 1.1
    assert counted(hosts[0], 10, limit=4) == 4
    assert counted(hosts[1], 10, limit=4) == 0


def test_callers_are_bounded(table, clock):
    with closing(RateWindows()) as alone:
        host = SharedRates(table, alone, clock=clock, max_callers=100)

        async def flood():
            for number in range(1000):
                await host.count("public", f"address {number}", 5)

        asyncio.run(flood())
        assert len(host) <= 100


def test_the_window_before_counts_in_part():
    request = RateRequest(key="k", limit=100, needed=100, ahead=0)
    assert slice_of(request, (NUMBER - 1, 0, 100), NUMBER, rest_s=45.0).units == 25
    assert slice_of(request, (NUMBER - 2, 0, 100), NUMBER, rest_s=45.0).units == 100
    given_back = RateRequest(
        key="k", limit=100, needed=100, ahead=0, unused=40, unused_of=NUMBER - 1
    )
    assert slice_of(given_back, (NUMBER - 1, 0, 100), NUMBER, rest_s=45.0).units == 55


def test_two_hosts_share_a_minute_in_postgresql(postgres):
    url = postgres.new_database()
    open_state(url).close()
    with ExitStack() as stack:
        hosts = []
        for _ in range(2):
            writer = open_counters(url)
            stack.callback(writer.close)
            hosts.append(SharedRates(writer, stack.enter_context(closing(RateWindows()))))
        passed = sum(counted(hosts[turn % 2], 1, limit=40) for turn in range(100))
        # Two where the minute ends meanwhile.
        assert 36 <= passed <= 80
        postgres.stop()
        assert counted(hosts[0], 50, limit=40) <= 40
        postgres.start()


def test_old_minutes_leave_the_table(postgres):
    url = postgres.new_database()
    open_state(url).close()
    engine = create_engine(url)
    with engine.begin() as connection:
        requests = [RateRequest(key=f"k{n}", limit=9, needed=1 + n % 2, ahead=0) for n in range(30)]
        lease(connection, requests)
        old = update(rate_windows).where(rate_windows.c.key.in_([f"k{n}" for n in range(10)]))
        connection.execute(old.values(number=rate_windows.c.number - 2))
        sweep(connection, most=1000)
        assert connection.scalar(select(func.count()).select_from(rate_windows)) == 20
        sweep(connection, most=10)
        left = connection.execute(select(rate_windows.c.current)).scalars().all()
        assert left == [2] * 9
    engine.dispose()


def test_a_file_has_no_shared_counters(tmp_path):
    assert open_counters(f"sqlite:///{tmp_path / 'state.sqlite'}") is None
    assert WINDOW_S > SLICE_S
