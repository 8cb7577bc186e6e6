"""Families as they are stored: money and keep warm, keepers on one state, the columns of rows."""

from __future__ import annotations

import threading

import msgspec
import pytest
from sqlalchemy import func, select

from steelyard import errors
from steelyard.caller import Caller
from steelyard.families import fine_tune_store as job_rows
from steelyard.families.fine_tune_wire import Job
from steelyard.families.lineage.draft import LineageChange
from steelyard.families.lineage.fees import Tariff
from steelyard.families.lineage.fine_tunes import cancel_job, start_job
from steelyard.families.lineage.lineage import HOUR_S
from steelyard.families.tables import fine_tunes
from steelyard.jobs.store import set_runner, unfinished
from steelyard.operations.tables import operations
from steelyard.storage import open_state
from support.accounts.operating import LOCAL, START, Desk
from support.families.stored_lineage import BASE, Kept

DAY = 86_400.0
OTHER = Caller("acct_other", None, "full", "")


class TestWarmth:
    @pytest.fixture
    def kept(self, make_kept):
        kept = make_kept(hour_nano={BASE: 3_600})
        kept.grow()
        return kept

    def books(self, kept):
        books = Desk(kept.state).books()
        return books["held"], books["revenue"]

    def test_an_hour_is_held_renewed_and_charged_by_the_minute(self, kept):
        told = kept.told("keep_warm", "router", enabled=True)
        assert told["keep_warm_window"]["reserved_usd"] == "0.0000036"
        assert self.books(kept) == (3_600, 0)
        assert kept.engines.pinned == {kept.models()[0]}
        kept.tick_after(HOUR_S)
        assert self.books(kept) == (3_600, 3_600)
        kept.clock.at += 90
        kept.post("keep_warm", "router", enabled=False)
        assert self.books(kept) == (0, 3_720)
        assert kept.engines.pinned == frozenset()
        Desk(kept.state).check_ledger()

    def test_it_follows_a_move_without_another_hour(self, kept):
        kept.post("keep_warm", "router", enabled=True)
        kept.grow(n_models=2)
        assert kept.lineage().windows.keys() == {kept.models()[1]}
        assert kept.engines.pinned == {kept.models()[1]}
        kept.clock.at += HOUR_S
        kept.post("switch", "router", on=False)
        assert self.books(kept) == (0, 3_600)

    def test_a_warm_model_that_was_let_go_of_is_loaded_again(self, kept):
        kept.post("keep_warm", "router", enabled=True)
        kept.engines.held.clear()
        kept.service.tick()
        assert kept.engines.held == {kept.models()[0]: "loaded"}

    def test_no_room_and_no_price_above_the_bound(self, kept):
        with pytest.raises(errors.PriceChangedError):
            kept.post("keep_warm", "router", enabled=True, max_price_usd="0.0000035")
        kept.engines.room[BASE] = 0
        with pytest.raises(errors.WarmCapacityError):
            kept.post("keep_warm", "router", enabled=True)
        assert self.books(kept) == (0, 0)

    def test_windows_of_two_accounts_are_apart(self, kept, state):
        desk = Desk(state)
        account = desk.accounts.create_account("second").id
        caller = Caller(account, None, "full", "")
        kept.add_dataset("ds_2", account=account)
        job_id = kept.start("router", "ds_2", caller=caller)
        kept.run(job_id, account=account)
        kept.finish(job_id, account=account)
        kept.service.tick()
        for who in (LOCAL, caller):
            kept.post("keep_warm", "router", enabled=True, caller=who)
        assert desk.books()["held"] == desk.books(account)["held"] == 3_600


