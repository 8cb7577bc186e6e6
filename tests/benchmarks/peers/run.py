"""Steelyard beside its alternatives: the same requests, speed, memory and errors.

README.md beside this file describes the measurements, and how to read the page of results.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from statistics import median
from typing import Any

import click

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from machine import describe_machine
from peers.bodies import Size, make_requests
from peers.contestants import (
    BEST,
    PEERS,
    Contestant,
    chosen,
    has_bfloat16,
    needs_bfloat16,
)
from peers.figures import round_figures
from peers.load import Answers, arrivals, closed_loop, open_loop
from peers.page import write_pages
from peers.plan import BEYOND, CLOSED, OPEN, OPEN_SHARE, QUICK, Effort, Grid, Load, fit_effort
from peers.processes import cpu_seconds, memory_mb, reset_peaks, split_cores
from peers.servers import (
    Server,
    ServerError,
    log_progress,
    prepare_checkpoint,
    prepare_environment,
    version_of,
)
from workloads import CONTEXTS

#: What the settings of one peer in the second table are told apart by.
REFERENCE = Size(3, 4, "medium")
#: A first request that was faster is asked for twice more: it had something to warm up.
_AGAIN_S = 2.0
_QUICK_MINUTES, _FULL_MINUTES = 6.0, 240.0
#: The share of the time left that is planned: rounds also make requests, and wait for the slowest.
_PLANNED = 0.7
_PATHS = {"--folder": "DIR", "--json": "FILE", "--page": "FILE", "--quality": "FILE"}
PAGE = Path(__file__).with_name("RESULTS.md")
#: The page of every size and load, in the folder of a run.
LOADS = "loads.md"


class Run:
    """One run: its servers, and the record of it that becomes the results file."""

    def __init__(self, record: dict[str, Any], patience_s: float) -> None:
        self.record = record
        self.patience_s = patience_s
        self.servers: list[Server] = []
        self._begun: list[Server] = []
        #: Seconds of one request alone, by contestant and size, where it was answered in time.
        self.alone: dict[tuple[str, Size], float] = {}
        #: Of all sizes: contexts of one length are the same texts, whatever is asked about them.
        self._next_context = 1
        self._rates: dict[tuple[str, Size, int], float] = {}

    def tell(self, contestant: Contestant, **more: Any) -> None:
        """Add to the record of a contestant."""
        entries = self.record["contestants"]
        for entry in entries:
            if entry["key"] == contestant.key:
                entry.update(more)
                return
        entries.append(
            {
                "key": contestant.key,
                "peer": contestant.peer,
                "table": contestant.table,
                "setting": contestant.setting,
                **more,
            }
        )

    def start(self, contestants: Sequence[Contestant], folder: Path, cores: set[int]) -> None:
        """Start every server that can be; of one peer's best settings only the fastest stays."""
        self._begun = [Server(contestant, folder, cores) for contestant in contestants]
        log_progress(f"starting {len(self._begun)} servers")
        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            begun = [(server, pool.submit(server.start)) for server in self._begun]
        for server, started in begun:
            error = started.exception()
            if isinstance(error, ServerError):
                self.tell(server.contestant, left_out=str(error))
            elif error is None:
                self.servers.append(server)
                self.tell(server.contestant, idle_mb=round(memory_mb(server.pid, "VmRSS"), 1))
            else:
                raise error
        for peer in {server.contestant.peer for server in self.servers}:
            self._keep_fastest(peer)

    def _restart(self, server: Server) -> bool:
        """Restart a server that is busy with abandoned requests; return whether it runs."""
        server.stop()
        try:
            server.start()
        except ServerError as error:
            self.tell(server.contestant, lost=str(error))
            self.servers.remove(server)
            return False
        return True

    def _keep_fastest(self, peer: str) -> None:
        rivals = [
            server
            for server in self.servers
            if server.contestant.peer == peer and server.contestant.table == BEST
        ]
        if len(rivals) < 2:
            return
        took = {
            server.contestant.key: self.time_alone(server, REFERENCE) or self.patience_s
            for server in rivals
        }
        fastest = min(took, key=took.__getitem__)
        for server in rivals:
            key = server.contestant.key
            if key != fastest and server in self.servers:
                server.stop()
                self.servers.remove(server)
                self.tell(
                    server.contestant,
                    left_out=f"slower than the setting kept: {took[key]:.2f} s for a request of "
                    f"{REFERENCE.words()}, not {took[fastest]:.2f} s",
                )

    def time_alone(self, server: Server, size: Size) -> float | None:
        """Return the seconds of one request alone; nothing where it fails or takes too long."""
        taken, answers = None, Answers()
        for _ in range(3):
            requests = make_requests(size, self._first_new(1), 1)
            try:
                answers = closed_loop(server.port, requests, 1, self.patience_s)
            except TimeoutError:
                words = f"not answered in {self.patience_s:g} s"
                self._not_run(server, size, words, self.patience_s)
                self._restart(server)
                return None
            if not answers.milliseconds:
                [name] = answers.errors
                self._not_run(server, size, f"{name}: {answers.last_error}")
                return None
            taken = min(taken or answers.seconds, answers.seconds)
            if answers.seconds > _AGAIN_S:
                break
        return taken

    def _not_run(
        self, server: Server, size: Size, words: str, seconds: float | None = None
    ) -> None:
        self.record["not_run"].append(
            {"key": server.contestant.key, **size.record(), "words": words, "seconds": seconds}
        )

    def probe(self, sizes: Sequence[Size]) -> None:
        """Find how long one request of each size takes alone, or why there is no answer."""
        for server in list(self.servers):
            key = server.contestant.key
            log_progress(f"one request of each size: {key}")
            for size in sizes:
                words, seconds = self._beyond(key, size)
                if words:
                    self._not_run(server, size, words, seconds)
                    continue
                alone = self.time_alone(server, size)
                if alone is not None:
                    self.alone[key, size] = alone
                if server not in self.servers:
                    break
        self.record["alone"] = [
            {"key": key, **size.record(), "seconds": round(seconds, 4)}
            for (key, size), seconds in self.alone.items()
        ]

    def _beyond(self, key: str, size: Size) -> tuple[str, float]:
        """Return why a size need not be tried, and how long it takes; empty words where it must be.

        The time of fewer questions bounds that of more, and a request that is no larger in anything was
        perhaps not answered in time. Yes/no questions are of another type, with bounds of their own.
        """
        for entry in self.record["not_run"]:
            one = Size(entry["questions"], entry["outcomes"], entry["context"])
            late = entry["words"].startswith("not answered in")
            if late and entry["key"] == key and one.is_part_of(size):
                words = f"not answered: nor was {one.words()} in {self.patience_s:g} s"
                return words, self.patience_s
        fewer = [
            (one, seconds)
            for (name, one), seconds in self.alone.items()
            if name == key
            and (one.outcomes, one.context) == (size.outcomes, size.context)
            and one.questions < size.questions
        ]
        if fewer:
            one, seconds = max(fewer)
            expected = seconds * size.questions / one.questions
            if expected > BEYOND * self.patience_s:
                return f"not tried: {seconds:.1f} s for {one.questions} of its questions", expected
        return "", 0.0

    def measure(self, size: Size, load: Load, effort: Effort, turn: int) -> None:
        """Measure one size and load on every contestant in turn; all get the same requests."""
        keys = [server.contestant.key for server in self.servers]
        numbers = {
            key: effort.requests(self.alone[key, size], load.clients)
            for key in keys
            if (key, size) in self.alone
        }
        first = self._first_new(max(numbers.values(), default=0))
        # Who comes first changes, so that nobody is always measured after the same other one.
        start = turn % max(1, len(self.servers))
        order = self.servers[start:] + self.servers[:start]
        for server in order:
            n = numbers.get(server.contestant.key)
            if n == 0 and turn == 0:
                self._leave_out(server, size, load)
            if not n:
                continue
            figures = self._round(server, size, load, make_requests(size, first, n), turn)
            if figures is not None:
                self._cell(server, size, load)["rounds"].append(figures)

    def _first_new(self, n: int) -> int:
        """Return the number of the first of ``n`` contexts that nothing was asked about."""
        first = self._next_context
        self._next_context += n
        return first

    def _leave_out(self, server: Server, size: Size, load: Load) -> None:
        alone = self.alone[server.contestant.key, size]
        cell = self._cell(server, size, load)
        cell["words"] = f"not run: one request alone takes {alone:.2f} s"

    def _cell(self, server: Server, size: Size, load: Load) -> dict[str, Any]:
        named = {"key": server.contestant.key, **size.record(), **asdict(load)}
        for cell in self.record["cells"]:
            if named.items() <= cell.items():
                return cell
        self.record["cells"].append({**named, "rounds": []})
        return self.record["cells"][-1]

    def _round(
        self, server: Server, size: Size, load: Load, requests: list[bytes], turn: int
    ) -> dict[str, Any] | None:
        key, pid = (server.contestant.key, size, load.clients), server.pid
        if load.loop == OPEN and key not in self._rates:
            return None
        known = server.known_contexts()
        reset_peaks(pid)
        cpu_s = cpu_seconds(pid)
        try:
            if load.loop == CLOSED:
                limit = self.patience_s * max(4, len(requests))
                answers = closed_loop(server.port, requests, load.clients, limit)
                if answers.milliseconds:
                    rate = len(answers.milliseconds) / answers.seconds
                    self._rates.setdefault(key, OPEN_SHARE * rate)
            else:
                at = arrivals(len(requests), self._rates[key], turn)
                answers = open_loop(server.port, requests, load.clients, at)
        except TimeoutError:
            self._restart(server)
            return {"n": 0, "errors": {"TimeoutError": 1}}
        cpu_s = cpu_seconds(pid) - cpu_s
        figures = round_figures(answers, size.questions, cpu_s, memory_mb(pid, "VmHWM"))
        if server.known_contexts() != known:
            raise ServerError(f"{server.contestant.key} knew contexts of {size.words()} before.")
        if load.loop == OPEN:
            figures["rate"] = round(self._rates[key], 4)
        return figures

    def stop(self) -> None:
        """End every server that was begun, whether it is still measured or not."""
        for server in self._begun:
            server.stop()


