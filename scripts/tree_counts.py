"""Print what makes the tree hard to read and to change, each beside its bound: ``scripts/tree_counts.py``.

Most of these bounds are tests too, which fail where one is passed; a table of
``docs/contributors/architecture.md`` has the figures of a day.
"""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from app import test_decide_walk, test_rooms
from project import test_layout
from steelyard.app.rooms import ROOMS
from support.tree.repository import PACKAGE, RECIPE, ROOT, python_files

#: Lines that are made of other files and committed.
GENERATED = [*python_files(PACKAGE / "client" / "blocking"), PACKAGE / "http" / "openapi.json"]


def rows() -> Iterator[tuple[str, object, object]]:
    """Yield what is counted, its figure, and its bound."""
    naming = [len(test_rooms.files_naming(name)) for name in test_rooms.LEAVES]
    yield "files outside its room that name a noun, at most", max(naming), 4
    yield "lists of kinds of job, beside the jobs of each room", len(lists_of_jobs()), 0
    circles = {name for name in test_layout.IN_CIRCLES if "client" not in name}
    yield "packages in a circle, clients apart", len(circles), 0
    with tempfile.TemporaryDirectory() as home:
        calls = test_decide_walk.trace_decide(Path(home))
    changes = sum(a != b for a, b in itertools.pairwise(calls))
    yield "a decide by trace: files", len(set(calls)), test_decide_walk.MAX_FILES
    yield "a decide by trace: changes of file", changes, test_decide_walk.MAX_CHANGES
    yield "names that do not say what a thing is", sum(test_layout.VAGUE_WORDS.values()), 150
    by_hand = set(python_files(PACKAGE, ROOT / "workbench")) - set(GENERATED)
    yield "lines written by hand, server and workbench", sum(map(n_lines, by_hand)), 125_000
    yield (
        "lines of the recipe of the base model, not shipped",
        sum(map(n_lines, python_files(RECIPE))),
        "",
    )
    yield "generated lines of Python", sum(n_lines(path) for path in GENERATED[:-1]), 1000
    yield "lines of openapi.json, one an operation or schema", n_lines(GENERATED[-1]), ""
    everything = python_files(
        PACKAGE, RECIPE, *(ROOT / name for name in ("workbench", "tests", "scripts"))
    )
    mark = "# fmt: " + "skip"
    marks = sum(path.read_text(encoding="utf-8").count(mark) for path in everything)
    yield mark.removeprefix("# "), marks, 20
    yield "MB of the tree", round(sum(path.stat().st_size for path in tracked()) / 1e6), 75
    tests = [
        source
        for path, source in test_layout.sources().items()
        if path.is_relative_to(ROOT / "tests")
    ]
    yield "private names of others in tests", sum(one.n_private_of_others for one in tests), 150
    yield "sleeps in tests", sum(source.n_sleeps for source in tests), 20


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
        print(f"{name:<55} {figure:>8} {bound:>8}")
