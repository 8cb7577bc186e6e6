"""The files through which one decide request goes: the trace is the test, and the page's list is of it."""

from __future__ import annotations

import itertools
import re
import socket
import threading
from collections import Counter
from pathlib import Path
from types import FrameType

import httpx
import pytest

import steelyard
from steelyard.app.application import create_app
from steelyard.app.bootstrap import open_service
from steelyard.settings import read_settings
from support.servers.server_thread import ServerThread
from support.servers.serving import REQUEST

PACKAGE = Path(steelyard.__file__).parent
PAGE = PACKAGE.parents[1] / "docs" / "contributors" / "architecture.md"

#: A request enters so many files at most, and goes from one to another so many times.
MAX_FILES, MAX_CHANGES = 45, 210
#: Calls in the queue before the engine of a request that is alone in it; 184 where it is not.
MAX_QUEUE_CALLS = 20


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    return trace_decide(tmp_path_factory.mktemp("home"))


def trace_decide(home: Path) -> tuple[str, ...]:
    """Return the file of each call of a function of the package, in order, of one request on any thread.

    Of the first request much is made once: loaded modules, caches. Beside any of the others the
    server's own clocks may tick, so the shortest of a few is taken.
    """
    calls: list[str] = []

    def note(frame: FrameType, event: str, _: object) -> None:
        name = frame.f_code.co_filename
        if event == "call" and name.startswith(f"{PACKAGE}/"):
            calls.append(name.removeprefix(f"{PACKAGE}/"))

    settings = read_settings({"home": home}, environ={})
    listener = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1/decide"
    traces = []
    threading.setprofile(note)
    try:
        with open_service(settings) as services, httpx.Client(timeout=60) as client:
            server = ServerThread(lambda: create_app(services), listener)
            try:
                for number in range(6):
                    calls.clear()
                    key = {"Idempotency-Key": str(number)}
                    answer = client.post(url, json=REQUEST, headers=key)
                    assert answer.status_code == 200, answer.text
                    traces.append(tuple(calls))
            finally:
                server.stop()
    finally:
        threading.setprofile(None)
    return min(traces[1:], key=len)


def describe(trace: tuple[str, ...]) -> str:
    """Return the rooms and files of a trace with their calls, for shortening it."""
    files = Counter(trace)
    rooms = Counter(file.partition("/")[0] for file in trace)
    hops = Counter(pair for pair in itertools.pairwise(trace) if pair[0] != pair[1])
    return "\n".join(
        [
            f"{len(files)} files, {len(rooms)} rooms, {len(trace)} calls, {hops.total()} changes",
            *(f"{n:5} calls in {room}/" for room, n in rooms.most_common()),
            *(f"{n:5} calls in {file}" for file, n in files.items()),
            *(f"{n:5} times from {a} to {b}" for (a, b), n in hops.most_common(20)),
        ]
    )


def test_a_decide_request_enters_few_files_and_seldom_changes_between_them(trace):
    changes = sum(a != b for a, b in itertools.pairwise(trace))
    assert len(set(trace)) <= MAX_FILES, describe(trace)
    assert changes <= MAX_CHANGES, describe(trace)


def test_a_plain_base_model_enters_no_connected_or_routed_one(trace):
    assert not [file for file in trace if "/connected/" in file or "/routed/" in file]


def test_a_request_that_is_alone_goes_past_the_queues(trace):
    queue = [file for file in trace if file in {"scoring/batching.py", "scoring/shares.py"}]
    assert 0 < len(queue) <= MAX_QUEUE_CALLS, describe(trace)


def test_the_page_follows_a_decide_request_in_the_order_of_the_trace(trace):
    text = PAGE.read_text(encoding="utf-8").partition("## Walk 1")[2].partition("## Walk 2")[0]
    walk = list(dict.fromkeys(re.findall(r"`server/steelyard/(\S+\.py)`", text)))
    assert len(walk) <= 25
    assert [file for file in dict.fromkeys(trace) if file in walk] == walk, describe(trace)