class TestMoney:
    PRICE = 7_000

    @pytest.fixture
    def kept(self, make_kept):
        kept = make_kept(tariff=Tariff(token_nano=7), hour_nano={BASE: 600}, accounts_enabled=True)
        kept.desk = Desk(kept.state)
        return kept

    def test_a_fee_is_held_then_charged_or_released(self, kept):
        with pytest.raises(errors.InsufficientCreditError):
            kept.start()
        kept.desk.accounts.add_credit("local", 2 * self.PRICE)
        job_id = kept.start()
        assert kept.desk.books()["held"] == self.PRICE
        kept.run(job_id)
        kept.fail(job_id)
        kept.fail(job_id)
        assert kept.job(job_id).charge == "released"
        assert kept.desk.books() == {
            "paid": 2 * self.PRICE,
            "held": 0,
            "revenue": 0,
            "funding": -2 * self.PRICE,
        }
        job_id = kept.resume()
        kept.train(job_id)
        kept.finish(job_id)
        assert kept.job(job_id).charge == "charged"
        assert kept.desk.books()["revenue"] == self.PRICE
        kept.desk.check_ledger()

    def test_without_accounts_prices_are_paid_and_not_bounded(self, make_kept):
        kept = make_kept(tariff=Tariff(minimum_nano=50, token_nano=0))
        job_id = kept.start()
        assert Desk(kept.state).books()["paid"] == -50
        assert kept.job(job_id).charge == "reserved"

    def test_free_work_touches_no_books(self, make_kept):
        kept = make_kept()
        kept.grow()
        kept.post("keep_warm", "router", enabled=True)
        count = select(func.count()).select_from(operations)
        assert kept.state.read_now(lambda c: c.execute(count).scalar_one()) == 0

    def test_a_keys_cap_bounds_its_requests(self, kept):
        kept.desk.accounts.add_credit("local", 100 * self.PRICE)
        key = kept.desk.accounts.create_key(scope="inference", monthly_cap_nano=self.PRICE + 700)
        caller = Caller("local", key.key.id, "inference", "")
        job_id = kept.start(caller=caller)
        assert kept.desk.month(key.key.id) == (0, self.PRICE)
        with pytest.raises(errors.KeyCapReachedError):
            kept.start("other", caller=caller)
        kept.train(job_id)
        kept.service.tick()
        assert kept.desk.month(key.key.id) == (self.PRICE, 0)
        # The hour is the key's; the hours after it are the account's.
        kept.post("keep_warm", "router", enabled=True, caller=caller)
        assert kept.desk.month(key.key.id) == (self.PRICE, 600)
        kept.tick_after(HOUR_S)
        assert kept.desk.month(key.key.id) == (self.PRICE + 600, 0)
        assert kept.desk.books()["held"] == 600
        kept.desk.check_ledger()

    def test_warmth_stops_when_the_next_hour_cannot_be_held(self, kept):
        kept.desk.accounts.add_credit("local", self.PRICE + 600)
        kept.grow()
        kept.post("keep_warm", "router", enabled=True)
        kept.tick_after(HOUR_S)
        told = kept.get()
        assert (told.keep_warm, told.keep_warm_stopped_at) == (False, kept.clock.at)
        assert kept.desk.books()["paid"] == 0
        assert kept.desk.books()["held"] == 0

    def test_a_sweep_of_operations_leaves_holds_of_fine_tunes(self, kept):
        kept.desk.accounts.add_credit("local", self.PRICE)
        job_id = kept.start()
        kept.clock.at += 10 * DAY
        kept.desk.clock.at = kept.clock.at
        kept.desk.log.sweep()
        assert kept.desk.books()["held"] == self.PRICE
        kept.train(job_id)
        assert kept.desk.books()["revenue"] == self.PRICE

    def test_queues(self, make_kept):
        kept = make_kept(account_queue=1, queue=1)
        kept.start("a")
        with pytest.raises(errors.TenantQueueFullError):
            kept.start("b")
        account = Desk(kept.state).accounts.create_account("second").id
        kept.add_dataset("ds_2", account=account)
        with pytest.raises(errors.QueueFullError):
            kept.start("b", "ds_2", caller=Caller(account, None, "full", ""))


