"""Wire forms of backups of this server's home."""

from __future__ import annotations

from typing import Annotated

from msgspec import Struct

from steelyard.models.judge_wire import SetupTask
from steelyard.wire.schemas import doc


class Backup(Struct, frozen=True, kw_only=True):
    """A complete copy of the home."""

    name: Annotated[str, doc("Its folder: when it was begun, in UTC.")]
    made_at: float
    version: Annotated[str, doc("The Steelyard that made it, and that restores it.")]
    files: int
    bytes: int


class BackupList(Struct, frozen=True, kw_only=True):
    """The backups of this server's home."""

    data: Annotated[list[Backup], doc("The newest first, at most 20.")]
    folder: Annotated[str, doc("Where they are, on the server.")]
    home: Annotated[str, doc("What they are copies of.")]
    problem: Annotated[str | None, doc("Why this home is not copied here, and what does it.")] = (
        None
    )
    task: Annotated[SetupTask | None, doc("The last one that was begun here; in files.")] = None
