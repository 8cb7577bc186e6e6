"""The scripts of every page as one file.

A browser asks for six files at once. The seventh of Bokeh's and Panel's waited until the thread that
sends them had made the page, and the page for it.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from bokeh.embed.bundle import extension_dirs
from bokeh.settings import settings
from tornado.iostream import StreamClosedError
from tornado.web import HTTPError, RequestHandler

PATH = "/scripts.js"
#: Seconds that a page waits for the browser to have them at most.
_LONGEST_S = 0.2
_FOREVER = "public, max-age=31536000, immutable"


class Scripts:
    """The scripts that a browser runs before any page is drawn, in their order."""

    def __init__(self) -> None:
        self.text = b""
        self._have_gone = asyncio.Event()

    def read(self, addresses: Sequence[str]) -> str:
        """Read the scripts at some addresses of this server; return the address of all of them."""
        texts = [_file_of(address).read_text(encoding="utf-8") for address in addresses]
        # Bokeh's say so of themselves, which holds at the beginning of a file alone.
        self.text = "\n;".join(["'use strict'", *texts]).encode()
        return f"{PATH[1:]}?v={hashlib.sha256(self.text).hexdigest()[:16]}"

    def note_gone(self) -> None:
        """Note that a browser was sent them."""
        self._have_gone.set()

    async def wait(self) -> None:
        """Wait until a browser was sent them, but not for long: it may have them."""
        self._have_gone.clear()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._have_gone.wait(), _LONGEST_S)


class ScriptsHandler(RequestHandler):
    """Answers with the scripts."""

    def initialize(self, scripts: Scripts) -> None:
        """Store Tornado's arguments."""
        self._scripts = scripts

    async def get(self) -> None:
        """Send them, which a page waits for."""
        if not self._scripts.text:
            raise HTTPError(404)
        self.set_header("Content-Type", "text/javascript; charset=utf-8")
        self.set_header("Cache-Control", _FOREVER)
        self.write(self._scripts.text)
        with suppress(StreamClosedError):
            await self.flush()
        self._scripts.note_gone()


def _file_of(address: str) -> Path:
    """Return the file that Panel's server sends at an address."""
    name = address.partition("?")[0].partition("static/")[2]
    if not name.startswith("extensions/"):
        return Path(settings.bokehjs_path()) / name
    extension, _, rest = name.removeprefix("extensions/").partition("/")
    return Path(extension_dirs[extension]) / rest
