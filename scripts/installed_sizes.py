"""Print a table of the installed packages, their size, and what loads each.

In the environment of a wheel with the workbench: each column is a start of its own in an empty home, which
answers a question and, with the workbench, opens its first page. Bytecode is left out: it comes with use.
"""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from importlib.metadata import distributions, packages_distributions
from pathlib import Path

import httpx

PORT, WORKBENCH_PORT, START_S = 18430, 18431, 300
STEELYARD = str(Path(sys.executable).with_name("steelyard"))
QUESTION = {"id": "refund", "kind": "binary", "question": "Does the writer ask for money back?"}
CONTEXT = "Invoice 118 was paid twice."
BODY = {"context": CONTEXT, "decisions": [QUESTION]}
ON = ["--port", str(PORT)]
FLAGS = ["--context", CONTEXT, "--question", str(QUESTION["question"]), "--kind", "binary"]
TRAINER = "import steelyard.trainer.program, steelyard.trainer.blending"
#: The command, and for what goes on until it is stopped the port that answers last.
STARTS: dict[str, tuple[list[str], int | None]] = {
    "decide": ([STEELYARD, "decide", *FLAGS], None),
    "serve": ([STEELYARD, "serve", *ON], PORT),
    "up": ([STEELYARD, "up", *ON, "--workbench-port", str(WORKBENCH_PORT)], WORKBENCH_PORT),
    "a family is trained": ([sys.executable, "-c", TRAINER], None),
}
#: Packages of less are one row.
SMALLEST_MB = 5


def sizes() -> Counter[str]:
    """Return the bytes of each package that is installed."""
    sizes: Counter[str] = Counter()
    for package in distributions():
        files = (Path(str(file.locate())) for file in package.files or ())
        sizes[package.name] += sum(
            file.stat().st_size for file in files if file.suffix != ".pyc" and file.is_file()
        )
    return sizes


def loaded(command: list[str], port: int | None) -> set[str]:
    """Return the packages that a command and its processes import."""
    with tempfile.TemporaryDirectory() as home, tempfile.TemporaryFile("w+") as log:
        env = ["env", f"STEELYARD_HOME={home}", "PYTHONPROFILEIMPORTTIME=1"]
        process = subprocess.Popen([*env, *command], stdout=subprocess.DEVNULL, stderr=log)
        try:
            if port is not None:
                ask(port)
        finally:
            if port is not None:
                process.send_signal(signal.SIGINT)
            process.wait()
        log.seek(0)
        return {
            match[1] for match in re.finditer(r"\| +(\w+)(?:\.\S+)?$", log.read(), re.MULTILINE)
        }


def ask(port: int) -> None:
    """Ask a decision and open a page as soon as a server answers at the port."""
    deadline = time.monotonic() + START_S
    address = f"http://127.0.0.1:{port}{'/v1/health' if port == PORT else '/'}"
    while True:
        try:
            httpx.get(address, timeout=60).raise_for_status()
            break
        except httpx.HTTPError:
            if time.monotonic() > deadline:
                sys.exit("it does not start")
            time.sleep(0.5)
    httpx.post(f"http://127.0.0.1:{PORT}/v1/decide", json=BODY, timeout=60).raise_for_status()


def table() -> Iterator[str]:
    """Yield the table's lines, the largest package first."""
    imported = {name: loaded(*start) for name, start in STARTS.items()}
    modules: dict[str, set[str]] = {}
    for module, packages in packages_distributions().items():
        for package in packages:
            modules.setdefault(package, set()).add(module)
    yield f"| package | MB | {' | '.join(STARTS)} |"
    yield f"|---|---|{'---|' * len(STARTS)}"
    every = sizes()
    rest = Counter({name: size for name, size in every.items() if size < SMALLEST_MB * 1e6})
    for name, size in every.most_common():
        if name not in rest:
            uses = ["x" if modules.get(name, set()) & names else "" for names in imported.values()]
            yield f"| {name} | {size / 1e6:.0f} | {' | '.join(uses)} |"
    rows = "| " * (len(STARTS) + 1)
    yield f"| the rest, {len(rest)} packages | {rest.total() / 1e6:.0f} {rows}".rstrip()
    yield f"| all | {every.total() / 1e6:.0f} {rows}".rstrip()


if __name__ == "__main__":
    print("\n".join(table()))
