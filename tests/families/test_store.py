"""Rows of lineage: a written value is read again, at a revision that counts every change."""

from __future__ import annotations

import msgspec
import pytest
from sqlalchemy import func, select
from sqlalchemy.exc import IntegrityError

from steelyard.families import store as rows
from steelyard.families.fine_tune_wire import JobEvent
from steelyard.families.lineage.fine_tunes import start_family
from steelyard.families.lineage.lineage import Lineage, WarmHour
from steelyard.families.lineage.warmth import keep_family_warm
from steelyard.families.store import StoredLineage
from steelyard.families.tables import tuned_models
from support.families.lineage_cases import BASE, START, adapter, at, grow, make_order

ACCOUNT = "local"


def load(state):
    return state.read_now(lambda connection: rows.load_lineage(connection, ACCOUNT))


def save(state, before, after):
    def work(connection):
        assert rows.lock_revision(connection, ACCOUNT) == before.revision
        return rows.save_lineage(connection, ACCOUNT, before, after)

    return state.write_now(work)


@pytest.fixture
def grown():
    lineage = grow(Lineage(), "router", 3)
    conditions = at(hour_nano={BASE: 600})
    return keep_family_warm(lineage, "router", conditions, enabled=True).lineage


def test_an_account_without_lines_has_none(state):
    assert load(state) == StoredLineage()
    assert state.read_now(lambda connection: rows.revision_of(connection, ACCOUNT)) == 0
    assert state.read_now(rows.all_revisions) == {}


def test_what_was_written_is_read(state, grown):
    saved = save(state, load(state), grown)
    assert saved.revision == 1
    assert load(state) == saved
    assert load(state).lineage == grown
    assert state.read_now(rows.all_revisions) == {ACCOUNT: 1}


def test_only_changes_are_written_and_counted(state, grown):
    first = save(state, load(state), grown)
    assert save(state, first, grown) is first
    [held] = grown.windows
    later = WarmHour(id="keep_warm_2", started_at=START, ends_at=START + 1, reserved_nano=7)
    moved = msgspec.structs.replace(
        grown, windows={adapter("router", 1): grown.windows[held], held: later}, n_windows=2
    )
    second = save(state, first, moved)
    assert second.revision == 2
    assert load(state).lineage == moved
    without = msgspec.structs.replace(moved, families={}, windows={})
    assert save(state, second, without).revision == 3
    assert load(state).lineage == without


def test_accounts_are_apart(state, grown):
    save(state, load(state), grown)
    other = state.read_now(lambda connection: rows.load_lineage(connection, "acct_other"))
    assert other == StoredLineage()


def test_a_number_is_given_once(state, grown):
    saved = save(state, load(state), grown)
    model = grown.models[adapter("router", 3)]
    again = msgspec.structs.replace(model, adapter="ft-ftj_other", job_id="ftj_other")
    twice = msgspec.structs.replace(grown, models={**grown.models, again.adapter: again})
    with pytest.raises(IntegrityError):
        save(state, saved, twice)
    count = select(func.count()).select_from(tuned_models)
    assert state.read_now(lambda connection: connection.execute(count).scalar_one()) == 3
    assert load(state) == saved


def test_an_event_is_kept_once(state):
    lineage = start_family(Lineage(), "router", BASE, make_order("ftj_1"), at()).lineage
    save(state, load(state), lineage)
    event = JobEvent(seq=1, created_at=START, type="queued", message="It is queued.")
    state.write_now(lambda connection: rows.insert_event(connection, "ftj_1", event))
    with pytest.raises(IntegrityError):
        state.write_now(lambda connection: rows.insert_event(connection, "ftj_1", event))
