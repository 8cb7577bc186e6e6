"""Every way in keeps to its machine: no look-up, no connection, no file outside the home."""

from __future__ import annotations

import sys

import pytest

from steelyard.triton import backend_model
from support.families.trainer_folders import write_task
from support.servers import without_route
from support.servers.without_route import Seen, run_without_route

pytestmark = pytest.mark.skipif(
    not without_route.is_possible(),
    reason="this machine lets no program have a network of its own (unshare --mount --net)",
)

HOME = "user/.local/share/steelyard/"
PYTHON = (sys.executable, "-c")
STEELYARD = (sys.executable, "-m", "steelyard")
QUESTION = ("--question", "Does the writer ask for money back?", "--kind", "binary")
#: Runs a command until it says a word, asks for a path at the address beside it, and ends it.
SERVED = """
import re, signal, subprocess, sys, urllib.request
word, path, *command = sys.argv[1:]
process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
try:
    line = next(line for line in process.stdout if word in line)
    if path:
        address = re.search("http://[0-9.:]+", line)[0]
        urllib.request.urlopen(address + path, timeout=60).read()
    process.send_signal(signal.SIGTERM)
    process.communicate()
finally:
    process.kill()
sys.exit(process.returncode)
"""
EMBEDDED = """
import steelyard
with steelyard.embed() as server:
    server.client.decide("Paid twice.", [{"id": "d", "kind": "binary", "question": "Money back?"}])
"""
IN_A_CELL = "from steelyard_workbench import Workbench; Workbench().stop()"
ON_TRITON = f"import runpy; runpy.run_path({backend_model.__file__!r}); import onnxruntime"
ENTRIES = {
    "decide": (*STEELYARD, "decide", "--context", "Paid twice.", *QUESTION),
    "doctor": (*STEELYARD, "doctor"),
    "serve": (*PYTHON, SERVED, "8420", "/v1/health", *STEELYARD, "serve"),
    "workers": (*PYTHON, SERVED, "8420", "/v1/health", *STEELYARD, "serve", "--workers", "2"),
    "up": (*PYTHON, SERVED, "Workbench on", "/", *STEELYARD, "up"),
    "worker": (*PYTHON, SERVED, "Running jobs", "", *STEELYARD, "worker"),
    "workbench": (*PYTHON, SERVED, "Workbench on", "/", *STEELYARD, "workbench"),
    "mcp": (*STEELYARD, "mcp"),
    "trainer": (sys.executable, "-m", "steelyard.trainer", "."),
    "embed": (*PYTHON, EMBEDDED),
    "client": (*PYTHON, "import steelyard.client, onnxruntime"),
    "notebook": (*PYTHON, IN_A_CELL),
    "Triton's host": (*PYTHON, ON_TRITON),
}


@pytest.mark.slow
@pytest.mark.parametrize("entry", ENTRIES)
def test_an_entry_keeps_to_its_machine(entry, tmp_path):
    if entry == "mcp":
        pytest.importorskip("mcp")
    if entry == "trainer":
        write_task(tmp_path / "work")
    seen, printed = run_without_route(
        tmp_path, *ENTRIES[entry], STEELYARD_ENGINE="onnxruntime-int8"
    )
    outside = [path for path in seen.files if not path.startswith((HOME, "work/"))]
    assert (seen.status, seen.looked_up, seen.n_connections, outside) == (0, [], 0, []), printed


#: Does all that the test above refuses.
LOUD = """
import contextlib, pathlib, socket
for address in ("telemetry.example", "192.0.2.1", "2001:db8::1"):
    with contextlib.suppress(OSError):
        socket.create_connection((address, 443))
pathlib.Path("~/.cache/maker").expanduser().mkdir(parents=True)
pathlib.Path("~/.cache/maker/deviceid").expanduser().touch()
"""


def test_what_a_program_does_beyond_its_machine_is_seen(tmp_path):
    seen, printed = run_without_route(tmp_path, *PYTHON, LOUD)
    looked_up, seen.looked_up[:] = set(seen.looked_up), []
    assert looked_up == {"telemetry.example"}, printed
    assert seen == Seen(0, [], 2, ["user/.cache/maker/deviceid"])
