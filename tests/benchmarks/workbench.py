"""How long a person waits at the workbench: a cold start, a page turn, a filter, a key.

See README.md beside this file.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from ingest import TEAMS, generate
from machine import describe_machine
from quality_tables import text_table

from steelyard.cli.workbench import serving_workbench
from steelyard.client import Client, ClientOptions
from steelyard.client.failures import ServerUnreachableError

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from support.browser.browsing import find_chromium
from support.waiting import started

#: The most that is wanted of each figure, in milliseconds; 0 for no bound.
TARGETS = {
    "first row of a dataset, cold": 4000.0,
    "first row of a dataset, warm": 2000.0,
    "first row of a review, cold": 4000.0,
    "page turn": 500.0,
    "sort": 0.0,
    "page turn, sorted": 500.0,
    "filter by words": 2000.0,
    "relabel, by key": 100.0,
    "next row, by key": 100.0,
}
COLD_DATASET, WARM_DATASET, COLD_REVIEW, TURN, SORT, SORTED_TURN, WORDS, RELABEL, NEXT = TARGETS

_NAME = "tickets of the benchmark"
_ARGUMENTS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking")
#: A wait is over what is wanted long before it ends: one that ends tells of a fault, and not of a
#: machine that has much else to do.
_WAIT_MS, _START_S = 120_000, 300.0
#: Relabels of a round: one is over too soon to tell much.
_RELABELS = 10
#: Milliseconds between two keys, as of somebody who reads.
_READS_MS = 500
#: Begins to wait for the next key or press, and from then, frame by frame, for a text that matches
#: anywhere on the page; elements are replaced as they change, so that none is watched.
_WATCH = """([wanted, waits]) => {
  const matches = new RegExp(wanted);
  const holds = (node) => {
    if (node.nodeType === Node.TEXT_NODE) return matches.test(node.data);
    if (node.tagName === "STYLE" || node.tagName === "SCRIPT") return false;
    if (node.shadowRoot && holds(node.shadowRoot)) return true;
    return [...node.childNodes].some(holds);
  };
  window.steelyardTook = new Promise((tell, fail) => {
    let began = null;
    const begin = (event) => { began ??= event.timeStamp; };
    for (const kind of ["keydown", "mousedown"]) {
      document.addEventListener(kind, begin, {capture: true, once: true});
    }
    const since = performance.now();
    const look = () => {
      const now = performance.now();
      if (began !== null && holds(document.body)) tell(now - began);
      else if (now - since > waits) {
        fail(new Error(began === null ? "no key or press came" : `not shown: ${wanted}`));
      }
      else requestAnimationFrame(look);
    };
    requestAnimationFrame(look);
  });
}"""


@dataclass(slots=True)
class Figures:
    """The measures: milliseconds by figure, one a round or more."""

    by_name: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in TARGETS})

    def add(self, name: str, milliseconds: float) -> None:
        self.by_name[name].append(milliseconds)


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    if options.chromium is None:
        raise SystemExit("Chromium is not installed: apt-get install chromium.")
    about = describe_machine()
    print("\n".join(about))
    figures = Figures()
    with tempfile.TemporaryDirectory(prefix="steelyard-workbench-") as scratch:
        home = options.home or Path(scratch)
        with served(home, options.engine, options.rows) as url, client_of(url) as client:
            dataset_id = find_dataset(client, Path(scratch), options.rows)
            measure(figures, url, client, dataset_id, options)
    print(f"{options.rows:,} rows, {options.rounds} rounds\n")
    print(figure_table(figures))
    if options.json:
        told = {"machine": about, "rows": options.rows, **asdict(figures)}
        options.json.write_text(json.dumps(told, indent=1), encoding="utf-8")
    return 0


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of the dataset")
    parser.add_argument("--rounds", type=int, default=5, help="rounds, after one not counted")
    parser.add_argument("--engine", default="hashing", help="engine of the server")
    parser.add_argument("--home", type=Path, help="keep the server's files, and the dataset, here")
    parser.add_argument(
        "--chromium",
        default=find_chromium(),
        help="the browser",
    )
    parser.add_argument("--json", type=Path, help="write the figures here too")
    return parser.parse_args(arguments)


@contextmanager
def served(home: Path, engine: str, n_rows: int) -> Iterator[str]:
    """Run ``steelyard serve`` in a process of its own; give its address."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        port = found.getsockname()[1]
    environment = {
        **os.environ,
        "STEELYARD_ENGINE": engine,
        "STEELYARD_DATASET_ROWS": str(max(n_rows, 100_000)),
    }
    command = [sys.executable, "-m", "steelyard", "serve", "--port", str(port), "--home", str(home)]
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    url = f"http://127.0.0.1:{port}"
    try:
        wait_for(url, process)
        yield url
    finally:
        process.terminate()
        process.wait(timeout=60)


def wait_for(url: str, process: subprocess.Popen[bytes]) -> None:
    with Client(ClientOptions(url, max_retries=0)) as client:
        started(process, client.health, _START_S, not_yet=(ServerUnreachableError,))


def client_of(url: str) -> Client:
    """Return a client that waits for an upload of any size."""
    return Client(ClientOptions(url, timeout_s=600.0))


def find_dataset(client: Client, scratch: Path, n_rows: int) -> str:
    """Return the dataset of so many rows, made now unless the home has it."""
    for known in client.datasets.iterate():
        if known.name == _NAME and known.rows == n_rows:
            return known.id
    path = scratch / "rows.jsonl"
    generate(path, n_rows)
    made = client.datasets.create(_NAME, path)
    path.unlink()
    return made.id


