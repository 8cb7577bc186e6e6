"""All of an account's data as a zip, made piece by piece while it is sent."""

from __future__ import annotations

import asyncio
import functools
import re
import time
import zipfile
from collections.abc import Callable, Coroutine, Iterable, Iterator
from dataclasses import replace
from typing import Any, Protocol, TypeVar

import msgspec
from msgspec import Struct

from steelyard.accounts.service import AccountService
from steelyard.billing.service import PurchaseService
from steelyard.caller import Caller
from steelyard.datasets.row_service import DatasetRows
from steelyard.datasets.service import DatasetService
from steelyard.datasets.wire import Dataset, DatasetsQuery
from steelyard.decision_log.answers import StoredAnswers
from steelyard.decision_log.store import AnswerCriteria, ObservedDecision
from steelyard.errors import GoneError, NotFoundError
from steelyard.house import House
from steelyard.models.service import FamilyModels
from steelyard.operations.idempotency import SECONDS_A_DAY
from steelyard.people.account_service import OwnAccount
from steelyard.people.export_tables import export_tables
from steelyard.people.member_service import Members
from steelyard.people.session_service import Sessions
from steelyard.people.wire import AuditQuery
from steelyard.wire.queries import ApiKeysQuery, PageQuery

T = TypeVar("T")

#: Bytes of a piece of the answer, about.
_PIECE = 256 * 1024
#: Stored answers that are read at a time.
_ANSWERS = 100
#: Seconds that one part of an account may take to be read.
_WAIT_S = 60.0
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


class _Ask(Protocol):
    """Waits on a thread for an answer of the server's loop."""

    def __call__(self, question: Coroutine[Any, Any, T], /) -> T: ...


class AccountExports:
    """Writes accounts as archives."""

    def __init__(self, house: House, own: OwnAccount, members: Members, sessions: Sessions) -> None:
        self._state = house.state
        self._stored = house.get(StoredAnswers)
        self._retention_s = house.settings.retention_days * SECONDS_A_DAY
        self._own = own
        self._accounts = house.get(AccountService)
        self._members = members
        self._sessions = sessions
        self._purchases = house.get(PurchaseService)
        self._datasets = house.get(DatasetService)
        self._rows = house.get(DatasetRows)
        self._models = house.get(FamilyModels)

    async def export(self, caller: Caller) -> Iterator[bytes]:
        """Return the pieces of an account's archive, which block while they are made."""
        await self._own.count_export(caller)
        loop = asyncio.get_running_loop()

        def ask(question: Coroutine[Any, Any, T], /) -> T:
            return asyncio.run_coroutine_threadsafe(question, loop).result(_WAIT_S)

        return zipped(self._files(caller, ask))

    def _files(self, caller: Caller, ask: _Ask) -> Iterator[tuple[str, Iterable[bytes]]]:
        """Yield every file with its name; each is read before the next is asked for."""
        yield "account.json", [_json(ask(self._accounts.summary(caller)))]
        yield "members.json", [_json(ask(self._members.list(caller)))]
        yield (
            "keys.jsonl",
            _lines(lambda cursor: ask(self._accounts.keys(caller, ApiKeysQuery(cursor=cursor)))),
        )
        yield (
            "audit.jsonl",
            _lines(
                lambda cursor: ask(
                    self._sessions.audit(caller, AuditQuery(limit=200, cursor=cursor))
                )
            ),
        )
        yield (
            "purchases.jsonl",
            _lines(lambda cursor: ask(self._purchases.purchases(caller, PageQuery(cursor=cursor)))),
        )
        yield "ledger.csv", self._purchases.ledger_csv(caller)
        yield "decisions.jsonl", self._answers(caller)
        for model in ask(self._models.models(caller)):
            yield f"models/{_safe(model.id)}.json", [_json(model)]
        yield from export_tables(self._state, caller.account_id)
        for is_archived in (False, True):
            yield from self._datasets_of(caller, ask, is_archived)

    def _datasets_of(
        self, caller: Caller, ask: _Ask, is_archived: bool
    ) -> Iterator[tuple[str, Iterable[bytes]]]:
        cursor: str | None = None
        while True:
            query = DatasetsQuery(archived=is_archived, cursor=cursor)
            page = ask(self._datasets.page(caller, query))
            for dataset in page.data:
                try:
                    yield from self._dataset(caller, ask, dataset)
                except (GoneError, NotFoundError):  # deleted meanwhile
                    continue
            cursor = page.next_cursor
            if cursor is None:
                return

    def _dataset(
        self, caller: Caller, ask: _Ask, dataset: Dataset
    ) -> Iterator[tuple[str, Iterable[bytes]]]:
        folder = f"datasets/{_safe(dataset.name)}-{dataset.id}"
        yield f"{folder}/dataset.json", [_json(dataset)]
        for version in ask(self._datasets.versions(caller, dataset.id)).data:
            n = version.version
            rows = ask(self._rows.download(caller, dataset.id, "all", n))
            yield f"{folder}/v{n}.jsonl", rows

    def _answers(self, caller: Caller) -> Iterator[bytes]:
        criteria = AnswerCriteria(
            account_id=caller.account_id,
            since=time.time() - self._retention_s,
            newest_first=False,
        )
        while True:
            page = self._state.read_now(
                functools.partial(self._stored.page, criteria=criteria, limit=_ANSWERS)
            )
            if not page:
                return
            yield b"".join(_answer(answer) for answer in page)
            criteria = replace(criteria, after=page[-1].place)


