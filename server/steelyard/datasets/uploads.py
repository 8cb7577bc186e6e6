"""Rows as they arrive: a JSON body, or files that wait on the disk once they are long."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Literal

from steelyard.errors import StorageUnavailableError

#: Files up to this many bytes stay in memory.
_IN_MEMORY_BYTES = 1024 * 1024
_READ_BYTES = 256 * 1024

UploadForm = Literal["json", "jsonl", "csv", "multipart"]


class UploadedFile:
    """A file that is written once and then read; closing it removes it."""

    def __init__(self) -> None:
        # Closed by its maker, once it was read.
        self._file = tempfile.SpooledTemporaryFile(_IN_MEMORY_BYTES)  # noqa: SIM115
        self._hasher = hashlib.sha256()
        self.n_bytes = 0

    def write(self, data: bytes) -> None:
        """Add bytes at its end."""
        try:
            self._file.write(data)
        except OSError as error:
            raise StorageUnavailableError(
                f"The upload cannot be kept while it is read: {error.strerror}. Free space where "
                "temporary files are (TMPDIR), and send it again."
            ) from error
        self._hasher.update(data)
        self.n_bytes += len(data)

    @property
    def sha256(self) -> str:
        """Hash of its bytes so far, in hex."""
        return self._hasher.hexdigest()

    def chunks(self) -> Iterator[bytes]:
        """Yield its bytes from the start, some at a time."""
        self._file.seek(0)
        while chunk := self._file.read(_READ_BYTES):
            yield chunk

    def close(self) -> None:
        """Remove it."""
        self._file.close()


@dataclass(slots=True)
class Upload:
    """The files of an upload request; a context manager that removes them."""

    form: UploadForm
    fields: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    files: dict[str, UploadedFile] = field(default_factory=dict)
    _closing: ExitStack = field(default_factory=ExitStack)

    def add_file(self, part: str) -> UploadedFile:
        """Return a new file for a part."""
        file = self.files[part] = UploadedFile()
        self._closing.callback(file.close)
        return file

    def __enter__(self) -> Upload:
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.close()
