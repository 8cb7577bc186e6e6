"""A host without a server: ports, addresses, a dead one's leftovers; a program in its place."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from steelyard.errors import EngineUnavailableError
from steelyard.scoring.remote.process_marks import mark
from steelyard.triton import host as module
from steelyard.triton.environment import Environment
from steelyard.triton.host import TritonHost, sweep_shared_memory
from steelyard.wire.hosts import is_loopback

#: Says what it was started with, answers health as a server does, and ends at SIGTERM.
SERVER = """#!{python}
import http.server, sys
options = dict(one[2:].partition("=")[::2] for one in sys.argv[1:])
print("I1121 started", options["model-control-mode"], flush=True)
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers()
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(400); self.end_headers()
        self.wfile.write(b'{{"error": "it is told so"}}')
    def log_message(self, *args): pass
address = (options["http-address"], int(options["http-port"]))
http.server.ThreadingHTTPServer(address, Handler).serve_forever()
"""


@dataclass(frozen=True, slots=True)
class StandIn(Environment):
    """An environment whose server is a script of the tests."""

    @property
    def server(self) -> Path:
        return self.folder / "server"

    def variables(self) -> dict[str, str]:
        return dict(os.environ)


def stand_in(folder: Path, program: str) -> StandIn:
    made = StandIn(folder)
    made.server.write_text(program)
    made.server.chmod(0o755)
    return made


@pytest.fixture
def answering(tmp_path) -> StandIn:
    return stand_in(tmp_path, SERVER.format(python=sys.executable))


def test_it_is_ready_tells_its_log_and_ends(tmp_path, answering):
    lines: list[str] = []
    with TritonHost(tmp_path, answering, load=["a"], on_line=lines.append) as host:
        pid = host.pid
        assert host.url == f"triton://{host.grpc_address}"
        assert host.is_live()
        assert host.is_ready()
        with pytest.raises(EngineUnavailableError, match="Triton refused: it is told so"):
            host.load("a")
    assert not host.is_running
    assert host.pid is None
    assert not Path(f"/proc/{pid}").exists()
    assert lines == list(host.log) == ["I1121 started explicit"]
    host.stop()


def test_after_a_kill_it_starts_again_on_its_ports(tmp_path, answering):
    with TritonHost(tmp_path, answering) as host:
        before = host.url
        host.kill()
        assert not host.is_live()
        host.start()
        assert host.url == before
        assert host.is_ready()


def test_one_that_ends_at_once_repeats_its_faults(tmp_path):
    program = f"#!{sys.executable}\nprint('I1121 begins')\nprint('E1121 12:00 no such model')\n"
    host = TritonHost(tmp_path, stand_in(tmp_path, program))
    with pytest.raises(EngineUnavailableError, match=r"exit status 0\): E1121 12:00 no such model"):
        host.start()
    assert host.pid is None


def test_one_that_hangs_is_killed(tmp_path):
    program = (
        f"#!{sys.executable}\nimport signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "print('begins', flush=True)\ntime.sleep(60)\n"
    )
    host = TritonHost(tmp_path, stand_in(tmp_path, program), start_s=0.5)
    with pytest.raises(EngineUnavailableError, match=r"not ready after 0\.5 s"):
        host.start()
    assert not host.is_running


def test_a_missing_program_is_reported(tmp_path):
    host = TritonHost(tmp_path, StandIn(tmp_path))
    with pytest.raises(EngineUnavailableError, match="ended while it started"):
        host.start()


def test_a_taken_port_is_refused_before_anything_starts(tmp_path, answering):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        host = TritonHost(tmp_path, answering, port=port)
        with pytest.raises(EngineUnavailableError, match=f"cannot listen on 127.0.0.1:{port}"):
            host.start()
    assert host.pid is None
    assert list(host.log) == []


def test_it_ends_with_the_process_that_started_it(tmp_path, answering):
    program = (
        "import sys, time\n"
        "from pathlib import Path\n"
        "from steelyard.triton.host import TritonHost\n"
        "from dataclasses import dataclass\n"
        "import os\n"
        "class StandIn:\n"
        "    server, backends = Path(sys.argv[1]) / 'server', Path('.')\n"
        "    def variables(self): return dict(os.environ)\n"
        "host = TritonHost(Path('.'), StandIn())\n"
        "host.start()\n"
        "print(host.pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        server = os.pidfd_open(pid)
        process.kill()
        process.wait()
    try:
        import select

        assert select.select([server], [], [], 30)[0], "the server outlived who started it"
    finally:
        os.close(server)


@pytest.fixture
def left(tmp_path, monkeypatch) -> Path:
    """The leftovers of a dead host, in a place for shared memory of its own."""
    monkeypatch.setattr(module, "_SHARED_MEMORY", tmp_path)
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    left = tmp_path / f"steelyard-triton-{mark().partition('-')[0]}-{gone.pid}-0-a"
    left.touch()
    return left


def test_leftovers_of_dead_hosts_are_swept_and_nothing_else(tmp_path, left):
    _, _, pid = left.name.partition(mark().partition("-")[0])
    others = [
        f"steelyard-triton-{mark()}-0-b",  # a host's that runs
        f"steelyard-triton-0123456789ab{pid}",  # of another namespace, where it may run
        "steelyard-triton-of-nobody",
        "other-1",
    ]
    for name in others:
        (tmp_path / name).touch()
    assert sweep_shared_memory() == [left.name]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(others)


def test_files_of_others_or_in_use_are_left(left, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(os, "geteuid", lambda: left.stat().st_uid + 1)
        assert sweep_shared_memory() == []

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", refuse)
        assert sweep_shared_memory() == []
    assert left.exists()
    assert sweep_shared_memory() == [left.name]


@pytest.mark.parametrize(
    ("address", "is_own"),
    [("127.0.0.1", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("::", False)],
)
def test_loopback_is_recognised(address, is_own):
    assert is_loopback(address) is is_own


def test_every_address_is_reached_over_loopback(tmp_path, answering):
    host = TritonHost(tmp_path, answering, host="0.0.0.0", port=9001)
    assert host.url == "triton://127.0.0.1:9001"
    assert TritonHost(tmp_path, answering, host="::1", port=9001).url == "triton://[::1]:9001"
