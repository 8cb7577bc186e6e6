"""Every way in keeps to its machine: no look-up, no connection, no file outside the home."""

from __future__ import annotations

import sys
from pathlib import Path

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
#: Runs each command that ends by itself and asks no package index; a made-up word is what it needs.
EVERY_COMMAND = """
import time
import click
from click.testing import CliRunner
from steelyard.cli.main import main
time.sleep = lambda seconds: None
LONG = {"serve", "up", "worker", "workbench", "mcp", "triton", "doctor", "decide"}
def leaves(command, *path):
    if not isinstance(command, click.Group):
        yield path, command
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        if path or name not in LONG:
            yield from leaves(command.get_command(context, name), *path, name)
n_run = 0
for path, command in leaves(main):
    words = ["x"] * sum(isinstance(each, click.Argument) for each in command.params)
    for each in command.params:
        if isinstance(each, click.Option) and each.required:
            words += [each.opts[0], "x"]
    result = CliRunner().invoke(main, [*path, *words], prog_name="steelyard")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    n_run += 1
assert n_run > 90, n_run
"""
#: No server runs that it could speak to.
FAILING = {"`steelyard mcp`": 3}
ENTRIES = {
    "`steelyard decide`": (*STEELYARD, "decide", "--context", "Paid twice.", *QUESTION),
    "`steelyard doctor`": (*STEELYARD, "doctor"),
    "`steelyard serve`": (*PYTHON, SERVED, "8420", "/v1/health", *STEELYARD, "serve"),
    "`steelyard serve --workers 2`": (
        *PYTHON,
        SERVED,
        "8420",
        "/v1/health",
        *STEELYARD,
        "serve",
        "--workers",
        "2",
    ),
    "`steelyard up`, and its page": (*PYTHON, SERVED, "Workbench on", "/", *STEELYARD, "up"),
    "`steelyard worker`": (*PYTHON, SERVED, "Running jobs", "", *STEELYARD, "worker"),
    "`steelyard workbench`, and its page": (
        *PYTHON,
        SERVED,
        "Workbench on",
        "/",
        *STEELYARD,
        "workbench",
    ),
    "every other command": (*PYTHON, EVERY_COMMAND),
    "`steelyard mcp`": (*STEELYARD, "mcp"),
    "the trainer": (sys.executable, "-m", "steelyard.trainer", "."),
    "`steelyard.embed()`": (*PYTHON, EMBEDDED),
    "`import steelyard.client`": (*PYTHON, "import steelyard.client, onnxruntime"),
    "`Workbench()` in a notebook": (*PYTHON, IN_A_CELL),
    "the program of a Triton host": (*PYTHON, ON_TRITON),
}


PAGE = Path(__file__).parents[2] / "docs/operators/security-model.md"
#: The rows of the table of the security model, below its head.
DOCUMENTED = [
    tuple(cell.strip() for cell in line.strip("|").split("|"))
    for line in PAGE.read_text(encoding="utf-8")
    .partition("| Started |")[2]
    .partition("\n\n")[0]
    .splitlines()[2:]
]


@pytest.mark.slow
@pytest.mark.parametrize("entry", ENTRIES)
def test_an_entry_keeps_to_its_machine(entry, tmp_path):
    """The table has every observed connection."""
    if entry == "`steelyard mcp`":
        pytest.importorskip("mcp")
    if entry == "the trainer":
        write_task(tmp_path / "work")
    seen, printed = run_without_route(
        tmp_path, *ENTRIES[entry], STEELYARD_ENGINE="onnxruntime-int8"
    )
    outside = {
        "the current folder" if path.startswith("work/") else path
        for path in seen.files
        if not path.startswith(HOME)
    }
    cells = (", ".join(seen.looked_up), str(seen.n_connections or ""), ", ".join(sorted(outside)))
    row = (entry, *(cell or "none" for cell in cells))
    assert (seen.status, row) == (FAILING.get(entry, 0), _documented(entry)), printed


def _documented(entry):
    return next((row for row in DOCUMENTED if row[0] == entry), None)


def test_every_entry_of_the_table_is_started():
    assert [row[0] for row in DOCUMENTED] == list(ENTRIES)


#: Does all that the test above refuses.
LOUD = """
import contextlib, pathlib, socket
for address in ("telemetry.example", "192.0.2.1", "2001:db8::1"):
    with contextlib.suppress(OSError):
        socket.create_connection((address, 443))
pathlib.Path("~/.cache/maker").expanduser().mkdir(parents=True)
pathlib.Path("~/.cache/maker/deviceid").expanduser().touch()
"""


def test_outgoing_traffic_of_a_program_is_seen(tmp_path):
    seen, printed = run_without_route(tmp_path, *PYTHON, LOUD)
    looked_up, seen.looked_up[:] = set(seen.looked_up), []
    assert looked_up == {"telemetry.example"}, printed
    assert seen == Seen(0, [], 2, ["user/.cache/maker/deviceid"])
