"""Operations of money itself: postings of credit, a purchase or a referral."""

from __future__ import annotations

from sqlalchemy import Connection

from steelyard.ids import new_id
from steelyard.ledger.books import Posting
from steelyard.ledger.store import post
from steelyard.operations.store import OperationRow, insert_operation


def post_operation(
    connection: Connection,
    account_id: str,
    route: str,
    posting: Posting,
    amount_nano: int,
    at: float,
) -> str:
    """Write an operation that adds credit with its first posting; return its id."""
    operation_id = new_id("op")
    insert_operation(
        connection,
        OperationRow(
            id=operation_id,
            account_id=account_id,
            key_id=None,
            route=route,
            idempotency_key=None,
            model="",
            state="credit",
            instance=None,
            lease_until=None,
            accepted_at=at,
            ended_at=at,
            reserved_nano=0,
            amount_nano=amount_nano,
        ),
    )
    post(connection, posting, operation_id=operation_id, account_id=account_id, at=at)
    return operation_id
