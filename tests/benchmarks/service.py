"""The cost of the service above the scorer: durability's latency, CPU time a request, cold start.

See README.md beside this file.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from machine import describe_machine
from quality_tables import text_table
from service_load import UnexpectedAnswerError, make_request, run_clients
from workloads import CONTEXTS, make_context, make_payload

from steelyard.scoring.assets import MANIFEST
from steelyard.scoring.shipped import BASE

#: The most that is wanted of each figure.
DURABLE_RATIO, CPU_RATIO, ALONE_MS, COLD_START_S = 1.2, 1.15, 2.0, 2.0

PLAIN, DURABLE = "plain", "durable"
MODES = (PLAIN, DURABLE)
#: The same of the commit that ``--against`` names.
BEFORE = {mode: f"{mode}, before" for mode in MODES}

#: CPU milliseconds above the scorer at load, on a context of 80 characters.
LOAD_MS = {PLAIN: 1.2, DURABLE: 2.5}

#: An answer costs a thousand nano-dollars an input token.
_PRICE = 1_000
_NO_RATES = {"requests_per_minute": 0, "tokens_per_minute": 0}
_POLL_S = 0.005
_SERVER = Path(__file__).with_name("service_server.py")


@dataclass(slots=True)
class Rounds:
    """One mode at one number of clients: a figure a round."""

    mode: str
    n_clients: int
    p50_ms: list[float] = field(default_factory=list)
    p95_ms: list[float] = field(default_factory=list)
    server_cpu_ms: list[float] = field(default_factory=list)
    scorer_cpu_ms: list[float] = field(default_factory=list)
    batch: list[float] = field(default_factory=list)
    a_second: list[float] = field(default_factory=list)

    @property
    def cpu_ratio(self) -> list[float]:
        pairs = zip(self.server_cpu_ms, self.scorer_cpu_ms, strict=True)
        return [server / max(scorer, 1e-9) for server, scorer in pairs]

    @property
    def added_ms(self) -> list[float]:
        pairs = zip(self.server_cpu_ms, self.scorer_cpu_ms, strict=True)
        return [server - scorer for server, scorer in pairs]


class MeasuredServer:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.about = self._read()

    def ask(self, command: str) -> dict[str, Any]:
        self._process.stdin.write(f"{command}\n")
        self._process.stdin.flush()
        return self._read()

    def _read(self) -> dict[str, Any]:
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit("The measured server ended; see its log above.")
        return json.loads(line)


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    print("\n".join(describe_machine()))
    figures: dict[str, Any] = {"machine": describe_machine()}
    if options.rounds:
        rounds, about = measure(options)
        print(
            f"engine {about['engine']}; {options.questions} questions of {options.outcomes} "
            f"outcomes on a context of {CONTEXTS[options.context]} characters\n"
        )
        print(load_table(rounds))
        print(target_table(rounds))
        figures["rounds"] = [asdict(one) for one in rounds]
    if options.starts:
        starts = {name: cold_starts(options, name) for name in ("new", "kept")}
        print(start_table(starts))
        figures["cold_start_s"] = starts
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1), encoding="utf-8")
    return 0


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--engine", default="auto", help="as the setting (default: auto)")
    parser.add_argument("--against", type=Path, help="a checkout of another commit, for more turns")
    parser.add_argument("--threads", type=int, default=0, help="threads of a pass (0: every core)")
    parser.add_argument("--rounds", type=int, default=7, help="rounds under load; 0 leaves it out")
    parser.add_argument("--clients", type=int, default=8, help="clients at load")
    parser.add_argument("--requests", type=int, default=60, help="requests of a client in a round")
    parser.add_argument("--questions", type=int, default=3)
    parser.add_argument("--outcomes", type=int, default=4)
    parser.add_argument("--context", choices=CONTEXTS, default="medium")
    parser.add_argument("--starts", type=int, default=5, help="cold starts; 0 leaves them out")
    parser.add_argument("--home", type=Path, help="folder of the states (default: a temporary one)")
    parser.add_argument("--json", type=Path, help="write every round's figures to this file")
    return parser.parse_args(arguments)


def measure(options: argparse.Namespace) -> tuple[list[Rounds], dict[str, Any]]:
    """Measure both modes, alone and at load, taking turns within each round."""
    every = [*MODES, *(BEFORE.values() if options.against else ())]
    found = {
        (mode, n_clients): Rounds(mode, n_clients)
        for n_clients in (1, options.clients)
        for mode in every
    }
    with ExitStack() as closing:
        servers = {mode: closing.enter_context(running(mode, options)) for mode in every}
        for turn in range(-1, options.rounds):
            modes = every if turn % 2 else every[::-1]
            for n_clients in (1, options.clients):
                for mode in modes:
                    kept = found[mode, n_clients] if turn >= 0 else Rounds(mode, n_clients)
                    measure_once(servers[mode], kept, turn, options)
        return list(found.values()), servers[PLAIN].about


def measure_once(
    server: MeasuredServer, kept: Rounds, turn: int, options: argparse.Namespace
) -> None:
    """Measure one round of one mode; turn -1 warms up."""
    requests = [
        [
            request_of(server, kept.mode, (turn + 1, kept.n_clients, client, number), options)
            for number in range(options.requests)
        ]
        for client in range(kept.n_clients)
    ]
    n_requests = kept.n_clients * options.requests
    server.ask("mark")
    began = time.perf_counter()
    times = run_clients(server.about["port"], requests)
    seconds = time.perf_counter() - began
    taken = server.ask("take")
    bare = server.ask("replay")
    if sum(taken["batches"]) != n_requests:
        raise SystemExit(f"{n_requests} requests were sent and {sum(taken['batches'])} scored.")
    kept.p50_ms.append(float(np.percentile(times, 50)))
    kept.p95_ms.append(float(np.percentile(times, 95)))
    kept.server_cpu_ms.append(taken["cpu_s"] * 1e3 / n_requests)
    kept.scorer_cpu_ms.append(bare["cpu_s"] * 1e3 / n_requests)
    kept.batch.append(n_requests / len(taken["batches"]))
    kept.a_second.append(n_requests / seconds)


def request_of(
    server: MeasuredServer, mode: str, which: tuple[int, ...], options: argparse.Namespace
) -> bytes:
    """Return one request: a context of its own, questions that all share."""
    number = int.from_bytes(bytes(which[:3]) + which[3].to_bytes(2))
    payload = make_payload(
        context=make_context(CONTEXTS[options.context], number),
        n_questions=options.questions,
        n_outcomes=options.outcomes,
    )
    body = json.loads(payload)
    headers = {}
    is_durable = mode.startswith(DURABLE)
    if is_durable:
        headers["Authorization"] = f"Bearer {server.about['api_key']}"
        headers["Idempotency-Key"] = str(uuid.uuid4())
    body["store"] = is_durable
    return make_request(server.about["port"], json.dumps(body).encode(), headers)


@contextmanager
def running(mode: str, options: argparse.Namespace) -> Iterator[MeasuredServer]:
    """Run a server: ``durable`` with accounts, prices and a store, ``plain`` with none of them."""
    with tempfile.TemporaryDirectory(prefix="steelyard-service-", dir=options.home) as home:
        settings = {
            **_NO_RATES,
            "home": home,
            "port": 0,
            "engine": options.engine,
            "threads": options.threads,
        }
        if mode.startswith(DURABLE):
            settings |= {"accounts": "on", "prices": f"{model_name(options.engine)}={_PRICE}"}
        environment = dict(os.environ)
        if mode not in MODES:
            environment["PYTHONPATH"] = str(options.against.resolve() / "server")
        with (Path(home) / "log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, _SERVER, json.dumps(settings)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=environment,
                text=True,
            )
            try:
                yield MeasuredServer(process)
            finally:
                process.communicate(timeout=60)


def model_name(engine: str) -> str:
    if engine == "hashing":
        return engine
    return json.loads((BASE / MANIFEST).read_text(encoding="utf-8"))["name"]


def cold_starts(options: argparse.Namespace, state: str) -> list[float]:
    """Return the seconds from starting ``steelyard serve`` to its first answer.

    ``state`` is ``new``, so that each start makes one, or ``kept``, as a restart finds it.
    """
    seconds = []
    with ExitStack() as closing:
        for turn in range(-1, options.starts):
            if state == "new" or turn < 0:
                home = closing.enter_context(
                    tempfile.TemporaryDirectory(prefix="steelyard-start-", dir=options.home)
                )
            took = start_once(Path(home), options)
            if turn >= 0:
                seconds.append(took)
    return seconds


def start_once(home: Path, options: argparse.Namespace) -> float:
    """Start the command, wait for its first answer, stop it; give the seconds of the first two."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        port = found.getsockname()[1]
    payload = make_payload(context="Paid twice.", n_questions=1, n_outcomes=2)
    request = make_request(port, payload, {"Connection": "close"})
    environment = {**os.environ, "STEELYARD_ENGINE": options.engine}
    command = [sys.executable, "-m", "steelyard", "serve", "--port", str(port), "--home", home]
    began = time.perf_counter()
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        while True:
            try:
                run_clients(port, [[request]])
            except ConnectionError:
                with suppress(subprocess.TimeoutExpired):
                    process.wait(_POLL_S)
                    raise SystemExit("The server ended before it answered.") from None
            else:
                return time.perf_counter() - began
    finally:
        process.terminate()
        process.wait(timeout=60)


