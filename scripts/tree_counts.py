"""Print what makes the tree hard to read and to change, each beside its bound: ``scripts/tree_counts.py``.

Most of these bounds are tests too, which fail where one is passed.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from app import test_decide_walk, test_rooms
from project import test_layout
from steelyard.app.rooms import ROOMS
from support.tree.repository import PACKAGE, RECIPE, ROOT, python_files


def rows() -> Iterator[tuple[str, int, int | None]]:
    """Yield what is counted, its figure, and its bound where it has one."""
    naming = [len(test_rooms.files_naming(name)) for name in test_rooms.LEAVES]
    yield "files outside its room that name a noun, at most", max(naming), 4
    yield "lists of kinds of job, beside the jobs of each room", len(lists_of_jobs()), 0
    with tempfile.TemporaryDirectory() as home:
        calls = test_decide_walk.trace_decide(Path(home))
    yield "a decide by trace: files", len({file for _, file in calls}), test_decide_walk.MAX_FILES
    changes = test_decide_walk.count_changes(calls).total()
    yield "a decide by trace: changes of file", changes, test_decide_walk.MAX_CHANGES
    yield "names that do not say what a thing is", sum(test_layout.VAGUE_WORDS.values()), 150
    yield from fallen(test_layout.sources())
    for folder in (PACKAGE, ROOT / "workbench", RECIPE, ROOT / "tests"):
        yield f"lines of {folder.name}", sum(map(n_lines, python_files(folder))), None
    yield "MB of the tree", round(sum(path.stat().st_size for path in tracked()) / 1e6), 110


def fallen(sources: Mapping[Path, Any]) -> Iterator[tuple[str, int, int]]:
    """Yield counts of read files that only fall: lower a bound here when one of them goes."""
    folders = (PACKAGE, RECIPE, *(ROOT / name for name in ("workbench", "tests", "scripts")))
    mark = "# fmt: " + "skip"
    marks = sum(path.read_text(encoding="utf-8").count(mark) for path in python_files(*folders))
    yield "places that ruff does not lay out", marks, 12
    tests = [source for path, source in sources.items() if path.is_relative_to(ROOT / "tests")]
    yield "private names of others in tests", sum(one.n_private_of_others for one in tests), 149
    yield "sleeps in tests", sum(source.n_sleeps for source in tests), 15


def lists_of_jobs() -> list[Path]:
    """Return the modules that import what runs the jobs of more than one room."""
    of_jobs = "|".join(room.name for room in ROOMS if room.jobs)
    run = re.compile(rf"steelyard\.({of_jobs})\.(?:\w+\.)?(?:run|runs|\w+_run)\b")
    return [
        path
        for path in python_files(PACKAGE)
        if len(set(run.findall(path.read_text(encoding="utf-8")))) > 1
    ]


def n_lines(path: Path) -> int:
    """Return how many lines a file has."""
    return len(path.read_text(encoding="utf-8").splitlines())


def tracked() -> list[Path]:
    """Return the files of the repository."""
    listed = subprocess.run(
        ["/usr/bin/env", "git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True
    )
    return [ROOT / name for name in listed.stdout.decode().split("\0") if name]


if __name__ == "__main__":
    for name, figure, bound in rows():
        print(f"{name:<55} {figure:>8} {'' if bound is None else bound:>8}")
