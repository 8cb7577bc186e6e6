"""Telling a database that cannot serve now, or cannot hold a text, from a fault of the code."""

from __future__ import annotations

import sqlite3
from typing import Any

import msgspec
from sqlalchemy import Connection
from sqlalchemy.exc import DataError, DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from steelyard.errors import (
    DataDamagedError,
    InvalidRequestError,
    SteelyardError,
    StorageUnavailableError,
)
from steelyard.storage.damage import ADVICE

_FULL = "The state's disk is full; free space on it, then try again."
_AWAY = "The state's database cannot be used at the moment; try again in a few seconds."
_FAILED = (
    "The state's disk failed a read or a write; look at its free space and at the system's log, then "
    "try again."
)
_READ_ONLY = (
    "The state's files cannot be written; look at who owns them and whether their file system is "
    "mounted read-only, then try again."
)
_SQLITE_MESSAGES = {
    sqlite3.SQLITE_FULL: _FULL,
    sqlite3.SQLITE_IOERR: _FAILED,
    sqlite3.SQLITE_PERM: _READ_ONLY,
    sqlite3.SQLITE_READONLY: _READ_ONLY,
}

# Primary result codes that say something about the disk or other users, and nothing about the SQL.
_SQLITE = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_PROTOCOL,
    sqlite3.SQLITE_READONLY,
}
_SQLITE_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
# SQLite itself does not look at texts: Python's driver does, and says it without a code.
# And where a byte of the schema is another one, the tables of every statement are missing.
_DAMAGED_SCHEMA = ("Could not decode to UTF-8", "no such table:", "no such column:")
# Class XX: data_corrupted and index_corrupted.
_POSTGRES_DAMAGED = {"XX001", "XX002"}
# Class 53: insufficient resources, of which 53100 is a full disk; 25006: a standby, read only.
_POSTGRES_FULL = "53100"
_POSTGRES_READ_ONLY = "25006"


def unavailable(error: BaseException) -> StorageUnavailableError | None:
    """Return the error to raise when the database cannot serve; ``None`` for any other failure.

    The message names neither the place of the database nor the written values.
    """
    if isinstance(error, PoolTimeoutError):
        return StorageUnavailableError(_AWAY)
    if not isinstance(error, DBAPIError):
        return None
    cause = error.orig
    if isinstance(cause, sqlite3.Error):
        primary = getattr(cause, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        message = _SQLITE_MESSAGES.get(primary, _AWAY) if primary in _SQLITE else None
    else:
        message = _postgres_message(error, getattr(cause, "sqlstate", None))
    return None if message is None else StorageUnavailableError(message)


def _postgres_message(error: DBAPIError, state: str | None) -> str | None:
    if state == _POSTGRES_FULL:
        return _FULL
    is_away = state not in _POSTGRES_DAMAGED and (
        error.connection_invalidated
        or state == _POSTGRES_READ_ONLY
        or isinstance(error, OperationalError | InterfaceError)
    )
    return _AWAY if is_away else None


def refused(error: BaseException) -> SteelyardError | None:
    """Return the error of one piece of work alone: it met damage, or a text that cannot be held."""
    return damaged(error) or _unholdable(error)


def damaged(error: BaseException) -> DataDamagedError | None:
    """Return the error to raise when the database, or a row's content, is damaged."""
    if isinstance(error, msgspec.DecodeError | UnicodeDecodeError):
        # Requests were read before: bytes decoded beside a connection were stored.
        return DataDamagedError(f"A row of the state's database cannot be read. {ADVICE}")
    if not isinstance(error, DBAPIError):
        return None
    cause = error.orig
    if isinstance(cause, sqlite3.Error):
        primary = getattr(cause, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        is_damaged = primary in _SQLITE_DAMAGED or str(cause).startswith(_DAMAGED_SCHEMA)
    else:
        is_damaged = getattr(cause, "sqlstate", None) in _POSTGRES_DAMAGED
    return DataDamagedError(f"The state's database is damaged. {ADVICE}") if is_damaged else None


def _unholdable(error: BaseException) -> InvalidRequestError | None:
    """Return the error to raise when PostgreSQL cannot hold a text that was sent."""
    if isinstance(error, DataError) and "NUL (0x00)" in str(error.orig):
        return InvalidRequestError(
            "A text of the request has the character NUL (U+0000), which the state's database cannot "
            "hold; send it without."
        )
    return None


def is_disconnect(error: BaseException) -> bool:
    """Return whether the connection was lost, so that another may serve at once."""
    return isinstance(error, DBAPIError) and error.connection_invalidated


def database_error(error: Any, connection: Connection, sql: str = "") -> Exception:
    """Return a driver's error as SQLAlchemy raises it, without the parameters that callers sent."""
    dialect = connection.dialect
    is_lost = dialect.is_disconnect(error, connection.connection.dbapi_connection, None)
    if is_lost:
        connection.invalidate(error)
    explained: Exception = DBAPIError.instance(
        sql,
        None,
        error,
        dialect.loaded_dbapi.Error,
        hide_parameters=True,
        connection_invalidated=is_lost,
        dialect=dialect,
    )
    return explained