class _Pipe:
    """Buffers the bytes of a zip file until they are sent; it cannot seek."""

    def __init__(self) -> None:
        self._written: list[bytes] = []
        self.n_bytes = 0

    def write(self, data: bytes) -> int:
        self._written.append(bytes(data))
        self.n_bytes += len(data)
        return len(data)

    def flush(self) -> None:
        """Do nothing: the sender takes the buffered bytes."""

    def take(self) -> bytes:
        data = b"".join(self._written)
        self._written.clear()
        self.n_bytes = 0
        return data


def zipped(files: Iterable[tuple[str, Iterable[bytes]]]) -> Iterator[bytes]:
    """Yield an archive of named files piece by piece, of which few are in memory.

    >>> import io
    >>> data = b"".join(zipped([("a.txt", [b"Hi", b" there"])]))
    >>> zipfile.ZipFile(io.BytesIO(data)).read("a.txt")
    b'Hi there'
    """
    pipe = _Pipe()
    with zipfile.ZipFile(pipe, "w", zipfile.ZIP_DEFLATED) as archive:  # type: ignore[call-overload]
        for name, pieces in files:
            # Its size is not known before it is written, and may need 64 bits.
            with archive.open(name, "w", force_zip64=True) as file:
                for piece in pieces:
                    file.write(piece)
                    if pipe.n_bytes >= _PIECE:
                        yield pipe.take()
    yield pipe.take()


def _lines(page_at: Callable[[str | None], Any]) -> Iterator[bytes]:
    cursor: str | None = None
    while True:
        page = page_at(cursor)
        yield b"".join(msgspec.json.encode(item) + b"\n" for item in page.data)
        cursor = page.next_cursor
        if cursor is None:
            return


def _answer(observed: ObservedDecision) -> bytes:
    decision = observed.decision
    fields = {
        "id": decision.id,
        "created_at": decision.created_at,
        "model": decision.model,
        "version": decision.version,
        "request": msgspec.Raw(decision.request),
        "decisions": msgspec.Raw(decision.results),
        "metadata": None if decision.metadata is None else msgspec.Raw(decision.metadata),
        "feedback": observed.outcomes,
        # With what clicks and models reported, which counts in no figure.
        "feedback_by": {name: source._asdict() for name, source in observed.sources.items()},
    }
    return msgspec.json.encode(fields) + b"\n"


def _json(value: Struct) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"


def _safe(name: str) -> str:
    """Return a name as a part of a path in the archive."""
    return _UNSAFE.sub("-", name).strip(".-")[:80] or "unnamed"
