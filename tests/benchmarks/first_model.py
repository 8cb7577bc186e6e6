"""From the request for a family to its first answer and its last model: seconds by step, and CPU time.

    python tests/benchmarks/first_model.py [--heads words auto words+auto] [--rounds N] [--against DIR]

A server of its own takes 196 rows made of the sample tickets, one in twelve of them JSON: 157 train, 39 are held
out. Which desk owns a ticket is learned from a name in it, so that the gate passes every first model. With
``words+auto`` words alone answer first, and the model of ``auto`` follows. The second family of a round is of
the same version, whose vectors the first has left. ``--against`` is another checkout, measured in turns with
this one.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psutil
from machine import describe_machine
from quality_tables import text_table

import steelyard
from steelyard.cli.samples import sample_file
from steelyard.client import Client
from steelyard.scoring.shipped import BASE

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.waiting import wait_until

ROWS = 196
_DESKS = {"north": "Ada", "south": "Ben", "west": "Cleo"}
_DECISION = {"id": "desk", "question": "Which desk owns this?", "outcomes": list(_DESKS)}
_STEPS = ("started", "trained", "joined")
_HEAD = ["checkout", "heads", "family", "accepted s", *(f"{step} s" for step in _STEPS)]
_HEAD += ["served s", "answered s", "last s", "CPU s", "last"]
#: Seconds between two looks at the job and the family.
_LOOK_S = 0.05


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a line for each family."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--heads", nargs="+", default=["words", "auto", "words+auto"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--against", type=Path, help="another checkout")
    options = parser.parse_args(arguments)
    checkouts = {"here": Path(__file__).resolve().parents[2]}
    if options.against is not None:
        checkouts = {"against": options.against.resolve(), **checkouts}
    print("\n".join(describe_machine()))
    rows, lines = make_rows(), []
    for _ in range(options.rounds):
        for heads in options.heads:
            for name, folder in checkouts.items():
                with serving(folder, options.threads) as (client, pid):
                    dataset = client.datasets.create("desks", rows)
                    # The worker is there once a job has ended.
                    [job] = client.evaluations.create(dataset.id, BASE.name).data
                    client.evaluations.wait(job, progress=False)
                    for family in ("first", "second"):
                        figures, last = measure(client, pid, family, dataset.id, heads)
                        texts = [f"{value:.2f}" for value in figures]
                        lines.append([name, heads, family, *texts, last])
                        print(" | ".join(lines[-1]), flush=True)
    print(text_table(_HEAD, lines))
    return 0


def make_rows() -> list[dict[str, Any]]:
    """Return tickets of the sample, each with the name that says which desk owns it."""
    file = sample_file("support_triage")
    assert file is not None
    rows = []
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines()[:ROWS]):
        context, desk = json.loads(line)["context"], list(_DESKS)[number % len(_DESKS)]
        seen = f"Seen by {_DESKS[desk]}."
        if isinstance(context, str):
            context = f"{context} {seen}"
        else:
            context = {"seen": seen, "ticket": context}
        rows.append({"context": context, "decisions": [_DECISION], "targets": {"desk": desk}})
    return rows


@contextmanager
def serving(checkout: Path, threads: int) -> Iterator[tuple[Client, int]]:
    """Run a server of a checkout; yield its client and the id of its process."""
    with ExitStack() as closing:
        home = Path(closing.enter_context(tempfile.TemporaryDirectory()))
        command = ["serve", "--port", "0", "--home", str(home), "--engine", "onnxruntime-int8"]
        process = subprocess.Popen(
            [sys.executable, "-m", "steelyard", *command, "--threads", str(threads)],
            env={
                **os.environ,
                "PYTHONPATH": f"{checkout}/server",
                "STEELYARD_LOG_LEVEL": "warning",
            },
            stdout=subprocess.DEVNULL,
        )
        closing.callback(process.wait)
        closing.callback(process.terminate)
        wait_until((home / "serve.json").exists, last=lambda: "The server did not start.")
        url = json.loads((home / "serve.json").read_text())["url"]
        yield closing.enter_context(steelyard.connect(url)), process.pid


def measure(
    client: Client, pid: int, family: str, dataset_id: str, heads: str
) -> tuple[list[float], str]:
    """Return the seconds until each step of a family, the CPU seconds that it took, and how it ended."""
    training = {"first": "words"} if heads == "words+auto" else {"heads": heads}
    before, began = cpu_seconds(pid), time.time()
    job = client.families.create(family, dataset_id, hyperparameters=training)
    accepted = time.time() - began
    job = client.jobs.wait(job, poll_s=_LOOK_S, progress=False)
    client.families.wait(family, job, poll_s=_LOOK_S, progress=False)
    served = time.time() - began
    client.decide("Seen by Ada.", decisions=[_DECISION], model=family)
    answered = time.time() - began
    times = {event.type: event.created_at for event in client.jobs.events(job.id).data}
    for other in client.families.get(family).jobs:
        if other.follows == job.id:
            job = client.jobs.wait(other.id, poll_s=_LOOK_S, progress=False)
            if job.has_joined:
                client.families.wait(family, job, poll_s=_LOOK_S, progress=False)
    last, used = time.time() - began, cpu_seconds(pid) - before
    steps = [times[step] - began for step in _STEPS]
    return [accepted, *steps, served, answered, last, used], str(job.outcome)


def cpu_seconds(pid: int) -> float:
    """Return the CPU seconds of a process, those that it has and those that it had."""
    server = psutil.Process(pid)
    used = 0.0
    for process in (server, *server.children(recursive=True)):
        used += sum(process.cpu_times()[:4])
    return used


if __name__ == "__main__":
    sys.exit(main())
