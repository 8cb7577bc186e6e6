"""Named decisions of accounts: made, given versions, and their aliases moved."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec
from sqlalchemy import Connection, Row

from steelyard import errors
from steelyard.caller import Caller
from steelyard.datasets.store import find_dataset, ids_of_name
from steelyard.decisions.named import PRODUCTION
from steelyard.ids import new_id
from steelyard.named import store as rows
from steelyard.named import wire
from steelyard.named.content import encode, fields_of
from steelyard.named.serializers import all_to_wire, move_to_wire, to_wire, version_to_wire
from steelyard.named.served import ServedDecisions, unknown_decision, unknown_version
from steelyard.operations.idempotency import KeyedWrites
from steelyard.operations.write import Write
from steelyard.outbox.publishing import publish
from steelyard.storage import State
from steelyard.storage.rows import lock_account
from steelyard.wire.decoding import convert
from steelyard.wire.queries import PageQuery
from steelyard.wire.violations import BODY

MAX_DECISIONS = 1_000
MAX_VERSIONS = 10_000
MAX_ALIASES = 50
#: Seconds for which a comparison says whether ``production`` may move.
FRESH_COMPARISON_S = 7 * 86_400.0

_Answer = TypeVar("_Answer", bound=msgspec.Struct)


class NamedDecisions:
    """The named decisions of every account."""

    def __init__(
        self,
        state: State,
        writes: KeyedWrites,
        served: ServedDecisions,
    ) -> None:
        self._state = state
        self._writes = writes
        self._served = served

    async def create(self, write: Write, request: wire.CreateNamedDecision) -> wire.NamedDecision:
        """Make a named decision with its first version, to which ``production`` points."""
        account_id, now = write.caller.account_id, time.time()
        named_id = new_id("nd")

        def work(connection: Connection) -> wire.NamedDecision:
            lock_account(connection, account_id)
            if rows.find_decision(connection, account_id, request.name) is not None:
                raise errors.NamedDecisionExistsError(
                    f"There is a named decision {request.name!r} already; add a version to it with "
                    f"POST /v1/named-decisions/{request.name}/versions, or take another name."
                )
            if rows.DECISIONS.count(connection, account_id) >= MAX_DECISIONS:
                raise errors.NamedDecisionLimitError(
                    f"The account has {MAX_DECISIONS} named decisions, and may have no more."
                )
            values = {
                "id": named_id,
                "account_id": account_id,
                "name": request.name,
                "description": request.description or None,
                "owner": request.owner or None,
                "dataset_id": _find_dataset(connection, account_id, request.dataset_id),
                "created_at": now,
                "store": request.store,
            }
            rows.DECISIONS.insert(connection, values)
            self._insert_version(connection, named_id, 1, request, write.caller, now)
            row = find_decision(connection, account_id, request.name)
            self._move(connection, row, PRODUCTION, (None, 1), write.caller, request.note, now)
            return to_wire(connection, row)

        return await self.apply(write, request.name, work)

    async def page(self, caller: Caller, query: wire.NamedDecisionsQuery) -> wire.NamedDecisionPage:
        """Return a page of the account's named decisions."""

        def read(connection: Connection) -> wire.NamedDecisionPage:
            page = rows.page_of_decisions(
                connection,
                caller.account_id,
                archived=bool(query.archived),
                limit=query.limit,
                cursor=query.cursor,
            )
            return page.to_wire(wire.NamedDecisionPage, all_to_wire(connection, page.rows))

        return await self._state.read(read)

    async def get(self, caller: Caller, name: str) -> wire.NamedDecision:
        """Return a named decision."""
        return await self._state.read(
            lambda connection: to_wire(
                connection, find_decision(connection, caller.account_id, name)
            )
        )

    async def change(
        self, write: Write, name: str, request: wire.ChangeNamedDecision
    ) -> wire.NamedDecision:
        """Change a named decision's description, owner, dataset or storing."""
        given = {
            field: value or None
            for field, value in msgspec.structs.asdict(request).items()
            if value is not None
        }

        def work(connection: Connection) -> wire.NamedDecision:
            account_id = write.caller.account_id
            row = find_decision(connection, account_id, name)
            changes = dict(given)
            if "dataset_id" in given:
                dataset_id = _find_dataset(connection, account_id, request.dataset_id)
                changes["dataset_id"] = dataset_id
            rows.change_decision(connection, row.id, changes)
            return to_wire(connection, find_decision(connection, write.caller.account_id, name))

        return await self.apply(write, name, work)

    async def archive(
        self, write: Write, name: str, request: wire.ArchiveNamedDecision
    ) -> wire.NamedDecision:
        """Archive a named decision, which then answers no requests, or bring it back."""
        account_id, now = write.caller.account_id, time.time()

        def work(connection: Connection) -> wire.NamedDecision:
            row = find_decision(connection, account_id, name)
            if request.archived != (row.archived_at is not None):
                at = now if request.archived else None
                rows.change_decision(connection, row.id, {"archived_at": at})
            return to_wire(connection, find_decision(connection, account_id, name))

        return await self.apply(write, name, work)

    async def add_version(
        self, write: Write, name: str, request: wire.AddNamedVersion
    ) -> wire.NamedVersion:
        """Add a version; where one has the same content, return that one."""
        account_id, now = write.caller.account_id, time.time()

        def work(connection: Connection) -> wire.NamedVersion:
            lock_account(connection, account_id)
            row = find_decision(connection, account_id, name)
            same = rows.find_equal(connection, row.id, encode(fields_of(request))[1])
            if same is not None:
                return version_to_wire(name, same)
            number = rows.latest_numbers(connection, [row.id])[row.id] + 1
            if number > MAX_VERSIONS:
                raise errors.NamedDecisionLimitError(
                    f"{name!r} has {MAX_VERSIONS} versions, and may have no more; make another."
                )
            self._insert_version(connection, row.id, number, request, write.caller, now)
            return version_to_wire(name, _find_version(connection, row, number))

        return await self.apply(write, name, work)

    async def version(self, caller: Caller, name: str, at: str) -> wire.NamedVersion:
        """Return a version by its number, or that to which an alias points."""

        def read(connection: Connection) -> wire.NamedVersion:
            row = find_decision(connection, caller.account_id, name)
            if at.isascii() and at.isdigit() and len(at) <= 9:
                return version_to_wire(name, _find_version(connection, row, int(at)))
            number = rows.alias_number(connection, row.id, at)
            if number is None:
                raise unknown_version(name, at[:64])
            return version_to_wire(name, _find_version(connection, row, number))

        return await self._state.read(read)

    async def versions(self, caller: Caller, name: str, query: PageQuery) -> wire.NamedVersionPage:
        """Return a page of versions."""

        def read(connection: Connection) -> wire.NamedVersionPage:
            row = find_decision(connection, caller.account_id, name)
            page = rows.VERSIONS.page(connection, row.id, limit=query.limit, cursor=query.cursor)
            return page.to_wire(
                wire.NamedVersionPage, [version_to_wire(name, version) for version in page.rows]
            )

        return await self._state.read(read)

    async def history(self, caller: Caller, name: str, query: PageQuery) -> wire.AliasMovePage:
        """Return a page of the moves of its aliases."""

        def read(connection: Connection) -> wire.AliasMovePage:
            row = find_decision(connection, caller.account_id, name)
            page = rows.MOVES.page(connection, row.id, limit=query.limit, cursor=query.cursor)
            return page.to_wire(wire.AliasMovePage, [move_to_wire(move) for move in page.rows])

        return await self._state.read(read)

    async def move(
        self, write: Write, name: str, alias: str, request: wire.MoveAlias
    ) -> wire.NamedDecision:
        """Point an alias to a version; one that does so already stays as it is."""
        account_id, now = write.caller.account_id, time.time()
        check_alias(alias)

        def work(connection: Connection) -> wire.NamedDecision:
            lock_account(connection, account_id)
            row = find_decision(connection, account_id, name)
            _find_version(connection, row, request.version)
            before = rows.alias_number(connection, row.id, alias)
            if request.expected not in {None, before}:
                is_now = "does not exist" if before is None else f"points to version {before}"
                raise errors.AliasChangedError(
                    f"The alias {alias!r} of {name!r} {is_now}, not to version "
                    f"{request.expected}; look at it again."
                )
            if before is None and len(rows.aliases_of(connection, [row.id])) >= MAX_ALIASES:
                raise errors.NamedDecisionLimitError(
                    f"{name!r} has {MAX_ALIASES} aliases, and may have no more; move one of them."
                )
            if before != request.version:
                grounds = self._check_move(connection, row, alias, before, request)
                self._move(
                    connection,
                    row,
                    alias,
                    (before, request.version),
                    write.caller,
                    request.reason,
                    now,
                    **grounds,
                )
            return to_wire(connection, row)

        return await self.apply(write, name, work)

    async def roll_back(
        self, write: Write, name: str, alias: str, request: wire.RollBackAlias
    ) -> wire.NamedDecision:
        """Point an alias to the version that it pointed to before its last move."""
        account_id, now = write.caller.account_id, time.time()

        def work(connection: Connection) -> wire.NamedDecision:
            lock_account(connection, account_id)
            row = find_decision(connection, account_id, name)
            last = rows.last_move(connection, row.id, alias)
            if last is None:
                raise unknown_version(name, alias[:64])
            if last.from_number is None:
                raise errors.NothingToRollBackError(
                    f"The alias {alias!r} of {name!r} was never moved; it points to its first version."
                )
            self._move(
                connection,
                row,
                alias,
                (last.to_number, last.from_number),
                write.caller,
                request.reason or "rolled back",
                now,
            )
            return to_wire(connection, row)

        return await self.apply(write, name, work)

    def _check_move(
        self,
        connection: Connection,
        row: Row[Any],
        alias: str,
        before: int | None,
        request: wire.MoveAlias,
    ) -> dict[str, str | None]:
        """Return the evidence for a move, or refuse a move of ``production`` without evidence."""
        if alias != PRODUCTION or before is None:
            return {}
        since = time.time() - FRESH_COMPARISON_S
        comparison = rows.find_comparison(connection, row.id, before, request.version, since)
        is_passed = comparison is not None and comparison.verdict == "passed"
        if not is_passed and request.overrule is None:
            raise _not_passed(row.name, before, request.version, comparison)
        return {
            "comparison_id": None if comparison is None else comparison.id,
            "verdict": None if comparison is None else comparison.verdict,
            "overruled": None if is_passed else request.overrule,
        }

    async def apply(
        self, write: Write, name: str, work: Callable[[Connection], _Answer]
    ) -> _Answer:
        """Change a named decision once for a key, and look it up anew here."""
        try:
            return await self._writes.once(write, work)
        finally:
            self._served.forget(write.caller.account_id, name)

    def _insert_version(
        self,
        connection: Connection,
        named_id: str,
        number: int,
        request: wire.AddNamedVersion,
        caller: Caller,
        now: float,
    ) -> None:
        content, sha256 = encode(fields_of(request))
        values = {
            "id": new_id("ndv"),
            "named_id": named_id,
            "number": number,
            "sha256": sha256,
            "content": content,
            "note": request.note or None,
            "made_by": who(caller),
            "created_at": now,
        }
        rows.VERSIONS.insert(connection, values)

    def _move(
        self,
        connection: Connection,
        decision: Row[Any],
        alias: str,
        numbers: tuple[int | None, int],
        caller: Caller,
        reason: str | None,
        now: float,
        **grounds: str | None,
    ) -> None:
        # A clock that went back must not put a move before the one that it follows.
        last = rows.last_move(connection, decision.id, alias)
        at = now if last is None else max(now, last.created_at)
        move = {
            "id": new_id("ndm"),
            "named_id": decision.id,
            "alias": alias,
            "from_number": numbers[0],
            "to_number": numbers[1],
            "moved_by": who(caller),
            "reason": reason or None,
            "created_at": at,
            **grounds,
        }
        rows.move_alias(connection, move)
        by = who(caller)
        rows.end_shares(connection, decision.id, alias, at=now, by=by, reason="moved")
        moved = rows.last_move(connection, decision.id, alias)
        if moved is not None:
            data = {"decision": decision.name, **msgspec.to_builtins(move_to_wire(moved))}
            publish(connection, caller.account_id, "decision.moved", decision.id, data)


