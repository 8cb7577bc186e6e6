"""The files through which one decide request goes, as the architecture page follows it."""

from __future__ import annotations

import re
import socket
import threading
from pathlib import Path
from types import FrameType

import httpx
import pytest

import steelyard
from steelyard.app.application import create_app
from steelyard.app.bootstrap import open_service
from steelyard.settings import read_settings
from support.server_thread import ServerThread
from support.serving import REQUEST

PACKAGE = Path(steelyard.__file__).parent
PAGE = PACKAGE.parents[1] / "docs" / "contributors" / "architecture.md"


def files_of_the_walk() -> list[str]:
    text = PAGE.read_text(encoding="utf-8").partition("## Walk 1")[2].partition("## Walk 2")[0]
    return list(dict.fromkeys(re.findall(r"`server/steelyard/(\S+\.py)`", text)))


@pytest.fixture
def entered():
    """The files of the package in the order in which its functions are first called."""
    files: dict[str, None] = {}

    def note(frame: FrameType, event: str, _: object) -> None:
        name = frame.f_code.co_filename
        if event == "call" and name.startswith(f"{PACKAGE}/"):
            files.setdefault(name.removeprefix(f"{PACKAGE}/"))

    threading.setprofile(note)
    yield files
    threading.setprofile(None)


def test_a_decide_request_is_followed_in_at_most_25_files(entered, tmp_path):
    settings = read_settings({"home": tmp_path}, environ={})
    listener = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1/decide"
    with open_service(settings) as services:
        server = ServerThread(lambda: create_app(services), listener)
        try:
            # Of the first request much is made once: loaded modules, caches.
            for key in ("first", "second"):
                entered.clear()
                answer = httpx.post(url, json=REQUEST, headers={"Idempotency-Key": key}, timeout=60)
                assert answer.status_code == 200, answer.text
        finally:
            server.stop()
    walk = files_of_the_walk()
    assert len(walk) <= 25
    assert [file for file in entered if file in walk] == walk
