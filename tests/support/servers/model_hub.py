"""A hub of models on loopback: repositories as dictionaries from path to content."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit


@dataclass
class ModelHub:
    """The files of a hub, and its requests."""

    url: str
    #: Repository to path to content.
    files: dict[str, dict[str, bytes]]
    ranges: list[str | None] = field(default_factory=list)
    #: What is listed in place of the true size or hash of a path.
    sizes: dict[str, object] = field(default_factory=dict)
    hashes: dict[str, object] = field(default_factory=dict)
    #: What is sent in place of a path's content, and its type.
    pages: dict[str, tuple[bytes, str]] = field(default_factory=dict)
    listing: bytes | None = None
    #: Bytes of a file after which the connection ends; 0 for none.
    ends_after: int = 0
    #: Where files are, in place of here, as with the hub's own store of large ones.
    elsewhere: str = ""
    #: Whether a file is sent from where a request asks for it.
    has_ranges: bool = True
    #: How it answers who has all of a file.
    status_at_the_end: int = 206

    def reset(self) -> None:
        """Forget every fault and every request."""
        self.ranges.clear()
        self.sizes.clear()
        self.hashes.clear()
        self.pages.clear()
        self.listing, self.ends_after = None, 0
        self.elsewhere, self.has_ranges, self.status_at_the_end = "", True, 206

    def listed(self, repository: str) -> bytes:
        """Return the list of a repository: large files by SHA-256, others as Git has them."""
        entries = []
        for path, content in self.files[repository].items():
            size = self.sizes.get(path, len(content))
            if path.endswith((".gguf", ".onnx")):
                sha256 = self.hashes.get(path, hashlib.sha256(content).hexdigest())
                entries.append({"path": path, "lfs": {"oid": sha256, "size": size}})
            else:
                blob = b"blob %d\0" % len(content) + content
                sha1 = self.hashes.get(path, hashlib.sha1(blob).hexdigest())
                entries.append({"path": path, "oid": sha1, "size": size})
        return self.listing or json.dumps(entries).encode()


@contextmanager
def model_hub(files: dict[str, dict[str, bytes]]) -> Iterator[ModelHub]:
    """Yield a hub that answers."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            path = urlsplit(self.path).path.removeprefix("/")
            kind, content, status = "application/octet-stream", b"", 404
            for repository, contents in hub.files.items():
                name = path.removeprefix(f"{repository}/resolve/main/")
                if path == f"api/models/{repository}/tree/main":
                    content, status = hub.listed(repository), 200
                elif hub.elsewhere and name in contents:
                    self.send_response(302)
                    self.send_header("Location", f"{hub.elsewhere}{self.path}")
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                    return
                elif name in hub.pages:
                    (content, kind), status = hub.pages[name], 200
                elif name in contents and name != path:
                    hub.ranges.append(self.headers["Range"])
                    begin = int(self.headers["Range"].removeprefix("bytes=").rstrip("-"))
                    begin = begin if hub.has_ranges else 0
                    content, status = contents[name][begin:], 206 if hub.has_ranges else 200
                    status = status if content else hub.status_at_the_end
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content[: hub.ends_after] if hub.ends_after else content)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    hub = ModelHub(f"http://127.0.0.1:{server.server_port}", files)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