def _not_passed(
    name: str, before: int, after: int, comparison: Row[Any] | None
) -> errors.ComparisonNeededError | errors.MoveRefusedError:
    if comparison is None:
        return errors.ComparisonNeededError(
            f"Version {after} of {name!r} was not compared with version {before} in the last 7 days; "
            f"compare them with POST /v1/named-comparisons, or say in overrule why it moves anyway."
        )
    first, *others = msgspec.json.decode(comparison.result)["sentences"]
    more = f" The comparison has {len(others)} more reasons." if others else ""
    return errors.MoveRefusedError(
        f"Version {after} of {name!r} did not pass its comparison with version {before} "
        f"({comparison.id}, {comparison.verdict}). {first}{more} Say in overrule why it moves anyway."
    )


def check_alias(alias: str) -> None:
    """Refuse a name that no alias can have."""
    try:
        convert(alias, wire.AliasName)
    except msgspec.ValidationError:
        raise errors.InvalidReferenceError(
            f"{alias[:64]!r} cannot be the name of an alias; use small letters, digits, _ and -, at "
            "most 64, the first a letter.",
            path=("path", "alias"),
        ) from None


def who(caller: Caller) -> str:
    """Return who asks: an address of mail, a key's id, or the account."""
    if caller.session is not None:
        return caller.session.email
    return caller.key_id or caller.account_id


def find_decision(connection: Connection, account_id: str, name: str) -> Row[Any]:
    """Return an account's named decision, or refuse a name that none has."""
    row = rows.find_decision(connection, account_id, name)
    if row is None:
        raise unknown_decision(name[:64])
    return row


def _find_dataset(connection: Connection, account_id: str, dataset: str | None) -> str | None:
    """Return the id of a dataset that is given by its id or its name."""
    if not dataset:
        return None
    if find_dataset(connection, account_id, dataset) is not None:
        return dataset
    ids = ids_of_name(connection, account_id, dataset)
    if not ids:
        raise errors.NotFoundError(
            f"There is no dataset with the id or the name {dataset[:64]!r}; see GET /v1/datasets."
        )
    if len(ids) > 1:
        raise errors.InvalidReferenceError(
            f"{len(ids)} datasets have the name {dataset[:64]!r}: {', '.join(ids[:5])}; give the id.",
            path=(*BODY, "dataset_id"),
        )
    return ids[0]


def _find_version(connection: Connection, decision: Row[Any], number: int) -> Row[Any]:
    row = rows.find_version(connection, decision.id, number)
    if row is None:
        raise unknown_version(decision.name, number)
    return row
