"""The cost of a connected model to this server, and the effect of a hanging one on the shipped model."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from crowd import Seen, crowd, repeat, serving
from machine import describe_machine
from quality_tables import text_table
from service_load import make_request, run_clients
from transfers import listener
from workloads import CONTEXTS, make_context, make_payload

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from support.models.remote_models import remote_model

WIRES = ("systemone", "decisions", "decide", "chat")
#: The server that is asked, itself: what a request costs where the model costs next to nothing.
OWN = "no wire: hashing"
_DECISIONS = (1, 16, 64)
#: Clients that ask the model that hangs, and seconds that each waits.
_CLIENTS, _TIMEOUT_S = 32, 5.0
_PAUSE_S = 0.02


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure both; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0, help="of each p95")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--requests", type=int, default=100, help="of each size")
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args(arguments)
    print("\n".join(describe_machine()))
    with (
        serving(sys.executable, STEELYARD_ENGINE="hashing") as (far, far_keys),
        _elsewhere() as chat,
        _elsewhere("hangs") as hung,
        serving(
            sys.executable,
            _declared(f"http://127.0.0.1:{far}", chat, hung),
            FAR_KEY=far_keys["crowd"],
        ) as (port, keys),
    ):
        asked = [(wire, port, keys["crowd"], wire) for wire in WIRES]
        results = {
            "cpu_ms": {
                name: {str(n): _cpu_ms(at, key, model, n, options.requests) for n in _DECISIONS}
                for name, at, key, model in [(OWN, far, far_keys["crowd"], ""), *asked]
            },
            "p95_ms": asyncio.run(_beside_hung(port, keys, options.seconds, options.rounds)),
        }
    print(_tables(results))
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")
    return 0


def _declared(far: str, chat: str, hung: str) -> str:
    """Return a ``models.toml`` with a model of each wire, and one that hangs."""
    lines = []
    for wire in WIRES:
        at = f'url = "{chat}"' if wire == "chat" else f'url = "{far}"\nkey_env = "FAR_KEY"'
        lines += [f"[models.{wire}]", f'wire = "{wire}"\nmodel = "hashing"', at]
    lines += ["[models.hung]", f'wire = "systemone"\nurl = "{hung}"\ntimeout_s = {_TIMEOUT_S}']
    return "\n".join(lines) + "\n"


@contextmanager
def _elsewhere(fault: str = "") -> Iterator[str]:
    """Run a chat server in a process of its own, so that its work is not counted; yield its URL."""
    here, there = get_context("spawn").Pipe()
    process = get_context("spawn").Process(target=_serve, args=(there, fault), daemon=True)
    process.start()
    try:
        yield here.recv()
    finally:
        process.terminate()
        process.join()


def _serve(said: Connection, fault: str) -> None:
    with remote_model(fault=fault) as model:
        said.send(model.url)
        while not said.poll(1.0):
            model.asked.clear()
            model.headers.clear()


def _cpu_ms(port: int, key: str, model: str, n_decisions: int, n_requests: int) -> float:
    """Return the milliseconds of CPU that the server takes for a decision of a connected model."""
    requests = [_request(port, key, model, n_decisions, number) for number in range(n_requests)]
    run_clients(port, [requests[:5]])  # the first ones connect and load
    process = listener(port)
    before = sum(process.cpu_times()[:2])
    run_clients(port, [requests[5:]])
    taken = sum(process.cpu_times()[:2]) - before
    return taken * 1e3 / ((n_requests - 5) * n_decisions)


def _request(port: int, key: str, model: str, n_decisions: int, number: int, **more: Any) -> bytes:
    context = make_context(CONTEXTS["short"], number)
    payload = json.loads(make_payload(context=context, n_questions=n_decisions, n_outcomes=4))
    body = json.dumps({**payload, **({"model": model} if model else {}), **more}).encode()
    return make_request(port, body, {"Authorization": f"Bearer {key}"})


async def _beside_hung(
    port: int, keys: dict[str, str], seconds: float, n_rounds: int
) -> dict[str, list[float]]:
    """Return the p95 of short requests to the shipped model, alone and beside, by round."""
    short = _request(port, keys["quiet"], "", 1, 0)
    # With a fallback, the shipped model would answer these as well.
    hung = _request(port, keys["crowd"], "hung", 1, 0, fallback="none")
    await repeat(port, short, Seen(), 2.0, 0.0)
    found: dict[str, list[float]] = {"alone": [], "beside": []}
    for _ in range(n_rounds):
        for name, number in (("alone", 0), ("beside", _CLIENTS)):
            seen = Seen()
            async with crowd(port, [hung] * number, Seen()):
                await repeat(port, short, seen, seconds, _PAUSE_S)
            found[name].append(seen.quantile(0.95))
    return found


def _tables(results: dict[str, Any]) -> str:
    cpu = [
        [wire, *(f"{row[str(n)]:.2f}" for n in _DECISIONS)]
        for wire, row in results["cpu_ms"].items()
    ]
    alone, beside = (sorted(results["p95_ms"][name]) for name in ("alone", "beside"))
    rows = [
        [name, " ".join(f"{ms:.1f}" for ms in found), f"{found[len(found) // 2]:.1f}"]
        for name, found in (("alone", alone), (f"beside {_CLIENTS} that wait", beside))
    ]
    header = ["wire", *(f"{n} decision{'s' * (n > 1)}" for n in _DECISIONS)]
    return (
        f"CPU ms of this server per decision\n{text_table(header, cpu)}\n\n"
        f"p95 ms of the shipped model\n{text_table(['', 'rounds', 'median'], rows)}"
    )


if __name__ == "__main__":
    sys.exit(main())
