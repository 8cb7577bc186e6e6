"""How long twelve pages of the workbench take to open, beside another checkout; see README.md."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from machine import describe_machine
from peers.processes import cpu_seconds, tree
from quality_tables import text_table

from steelyard.cli.samples import SAMPLES
from steelyard.client import Client, ClientOptions

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from support.browser.browsing import find_chromium

#: What comes behind ``?`` in the address of each page; DATASET is the first sample.
PAGES = {
    "home": "",
    "playground": "page=playground",
    "live": "page=live",
    "datasets": "page=datasets",
    "rows": "page=datasets&dataset=DATASET",
    "versions": "page=versions&dataset=DATASET",
    "map": "page=map&dataset=DATASET",
    "review": "page=review&dataset=DATASET",
    "models": "page=models",
    "families": "page=families",
    "evaluations": "page=evaluations",
    "jobs": "page=jobs",
}
#: Of a page, in this order: seconds from going to the address until the bar at the top stands, and
#: until nothing is still to come; CPU seconds meanwhile.
COLUMNS = ("frame", "complete", "workbench", "server", "browser")
#: Seconds that the first two may take on two idle cores.
BOUNDS = (1.0, 2.5)
_ARGUMENTS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking")
_WAIT_MS, _START_S = 120_000, 180.0
#: What stands in for what is to come, of any version.
_WAITING = ".skeleton:visible, .MuiSkeleton-root:visible"
#: The root of this checkout.
_ROOT = Path(__file__).resolve().parents[2]

#: By page and visit, cold or warm: a line of COLUMNS a round.
Figures = dict[tuple[str, str], list[list[float]]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Open the pages of one or two checkouts by turns; return the exit status."""
    options = parse(arguments)
    if options.chromium is None:
        raise SystemExit("Chromium is not installed: apt-get install chromium.")
    checkouts = {"this": _ROOT}
    if options.against is not None:
        checkouts["before"] = options.against.resolve()
    about = describe_machine()
    print("\n".join(about), f"\nload of the last minute: {os.getloadavg()[0]:.1f}")
    figures: dict[str, Figures] = {name: defaultdict(list) for name in checkouts}
    pages = {name: PAGES[name] for name in options.pages}
    with ExitStack() as stack:
        services = {name: stack.enter_context(serving(root)) for name, root in checkouts.items()}
        for service in services.values():
            service.others = [other.pid for other in services.values() if other is not service]
            if options.rows:
                service.make_dataset(options.rows)
        for turn in range(-1, options.rounds):
            for name, service in services.items():
                into: Figures = defaultdict(list) if turn < 0 else figures[name]
                measure(into, service, pages, options.chromium)
    print(f"{options.rounds} rounds after one that is not counted; medians\n")
    print(figure_table(figures))
    if options.json:
        lines = {
            checkout: {" ".join(key): values for key, values in by_page.items()}
            for checkout, by_page in figures.items()
        }
        report = {"machine": about, "columns": COLUMNS, "pages": lines}
        options.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    return 0


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--against", type=Path, metavar="DIR", help="another checkout")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--pages", nargs="+", choices=PAGES, default=list(PAGES), metavar="PAGE")
    parser.add_argument("--rows", type=int, default=0, help="of a dataset to open, not a sample")
    parser.add_argument("--chromium", default=find_chromium("chromium-headless-shell"))
    parser.add_argument("--json", type=Path, metavar="FILE")
    return parser.parse_args(arguments)


class Service:
    """A running ``steelyard up`` with the samples in its home."""

    def __init__(self, url: str, workbench: str, pid: int) -> None:
        self.url, self.workbench = url, workbench
        with Client(ClientOptions(url)) as client:
            self.dataset = next(
                dataset.id for dataset in client.datasets.iterate() if dataset.name == SAMPLES[0]
            )
        self.pid = pid
        self.workbench_pid = next(
            child
            for child in tree(pid)
            if b"steelyard_workbench" in Path(f"/proc/{child}/cmdline").read_bytes()
        )
        #: Of the other checkout, which this script started too.
        self.others: list[int] = []

    def make_dataset(self, n_rows: int) -> None:
        """Make a dataset of so many rows, each with one of two labels, and open that."""
        refund = {"id": "refund", "kind": "binary", "question": "Is money asked back?"}
        rows = [
            {
                "context": f"Order {number} is late.",
                "decisions": [refund],
                "targets": {"refund": {"yes" if number % 3 else "no": 1.0}},
            }
            for number in range(n_rows)
        ]
        with Client(ClientOptions(self.url, timeout_s=300.0)) as client:
            self.dataset = client.datasets.create("rows", rows).id


