"""Files are downloaded from the hub or a mirror, gone on with, and checked."""

from __future__ import annotations

import hashlib
import os

import pytest

from steelyard.errors import EngineUnavailableError, InvalidRequestError, ModelUnavailableError
from steelyard.serving.judge.catalogue import CatalogueEntry, read_catalogue
from steelyard.serving.judge.download import copy, pull
from support.servers.model_hub import model_hub

CONTENT = bytes(range(256)) * 40
SHA256 = hashlib.sha256(CONTENT).hexdigest()
KNOWN = CatalogueEntry(
    repository="a/b", file="m.gguf", licence="MIT", bytes=len(CONTENT), sha256=SHA256
)
UNKNOWN = CatalogueEntry(repository="a/b", file="*.gguf", licence="MIT")


@pytest.fixture(scope="module")
def hub():
    with model_hub({"a/b": {"README.md": b"Read me.", "m.gguf": CONTENT}}) as hub:
        yield hub


@pytest.fixture(autouse=True)
def faultless(hub):
    yield
    hub.reset()


def test_a_file_is_downloaded_with_its_progress(hub, tmp_path):
    done = []
    path = pull(UNKNOWN, tmp_path / "models", hub.url, on_bytes=done.append)
    assert (path.name, path.read_bytes(), done[-1]) == ("m.gguf", CONTENT, len(CONTENT))
    hub.ranges.clear()
    assert pull(KNOWN, tmp_path / "models", hub.url) == path
    assert not hub.ranges


def test_an_interrupted_download_goes_on(hub, tmp_path):
    (tmp_path / "m.gguf.part").write_bytes(CONTENT[:1000])
    assert pull(KNOWN, tmp_path, hub.url).read_bytes() == CONTENT
    assert hub.ranges[-1] == "bytes=1000-"


def test_the_second_of_two_at_once_is_refused(hub, tmp_path):
    source = tmp_path / "own" / "m.gguf"
    source.parent.mkdir()
    source.write_bytes(CONTENT)
    seconds = []

    def start_second(_):
        for second in (
            lambda: pull(KNOWN, tmp_path / "models", hub.url),
            lambda: copy(KNOWN, source, tmp_path / "models"),
        ):
            with pytest.raises(ModelUnavailableError) as refused:
                second()
            seconds.append(str(refused.value))

    path = pull(KNOWN, tmp_path / "models", hub.url, on_bytes=start_second)
    assert path.read_bytes() == CONTENT
    assert list(path.parent.iterdir()) == [path]
    assert all(f"Process {os.getpid()} of " in second for second in seconds)
    assert hub.ranges == ["bytes=0-"]


def test_the_lock_of_a_killed_process_keeps_none_out(hub, tmp_path):
    (tmp_path / "m.gguf.lock").write_text("Process 1 of another")
    assert pull(KNOWN, tmp_path, hub.url).read_bytes() == CONTENT
    assert [path.name for path in tmp_path.iterdir()] == ["m.gguf"]


def test_a_file_with_another_hash_is_not_kept(hub, tmp_path):
    (tmp_path / "m.gguf.part").write_bytes(b"x" * 1000)
    with pytest.raises(InvalidRequestError, match="SHA-256"):
        pull(KNOWN, tmp_path, hub.url)
    assert not list(tmp_path.iterdir())


def test_a_hub_without_the_file_has_its_own_error(hub, tmp_path):
    missing = CatalogueEntry(repository="a/b", file="*.bin", licence="MIT")
    with pytest.raises(EngineUnavailableError, match="0 files"):
        pull(missing, tmp_path, hub.url)
    away = CatalogueEntry(repository="no/such", file="*.gguf", licence="MIT")
    with pytest.raises(EngineUnavailableError, match="status 404"):
        pull(away, tmp_path, hub.url)


@pytest.mark.parametrize("size", [0, -1, "words", None, True, 1.5])
def test_a_size_that_is_none_is_a_sentence(hub, tmp_path, size):
    hub.sizes["m.gguf"] = size
    with pytest.raises(EngineUnavailableError, match=r"as the size of m\.gguf"):
        pull(UNKNOWN, tmp_path, hub.url)
    assert not list(tmp_path.iterdir())


