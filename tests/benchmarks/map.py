"""How long the map of many rows takes, and how many frames a second its figure draws.

See README.md beside this file.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from machine import describe_machine
from quality_tables import text_table

from steelyard.cli.workbench import serving_workbench
from steelyard.client import Client
from steelyard_workbench.pages.map.map_view import TITLE
from support.browser.browsing import find_chromium
from workbench import client_of, find_dataset, served, told

_WAIT_MS, _POLL_S = 300_000, 0.1
_ARGUMENTS = ("--no-sandbox", "--disable-background-networking")
#: WebGL without a graphics card: the browser draws with the processor.
_SOFTWARE = ("--disable-gpu", "--enable-unsafe-swiftshader")
#: Moves the figure at every frame for some milliseconds, as the tools do that pan and zoom it, and
#: counts what it drew meanwhile.
_FRAMES = """([title, kind, lasts]) => new Promise((tell) => {
  const [view] = [...Bokeh.index.query((one) => one.model.title?.text === title)];
  const {x_range, y_range} = view.model;
  const first = view._render_count, began = performance.now();
  const step = () => {
    const passed = performance.now() - began;
    if (passed >= lasts) {
      const drawn = view._render_count - first;
      x_range.setv({start: -1.05, end: 1.05}); y_range.setv({start: -1.05, end: 1.05});
      tell(1000 * drawn / passed);
      return;
    }
    const turn = Math.sin(passed / 400);
    view.model.document.interactive_start(view.model);
    const [by, half] = kind === "pan" ? [0.3 * turn, 1.05] : [0, 0.65 + 0.4 * turn];
    x_range.setv({start: by - half, end: by + half});
    y_range.setv({start: -half, end: half});
    requestAnimationFrame(step);
  };
  requestAnimationFrame(step);
})"""
_RENDERER = """() => {
  const gl = document.createElement("canvas").getContext("webgl");
  const told = gl?.getExtension("WEBGL_debug_renderer_info");
  return gl ? String(told ? gl.getParameter(told.UNMASKED_RENDERER_WEBGL) : "WebGL") : "none";
}"""


@dataclass(slots=True)
class Figures:
    """The measures: seconds of the job and of its phases, of the page, and frames a second."""

    job_s: float
    phases_s: dict[str, float]
    shown_s: float
    frames: dict[str, float]
    renderer: str


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    if options.chromium is None:
        raise SystemExit("Chromium is not installed: apt-get install chromium.")
    about = describe_machine()
    print("\n".join(about))
    with tempfile.TemporaryDirectory(prefix="steelyard-map-") as scratch:
        home = options.home or Path(scratch)
        with served(home, options.engine, options.rows) as url, client_of(url) as client:
            dataset_id = find_dataset(client, Path(scratch), options.rows)
            job_s, phases = lay_out(client, dataset_id)
            figures = Figures(job_s, phases, *draw(url, dataset_id, options))
    print(f"{options.rows:,} rows, engine {options.engine}, drawn by {figures.renderer}\n")
    print(figure_table(figures))
    if options.json:
        told_ = {"machine": about, "rows": options.rows, **asdict(figures)}
        options.json.write_text(json.dumps(told_, indent=1), encoding="utf-8")
    return 0


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000, help="rows of the dataset")
    parser.add_argument("--engine", default="hashing", help="engine of the server")
    parser.add_argument(
        "--seconds", type=float, default=8.0, help="seconds of a pan, and of a zoom"
    )
    parser.add_argument("--gpu", action="store_true", help="draw with the graphics card")
    parser.add_argument("--home", type=Path, help="keep the server's files, and the map, here")
    parser.add_argument(
        "--chromium",
        default=find_chromium(),
        help="the browser",
    )
    parser.add_argument("--json", type=Path, help="write the figures here too")
    return parser.parse_args(arguments)


def lay_out(client: Client, dataset_id: str) -> tuple[float, dict[str, float]]:
    """Compute the map; gives the seconds of it all and of each phase, nothing where it was there."""
    began = time.perf_counter()
    found = client.maps.create(dataset_id)
    phases: dict[str, float] = {}
    while found.status in {"queued", "running"}:
        before = time.perf_counter()
        time.sleep(_POLL_S)
        phase = found.progress.phase if found.progress is not None else "waiting"
        found = client.maps.get(found.id)
        phases[phase] = phases.get(phase, 0.0) + time.perf_counter() - before
    if found.status != "succeeded":
        raise SystemExit(f"The map is {found.status}: {found.error}")
    return time.perf_counter() - began, phases


def draw(
    url: str, dataset_id: str, options: argparse.Namespace
) -> tuple[float, dict[str, float], str]:
    """Open the page; return the seconds until it is shown, frames a second, and the renderer."""
    from playwright.sync_api import sync_playwright

    arguments = _ARGUMENTS if options.gpu else (*_ARGUMENTS, *_SOFTWARE)
    with serving_workbench(url, port=0) as (address, _), sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=options.chromium, args=list(arguments)
        )
        page = chromium.new_page(viewport={"width": 1280, "height": 900})
        page.set_default_timeout(_WAIT_MS)
        with told(page):
            shown_s = open_map(page, f"{address}/?page=map&dataset={dataset_id}&decision=team")
            frames = {
                kind: page.evaluate(_FRAMES, [TITLE, kind, options.seconds * 1000])
                for kind in ("pan", "zoom")
            }
            renderer: str = page.evaluate(_RENDERER)
        chromium.close()
    return shown_s, frames, renderer


def open_map(page: Any, address: str) -> float:
    """Go to the page; gives the seconds until the points have their colours."""
    began = time.perf_counter()
    page.goto(address)
    page.get_by_role("button", name="billing (").wait_for()
    page.wait_for_function(
        "(title) => [...Bokeh.index.query((one) => one.model.title?.text === title)]"
        ".some((view) => view._render_count > 0)",
        arg=TITLE,
    )
    return time.perf_counter() - began


def figure_table(figures: Figures) -> str:
    """Return every figure with its unit."""
    lines = [["the job", f"{figures.job_s:.0f} s"]]
    lines += [
        [f"  {phase.replace('_', ' ')}", f"{seconds:.0f} s"]
        for phase, seconds in figures.phases_s.items()
    ]
    lines.append(["the page, until the points have colours", f"{figures.shown_s:.1f} s"])
    lines += [[kind, f"{rate:.0f} frames/s"] for kind, rate in figures.frames.items()]
    return text_table(["figure", "measured"], lines)


if __name__ == "__main__":
    sys.exit(main())
