"""The files of a partition: its rows with their contexts as sent, and its rows with their answers."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import polars as pl

from steelyard.storage.frame_store import FrameStore
from steelyard.wire.decoding import convert

_SUFFIX = ".file"


class _Waiting(msgspec.Struct, array_like=True):
    contexts: list[Any]
    rows: bytes


@dataclass(frozen=True, slots=True)
class Partition:
    """Some rows as columns, and the context of each."""

    rows: pl.DataFrame
    contexts: list[Any]


def write_partition(store: FrameStore, rows: pl.DataFrame, contexts: Sequence[Any]) -> str:
    """Write rows that wait for answers; return the hash of their file."""
    waiting = _Waiting(list(contexts), _encode(rows))
    return store.put(msgspec.msgpack.encode(waiting), _SUFFIX)


def read_partition(store: FrameStore, sha256: str) -> Partition:
    """Return rows that wait for answers."""
    waiting = convert(msgspec.msgpack.decode(store.read(f"{sha256}{_SUFFIX}")), _Waiting)
    return Partition(pl.read_parquet(waiting.rows), waiting.contexts)


def write_answers(store: FrameStore, rows: pl.DataFrame) -> str:
    """Write rows with their answers; return the hash of their file."""
    return store.put(_encode(rows), _SUFFIX)


def read_answers(store: FrameStore, sha256: str) -> bytes:
    """Return rows with their answers, as Parquet."""
    return store.read(f"{sha256}{_SUFFIX}")


def _encode(rows: pl.DataFrame) -> bytes:
    content = io.BytesIO()
    rows.write_parquet(content)
    return content.getvalue()