def test_a_hash_that_is_none_is_a_sentence(hub, tmp_path):
    hub.hashes["m.gguf"] = "none"
    with pytest.raises(EngineUnavailableError, match=r"as the hash of m\.gguf"):
        pull(UNKNOWN, tmp_path, hub.url)


DEEP = b'[{"path":' + b"[" * 10_000 + b"]" * 10_000 + b"}]"


@pytest.mark.parametrize("listing", [b"<html>", b"{}", b'["m.gguf"]', DEEP])
def test_a_list_that_is_none_is_a_sentence(hub, tmp_path, listing):
    hub.listing = listing
    with pytest.raises(EngineUnavailableError, match="is not JSON as it should be"):
        pull(UNKNOWN, tmp_path, hub.url)


@pytest.mark.parametrize("kind", ["text/html; charset=utf-8", "application/octet-stream"])
@pytest.mark.parametrize("length", [10, 2 * len(CONTENT)])
def test_a_web_page_in_place_of_a_file_is_not_kept(hub, tmp_path, kind, length):
    hub.pages["m.gguf"] = (b"<!DOCTYPE html>".ljust(length), kind)
    with pytest.raises(EngineUnavailableError, match=r"A web page came in place of m\.gguf"):
        pull(KNOWN, tmp_path, hub.url)
    assert not list(tmp_path.iterdir())


def test_a_connection_that_ends_is_gone_on_with(hub, tmp_path):
    hub.ends_after = 1000
    with pytest.raises(EngineUnavailableError, match="it goes on there"):
        pull(KNOWN, tmp_path, hub.url)
    hub.ends_after = 0
    assert pull(KNOWN, tmp_path, hub.url).read_bytes() == CONTENT
    assert hub.ranges == ["bytes=0-", "bytes=1000-"]


@pytest.mark.parametrize("status", [206, 416])
def test_a_file_shorter_than_listed_is_not_asked_for_again_and_again(hub, tmp_path, status):
    hub.sizes["m.gguf"], hub.hashes["m.gguf"] = len(CONTENT) + 9, "0" * 64
    hub.status_at_the_end = status
    with pytest.raises(EngineUnavailableError, match="it goes on there"):
        pull(UNKNOWN, tmp_path, hub.url)
    with pytest.raises(EngineUnavailableError, match="to another mirror"):
        pull(UNKNOWN, tmp_path, hub.url)
    assert not list(tmp_path.iterdir())


def test_a_hub_without_ranges_and_a_store_elsewhere_serve_it_too(hub, tmp_path):
    (tmp_path / "m.gguf.part").write_bytes(CONTENT[:1000])
    hub.has_ranges = False
    assert pull(KNOWN, tmp_path, hub.url).read_bytes() == CONTENT
    with model_hub(hub.files) as store:
        hub.elsewhere = store.url
        assert pull(KNOWN, tmp_path / "again", hub.url).read_bytes() == CONTENT
        assert store.ranges == ["bytes=0-"]


def test_a_file_that_is_here_is_copied_and_checked(tmp_path):
    source = tmp_path / "own.gguf"
    source.write_bytes(CONTENT)
    assert copy(KNOWN, source, tmp_path / "models").read_bytes() == CONTENT
    source.write_bytes(CONTENT[:-1])
    with pytest.raises(InvalidRequestError, match="SHA-256"):
        copy(KNOWN, source, tmp_path / "models")
    assert source.exists()


def test_the_catalogue_can_be_read():
    for name, entry in read_catalogue().items():
        assert bool(entry.sha256) == bool(entry.measured), name
        # A hash needs the bytes, and a person who chooses needs to know about how many they are.
        assert entry.bytes or not (entry.sha256 or entry.recommended), name
    recommended = [entry.recommended for entry in read_catalogue().values() if entry.recommended]
    assert sorted(recommended) == ["best", "good", "small"]