class TestKeeper:
    def test_nothing_of_a_command_that_fails_is_written(self, kept):
        kept.start()
        revision = kept.lineages.read_now("local").revision

        job_id = next(iter(kept.lineage().jobs))

        def cancel_and_fail(connection):
            kept.lineages.apply_in(
                connection,
                "local",
                lambda lineage, conditions: cancel_job(lineage, job_id, conditions),
            )
            raise ValueError("on the way")

        with pytest.raises(ValueError, match="on the way"):
            kept.state.write_now(cancel_and_fail)
        assert kept.lineages.read_now("local").revision == revision
        [job] = kept.lineage().jobs.values()
        assert job.status == "queued"
        assert len(kept.state.read_now(lambda c: job_rows.events_of(c, job.id))) == 1

    def test_events_count_without_gaps(self, kept):
        kept.grow()
        [job] = kept.lineage().jobs.values()
        events = kept.state.read_now(lambda c: job_rows.events_of(c, job.id))
        assert [event.seq for event in events] == list(range(1, job.n_events + 1))
        assert [event.type for event in events] == [
            "queued",
            "started",
            "gate_passed",
            "joined",
            "succeeded",
        ]

    def test_two_processes_see_each_others_changes(self, kept, bases, state_url):
        other_state = open_state(state_url)
        try:
            other = Kept(other_state, bases, clock=kept.clock)
            kept.grow()
            assert other.served() == "router@1"
            other.service.tick()
            assert other.engines.held == {kept.models()[0]: "loaded"}
            other.post("switch", "router", on=False)
            with pytest.raises(errors.FamilyOffError):
                kept.resolve("router")
        finally:
            other_state.close()

    def test_changes_at_once_lose_nothing(self, make_kept, state, state_url, bases):
        kept = make_kept(account_queue=100, queue=100)
        states = [state, open_state(state_url)]
        try:
            workers = [
                Kept(one, bases, clock=kept.clock, account_queue=100, queue=100) for one in states
            ]

            def work(n):
                for m in range(4):
                    workers[n % 2].start(f"family-{n}-{m}")

            threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert len(kept.lineage().families) == 16
            assert kept.lineages.read_now("local").revision == 16
            assert len(workers[1].lineage().jobs) == 16
        finally:
            states[1].close()

    def test_writes_of_a_dead_process_are_brought_into_effect(self, kept, state, bases):
        kept.grow()
        adapter = kept.models()[0]
        kept.post("switch", "router", on=False)
        # The switch is written, and the process dies before it tells its engines.
        kept.engines.held[adapter] = "loaded"
        kept.lineages.follow = lambda applied: None
        kept.post("switch", "router", on=True)
        reborn = Kept(state, bases, clock=kept.clock)
        assert reborn.engines.held == {}
        reborn.service.tick()
        assert reborn.engines.held == {adapter: "loaded"}

    def test_a_model_let_go_of_for_room_is_left_to_its_next_call(self, kept):
        kept.grow()
        kept.engines.held.clear()
        for _ in range(3):
            kept.service.tick()
        assert kept.engines.held == {}

    def test_a_keeper_without_engines_moves_nothing(self, kept, state):
        from steelyard.families.lineage_store import LineageStore

        rules = kept.lineages.rules
        worker = LineageStore(state, lambda: rules, now=kept.clock)
        job_id = kept.start()
        kept.run(job_id)
        kept.lineages, server = worker, kept.lineages
        kept.finish(job_id)
        assert worker.read_now("local").lineage.families["router"].served is None
        kept.lineages = server
        kept.service.tick()
        kept.service.tick()
        assert kept.served() == "router@1"

    def test_a_command_that_changes_nothing_is_no_revision(self, kept):
        kept.start()
        revision = kept.lineages.read_now("local").revision
        kept.lineages.apply_now("local", lambda lineage, conditions: LineageChange(lineage, ()))
        assert kept.lineages.read_now("local").revision == revision

    def test_an_account_that_cannot_be_kept_holds_up_no_other(self, kept, state, monkeypatch):
        account = Desk(state).accounts.create_account("second").id
        kept.add_dataset("ds_2", account=account)
        kept.start("router", "ds_2", caller=Caller(account, None, "full", ""))
        kept.grow()
        kept.clock.at += 8 * DAY
        read = kept.lineages.read_now

        def failing(account_id):
            if account_id == account:
                raise RuntimeError("unreadable")
            return read(account_id)

        monkeypatch.setattr(kept.lineages, "read_now", failing)
        kept.lineages._watches.clear()
        kept.service.tick()
        assert not kept.lineage().families["router"].switch.is_on