def measure(
    figures: Figures, url: str, client: Client, dataset_id: str, options: argparse.Namespace
) -> None:
    """Measure the rounds; the first, which brings files into the system's cache, is not counted."""
    from playwright.sync_api import sync_playwright

    draft = client.drafts.create(dataset_id, name="of the benchmark")
    try:
        with sync_playwright() as playwright:
            for turn in range(-1, options.rounds):
                into = Figures() if turn < 0 else figures
                for measured in (measure_dataset, measure_review):
                    # A process and a browser of its own for each: both are cold.
                    with serving_workbench(url, port=0) as (address, _):
                        chromium = playwright.chromium.launch(
                            executable_path=options.chromium, args=list(_ARGUMENTS)
                        )
                        page = chromium.new_page(viewport={"width": 1280, "height": 900})
                        page.set_default_timeout(_WAIT_MS)
                        with told(page):
                            measured(into, page, address, dataset_id, draft.id, turn, options.rows)
                        chromium.close()
    finally:
        client.drafts.delete(draft.id)


@contextmanager
def told(page: Any) -> Iterator[None]:
    """Return the page's state in place of the expected one, and how busy the machine was."""
    from playwright.sync_api import Error

    try:
        yield
    except Error as error:
        alerts = page.get_by_role("alert").all_inner_texts()
        busy = " ".join(f"{load:.1f}" for load in os.getloadavg())
        raise SystemExit(
            f"{error.message}\nThe page showed: {' | '.join(alerts) or 'no alert'}\n"
            f"Load of the last 1, 5 and 15 minutes: {busy}, on {os.cpu_count()} cores"
        ) from error


def measure_dataset(
    figures: Figures, page: Any, address: str, dataset: str, _: str, turn: int, n_rows: int
) -> None:
    """Open the dataset cold; turn its pages, sort them, and filter them."""
    began = time.perf_counter()
    page.goto(f"{address}/?page=datasets&dataset={dataset}")
    page.locator(".tabulator-row").first.wait_for()
    figures.add(COLD_DATASET, (time.perf_counter() - began) * 1000)
    page.locator("[data-keys=ready]").wait_for(state="attached")
    following = page.get_by_role("button", name="Go to next page").first
    figures.add(TURN, timed(page, r"order 25\.", following.click))
    title = page.get_by_role("columnheader", name="Length").first
    # The shortest contexts come first: those of the fewest digits, which the first page had.
    figures.add(SORT, timed(page, r"order 0\.", title.click))
    shown = n_rows - 1 if n_rows <= 25 else 25
    figures.add(SORTED_TURN, timed(page, rf"order {shown}\.", following.click))
    words = page.get_by_label("Words (key /)").first
    # Another row each round: an answer that is kept from before tells nothing.
    wanted = (n_rows // 2 + 7919 * (turn + 1)) % n_rows
    words.fill(str(wanted))
    figures.add(WORDS, timed(page, rf"order {wanted}\.", lambda: words.press("Enter")))
    # Again in the same browser and of the same process: what a person waits for on every further visit.
    began = time.perf_counter()
    page.goto(f"{address}/?page=datasets&dataset={dataset}&version=0")
    page.locator(".tabulator-row").first.wait_for()
    figures.add(WARM_DATASET, (time.perf_counter() - began) * 1000)


def measure_review(
    figures: Figures, page: Any, address: str, _: str, draft: str, turn: int, n_rows: int
) -> None:
    """Open the review cold; relabel rows by key; filter them by an outcome."""
    began = time.perf_counter()
    page.goto(f"{address}/?page=review&draft={draft}")
    page.get_by_text(re.compile(r"^Row 1 of ")).first.wait_for()
    figures.add(COLD_REVIEW, (time.perf_counter() - began) * 1000)
    page.locator("[data-keys=ready]").wait_for(state="attached")
    for row in range(1, min(_RELABELS, n_rows - 1) + 1):
        # The labels go round the three teams: the next team is another one, so that it changes.
        relabel = partial(page.keyboard.press, str(row % len(TEAMS) + 1))
        shown = rf"row {row} of \S+ {TEAMS[row % len(TEAMS)]}; next"
        page.wait_for_timeout(_READS_MS)
        figures.add(RELABEL, timed(page, shown, relabel))
        following = partial(page.keyboard.press, "1")
        page.wait_for_timeout(_READS_MS)
        figures.add(NEXT, timed(page, rf"Row {row + 1} of ", following))


def timed(page: Any, wanted: str, act: Callable[[], Any]) -> float:
    """Return the milliseconds from a person's action to the frame that shows the answer."""
    page.evaluate(_WATCH, [wanted, _WAIT_MS])
    act()
    took: float = page.evaluate("() => window.steelyardTook")
    return took


def figure_table(figures: Figures) -> str:
    """Return the median and the range of every figure beside its goal."""
    lines = []
    for name, values in figures.by_name.items():
        if not values:
            continue
        low, middle, high = min(values), float(np.median(values)), max(values)
        target = TARGETS[name]
        bound = f"{target:g}" if target else "-"
        kept = "" if not target else "kept" if middle <= target else "over"
        lines.append([name, f"{middle:.0f} ({low:.0f} to {high:.0f})", bound, kept])
    return text_table(["figure", "median ms (range)", "at most", ""], lines)


if __name__ == "__main__":
    sys.exit(main())
