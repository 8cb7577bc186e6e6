"""Download a judge's file from the hub or a mirror of it: resumed, bounded, and checked by its hash."""

from __future__ import annotations

import fnmatch
import hashlib
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from steelyard.errors import EngineUnavailableError, InvalidRequestError
from steelyard.serving.judge.catalogue import CatalogueEntry
from steelyard.wire.decoding import decode

if TYPE_CHECKING:  # slow to import
    import httpx

_CHUNK = 1024 * 1024
_MAX_LISTING = 4 * 1024 * 1024
#: Bytes that stay free on the disk.
_SPARE = 64 * 1024 * 1024
_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file of a repository: its path there, its size and its hash."""

    path: str
    bytes: int
    sha256: str


def pull(
    entry: CatalogueEntry,
    folder: Path,
    hub: str,
    *,
    on_size: Callable[[RemoteFile], None] = lambda _: None,
    on_bytes: Callable[[int], None] = lambda _: None,
) -> Path:
    """Download a model's file into a folder and return its path; one that is there is checked.

    What an earlier attempt left is gone on with. Raises ``EngineUnavailableError`` where the hub does
    not answer as it should, and ``InvalidRequestError`` where a file is not what its hash says.
    """
    import httpx  # noqa: PLC0415  slow to import

    with httpx.Client(timeout=_TIMEOUT_S, follow_redirects=True) as client:
        try:
            file = find_file(client, entry, hub)
            on_size(file)
            path = folder / Path(file.path).name
            if not path.exists():
                folder.mkdir(parents=True, exist_ok=True)
                part = path.with_name(f"{path.name}.part")
                _fetch(client, _address(hub, entry, file), file, part, on_bytes)
                _check(part, file)
                part.replace(path)
                return path
        except httpx.HTTPError as error:
            raise EngineUnavailableError(
                f"{hub} cannot be read ({type(error).__name__}); what was downloaded stays, so try "
                "again, or set STEELYARD_MODEL_HUB to a mirror."
            ) from error
    _check(path, file)
    return path


def copy(entry: CatalogueEntry, source: Path, folder: Path) -> Path:
    """Copy a file that was brought here by hand into a folder, and check it where its hash is known."""
    path = folder / source.name
    if entry.sha256:
        _check(source, RemoteFile(source.name, entry.bytes, entry.sha256), keep=True)
    if path != source:
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, path)
    return path


def find_file(client: httpx.Client, entry: CatalogueEntry, hub: str) -> RemoteFile:
    """Return the file of an entry; ask the hub for what the catalogue leaves out."""
    if entry.sha256:
        return RemoteFile(entry.file, entry.bytes, entry.sha256)
    url = f"{hub.rstrip('/')}/api/models/{entry.repository}/tree/main"
    with client.stream("GET", url) as response:
        _require_success(response)
        content = bytearray()
        for piece in response.iter_bytes():
            content += piece
            if len(content) > _MAX_LISTING:
                raise EngineUnavailableError(f"The hub's list of {entry.repository} is too long.")
    try:
        listed = decode(content, list[dict[str, Any]])
    except msgspec.DecodeError as error:
        raise EngineUnavailableError(
            f"The hub's list of {entry.repository} is not JSON; try again."
        ) from error
    files = [
        RemoteFile(str(file["path"]), int(file["lfs"]["size"]), str(file["lfs"]["oid"]))
        for file in listed
        if fnmatch.fnmatchcase(str(file.get("path", "")), entry.file) and file.get("lfs")
    ]
    if len(files) != 1:
        raise EngineUnavailableError(
            f"{entry.repository} has {len(files)} files {entry.file!r}, and one is needed; download a "
            "file by hand, and give it with --from."
        )
    return files[0]


def _fetch(
    client: httpx.Client, url: str, file: RemoteFile, part: Path, on_bytes: Callable[[int], None]
) -> None:
    begun = part.stat().st_size if part.exists() else 0
    free = shutil.disk_usage(part.parent).free
    if file.bytes - begun > free - _SPARE:
        raise InvalidRequestError(
            f"{part.parent} has {free / 1e9:.1f} GB free, and {(file.bytes - begun) / 1e9:.1f} GB are "
            "needed. Free space, or name another folder with --to."
        )
    if begun >= file.bytes:
        return
    with client.stream("GET", url, headers={"Range": f"bytes={begun}-"}) as response:
        _require_success(response)
        if response.status_code != 206:
            begun = 0  # the server begins anew
        on_bytes(begun)
        with part.open("ab" if begun else "wb") as target:
            for piece in response.iter_bytes(_CHUNK):
                begun += len(piece)
                if begun > file.bytes:
                    break  # its hash is wrong
                target.write(piece)
                on_bytes(begun)


def _check(path: Path, file: RemoteFile, *, keep: bool = False) -> None:
    with path.open("rb") as content:
        sha256 = hashlib.file_digest(content, "sha256").hexdigest()
    if sha256 == file.sha256:
        return
    size = path.stat().st_size
    if size < file.bytes and not keep:
        raise EngineUnavailableError(
            f"{path.name} ends after {size} of {file.bytes} bytes; try again, and it goes on there."
        )
    if not keep:
        with suppress(OSError):
            path.unlink()
    raise InvalidRequestError(
        f"{path.name} has the SHA-256 {sha256}, and {file.sha256} was expected. Download it again, or "
        "choose another source."
    )


def _address(hub: str, entry: CatalogueEntry, file: RemoteFile) -> str:
    return f"{hub.rstrip('/')}/{entry.repository}/resolve/main/{file.path}"


def _require_success(response: httpx.Response) -> None:
    if response.status_code not in {200, 206}:
        raise EngineUnavailableError(
            f"{response.url.host} answered with status {response.status_code}; try again later, or set "
            "STEELYARD_MODEL_HUB to a mirror."
        )
