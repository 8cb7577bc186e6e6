"""The stored rows of a growth, and the process that turns it."""

from __future__ import annotations

from sqlalchemy import insert

from steelyard.accounts.service import AccountService
from steelyard.growth import store as rows
from steelyard.named.tables import named_decisions
from steelyard.storage import open_state


def test_a_claim_returns_the_work_of_the_process_before(tmp_path):
    state = open_state(f"sqlite:///{tmp_path / 'state.sqlite'}")
    account = AccountService(state, accounts_enabled=True).create_account("acme").id
    named = {"id": "nd_1", "account_id": account, "name": "triage", "created_at": 1.0}
    state.write_now(lambda c: c.execute(insert(named_decisions), named))
    growth = {"named_id": "nd_1", "account_id": account, "key_id": None, "name": "triage"}
    growth |= {"policy": b"{}", "state": b"first", "set_by": "a person", "set_at": 1.0}
    state.write_now(
        lambda c: rows.put_growth(c, {**growth, "turned_at": 0.0, "claimed_until": 0.0})
    )
    [due] = state.read_now(lambda c: rows.due_growths(c, before=5.0, now=5.0))
    state.write_now(lambda c: rows.claim(c, "nd_1", 5.0, 9.0))
    assert state.write_now(lambda c: rows.claim(c, "nd_1", 6.0, 9.0)) is None, "another has it"
    state.write_now(lambda c: rows.change_growth(c, "nd_1", state=b"second", claimed_until=0.0))
    assert due.state == b"first"
    assert state.write_now(lambda c: rows.claim(c, "nd_1", 7.0, 9.0)).state == b"second"
    state.close()
