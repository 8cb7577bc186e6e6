"""Bodies that would grow without end: refused, in memory that is bounded."""

from __future__ import annotations

import json
import re
import struct
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from faults.processes import ServeProcess, serve_process
from support.api.error_shape import assert_canonical_error

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")

MIB = 1024 * 1024
GIB = 1024 * MIB
#: What a body of a bomb may take, of the 10 GiB that it would: bodies have up to 16 MiB here.
GROWTH = 192 * MIB
#: What a table of a few MiB may take, on a server and in a command.
TABLE_GROWTH = 300 * MIB
JSON, NDJSON, CSV = "application/json", "application/x-ndjson", "text/csv"


def gzip_zeros(n_bytes: int) -> bytes:
    """Return gzip of zeros, made by repeating one block; the checksum at its end is wrong."""
    step = 16 * MIB
    packer = zlib.compressobj(9, wbits=-15)
    block = packer.compress(bytes(step)) + packer.flush(zlib.Z_FULL_FLUSH)
    start = b"\x1f\x8b\x08\0\0\0\0\0\0\xff"
    end = zlib.compressobj(9, wbits=-15).flush() + struct.pack("<II", 0, n_bytes % 2**32)
    return start + block * (n_bytes // step) + end


def zstd_zeros(n_bytes: int, *, sized: bool) -> bytes:
    """Return zstd of zeros: blocks of 128 KiB, each of which is one byte repeated."""
    step = 128 * 1024
    n_blocks = n_bytes // step
    # The descriptor: a size of 8 bytes, or none; then the window, of 128 KiB.
    start = b"\x28\xb5\x2f\xfd" + (b"\xc0" if sized else b"\x00") + bytes([(17 - 10) << 3])
    start += struct.pack("<Q", n_bytes) if sized else b""
    kind = 1 << 1
    block = struct.pack("<I", step << 3 | kind)[:3] + b"\0"
    last = struct.pack("<I", step << 3 | kind | 1)[:3] + b"\0"
    return start + block * (n_blocks - 1) + last


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServeProcess]:
    home = tmp_path_factory.mktemp("bombs") / "home"
    with serve_process(home, STEELYARD_BODY_BYTES=str(16 * MIB)) as server:
        server.start()
        yield server


def peak_bytes(server: ServeProcess) -> int:
    status = Path(f"/proc/{server.pid}/status").read_text()
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert found is not None
    return int(found[1]) * 1024


def post(server: ServeProcess, body: bytes, **headers: str) -> httpx.Response:
    given = {"Content-Type": "application/json", **headers}
    return httpx.post(f"{server.url}/v1/decide", content=body, headers=given, timeout=100)


BOMBS: dict[str, tuple[str, Callable[[], bytes]]] = {
    "gzip": ("gzip", lambda: gzip_zeros(10 * GIB)),
    "zstd": ("zstd", lambda: zstd_zeros(10 * GIB, sized=False)),
    "zstd that says its size": ("zstd", lambda: zstd_zeros(10 * GIB, sized=True)),
}


def test_the_bombs_unpack_to_their_sizes() -> None:
    from backports.zstd import ZstdDecompressor

    n_bytes = 32 * MIB - 1  # short of the checksum
    assert zlib.decompressobj(31).decompress(gzip_zeros(32 * MIB), n_bytes) == bytes(n_bytes)
    for sized in (False, True):
        unpacker = ZstdDecompressor()
        assert unpacker.decompress(zstd_zeros(32 * MIB, sized=sized)) == bytes(32 * MIB)
        assert unpacker.eof


@pytest.mark.parametrize("bomb", BOMBS)
def test_ten_gibibytes_of_zeros_are_refused_in_bounded_memory(
    server: ServeProcess, bomb: str
) -> None:
    encoding, make = BOMBS[bomb]
    body = make()
    assert len(body) < 16 * MIB
    before = peak_bytes(server)
    refused = post(server, body, **{"Content-Encoding": encoding})
    assert_canonical_error(refused, 413, "payload_too_large", message=str(16 * MIB))
    assert peak_bytes(server) - before < GROWTH


def nested(opening: str, closing: str, depth: int) -> str:
    return opening * depth + closing * depth


def nested_names(depth: int, inner: str) -> str:
    """An object in an object, each under a name as long as an error repeats it whole."""
    return "".join(f'{{"{chr(97 + n % 26) * 256}":' for n in range(depth)) + inner + "}" * depth


def asking(**fields: Any) -> str:
    request = {
        "context": "c",
        "decisions": [{"id": "d", "kind": "binary", "question": "q?"}],
        **fields,
    }
    return json.dumps(request)


