"""Download files of models from the hub or a mirror of it: resumed, bounded, and checked by their hash."""

from __future__ import annotations

import fcntl
import fnmatch
import hashlib
import os
import platform
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from steelyard.errors import EngineUnavailableError, InvalidRequestError, ModelUnavailableError
from steelyard.serving.judge.catalogue import CatalogueEntry
from steelyard.wire.decoding import decode

if TYPE_CHECKING:  # slow to import
    import httpx

_CHUNK = 1024 * 1024
_MAX_LISTING = 4 * 1024 * 1024
#: Bytes that stay free on the disk.
_SPARE = 64 * 1024 * 1024
#: Seconds without an answer, and until there is a connection.
_TIMEOUT_S, _CONNECT_S = 60.0, 10.0
_SHA256, _GIT_SHA1 = re.compile("[0-9a-f]{64}"), re.compile("[0-9a-f]{40}")
#: How web pages begin, which networks and mirrors send in place of files.
_PAGE_BEGINNINGS = (b"<!doctype", b"<html", b"<?xml", b"<head")


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file of a repository: its path there, its size, and its hash.

    The hash is a SHA-256 or, of a small file that the hub has in Git itself, Git's SHA-1.
    """

    path: str
    bytes: int
    hash: str


def pull(
    entry: CatalogueEntry,
    folder: Path,
    hub: str,
    *,
    on_size: Callable[[int], None] = lambda _: None,
    on_bytes: Callable[[int], None] = lambda _: None,
) -> Path:
    """Download a judge's file into a folder and return its path; one that is there is checked.

    An earlier attempt's part of the file is continued. Raises ``EngineUnavailableError`` where the hub
    does not answer as it should, and ``InvalidRequestError`` where a file has another hash.
    """
    with connected(hub) as client:
        file = _find_file(client, entry, hub)
        on_size(file.bytes)
        path = folder / Path(file.path).name
        fetch(client, hub, entry.repository, file, path, on_bytes)
        return path


def copy(entry: CatalogueEntry, source: Path, folder: Path) -> Path:
    """Copy a file that was brought here by hand into a folder, and check it where its hash is known."""
    path = folder / source.name
    if entry.sha256:
        _check(source, RemoteFile(source.name, entry.bytes, entry.sha256), keep=True)
    if path != source:
        with sole_writer(path):
            part = path.with_name(f"{path.name}.part")
            shutil.copyfile(source, part)
            part.replace(path)
    return path


@contextmanager
def sole_writer(path: Path) -> Iterator[None]:
    """Keep other processes from writing a model; raise ``ModelUnavailableError`` where one writes it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = path.with_name(f"{path.name}.lock")
    while True:
        with lock.open("a+", encoding="utf-8") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                file.seek(0)
                raise ModelUnavailableError(
                    f"{file.read() or 'Another process'} is getting {path} already; wait until it has "
                    "ended, and try again."
                ) from None
            if os.fstat(file.fileno()).st_nlink == 0:
                continue  # the one before removed it
            try:
                file.truncate(0)
                print(f"Process {os.getpid()} of {platform.node()}", end="", file=file, flush=True)
                yield
            finally:
                lock.unlink(missing_ok=True)
            return


@contextmanager
def connected(hub: str) -> Iterator[httpx.Client]:
    """Yield a client of the hub; broken connections raise ``EngineUnavailableError``."""
    import httpx  # noqa: PLC0415  slow to import

    from steelyard.http_clients import open_http  # noqa: PLC0415

    try:
        # A hub sends on to where its files are, and many machines reach it through a proxy.
        timeout = httpx.Timeout(_TIMEOUT_S, connect=_CONNECT_S)
        with open_http(timeout=timeout, follow_redirects=True, trust_env=True) as client:
            yield client
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise EngineUnavailableError(
            f"{hub} cannot be reached ({type(error).__name__}); try again, and it goes on there. "
            "Without a network, set STEELYARD_MODEL_HUB to a mirror, or take a file on this server with "
            "`steelyard model pull NAME --from FILE`."
        ) from error


def list_files(
    client: httpx.Client, hub: str, repository: str, *, recursive: bool = False
) -> dict[str, dict[str, Any]]:
    """Return the hub's listing of a repository's files, by path."""
    url = f"{hub.rstrip('/')}/api/models/{repository}/tree/main"
    with client.stream("GET", url, params={"recursive": "true"} if recursive else {}) as response:
        _require_success(response)
        content = bytearray()
        for piece in response.iter_bytes():
            content += piece
            if len(content) > _MAX_LISTING:
                raise EngineUnavailableError(f"The hub's list of {repository} is too long.")
    try:
        listed = decode(content, list[dict[str, Any]])
    except msgspec.DecodeError as error:
        raise EngineUnavailableError(
            f"The hub's list of {repository} is not JSON as it should be; try again, or set "
            "STEELYARD_MODEL_HUB to a mirror."
        ) from error
    return {str(file.get("path", "")): file for file in listed}


