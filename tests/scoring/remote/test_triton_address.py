"""Values of the setting ``scorer``, and the refusals of others."""

from __future__ import annotations

import pytest

from steelyard.scoring.remote.triton_address import (
    TlsFiles,
    TritonAddress,
    parse_address,
    parse_scorer,
)
from steelyard.settings import InvalidSettingError


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("triton://127.0.0.1:8001", TritonAddress("127.0.0.1", 8001)),
        ("triton://gpu-1", TritonAddress("gpu-1", 8001)),
        ("tritons://gpu-1.internal:443/", TritonAddress("gpu-1.internal", 443, is_secure=True)),
        ("  triton://[::1]:9000\n", TritonAddress("::1", 9000)),
    ],
)
def test_urls(text, address):
    assert parse_address(text) == address
    assert parse_address(address.url) == address


def test_nothing_is_this_process():
    assert parse_address(" ") is None
    assert parse_scorer("").read() is None


@pytest.mark.parametrize(
    "text",
    [
        "127.0.0.1:8001",
        "http://127.0.0.1:8000",
        "triton://",
        "triton://host:port",
        "triton://host:99999",
        "triton://user:secret@host",
        "triton://host:8001/model",
        "triton://host?model=x",
        "file://elsewhere/scorer",
        "file:scorer",
    ],
)
def test_refusals_have_a_valid_example(text):
    with pytest.raises(InvalidSettingError, match=r"STEELYARD_SCORER.*triton://HOST:PORT"):
        parse_scorer(text)


@pytest.mark.parametrize(
    ("host", "is_loopback"),
    [("localhost", True), ("127.0.0.9", True), ("::1", True), ("10.0.0.1", False), ("gpu", False)],
)
def test_memory_is_shared_with_this_machine_alone(host, is_loopback):
    assert TritonAddress(host, 1).is_loopback is is_loopback


def test_a_file_is_read_each_time(tmp_path):
    place = tmp_path / "scorer"
    source = parse_scorer(f"file://{place}")
    with pytest.raises(InvalidSettingError, match="cannot be read: No such file"):
        source.read()
    place.write_text("triton://one:1\nand the rest is not read\n")
    assert source.read() == TritonAddress("one", 1)
    place.write_text("")
    assert source.read() is None
    place.write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidSettingError, match="it is not text"):
        source.read()
    place.write_text("http://one")
    with pytest.raises(InvalidSettingError, match="http://one"):
        source.read()


def test_files_for_tls_are_of_secure_connections_alone(tmp_path):
    roots = tmp_path / "roots.pem"
    roots.write_text("")
    tls = TlsFiles(roots)
    assert parse_address("triton://one", tls).tls_options() == {}
    secure = parse_address("tritons://one", tls)
    assert secure.tls_options() == {
        "ssl": True,
        "root_certificates": str(roots),
        "certificate_chain": None,
        "private_key": None,
    }
    roots.unlink()
    assert parse_scorer("triton://one", tls).read() == TritonAddress("one", 8001, tls=tls)


@pytest.mark.parametrize(
    ("named", "said"),
    [
        (("roots",), "scorer_roots .STEELYARD_SCORER_ROOTS. cannot be read: No such file"),
        (("certificate",), "need each other"),
        (("key",), "need each other"),
        (("certificate", "key"), "STEELYARD_SCORER_CERTIFICATE. cannot be read"),
    ],
)
def test_files_for_tls_that_cannot_be_used_are_refused(tmp_path, named, said):
    tls = TlsFiles(**{name: tmp_path / name for name in named})
    with pytest.raises(InvalidSettingError, match=said):
        parse_scorer("tritons://one", tls)
    place = tmp_path / "scorer"
    place.write_text("tritons://one")
    source = parse_scorer(f"file://{place}", tls)
    with pytest.raises(InvalidSettingError, match=said):
        source.read()
