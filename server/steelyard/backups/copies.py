"""Copies of a home in the folder of backups, each of which says in its manifest what it holds."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from steelyard.settings import Settings, frames_url_of, home_of
from steelyard.storage.home import state_path_of

#: It comes last: a copy without it was interrupted.
MANIFEST = "manifest.json"


class BackupError(Exception):
    """A copy that cannot be made, used or put where it should go."""


class BackupEntry(Struct, frozen=True):
    """The expected size and hash of a file in a copy."""

    bytes: int
    sha256: str


class BackupManifest(Struct, frozen=True, kw_only=True):
    """The files of a copy, each by its path."""

    format: int
    version: str
    made_at: float
    files: dict[str, BackupEntry]

    @property
    def n_bytes(self) -> int:
        """The size of all files."""
        return sum(entry.bytes for entry in self.files.values())


def whole_copies(folder: Path) -> list[Path]:
    """Return the copies of a folder that are complete, the oldest first."""
    return sorted(path.parent for path in folder.glob(f"*/{MANIFEST}"))


def folder_of(settings: Settings) -> Path:
    """Return the folder of backups: that of the setting, else one beside the home."""
    home = home_of(settings).absolute()
    return settings.backups or home.with_name(f"{home.name}.backups")


def places_of(settings: Settings) -> tuple[Path, Path]:
    """Return where the state and the frames are, which must be files of this machine."""
    elsewhere = []
    state_path = state_path_of(settings)
    if state_path is None:
        elsewhere.append("its database is copied with pg_dump")
    frames = frames_url_of(settings)
    if "://" in frames:
        elsewhere.append("its object store is kept by the store's own versioning")
    if state_path is None or elsewhere:
        raise BackupError(
            f"This home is not in files of its own: {', and '.join(elsewhere)}. The page on backups "
            "for operators says how, step by step."
        )
    return state_path, Path(frames).absolute()
