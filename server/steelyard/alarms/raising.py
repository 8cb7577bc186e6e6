"""Raise and clear alarms: their rows, events and letters, in the caller's transaction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from sqlalchemy import Connection, Row

from steelyard.accounts.store import find_account
from steelyard.alarms import store as rows
from steelyard.alarms.wire import AlarmEvidence
from steelyard.ids import new_id
from steelyard.outbox.publishing import publish
from steelyard.people.member_store import owners_of
from steelyard.people.store import insert_letter

_LETTER_S = 3 * 86_400.0
#: Columns that say of what an alarm is; one that is raised is not raised again.
_ABOUT = ("version", "decision", "watch")


def raise_alarm(
    connection: Connection,
    about: Mapping[str, str],
    evidence: AlarmEvidence,
    message: str,
    now: float,
    *,
    has_accounts: bool,
) -> None:
    """Raise an alarm, and publish that, unless the same one is raised already.

    ``about``: its account, model, version, decision and watch.
    """
    account_id, model = about["account_id"], about["model"]
    if rows.active_alarms(connection, account_id, model, **{name: about[name] for name in _ABOUT}):
        return
    values = {
        **about,
        "id": new_id("alarm"),
        "message": message,
        "evidence": msgspec.json.encode(evidence),
        "created_at": now,
    }
    rows.insert_alarm(connection, values)
    figures = {
        "value": evidence.estimate.value,
        "reference": evidence.reference_value,
        "n": evidence.estimate.n,
    }
    _publish(connection, "alarm.raised", values, figures)
    if not has_accounts:
        return
    account = find_account(connection, account_id)
    for email in owners_of(connection, account_id):
        insert_letter(
            connection,
            "alarm",
            email,
            at=now,
            expires_at=now + _LETTER_S,
            account_name="" if account is None else account.name,
            text=message,
        )


def clear(connection: Connection, alarm: Row[Any], reason: str, now: float) -> None:
    """Clear an alarm, and publish that."""
    rows.change_alarm(connection, alarm.id, state="cleared", cleared_at=now, cleared_reason=reason)
    _publish(connection, "alarm.cleared", alarm._mapping, {"reason": reason})


def _publish(
    connection: Connection, event: Any, alarm: Mapping[Any, Any], figures: Mapping[str, Any]
) -> None:
    data = {
        "alarm_id": alarm["id"],
        "model": alarm["model"],
        "version": alarm["version"] or None,
        "decision": alarm["decision"] or None,
        "watch": alarm["watch"],
        **figures,
    }
    publish(connection, alarm["account_id"], event, alarm["id"], data)
