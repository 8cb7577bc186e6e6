"""Rows of named decisions, their versions, aliases and moves."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import sqlalchemy as sa

from steelyard.job_frame.store import JobStore
from steelyard.named.comparison_wire import COMPARISON
from steelyard.named.tables import (
    named_aliases,
    named_comparisons,
    named_decisions,
    named_moves,
    named_shares,
    named_versions,
)
from steelyard.storage.pages import OrderedPage
from steelyard.storage.rows import Rows

DECISIONS = Rows(named_decisions)
VERSIONS = Rows(named_versions, owner="named_id")
MOVES = Rows(named_moves, owner="named_id")
SHARES = Rows(named_shares, owner="named_id")


class _Comparisons(JobStore):
    """Comparisons as jobs."""

    def move(self, connection: sa.Connection, job_id: str, status: str, **values: Any) -> bool:
        """Move a comparison; one that fails or is stopped forgets its answers, and texts sent with it."""
        if status in {"failed", "cancelled"}:
            values["progress"] = None
        return super().move(connection, job_id, status, **values)


#: The comparisons of every account.
COMPARISONS = _Comparisons(
    COMPARISON,
    table=named_comparisons,
    advice="look at GET /v1/named-comparisons",
    models=("from_model_id", "to_model_id"),
)


def change_decision(connection: sa.Connection, named_id: str, values: Mapping[str, Any]) -> None:
    """Change a named decision's description or owner."""
    if values:
        connection.execute(
            sa.update(named_decisions).where(named_decisions.c.id == named_id).values(dict(values))
        )


def find_decision(connection: sa.Connection, account_id: str, name: str) -> sa.Row[Any] | None:
    """Return an account's named decision."""
    of_name = (named_decisions.c.account_id == account_id, named_decisions.c.name == name)
    return connection.execute(sa.select(named_decisions).where(*of_name)).first()


def page_of_decisions(
    connection: sa.Connection, account_id: str, *, archived: bool, limit: int, cursor: str | None
) -> OrderedPage:
    """Return a page of an account's named decisions, the newest first."""
    at = named_decisions.c.archived_at
    where = [at.is_not(None) if archived else at.is_(None)]
    return DECISIONS.page(connection, account_id, where=where, limit=limit, cursor=cursor)


def latest_numbers(connection: sa.Connection, named_ids: Collection[str]) -> dict[str, int]:
    """Return the number of the newest version of each."""
    numbers = connection.execute(
        sa.select(named_versions.c.named_id, sa.func.max(named_versions.c.number).label("number"))
        .where(named_versions.c.named_id.in_(named_ids))
        .group_by(named_versions.c.named_id)
    )
    return {row.named_id: row.number for row in numbers}


def aliases_of(connection: sa.Connection, named_ids: Collection[str]) -> list[sa.Row[Any]]:
    """Return the aliases of some named decisions, by name."""
    return list(
        connection.execute(
            sa.select(named_aliases)
            .where(named_aliases.c.named_id.in_(named_ids))
            .order_by(named_aliases.c.alias)
        ).all()
    )


def name_of(connection: sa.Connection, named_id: str) -> str:
    """Return the name of a named decision."""
    of_id = named_decisions.c.id == named_id
    return str(connection.execute(sa.select(named_decisions.c.name).where(of_id)).scalar_one())


def find_comparison(
    connection: sa.Connection, named_id: str, before: int, after: int, since: float
) -> sa.Row[Any] | None:
    """Return the newest comparison of two versions that was asked for since, and succeeded."""
    table = named_comparisons.c
    of_versions = (
        table.named_id == named_id,
        table.from_number == before,
        table.to_number == after,
        table.status == "succeeded",
        table.created_at >= since,
    )
    newest = sa.select(named_comparisons).where(*of_versions).order_by(table.created_at.desc())
    return connection.execute(newest.limit(1)).first()


def find_version(connection: sa.Connection, named_id: str, number: int) -> sa.Row[Any] | None:
    """Return a version by its number."""
    of_number = (named_versions.c.named_id == named_id, named_versions.c.number == number)
    return connection.execute(sa.select(named_versions).where(*of_number)).first()


def find_equal(connection: sa.Connection, named_id: str, sha256: str) -> sa.Row[Any] | None:
    """Return the version with a content."""
    is_equal = (named_versions.c.named_id == named_id, named_versions.c.sha256 == sha256)
    return connection.execute(sa.select(named_versions).where(*is_equal)).first()


def alias_number(connection: sa.Connection, named_id: str, alias: str) -> int | None:
    """Return the number of the version that an alias points to."""
    of_alias = (named_aliases.c.named_id == named_id, named_aliases.c.alias == alias)
    return connection.scalar(sa.select(named_aliases.c.number).where(*of_alias))


