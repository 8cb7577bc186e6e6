"""Sources of labeling: uploaded, listed, and deleted with the teachers' answers."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import msgspec
from sqlalchemy import Connection, Row

from steelyard import errors
from steelyard.caller import Caller
from steelyard.datasets.parsing import parse
from steelyard.datasets.uploads import UploadedFile
from steelyard.datasets.wire import InputReceipt
from steelyard.decisions.tokens import TokenCounter
from steelyard.house import House
from steelyard.ids import new_id
from steelyard.labeling import files, wire
from steelyard.labeling import store as rows
from steelyard.labeling.reading import read_source
from steelyard.operations.idempotency import SECONDS_A_DAY
from steelyard.operations.write import Write, payload_sha256
from steelyard.waiting import PASSES
from steelyard.wire.decoding import decoder_of
from steelyard.wire.filling import filled
from steelyard.wire.queries import PageQuery
from steelyard.wire.violations import Violations, show

_decode_receipt = decoder_of(InputReceipt).decode


class LabelingSources:
    """The sources of every account."""

    def __init__(
        self,
        house: House,
        counter: TokenCounter,
    ) -> None:
        self._state, self._store, self._writes = house.state, house.frames("labeling"), house.writes
        self._counter, self._wake, self._now = counter, house.wake, house.now

    async def upload(
        self, write: Write, query: wire.UploadQuery, file: UploadedFile
    ) -> wire.LabelingSource:
        """Keep queries; their file is durable before the state names it."""
        violations = Violations()
        if not query.name.strip():
            violations.add(("query", "name"), "is blank; name the source.", "blank")
        violations.raise_if_any()
        write = replace(write, digest=payload_sha256({"name": query.name, "rows": file.sha256}))
        await self._writes.replay_known(write)
        chunks = PASSES.after(file.chunks())
        account = write.caller.account_id
        read = await parse(account, read_source, chunks, self._counter, max_rows=wire.MAX_ROWS)
        sha256 = await asyncio.to_thread(files.write_rows, self._store, read.rows)
        receipt = InputReceipt(format="jsonl", sha256=file.sha256, bytes=file.n_bytes)
        values: dict[str, Any] = {
            "id": new_id("src"),
            "account_id": write.caller.account_id,
            "name": query.name,
            "rows": len(read.rows),
            "open_rows": read.n_open,
            "tokens": read.tokens,
            "sha256": sha256,
            "receipt": msgspec.json.encode(receipt),
            "created_at": self._now(),
        }

        def work(connection: Connection) -> wire.LabelingSource:
            rows.SOURCES.insert(connection, values)
            return to_wire(require_source(connection, write.caller, values["id"]))

        return await self._writes.once(write, work, window_s=SECONDS_A_DAY)

    async def page(self, caller: Caller, query: PageQuery) -> wire.LabelingSourcePage:
        """Return a page of the account's sources, the newest first."""
        page = await self._state.read(
            lambda connection: rows.page_of_sources(
                connection, caller.account_id, limit=query.limit, cursor=query.cursor
            )
        )
        return page.to_wire(wire.LabelingSourcePage, [to_wire(row) for row in page.rows])

    async def get(self, caller: Caller, source_id: str) -> wire.LabelingSource:
        """Return a source."""
        return to_wire(
            await self._state.read(lambda connection: require_source(connection, caller, source_id))
        )

    async def rows(
        self, caller: Caller, source_id: str, query: wire.ResultsQuery
    ) -> wire.SourceRowPage:
        """Return a page of a source's queries."""
        row = await self._state.read(
            lambda connection: require_source(connection, caller, source_id)
        )
        row_texts = await asyncio.to_thread(
            files.read_rows, self._store, row.sha256, query.offset, query.limit
        )
        return wire.SourceRowPage(
            data=[
                wire.SourceRow(index=query.offset + place, **msgspec.json.decode(text))
                for place, text in enumerate(row_texts)
            ],
            total=row.rows,
            offset=query.offset,
            limit=query.limit,
            has_more=query.offset + len(row_texts) < row.rows,
        )

    async def delete(self, write: Write, source_id: str) -> wire.DeletedSource:
        """Delete a source for good, with the teachers' answers; datasets made of it stay."""

        def work(connection: Connection) -> wire.DeletedSource:
            require_source(connection, write.caller, source_id)
            rows.erase_source(connection, source_id, self._now())
            return wire.DeletedSource(id=source_id)

        deleted = await self._writes.once(write, work, window_s=SECONDS_A_DAY)
        self._wake()
        return deleted


def require_source(connection: Connection, caller: Caller, source_id: str) -> Row[Any]:
    """Return a source of an account that was not deleted."""
    row = rows.SOURCES.find(connection, caller.account_id, source_id)
    if row is None:
        raise errors.NotFoundError(
            f"There is no source {show(source_id)}; look at GET /v1/labeling/sources."
        )
    if row.deleted_at is not None:
        raise errors.SourceDeletedError(
            f"The source {source_id} was deleted; its queries and what teachers said are gone."
        )
    return row


def to_wire(row: Row[Any]) -> wire.LabelingSource:
    """Return a source as the wire has it."""
    return filled(wire.LabelingSource, row, input=_decode_receipt(row.receipt))