@contextmanager
def serving(root: Path) -> Iterator[Service]:
    """Run ``steelyard up`` of a checkout in a home of its own until its samples are loaded."""
    with tempfile.TemporaryDirectory(prefix="steelyard-pages-") as home:
        log = Path(home) / "up.log"
        command = ["up", "--home", f"{home}/home", "--port", "0", "--workbench-port", "0"]
        with log.open("wb") as out:
            process = subprocess.Popen(
                [sys.executable, "-m", "steelyard", *command],
                env={**os.environ, "PYTHONPATH": f"{root}/server:{root}/workbench"},
                stdout=out,
                stderr=subprocess.STDOUT,
            )
        try:
            yield _wait_for(process, log)
        finally:
            process.terminate()
            process.wait(60)


def _wait_for(process: subprocess.Popen[bytes], log: Path) -> Service:
    end = time.monotonic() + _START_S
    while time.monotonic() < end and process.poll() is None:
        text = log.read_text()
        server = re.search(r"Listening on (\S+)", text)
        workbench = re.search(r"Workbench on (\S+)", text)
        if server and workbench and f"Loaded the sample dataset {SAMPLES[-1]}" in text:
            return Service(server[1], workbench[1], process.pid)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.2)
    raise SystemExit(f"steelyard up did not start:\n{log.read_text()[-2000:]}")


def measure(into: Figures, service: Service, pages: dict[str, str], chromium: str) -> None:
    """Open every page in a browser that has seen nothing, and once more in the same browser."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=list(_ARGUMENTS))
        for name, query in pages.items():
            context = browser.new_context(viewport={"width": 1280, "height": 900})
            page = context.new_page()
            page.set_default_timeout(_WAIT_MS)
            address = f"{service.workbench}/?{query.replace('DATASET', service.dataset)}"
            for visit in ("cold", "warm"):
                before = _cpu(service)
                seconds = _open(page, address)
                into[name, visit].append([*seconds, *(_cpu(service) - before)])
            context.close()
        browser.close()


def _cpu(service: Service) -> np.ndarray:
    """Return the CPU seconds so far of the workbench, the server, and the browser with this script."""
    workbench, whole = cpu_seconds(service.workbench_pid), cpu_seconds(service.pid)
    others = sum(cpu_seconds(pid) for pid in service.others)
    return np.array([workbench, whole - workbench, cpu_seconds(os.getpid()) - whole - others])


def _open(page: Any, address: str) -> tuple[float, float]:
    """Go to a page; return the seconds until its frame stands, and until all is there."""
    from playwright.sync_api import expect

    began = time.perf_counter()
    page.goto(address, wait_until="commit")
    page.locator("header").first.wait_for()
    frame = time.perf_counter() - began
    page.locator("[data-keys=ready]").wait_for(state="attached")
    expect(page.locator(_WAITING)).to_have_count(0, timeout=_WAIT_MS)
    return frame, time.perf_counter() - began


def figure_table(figures: dict[str, Figures]) -> str:
    """Return the medians by page and visit of each checkout, and the total of all pages."""
    heads = ["page", *(f"{column}, {name}" for name in figures for column in COLUMNS)]
    body, sums = [], []
    for key in next(iter(figures.values())):
        medians = [np.median(by_page[key], axis=0) for by_page in figures.values()]
        sums.append(np.concatenate(medians))
        body.append([" ".join(key), *(f"{value:.2f}" for value in sums[-1])])
    body.append(["all", *(f"{value:.1f}" for value in np.sum(sums, axis=0))])
    frame, complete = np.max(sums, axis=0)[:2]
    bounds = (
        f"frame {frame:.2f} s at most ({BOUNDS[0]:g}), complete {complete:.2f} s ({BOUNDS[1]:g})"
    )
    return f"{text_table(heads, body)}\n\nThe slowest page of this checkout: {bounds}"


if __name__ == "__main__":
    sys.exit(main())