def move_alias(connection: sa.Connection, move: Mapping[str, Any]) -> None:
    """Point an alias to a version, and keep that it was moved."""
    connection.execute(sa.insert(named_moves), dict(move))
    named_id, alias = move["named_id"], move["alias"]
    connection.execute(
        sa.delete(named_aliases).where(
            named_aliases.c.named_id == named_id, named_aliases.c.alias == alias
        )
    )
    connection.execute(
        sa.insert(named_aliases),
        {
            "named_id": named_id,
            "alias": alias,
            "number": move["to_number"],
            "moved_at": move["created_at"],
        },
    )


def last_move(connection: sa.Connection, named_id: str, alias: str) -> sa.Row[Any] | None:
    """Return the last move of an alias."""
    return connection.execute(
        sa.select(named_moves)
        .where(named_moves.c.named_id == named_id, named_moves.c.alias == alias)
        .order_by(named_moves.c.created_at.desc(), named_moves.c.id.desc())
        .limit(1)
    ).first()


def find_served(
    connection: sa.Connection, account_id: str, name: str, at: str | int
) -> sa.Row[Any] | None:
    """Return the version of a reference, in one read; null columns without such a version."""
    decision, version, alias = named_decisions, named_versions, named_aliases
    columns: tuple[sa.ColumnElement[Any], ...] = (
        decision.c.id.label("named_id"),
        decision.c.archived_at,
        decision.c.store,
        version.c.id,
        version.c.number,
    )
    if isinstance(at, int):
        joined = decision.outerjoin(
            version, sa.and_(version.c.named_id == decision.c.id, version.c.number == at)
        )
    else:
        joined = decision.outerjoin(
            alias, sa.and_(alias.c.named_id == decision.c.id, alias.c.alias == at)
        ).outerjoin(
            version,
            sa.and_(version.c.named_id == decision.c.id, version.c.number == alias.c.number),
        )
    of_name = (decision.c.account_id == account_id, decision.c.name == name)
    return connection.execute(sa.select(*columns).select_from(joined).where(*of_name)).first()


def shares_of(connection: sa.Connection, named_ids: Collection[str]) -> list[sa.Row[Any]]:
    """Return the shares of some named decisions, the newest first."""
    table = named_shares.c
    query = sa.select(named_shares).where(table.named_id.in_(named_ids))
    return list(connection.execute(query.order_by(table.created_at.desc(), table.id)).all())


def find_share(connection: sa.Connection, named_id: str, alias: str) -> sa.Row[Any] | None:
    """Return the share of an alias that goes on, with the id of the version that answers it."""
    share, version = named_shares, named_versions
    joined = share.join(
        version,
        sa.and_(version.c.named_id == share.c.named_id, version.c.number == share.c.to_number),
    )
    where = (share.c.named_id == named_id, share.c.alias == alias, share.c.ended_at.is_(None))
    return connection.execute(
        sa.select(share, version.c.id.label("version_id")).select_from(joined).where(*where)
    ).first()


def running_shares(connection: sa.Connection) -> list[sa.Row[Any]]:
    """Return the shares of every account that go on, with the names of their decisions."""
    of = named_decisions.c
    joined = named_shares.join(named_decisions, of.id == named_shares.c.named_id)
    return list(
        connection.execute(
            sa.select(named_shares, of.account_id, of.name)
            .select_from(joined)
            .where(named_shares.c.ended_at.is_(None))
            .order_by(named_shares.c.created_at)
        ).all()
    )


def change_share(
    connection: sa.Connection, share_id: str, values: Mapping[str, Any], *, at: float | None = None
) -> bool:
    """Change a share that goes on, and is at a step where one is given; whether it does and is."""
    is_running = [named_shares.c.id == share_id, named_shares.c.ended_at.is_(None)]
    if at is not None:
        is_running.append(named_shares.c.share == at)
    changed = connection.execute(sa.update(named_shares).where(*is_running).values(dict(values)))
    return changed.rowcount > 0


def end_shares(
    connection: sa.Connection, named_id: str, alias: str, *, at: float, by: str, reason: str
) -> None:
    """End the running shares from or to an alias."""
    table = named_shares.c
    connection.execute(
        sa.update(named_shares)
        .where(
            table.named_id == named_id,
            sa.or_(table.alias == alias, table.to_alias == alias),
            table.ended_at.is_(None),
        )
        .values(ended_at=at, ended_by=by, ended_reason=reason)
    )


def content_of(connection: sa.Connection, version_id: str) -> bytes:
    """Return the content of a version."""
    of_id = named_versions.c.id == version_id
    return bytes(connection.execute(sa.select(named_versions.c.content).where(of_id)).scalar_one())