def shown(values: Sequence[float], digits: int = 2) -> str:
    low, middle, high = min(values), float(np.median(values)), max(values)
    return f"{middle:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


def load_table(rounds: Sequence[Rounds]) -> str:
    """Return every figure of each mode and number of clients: the median of rounds, and the range."""
    header = ["clients", "mode", "p50 ms", "p95 ms", "requests a second", "batch"]
    header += ["server CPU ms", "scorer CPU ms", "server / scorer", "added ms"]
    lines = [
        [
            str(one.n_clients),
            one.mode,
            shown(one.p50_ms),
            shown(one.p95_ms),
            shown(one.a_second, 1),
            shown(one.batch, 1),
            shown(one.server_cpu_ms),
            shown(one.scorer_cpu_ms),
            shown(one.cpu_ratio, 3),
            shown(one.added_ms),
        ]
        for one in rounds
    ]
    return text_table(header, lines)


def target_table(rounds: Sequence[Rounds]) -> str:
    """Return the figures that have targets, each paired within its round."""
    by_kind = {(one.mode, one.n_clients): one for one in rounds}
    alone, most = min(n for _, n in by_kind), max(n for _, n in by_kind)
    plain, durable = by_kind[PLAIN, most], by_kind[DURABLE, most]

    def over(high: Sequence[float], low: Sequence[float]) -> list[float]:
        return [a / b for a, b in zip(high, low, strict=True)]

    rows = [("durable / plain at p50", over(durable.p50_ms, plain.p50_ms), DURABLE_RATIO)]
    rows += [("durable / plain at p95", over(durable.p95_ms, plain.p95_ms), None)]
    for mode in MODES:
        at_load = by_kind[mode, most]
        rows.append((f"server CPU / scorer CPU at load, {mode}", at_load.cpu_ratio, CPU_RATIO))
        rows.append((f"CPU ms added alone, {mode}", by_kind[mode, alone].added_ms, ALONE_MS))
        rows.append((f"CPU ms added at load, {mode}", at_load.added_ms, LOAD_MS[mode]))
        before = by_kind.get((BEFORE[mode], most))
        if before is not None:
            ratio = over(at_load.added_ms, before.added_ms)
            rows.append((f"CPU added at load over before, {mode}", ratio, None))
    lines = [
        [name, shown(values, 3), "-" if target is None else f"{target:g}", verdict(values, target)]
        for name, values, target in rows
    ]
    return text_table(["figure", "median (range)", "at most", ""], lines)


def start_table(starts: dict[str, list[float]]) -> str:
    lines = [
        [name, shown(values), f"{COLD_START_S:g}", verdict(values, COLD_START_S)]
        for name, values in starts.items()
    ]
    return text_table(["state", "s to the first answer", "at most", ""], lines)


def verdict(values: Sequence[float], target: float | None) -> str:
    """Whether the median keeps its target."""
    if target is None:
        return ""
    return "kept" if np.median(values) <= target else "over"


if __name__ == "__main__":
    try:
        sys.exit(main())
    except UnexpectedAnswerError as error:
        sys.exit(f"The server did not answer as it should: {error}")