def listed_file(repository: str, path: str, listed: dict[str, Any]) -> RemoteFile:
    """Return a file as the hub's list has it; raise where its size or hash cannot be used."""
    large = listed.get("lfs")
    source, form = (large, _SHA256) if isinstance(large, dict) else (listed, _GIT_SHA1)
    size, digest = source.get("size"), source.get("oid")
    if not isinstance(size, int) or isinstance(size, bool) or size <= 0:
        what, value = "size", size
    elif not form.fullmatch(str(digest)):
        what, value = "hash", digest
    else:
        return RemoteFile(path, size, str(digest))
    raise EngineUnavailableError(
        f"The hub's list has {value!r:.40} as the {what} of {path} in {repository}, which is no {what}; "
        "try again later, or set STEELYARD_MODEL_HUB to another mirror."
    )


def fetch(
    client: httpx.Client,
    hub: str,
    repository: str,
    file: RemoteFile,
    path: Path,
    on_bytes: Callable[[int], None],
) -> None:
    """Download a file to a path, or go on with it; one that is there is checked."""
    if path.exists():
        _check(path, file)
        return
    with sole_writer(path):
        part = path.with_name(f"{path.name}.part")
        url = f"{hub.rstrip('/')}/{repository}/resolve/main/{file.path}"
        _receive(client, url, file, part, on_bytes)
        _check(part, file)
        part.replace(path)


def _find_file(client: httpx.Client, entry: CatalogueEntry, hub: str) -> RemoteFile:
    """Return the file of an entry; ask the hub for facts that the catalogue lacks."""
    if entry.sha256:
        return RemoteFile(entry.file, entry.bytes, entry.sha256)
    files = [
        (path, listed)
        for path, listed in list_files(client, hub, entry.repository).items()
        if fnmatch.fnmatchcase(path, entry.file) and listed.get("lfs")
    ]
    if len(files) != 1:
        raise EngineUnavailableError(
            f"{entry.repository} has {len(files)} files {entry.file!r}, and one is needed; download a "
            "file by hand, and give it with --from."
        )
    [(path, listed)] = files
    return listed_file(entry.repository, path, listed)


def _receive(
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
    n_before = begun
    with client.stream("GET", url, headers={"Range": f"bytes={begun}-"}) as response:
        if response.status_code != HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            _require_success(response)
            if response.headers.get("content-type", "").startswith("text/html"):
                raise _page(file)
            if response.status_code != HTTPStatus.PARTIAL_CONTENT:
                begun = 0  # the server begins anew
            on_bytes(begun)
            with part.open("ab" if begun else "wb") as target:
                for piece in response.iter_bytes():
                    target.write(piece)
                    begun += len(piece)
                    on_bytes(min(begun, file.bytes))
                    if begun > file.bytes:
                        break  # its hash is wrong
    if begun == n_before:  # there is no more of it to go on with
        part.unlink(missing_ok=True)
        raise EngineUnavailableError(
            f"{file.path} ends after {begun} bytes there, and {file.bytes} are listed; set "
            "STEELYARD_MODEL_HUB to another mirror."
        )


def _check(path: Path, file: RemoteFile, *, keep: bool = False) -> None:
    size = path.stat().st_size
    is_sha256 = _SHA256.fullmatch(file.hash) is not None
    kind = "SHA-256" if is_sha256 else "Git hash"
    digest = hashlib.sha256() if is_sha256 else hashlib.sha1(f"blob {size}\0".encode())  # noqa: S324  Git's
    with path.open("rb") as content:
        beginning = content.read(64)
        content.seek(0)
        while piece := content.read(_CHUNK):
            digest.update(piece)
    if digest.hexdigest() == file.hash:
        return
    is_page = beginning.lstrip().lower().startswith(_PAGE_BEGINNINGS)
    if size < file.bytes and not keep and not is_page:
        raise EngineUnavailableError(
            f"{path.name} ends after {size} of {file.bytes} bytes; try again, and it goes on there."
        )
    if not keep:
        with suppress(OSError):
            path.unlink()
    if is_page:
        raise _page(file)
    raise InvalidRequestError(
        f"{path.name} has the {kind} {digest.hexdigest()}, and {file.hash} was expected. Download it "
        "again, or choose another source."
    )


def _page(file: RemoteFile) -> EngineUnavailableError:
    return EngineUnavailableError(
        f"A web page came in place of {file.path}. Sign in to the network, or set STEELYARD_MODEL_HUB to "
        "a mirror, and try again."
    )


def _require_success(response: httpx.Response) -> None:
    if response.status_code not in {200, 206}:
        raise EngineUnavailableError(
            f"{response.url.host} answered with status {response.status_code}; try again later, or set "
            "STEELYARD_MODEL_HUB to a mirror."
        )
