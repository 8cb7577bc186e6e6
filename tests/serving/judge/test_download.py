"""Files are downloaded from the hub or a mirror, gone on with, and checked."""

from __future__ import annotations

import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from steelyard.errors import EngineUnavailableError, InvalidRequestError
from steelyard.serving.judge.catalogue import CatalogueEntry, read_catalogue
from steelyard.serving.judge.download import copy, pull

CONTENT = bytes(range(256)) * 40
SHA256 = hashlib.sha256(CONTENT).hexdigest()
KNOWN = CatalogueEntry(
    repository="a/b", file="m.gguf", licence="MIT", bytes=len(CONTENT), sha256=SHA256
)
UNKNOWN = CatalogueEntry(repository="a/b", file="*.gguf", licence="MIT")


@pytest.fixture(scope="module")
def mirror():
    """Return the address of a hub with one model, and the ranges that were asked."""
    ranges = []

    class Hub(BaseHTTPRequestHandler):
        def do_GET(self):
            if self.path == "/api/models/a/b/tree/main":
                entry = {"path": "m.gguf", "lfs": {"oid": SHA256, "size": len(CONTENT)}}
                content, status = json.dumps([{"path": "README.md"}, entry]).encode(), 200
            elif self.path == "/a/b/resolve/main/m.gguf":
                ranges.append(self.headers["Range"])
                begin = int(self.headers["Range"].removeprefix("bytes=").rstrip("-"))
                content, status = CONTENT[begin:], 206
            else:
                content, status = b"", 404
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", ranges
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_file_is_downloaded_with_its_progress(mirror, tmp_path):
    url, ranges = mirror
    done = []
    path = pull(UNKNOWN, tmp_path / "models", url, on_bytes=done.append)
    assert (path.name, path.read_bytes(), done[-1]) == ("m.gguf", CONTENT, len(CONTENT))
    ranges.clear()
    assert pull(KNOWN, tmp_path / "models", url) == path
    assert not ranges


def test_an_interrupted_download_goes_on(mirror, tmp_path):
    url, ranges = mirror
    (tmp_path / "m.gguf.part").write_bytes(CONTENT[:1000])
    assert pull(KNOWN, tmp_path, url).read_bytes() == CONTENT
    assert ranges[-1] == "bytes=1000-"


def test_a_file_with_another_hash_is_not_kept(mirror, tmp_path):
    url, _ = mirror
    (tmp_path / "m.gguf.part").write_bytes(b"x" * 1000)
    with pytest.raises(InvalidRequestError, match="SHA-256"):
        pull(KNOWN, tmp_path, url)
    assert not list(tmp_path.iterdir())


def test_a_hub_that_has_no_such_file_is_told_apart(mirror, tmp_path):
    url, _ = mirror
    missing = CatalogueEntry(repository="a/b", file="*.bin", licence="MIT")
    with pytest.raises(EngineUnavailableError, match="0 files"):
        pull(missing, tmp_path, url)
    away = CatalogueEntry(repository="no/such", file="*.gguf", licence="MIT")
    with pytest.raises(EngineUnavailableError, match="status 404"):
        pull(away, tmp_path, url)


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
        assert bool(entry.sha256) == bool(entry.bytes) == bool(entry.measured), name
