"""Wire forms of backups of this server's home."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from steelyard.models.judge_wire import SetupTask


class Backup(Struct, frozen=True, kw_only=True):
    """A complete copy of the home."""

    name: Annotated[str, Meta(description="Its folder: when it was begun, in UTC.")]
    made_at: float
    version: Annotated[str, Meta(description="The Steelyard that made it, and that restores it.")]
    files: int
    bytes: int


class BackupList(Struct, frozen=True, kw_only=True):
    """The backups of this server's home."""

    data: Annotated[list[Backup], Meta(description="The newest first, at most 20.")]
    folder: Annotated[str, Meta(description="Where they are, on the server.")]
    home: Annotated[str, Meta(description="What they are copies of.")]
    problem: Annotated[
        str | None, Meta(description="Why this home is not copied here, and what does it.")
    ] = None
    task: Annotated[
        SetupTask | None, Meta(description="The last one that was begun here; in files.")
    ] = None
