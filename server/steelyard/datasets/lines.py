"""Cut a stream of bytes into lines, with a bound on the bytes of one line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

#: The longest line, in bytes: that of the largest upload.
MAX_LINE_BYTES = 16 * 1024 * 1024

#: What is said of a file that is UTF-16, once: each of its lines would be wrong.
NOT_UTF_16 = "The file is UTF-16; save it as UTF-8 and send that."

_BOM = b"\xef\xbb\xbf"
_UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")


def split_lines(
    chunks: Iterable[bytes], max_bytes: int = MAX_LINE_BYTES
) -> Iterator[tuple[int, bytes | None, bool]]:
    """Yield every line of a stream."""
    number = 0
    pieces: list[bytes] = []
    n_bytes = 0
    for chunk in _without_mark(chunks):
        *ended, rest = chunk.split(b"\n")
        for piece in ended:
            number += 1
            n_bytes += len(piece)
            if n_bytes > max_bytes:
                yield number, None, True
            elif pieces:
                yield number, b"".join((*pieces, piece)), True
            else:
                yield number, piece, True
            pieces, n_bytes = [], 0
        if not rest:
            continue
        n_bytes += len(rest)
        if n_bytes > max_bytes:
            pieces = []
        else:
            pieces.append(rest)
    if n_bytes:
        yield number + 1, b"".join(pieces) if n_bytes <= max_bytes else None, False


def is_utf_16(line: bytes) -> bool:
    """Whether the first line of a file is UTF-16: by its mark, or by the zeros of plain letters."""
    return line.startswith(_UTF_16_MARKS) or b"\0" in line[:4]


def _without_mark(chunks: Iterable[bytes]) -> Iterator[bytes]:
    start: bytes | None = b""
    for chunk in chunks:
        if start is None:
            yield chunk
            continue
        start += chunk
        if len(start) >= len(_BOM):
            yield start.removeprefix(_BOM)
            start = None
    if start:
        yield start