#: JSON of a few MiB that is small on the wire and large, deep or slow to read.
JSON_BOMBS: dict[str, Callable[[], str]] = {
    "lists": lambda: nested("[", "]", MIB),
    "lists that do not end": lambda: "[" * (4 * MIB),
    "objects": lambda: nested('{"a":', "}", MIB // 4).replace(":}", ":1}", 1),
    "a deep context": lambda: asking(context="@").replace('"@"', nested("[", "]", MIB)),
    "a deep unknown field": lambda: asking(x="@").replace('"@"', nested("[", "]", 100_000)),
    "empty lists": lambda: asking(decisions="@").replace('"@"', "[" + "[]," * MIB + "[]]"),
    "no decisions at all": lambda: asking(decisions="@").replace('"@"', "[" + "0," * MIB + "0]"),
    "unknown fields": lambda: "{" + ",".join(f'"k{n}":0' for n in range(200_000)) + "}",
    "the same field": lambda: "{" + '"context":"c",' * 200_000 + '"decisions":0}',
    "long names above many numbers": lambda: asking(context="@").replace(
        '"@"', nested_names(28, "[" + "1e999," * 100_000 + "1e999]")
    ),
    "a long number": lambda: asking(temperature="@").replace('"@"', "1" * (4 * MIB)),
    "a large exponent": lambda: asking(temperature="@").replace('"@"', "1e" + "9" * MIB),
    "outcomes without end": lambda: asking(
        decisions=[{"id": "d", "question": "q?", "outcomes": [str(n) for n in range(200_000)]}]
    ),
    "decisions without end": lambda: asking(
        decisions=[{"id": str(n), "kind": "binary", "question": "q?"} for n in range(50_000)]
    ),
}


@pytest.mark.parametrize("bomb", JSON_BOMBS)
def test_json_that_is_large_deep_or_slow_to_read_is_refused_in_bounded_memory(
    server: ServeProcess, bomb: str
) -> None:
    body = JSON_BOMBS[bomb]().encode()
    before = peak_bytes(server)
    refused = post(server, body)
    assert_canonical_error(refused, 422, "invalid_request")
    assert len(refused.content) < MIB
    assert peak_bytes(server) - before < 2 * GROWTH


ROW = {
    "context": "c",
    "decisions": [{"id": "d", "kind": "binary", "question": "q?"}],
    "targets": {"d": "yes"},
}
_WIDE = [{f"n{row}_{name}": 1 for name in range(100)} for row in range(5_000)]

#: Rows of a few MiB that are as wide as they are long, or deep; and their media types.
TABLES: dict[str, tuple[str, Callable[[], str]]] = {
    "lines of other names": (NDJSON, lambda: "\n".join(map(json.dumps, _WIDE))),
    "rows of other names": (JSON, lambda: json.dumps({"name": "n", "examples": _WIDE})),
    "other labels in each row": (
        NDJSON,
        lambda: "\n".join(json.dumps({**ROW, "targets": names}) for names in _WIDE),
    ),
    "deep lines": (
        NDJSON,
        lambda: "\n".join(
            json.dumps({**ROW, "context": "@"}).replace('"@"', nested("[", "]", 10_000))
            for _ in range(200)
        ),
    ),
    "a million columns": (CSV, lambda: "context" + ",d" * 1_000_000 + "\nc" + ",yes" * 1_000_000),
    "a million cells": (CSV, lambda: "context,d\nc" + ",yes" * 1_000_000),
}


@pytest.mark.parametrize("table", TABLES)
def test_rows_that_are_wide_or_deep_are_refused_in_bounded_memory(
    server: ServeProcess, table: str
) -> None:
    media_type, make = TABLES[table]
    path = "/v1/datasets"
    if media_type == CSV:
        rows = {"name": "n", "examples": [{**ROW, "context": str(n)} for n in range(4)]}
        made = httpx.post(f"{server.url}{path}", json=rows).json()
        path += f"/{made['id']}/versions/upload"
    headers = {"Content-Type": media_type, "X-Dataset-Name": "n"}
    body = make().encode()
    before = peak_bytes(server)
    refused = httpx.post(f"{server.url}{path}", content=body, headers=headers, timeout=100)
    assert refused.status_code in {413, 422}, refused.text
    assert len(refused.content) < MIB
    assert peak_bytes(server) - before < TABLE_GROWTH


@pytest.mark.slow
def test_the_server_answers_after_all_of_them(server: ServeProcess) -> None:
    assert post(server, asking().encode()).status_code == 200
    assert peak_bytes(server) < GIB
