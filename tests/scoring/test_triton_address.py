"""What the setting ``scorer`` may say, and what it is told about what it may not."""

from __future__ import annotations

import pytest

from steelyard.scoring.triton_address import TritonAddress, parse_address, parse_scorer
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
    assert parse_scorer("").is_in_process


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
def test_refusals_say_what_to_give(text):
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
    assert not source.is_in_process
    with pytest.raises(InvalidSettingError, match="cannot be read: No such file"):
        source.read()
    place.write_text("triton://one:1\nand the rest is not read\n")
    assert source.read() == TritonAddress("one", 1)
    place.write_text("")
    assert source.read() is None
    place.write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidSettingError, match="it is no text"):
        source.read()
    place.write_text("http://one")
    with pytest.raises(InvalidSettingError, match="http://one"):
        source.read()
