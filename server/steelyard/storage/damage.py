"""Notes of damaged files: one for each in the home, for all of its processes.

A server lists in ``/v1/ready`` the damage met since, by any process. The next start of a server
looks at noted damage again, and drops the notes of whole files.
"""

from __future__ import annotations

import contextlib
import logging
import sqlite3
from pathlib import Path
from urllib.parse import quote, unquote

from steelyard.errors import DataDamagedError
from steelyard.storage.home import write_private

_log = logging.getLogger(__name__)

#: The part that the database of the state is noted as.
STATE = "state"
#: What to do about damage; it ends every message.
ADVICE = "Restore it from a backup; `steelyard doctor --deep` lists everything that is damaged."


def damage_of_database(path: Path, *, deep: bool = False) -> str | None:
    """Return SQLite's report on a database's pages and, on a deep look, on its indexes."""
    check = "integrity_check" if deep else "quick_check"
    try:
        with contextlib.closing(
            sqlite3.connect(f"{path.as_uri()}?mode=rw", uri=True)
        ) as connection:
            messages = [str(row[0]) for row in connection.execute(f"PRAGMA {check}")]
    except sqlite3.DatabaseError as error:
        messages = [str(error)]
    if messages == ["ok"]:
        return None
    first = messages[0].removeprefix("*** in database main ***").strip().partition("\n")[0]
    return first if len(messages) == 1 else f"{first} (and {len(messages) - 1} more)"


def is_empty_database(path: Path) -> bool:
    """Whether a database is not there, or has no table."""
    if not path.exists() or path.stat().st_size == 0:
        # What was not moved into the file yet is in its log.
        log = path.with_name(f"{path.name}-wal")
        return not log.exists() or log.stat().st_size == 0
    try:
        with contextlib.closing(
            sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)
        ) as connection:
            return connection.execute("SELECT 1 FROM sqlite_schema").fetchone() is None
    except sqlite3.DatabaseError:
        return False


class DamageNotes:
    """The notes of a home."""

    def __init__(self, home: Path) -> None:
        self._folder = home / "damaged"

    def note(self, part: str, error: DataDamagedError) -> None:
        """Store a note of damage, as far as it can be written, and log it the first time."""
        path = self._path_of(part)
        if path.exists():
            return
        # In one line: the last message of SQLite or Arrow, and not how often it was tried again.
        _log.error("%s%s", error.message, _reason(error.__cause__))
        with contextlib.suppress(OSError):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_private(path, error.message.encode())

    def found(self) -> dict[str, str]:
        """Return the notes by part."""
        with contextlib.suppress(OSError):
            return {
                unquote(path.name): path.read_text()
                for path in sorted(self._folder.iterdir())
                if path.suffix != ".partial"
            }
        return {}

    def drop(self, part: str) -> None:
        """Forget a part that is whole again."""
        self._path_of(part).unlink(missing_ok=True)

    def _path_of(self, part: str) -> Path:
        return self._folder / quote(part, safe="")


def _reason(cause: BaseException | None) -> str:
    """Return the error behind the damage in brackets; nothing without an error."""
    if cause is None:
        return ""
    cause = getattr(cause, "orig", None) or cause
    first = str(cause).strip().partition("\n")[0]
    return f" ({type(cause).__name__}: {first})"