@contextmanager
def on_cores(cores: set[int]) -> Iterator[None]:
    """Run this process, which is every client, on those cores."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def numbers(_context: click.Context, _option: click.Parameter, value: str) -> tuple[int, ...]:
    try:
        return tuple(int(one) for one in value.split(",") if one)
    except ValueError:
        raise click.BadParameter("give whole numbers with commas between them") from None


def names_of(known: Sequence[str]) -> Any:
    def read(_context: click.Context, _option: click.Parameter, value: str) -> tuple[str, ...]:
        given = tuple(one for one in value.split(",") if one)
        unknown = [one for one in given if one not in known]
        if unknown:
            raise click.BadParameter(f"{unknown[0]} is none of {', '.join(known)}")
        return given

    return read


@click.command(help=__doc__, context_settings={"show_default": True})
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    help="Environments, checkpoints and logs; kept between runs (about 8 GB).",
)
@click.option("--quick", is_flag=True, help="A small grid, in at most 6 minutes.")
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="The results file.")
@click.option("--page", type=click.Path(path_type=Path), default=PAGE, help="The results page.")
@click.option(
    "--quality",
    type=click.Path(exists=True, path_type=Path),
    help="What finetune.py wrote with --json; its table is put on the page.",
)
@click.option("--rounds", type=click.IntRange(1), default=5, help="Interleaved rounds.")
@click.option("--minutes", type=float, help="Time for all but environments [6 quick, 240 full].")
@click.option("--seconds", type=float, default=3.0, help="Work of a round, where there is time.")
@click.option("--patience", type=float, default=30.0, help="Seconds one request alone may take.")
@click.option("--questions", callback=numbers, default="", help="Such as 1,3 [the grid's].")
@click.option("--outcomes", callback=numbers, default="", help="Such as 2,77 [the grid's].")
@click.option("--contexts", callback=names_of(tuple(CONTEXTS)), default="", help="[the grid's]")
@click.option("--clients", callback=numbers, default="", help="Such as 1,32 [the grid's].")
@click.option("--loops", callback=names_of((CLOSED, OPEN)), default="", help="[the grid's]")
@click.option("--peers", callback=names_of(tuple(PEERS)), default="", help="[all]; ours is in.")
@click.option("--tables", callback=numbers, default="1,2", help="1: float32; 2: each one's best.")
@click.option("--pip", multiple=True, help="One more argument of pip install; may be repeated.")
@click.option("--prepare", is_flag=True, help="Make environments and checkpoints, and no more.")
@click.option(
    "--only-page",
    is_flag=True,
    help="Write the page of what is in --json already.",
)
def main(**options: Any) -> None:
    # Ended from outside, it ends its servers as with Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if options["only_page"]:
        if options["json_file"] is None:
            raise click.UsageError("--only-page needs --json FILE, which a run wrote")
        record = json.loads(options["json_file"].read_text(encoding="utf-8"))
        write_pages(
            record, read_quality(options["quality"]), options["page"], options["folder"] / LOADS
        )
        return
    folder: Path = options["folder"].resolve()
    folder.mkdir(parents=True, exist_ok=True)
    record = new_record(options)
    run = Run(record, min(options["patience"], 15.0) if options["quick"] else options["patience"])
    contestants = prepare(run, chosen(options["peers"], options["tables"]), folder, options["pip"])
    if options["prepare"]:
        for entry in record["contestants"]:
            if "left_out" in entry:
                click.echo(f"{entry['key']}: {entry['left_out']}")
        return
    began = time.perf_counter()
    server_cores, client_cores = split_cores()
    record["cores"] = {"server": sorted(server_cores), "client": sorted(client_cores)}
    minutes = options["minutes"] or (_QUICK_MINUTES if options["quick"] else _FULL_MINUTES)
    try:
        run.start(contestants, folder, server_cores)
        with on_cores(client_cores):
            measure_all(run, options, began + 60 * minutes)
    finally:
        run.stop()
    record["minutes"] = round((time.perf_counter() - began) / 60, 1)
    save(record, options)
    write_pages(
        record, read_quality(options["quality"]), options["page"], options["folder"] / LOADS
    )
    click.echo(f"{options['page']}: {record['minutes']} minutes")


def command_of(arguments: Sequence[str]) -> str:
    """Return the command that repeats a run, with placeholders for folders and files."""
    shown = list(arguments)
    for at, argument in enumerate(shown):
        name, equals, _ = argument.partition("=")
        if name in _PATHS and equals:
            shown[at] = f"{name}={_PATHS[name]}"
        elif at and shown[at - 1] in _PATHS:
            shown[at] = _PATHS[shown[at - 1]]
    return " ".join(["python", "tests/benchmarks/peers/run.py", *shown])


def new_record(options: dict[str, Any]) -> dict[str, Any]:
    return {
        "command": command_of(sys.argv[1:]),
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "machine": describe_machine(),
        "rounds": options["rounds"],
        "contestants": [],
        "not_run": [],
        "alone": [],
        "cells": [],
    }


def prepare(
    run: Run, contestants: Sequence[Contestant], folder: Path, pip: Sequence[str]
) -> list[Contestant]:
    """Prepare the contestants; return those that can be started."""
    for part in ("environments", "checkpoints", "homes"):
        (folder / part).mkdir(exist_ok=True)
    ready: list[Contestant] = []
    lacking: dict[str, str] = {}
    bfloat16 = has_bfloat16(Path("/proc/cpuinfo").read_text(encoding="utf-8"))
    for peer in dict.fromkeys(contestant.peer for contestant in contestants):
        log_progress(f"environment of {peer}")
        try:
            prepare_environment(peer, folder, pip)
        except ServerError as error:
            lacking[peer] = str(error)
    for contestant in contestants:
        run.tell(contestant)
        if needs_bfloat16(contestant) and not bfloat16:
            run.tell(contestant, left_out="this processor has no bfloat16")
        elif contestant.peer in lacking:
            run.tell(contestant, left_out=lacking[contestant.peer])
        else:
            try:
                prepare_checkpoint(contestant, folder)
            except ServerError as error:
                run.tell(contestant, left_out=str(error))
                continue
            run.tell(contestant, versions=version_of(contestant.peer, folder))
            ready.append(contestant)
    return ready


def measure_all(run: Run, options: dict[str, Any], ends: float) -> None:
    """Probe every size, fit the rounds into the time that is left, and measure them."""
    grid = QUICK if options["quick"] else Grid()
    given = {name: options[name] for name in asdict(grid) if options[name]}
    grid = replace(grid, **given)
    run.record["grid"] = asdict(grid)
    run.probe(grid.sizes())
    loads = [Load(loop, clients) for clients in grid.clients for loop in grid.loops]
    loads.sort(key=lambda load: (load.clients, load.loop != CLOSED))
    wanted = Effort(options["seconds"], max(options["seconds"] * 10, run.patience_s))
    left_s = max(0.0, ends - time.perf_counter())
    effort = fit_effort(
        wanted, list(run.alone.values()), loads, options["rounds"], left_s * _PLANNED
    )
    run.record["effort"] = {name: round(value, 3) for name, value in asdict(effort).items()}
    log_progress(
        f"rounds of {effort.target_s:.1f} s, loads of at most {effort.longest_s:.1f} s; "
        f"{left_s / 60:.1f} minutes are left"
    )
    took: list[float] = []
    for turn in range(options["rounds"]):
        began = time.perf_counter()
        for size in grid.sizes():
            for load in loads:
                run.measure(size, load, effort, turn)
        took.append(time.perf_counter() - began)
        log_progress(f"round {turn + 1}: {median(took):.0f} s a round")
        save(run.record, options)


def save(record: dict[str, Any], options: dict[str, Any]) -> None:
    if options["json_file"] is not None:
        options["json_file"].write_text(json.dumps(record, indent=1), encoding="utf-8")


def read_quality(file: Path | None) -> list[dict[str, Any]]:
    return [] if file is None else json.loads(file.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
