"""Compressed bodies: undone on every route, within the bound, and refused when they are damaged."""

from __future__ import annotations

import gzip
import json
import tracemalloc

import httpx
import pytest
from backports.zstd import CompressionParameter, ZstdCompressor, compress

from steelyard.http.compression import BodyTooLargeError, decompress
from support.api.error_shape import assert_canonical_error
from support.servers.stand_ins import REQUEST, stand_in_server

pytestmark = pytest.mark.usefixtures("every_response_is_checked")

JSON = {"Content-Type": "application/json"}
CONTEXT = "a ticket " * 1000
BODY = json.dumps({**REQUEST, "context": CONTEXT}).encode()
MIB = 1024 * 1024


def zstd(body: bytes, *, sized: bool = True) -> bytes:
    return compress(body, options={CompressionParameter.content_size_flag: int(sized)})


@pytest.fixture(scope="module")
def shared():
    with stand_in_server() as running:
        yield running


@pytest.fixture
def running(shared):
    shared.decisions.reset()
    return shared


def post(running, body, encoding, path="/v1/decide"):
    headers = {**JSON, "Content-Encoding": encoding}
    return httpx.post(f"{running.url}{path}", content=body, headers=headers)


def zip_up(data: bytes) -> bytes:
    """Compress without the time of day, which would be in the names of tests."""
    return gzip.compress(data, mtime=0)


ENCODED = [
    ("gzip", zip_up(BODY)),
    ("GZIP", zip_up(BODY)),
    ("x-gzip", zip_up(BODY)),
    ("gzip", zip_up(BODY[:100]) + zip_up(BODY[100:])),
    ("gzip", zip_up(BODY) + b"\0" * 10),
    ("zstd", zstd(BODY)),
    ("zstd", zstd(BODY, sized=False)),
    ("zstd", zstd(BODY[:100]) + zstd(BODY[100:])),
    ("identity", BODY),
]


@pytest.mark.parametrize(("encoding", "body"), ENCODED)
def test_the_handler_gets_the_uncompressed_body(running, encoding, body):
    assert post(running, body, encoding).status_code == 200
    assert running.decisions.requests[0].context == CONTEXT


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_a_long_body_arrives_whole(running, encoding):
    context = "".join(map(chr, range(256))) * 800
    compress = gzip.compress if encoding == "gzip" else zstd
    post(running, compress(json.dumps({**REQUEST, "context": context}).encode()), encoding)
    assert running.decisions.requests[0].context == context


DAMAGED = [
    ("gzip", zip_up(BODY)[:-1]),
    ("gzip", zip_up(BODY)[:-9] + b"12345678"),
    ("gzip", zip_up(BODY) + b"more"),
    ("gzip", BODY),
    ("gzip", b""),
    ("gzip", zip_up(b"") * 1001),
    ("zstd", zstd(BODY)[:-1]),
    ("zstd", zstd(BODY) + b"more"),
    ("zstd", BODY),
    ("zstd", b""),
]


@pytest.mark.parametrize(("encoding", "body"), DAMAGED)
def test_a_damaged_body_is_refused(running, encoding, body):
    response = post(running, body, encoding)
    assert_canonical_error(
        response, 422, "invalid_request", path=["header", "Content-Encoding"], message=encoding
    )
    assert running.decisions.calls == []


@pytest.mark.parametrize("encoding", ["br", "deflate", "gzip, gzip", "gzip, identity", "zip"])
def test_other_encodings_are_refused(running, encoding):
    assert_canonical_error(post(running, BODY, encoding), 415, "unsupported_encoding")


@pytest.mark.parametrize("path", ["/v1/lint", "/v1/playground/decide", "/v1/systemone/translate"])
def test_public_routes_undo_them_too(running, path):
    response = post(running, gzip.compress(BODY) + b"more", "gzip", path)
    assert_canonical_error(response, 422, "invalid_request", path=["header", "Content-Encoding"])


def unsized_zstd_bomb(n_bytes: int) -> bytes:
    compressor = ZstdCompressor(options={CompressionParameter.content_size_flag: 0})
    zeros = bytes(MIB)
    parts = [compressor.compress(zeros) for _ in range(n_bytes // MIB)]
    return b"".join([*parts, compressor.flush()])


BOMBS = {
    "gzip": ("gzip", lambda: gzip.compress(bytes(64 * MIB))),
    "gzip members": ("gzip", lambda: gzip.compress(bytes(MIB // 4)) * 64),
    "zstd that says its size": ("zstd", lambda: zstd(bytes(64 * MIB))),
    "zstd that does not": ("zstd", lambda: unsized_zstd_bomb(512 * MIB)),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_refused_in_bounded_memory(running, name):
    encoding, make = BOMBS[name]
    body = make()
    assert len(body) < MIB
    response = post(running, body, encoding)
    assert_canonical_error(response, 413, "payload_too_large", message=str(MIB))
    tracemalloc.start()
    try:
        with pytest.raises(BodyTooLargeError):
            decompress(body, encoding, MIB)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8 * MIB


def test_a_body_of_exactly_the_bound_passes():
    assert len(decompress(gzip.compress(bytes(MIB)), "gzip", MIB)) == MIB
    assert len(decompress(zstd(bytes(MIB)), "zstd", MIB)) == MIB
