"""An account's usage: calls, tokens, decisions and cost by day, key, model, family or named decision.

The cost is the ledger's charge, so that its sums are those of the transactions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from time import gmtime, strftime, time

from sqlalchemy import BigInteger, ColumnElement, Connection, cast, func, select

from steelyard.accounts.store import key_names
from steelyard.caller import Caller
from steelyard.errors import InvalidRequestError
from steelyard.families.tables import families
from steelyard.ledger.money import to_usd
from steelyard.ledger.tables import ledger_entries
from steelyard.operations.tables import operations
from steelyard.people.wire import Usage, UsageLine, UsageQuery
from steelyard.storage import State
from steelyard.wire.filling import filled

_DAY_S = 86_400
#: Days of one answer, and how many it has when nothing is said.
MAX_DAYS, _DAYS = 400, 30
#: Lines of one answer; the last sums up the rest.
MAX_LINES = 1_000


@dataclass(slots=True)
class _Sum:
    """The usage of one name."""

    name: str | None
    calls: int = 0
    tokens: int = 0
    decisions: int = 0
    cost_nano: int = 0

    def add(self, other: _Sum) -> None:
        self.calls += other.calls
        self.tokens += other.tokens
        self.decisions += other.decisions
        self.cost_nano += other.cost_nano


class UsageService:
    """Adds up the usage of accounts."""

    def __init__(self, state: State, *, now: Callable[[], float] = time) -> None:
        self._state = state
        self._now = now

    async def usage(self, caller: Caller, query: UsageQuery) -> Usage:
        """Return an account's usage in a span of time."""
        until = self._now() if query.until is None else query.until
        since = until - _DAYS * _DAY_S if query.since is None else query.since
        _check(query, since, until)

        def work(connection: Connection) -> Usage:
            account_id = caller.account_id
            sums = _sums(connection, account_id, query.by, since, until)
            labels: dict[str, str] = {}
            if query.by == "family":
                sums = _by_family(sums, _families(connection, account_id))
            elif query.by == "key":
                labels = key_names(connection, account_id)
            lines = sorted(sums, key=lambda line: (line.name is None, line.name or ""))
            if query.by != "day":
                lines = _bounded(lines)
            total = _Sum(None)
            for line in lines:
                total.add(line)
            return Usage(
                since=since,
                until=until,
                by=query.by,
                data=[_to_wire(line, labels) for line in lines],
                total=_to_wire(total, {}),
            )

        return await self._state.read(work)


def _sums(
    connection: Connection, account_id: str, by: str, since: float, until: float
) -> list[_Sum]:
    entry = ledger_entries.c
    name: ColumnElement[str | int | None]
    if by == "day":
        days = entry.created_at / _DAY_S
        # SQLite may have no floor(), and cuts off where PostgreSQL rounds.
        is_cut = connection.dialect.name == "sqlite"
        name = cast(days if is_cut else func.floor(days), BigInteger)
    else:
        columns = {"key": operations.c.key_id, "decision": operations.c.named}
        name = columns.get(by, operations.c.model)
    rows = connection.execute(
        select(
            name.label("name"),
            func.count().label("calls"),
            func.sum(operations.c.input_tokens).label("tokens"),
            func.sum(operations.c.n_decisions).label("decisions"),
            func.sum(entry.amount_nano).label("cost_nano"),
        )
        .join(operations, operations.c.id == entry.operation_id)
        .where(
            entry.account_id == account_id,
            entry.book == "revenue",
            entry.created_at >= since,
            entry.created_at < until,
        )
        .group_by(name)
    )
    return [
        _Sum(
            strftime("%Y-%m-%d", gmtime(row.name * _DAY_S)) if by == "day" else row.name or None,
            row.calls,
            int(row.tokens or 0),
            int(row.decisions or 0),
            int(row.cost_nano),  # a sum of PostgreSQL's is a decimal
        )
        for row in rows
    ]


def _families(connection: Connection, account_id: str) -> set[str]:
    return set(
        connection.scalars(select(families.c.name).where(families.c.account_id == account_id))
    )


def _by_family(items: Iterable[_Sum], names: set[str]) -> list[_Sum]:
    """Add up the models of each family, and all other models together."""
    sums: dict[str | None, _Sum] = {}
    for model_sum in items:
        family = (model_sum.name or "").partition("@")[0]
        name = family if family in names else None
        sums.setdefault(name, _Sum(name)).add(model_sum)
    return list(sums.values())


def _bounded(lines: list[_Sum]) -> list[_Sum]:
    """Return the lines that cost most, with the others added up in one without a name."""
    if len(lines) <= MAX_LINES:
        return lines
    lines = sorted(lines, key=lambda line: (line.name is None, -line.cost_nano))
    rest = _Sum(None)
    for line in lines[MAX_LINES - 1 :]:
        rest.add(line)
    return [*lines[: MAX_LINES - 1], rest]


def _to_wire(line: _Sum, labels: dict[str, str]) -> UsageLine:
    return filled(
        UsageLine,
        line,
        label=labels.get(line.name or "", line.name),
        cost_usd=to_usd(line.cost_nano),
    )


def _check(query: UsageQuery, since: float, until: float) -> None:
    name = "since" if query.until is None else "until"
    if until <= since:
        raise InvalidRequestError.at(
            ("query", name), "until is not after since; give a later time.", "empty_range"
        )
    if until - since > MAX_DAYS * _DAY_S:
        message = f"The span has more than {MAX_DAYS} days; give a shorter one."
        raise InvalidRequestError.at(("query", name), message, "too_long")
