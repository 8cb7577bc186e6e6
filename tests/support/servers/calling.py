"""Calls of routes without HTTP: how the pipeline treats a body, and the response that it would send."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import msgspec

from steelyard.app.application import ROUTES
from steelyard.caller import LOCAL_ACCOUNT, Caller
from steelyard.datasets.ingesting import read_sent
from steelyard.datasets.service import DatasetService
from steelyard.datasets.uploads import Upload
from steelyard.datasets.wire import AddRows, CreateDataset
from steelyard.http.pipeline import open_call
from steelyard.http.routing import Call
from steelyard.operations.write import Replay, Write
from steelyard.settings import read_settings

LOCAL = Caller(LOCAL_ACCOUNT, None, "full", "127.0.0.1")
#: What a route may ask besides: the settings as they are where nobody sets any.
_SERVICES = SimpleNamespace(settings=read_settings(environ={}))
_ROUTES = {f"{route.method} {route.path}": route for route in ROUTES}


@dataclass(frozen=True)
class Sent:
    """The response to send."""

    body: bytes
    operation_id: str | None = None
    is_replay: bool = False

    @property
    def json(self) -> Any:
        return json.loads(self.body)


async def send(
    route: str,
    services: Mapping[type, Any],
    body: bytes | Mapping[str, Any] | None = None,
    *,
    caller: Caller = LOCAL,
    key: str | None = None,
    query: msgspec.Struct | None = None,
    **path: str,
) -> Sent:
    """Call a route, such as ``POST /v1/drafts``, of services by their classes."""
    row = _ROUTES[route]
    payload = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
    call = Call(
        write=Write(caller, row.keyed_as, key),
        services=_SERVICES,
        service=services.get,
        path=path,
        query=query,
    )
    try:
        call = open_call(row, call, payload or (b"{}" if row.may_be_empty else payload))
        return await sent(row.use(call), call.write)
    except Replay as replay:
        return Sent(replay.body, replay.operation_id, is_replay=True)


async def sent(answering: Any, write: Write) -> Sent:
    """The response to send for a use case's answer to a write."""
    try:
        answer = await answering
    except Replay as replay:
        return Sent(replay.body, replay.operation_id, is_replay=True)
    body = write.sent.body or msgspec.json.encode(answer)
    return Sent(body, write.sent.operation_id)


def send_now(*given: Any, **named: Any) -> Sent:
    """Call a route as ``send``."""
    return asyncio.run(send(*given, **named))


def answer_of(route: str, services: Mapping[type, Any], *given: Any, **named: Any) -> Any:
    """Call a route as ``send``; the answer's JSON."""
    return send_now(route, services, *given, **named).json


async def upload_rows(
    datasets: DatasetService,
    upload: Upload,
    dataset_id: str | None = None,
    *,
    caller: Caller = LOCAL,
    key: str | None = None,
) -> Sent:
    """Make a dataset of an upload, or add it to one, as the routes do."""
    if dataset_id is None:
        rows = await asyncio.to_thread(read_sent, upload, CreateDataset)
        write = rows.named(Write(caller, "POST /v1/datasets", key))
        return await sent(datasets.create(write, rows), write)
    rows = await asyncio.to_thread(read_sent, upload, AddRows, dataset_id=dataset_id)
    write = rows.named(Write(caller, "POST /v1/datasets/{dataset}/versions", key))
    return await sent(datasets.add_rows(write, dataset_id, rows), write)
