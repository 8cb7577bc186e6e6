"""Setups of models in a state, which an operator alone begins."""

from __future__ import annotations

from typing import Any

from steelyard.ids import new_id
from steelyard.models.setups import SETUPS
from steelyard.storage import State


def add_setup(state: State, account: Any) -> str:
    """Queue the check of a model of an account's name, and return its id."""
    values = {"id": new_id("set"), "account_id": account.id, "kind": "check", "name": account.name}
    values |= {"created_at": 1.0, "updated_at": 1.0, "done": 0, "total": 0}
    state.write_now(lambda connection: SETUPS.add(connection, values))
    return str(values["id"])
