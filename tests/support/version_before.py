"""The version before this one, as the repository has it: hosts of both share a state for a while."""

from __future__ import annotations

import io
import shutil
import subprocess
import tarfile
from pathlib import Path

from support.repository import ROOT

#: What was released before there were tags.
_COMMIT = "25e28dd05d29d8f23ce81a37c6057f9bb235d372"


class HistoryMissingError(Exception):
    """The version before is not to be had; the message says why."""


def version_before(folder: Path) -> Path:
    """Write the server's package of the version before to a folder; return what PYTHONPATH needs."""
    if shutil.which("git") is None:
        raise HistoryMissingError("needs git")
    tag = _git("describe", "--tags", "--abbrev=0", "HEAD^")
    commit = tag.stdout.decode().strip() if tag.returncode == 0 else _COMMIT
    archive = _git("archive", "--format=tar", commit, "server")
    if archive.returncode:
        raise HistoryMissingError(f"needs the repository's history: it has no {commit}")
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as packed:
        packed.extractall(folder, filter="data")
    return folder / "server"


def _git(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        ["git", "-C", str(ROOT), *arguments], capture_output=True, check=False, timeout=60
    )
