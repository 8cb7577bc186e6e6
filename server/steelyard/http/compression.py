"""Bodies that arrive compressed: undone step by step, so that a bomb stops at the bound."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable, Iterator

from steelyard.errors import InvalidRequestError, UnsupportedEncodingError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

#: Members of a gzip body or frames of a zstd body; a client sends one.
_MAX_PARTS = 1000
#: Window of a zstd frame: 8 MiB (two to this power) is what every decoder should take.
_ZSTD_OPTIONS: dict[int, int] = {zstd.DecompressionParameter.window_log_max: 23}
_GZIP_WBITS = 31


class BodyTooLargeError(Exception):
    """More bytes than the bound; ``steelyard.http.bodies`` says so to the caller."""


def content_encoding(header: str | None) -> str:
    """Return the one coding of a body: ``identity``, ``gzip`` or ``zstd``."""
    coding = (header or "identity").strip().lower()
    coding = "gzip" if coding == "x-gzip" else coding
    if coding != "identity" and coding not in _DECODERS:
        raise UnsupportedEncodingError(
            f"The Content-Encoding is {coding!r}; send the body as gzip or zstd, or uncompressed."
        )
    return coding


def decompress(body: bytes, coding: str, bound: int) -> bytes:
    """Undo a body's coding; raise when more than ``bound`` bytes come out."""
    parts: list[bytes] = []
    n_bytes = 0
    try:
        for part in _DECODERS[coding](body, bound):
            n_bytes += len(part)
            if n_bytes > bound:
                raise BodyTooLargeError
            parts.append(part)
    except (zlib.error, zstd.ZstdError) as error:
        raise _unreadable(coding) from error
    return b"".join(parts)


def decompressed_start(body: bytes, coding: str, bound: int) -> bytes:
    """Return the first bytes of a body that is too long, or of which the rest is missing."""
    if coding == "identity":
        return body
    try:
        return next(_DECODERS[coding](body, bound))
    except (zlib.error, zstd.ZstdError):
        return b""


def _gunzip(body: bytes, bound: int) -> Iterator[bytes]:
    rest = body
    for _ in range(_MAX_PARTS):
        member = zlib.decompressobj(_GZIP_WBITS)
        yield member.decompress(rest, bound + 1)
        if not member.eof:
            # All input was read, or the bound was reached; the caller has counted which.
            raise _unreadable("gzip")
        rest = member.unused_data
        if not rest.strip(b"\0"):  # padding with zeros is allowed
            return
    raise _unreadable("gzip")


def _unzstd(body: bytes, bound: int) -> Iterator[bytes]:
    rest = body
    for _ in range(_MAX_PARTS):
        frame = zstd.ZstdDecompressor(options=_ZSTD_OPTIONS)
        yield frame.decompress(rest, bound + 1)
        if not frame.eof:
            raise _unreadable("zstd")
        rest = frame.unused_data
        if not rest:
            return
    raise _unreadable("zstd")


_DECODERS: dict[str, Callable[[bytes, int], Iterator[bytes]]] = {"gzip": _gunzip, "zstd": _unzstd}


def _unreadable(coding: str) -> InvalidRequestError:
    message = f"The body is not whole {coding}; compress it anew, or send it uncompressed."
    return InvalidRequestError.at(("header", "Content-Encoding"), message, "bad_encoding")