class TestRows:
    def test_a_run_belongs_to_one_process(self, kept):
        job_id = kept.start()
        kept.run(job_id)
        mine, progress = kept.state.instance, b'{"step": 1}'

        def set_progress(**changed):
            job = kept.claimed(job_id, **changed)
            return kept.state.write_now(lambda c: job_rows.set_progress(c, job, progress))

        def begin(**changed):
            job = kept.claimed(job_id, **changed)
            return kept.state.write_now(lambda c: set_runner(c, fine_tunes, job))

        assert set_progress()
        assert not set_progress(runner="srv_other")
        assert not set_progress(generation=2)
        row = kept.state.read_now(lambda c: job_rows.FINE_TUNES.find(c, job_id))
        assert (row.progress, row.status, row.runner) == (progress, "running", mine)
        assert job_rows.job_of(row) == kept.job(job_id)
        assert not begin(runner="srv_other", generation=2)
        assert begin(runner="srv_other", attempt=3)
        assert not set_progress()
        # What gets further begins to count its attempts anew.
        [row] = kept.state.read_now(lambda c: unfinished(c, fine_tunes))
        assert (row.runner, row.attempt) == ("srv_other", 3)
        assert set_progress(runner="srv_other")
        assert kept.state.read_now(lambda c: unfinished(c, fine_tunes))[0].attempt == 1

    def test_a_taken_job_is_started_and_an_ended_one_is_not_taken(self, kept):
        job_id = kept.start()
        [row] = kept.state.read_now(lambda c: unfinished(c, fine_tunes))
        assert (row.id, row.status, row.generation, row.attempt) == (job_id, "queued", 1, 1)
        kept.lineages.apply_now("local", lambda lineage, c: start_job(lineage, job_id, c))
        kept.fail(job_id)
        assert kept.state.read_now(lambda c: unfinished(c, fine_tunes)) == []
        job = kept.claimed(job_id)
        assert not kept.state.write_now(lambda c: set_runner(c, fine_tunes, job))

    def test_pages(self, kept):
        ids = []
        for name in ("a", "b", "c"):
            kept.clock.at += 1
            ids.append(kept.start(name))
        kept.fail(ids[1])

        def page(**given):
            given = {"limit": 2, "cursor": None, **given}
            return kept.state.read_now(lambda c: job_rows.FINE_TUNES.page(c, "local", **given))

        first = page()
        assert [row.id for row in first.rows] == ids[:0:-1]
        assert [row.id for row in page(cursor=first.next_cursor).rows] == ids[:1]
        assert [row.id for row in page(statuses=("failed",)).rows] == [ids[1]]
        assert page(dataset_id="ds_other").rows == []

    def test_records_go_with_their_dataset(self, kept):
        kept.grow()
        assert kept.state.read_now(job_rows.live_records) == {"r" * 64}
        assert kept.state.read_now(lambda c: job_rows.deleted_datasets(c, ["ds_1"])) == set()
        kept.grow_dataset(deleted_at=START)
        assert kept.state.read_now(job_rows.live_records) == set()
        assert kept.state.read_now(lambda c: job_rows.deleted_datasets(c, ["ds_1"])) == {"ds_1"}

    def test_a_job_is_returned_by_the_wire(self, kept):
        told = msgspec.convert(kept.told("start", family="router", dataset_id="ds_1"), Job)
        assert (told.status, told.charge, told.model) == ("queued", "free", BASE)
