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
def walk(tmp_path_factory):
    return trace_decide(tmp_path_factory.mktemp("home"))


@pytest.fixture(scope="module")
def trace(walk):
    return tuple(file for _, file in walk)


def trace_decide(home: Path) -> tuple[tuple[int, str], ...]:
    """Return the thread and the file of each call of a function of the package, in order, of one request.

    Of the first request much is made once: loaded modules, caches. Beside any of the others the
    server's own clocks may tick, so the shortest of a few is taken.
    """
    calls: list[tuple[int, str]] = []

    def note(frame: FrameType, event: str, _: object) -> None:
        name = frame.f_code.co_filename
        if event == "call" and name.startswith(f"{PACKAGE}/"):
            calls.append((threading.get_ident(), name.removeprefix(f"{PACKAGE}/")))

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


def count_changes(walk: tuple[tuple[int, str], ...]) -> Counter[tuple[str, str]]:
    """Return how often each pair of files follows one another on a thread, whatever others do meanwhile."""
    by_thread = sorted(walk, key=lambda call: call[0])
    pairs = itertools.pairwise(by_thread)
    return Counter((a, b) for (s, a), (t, b) in pairs if s == t and a != b)


def describe(trace: tuple[str, ...], changes: Counter[tuple[str, str]]) -> str:
    """Return the rooms and files of a trace with their calls, for shortening it."""
    files = Counter(trace)
    rooms = Counter(file.partition("/")[0] for file in trace)
    return "\n".join(
        [
            f"{len(files)} files, {len(rooms)} rooms, {len(trace)} calls, {changes.total()} changes",
            *(f"{n:5} calls in {room}/" for room, n in rooms.most_common()),
            *(f"{n:5} calls in {file}" for file, n in files.items()),
            *(f"{n:5} times from {a} to {b}" for (a, b), n in changes.most_common(20)),
        ]
    )


def test_a_decide_request_enters_few_files_and_seldom_changes_between_them(walk, trace):
    changes = count_changes(walk)
    assert len(set(trace)) <= MAX_FILES, describe(trace, changes)
    assert changes.total() <= MAX_CHANGES, describe(trace, changes)


def test_a_plain_base_model_enters_no_connected_or_routed_one(trace):
    assert not [file for file in trace if "/connected/" in file or "/routed/" in file]


def test_a_request_that_is_alone_goes_past_the_queues(trace):
    queue = [file for file in trace if file in {"scoring/batching.py", "scoring/shares.py"}]
    assert 0 < len(queue) <= MAX_QUEUE_CALLS, Counter(trace)


def test_the_page_follows_a_decide_request_in_the_order_of_the_trace(trace):
    text = PAGE.read_text(encoding="utf-8").partition("## Walk 1")[2].partition("## Walk 2")[0]
    listed = list(dict.fromkeys(re.findall(r"`server/steelyard/(\S+\.py)`", text)))
    assert len(listed) <= 25
    assert [file for file in dict.fromkeys(trace) if file in listed] == listed, list(
        dict.fromkeys(trace)
    )
