"""The page of every size and load, from a run's record and nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from peers.figures import FIGURES
from peers.markdown import SIZE, TABLES, markdown_table, shown, size_of, with_range
from peers.plan import OPEN_SHARE

_HEADER = (
    "contestant",
    "clients",
    "loop",
    "p50 ms",
    "p95 ms",
    "p99 ms",
    "decisions a second",
    "CPU ms a decision",
    "peak MB",
    "requests",
    "errors",
)


def make_loads_page(record: Mapping[str, Any]) -> str:
    parts = [
        "# Every size and load",
        (
            "Written by `run.py` from its results file. `RESULTS.md` has the machine, the command and "
            "the contestants; what each column means is in `README.md`."
        ),
        (
            "Open loop: requests arrive at random (Poisson) at "
            f"{OPEN_SHARE:.0%} of what the same contestant answered with as many clients in closed loop, "
            "so rates differ between contestants; times count from when a request was due."
        ),
    ]
    parts += [_table(record, table) for table in TABLES]
    parts += [_not_run(record)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _table(record: Mapping[str, Any], table: int) -> str:
    keys = {one["key"]: at for at, one in enumerate(record["contestants"]) if one["table"] == table}
    cells = [cell for cell in record["cells"] if cell["key"] in keys]
    if not cells:
        return ""
    parts = [f"## {TABLES[table]}"]
    contexts = list(dict.fromkeys(cell["context"] for cell in cells))
    for size in sorted({size_of(cell) for cell in cells}, key=lambda s: (contexts.index(s[2]), s)):
        here = [cell for cell in cells if size_of(cell) == size]
        here.sort(key=lambda cell: (cell["clients"], cell["loop"], keys[cell["key"]]))
        parts += [
            "",
            f"### {size[0]} questions, {size[1]} outcomes, {size[2]} context",
            "",
            markdown_table(_HEADER, [_row(cell) for cell in here if cell["rounds"]]),
            *_left_out(here),
        ]
    return "\n".join(parts)


def _left_out(cells: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the loads that were not run, those of one contestant and reason together."""
    together: dict[tuple[str, str], list[str]] = {}
    for cell in cells:
        if not cell["rounds"]:
            loads = together.setdefault((cell["key"], cell.get("words", "not run")), [])
            loads.append(f"{cell['clients']} {cell['loop']}")
    lines = [f"- {key}: {words} ({', '.join(loads)})" for (key, words), loads in together.items()]
    return ["", *lines] if lines else []


def _row(cell: Mapping[str, Any]) -> list[str]:
    rounds = cell["rounds"]
    named = [cell["key"], str(cell["clients"]), cell["loop"]]
    errors: dict[str, int] = {}
    for one in rounds:
        for name, n in one["errors"].items():
            errors[name] = errors.get(name, 0) + n
    rates = [one["rate"] for one in rounds if "rate" in one]
    if rates:
        named[2] += f", {shown(rates[0])} requests a second"
    return [
        *named,
        *(with_range(rounds, name) for name in FIGURES),
        f"{sum(one['n'] for one in rounds)}",
        ", ".join(f"{name}: {n}" for name, n in errors.items()) or "0",
    ]


def _not_run(record: Mapping[str, Any]) -> str:
    """Return each answer that a contestant did not give, in words."""
    if not record["not_run"]:
        return ""
    rows = [
        [
            one["key"],
            str(one["questions"]),
            str(one["outcomes"]),
            one["context"],
            one["words"]
            + (
                f"; about {one['seconds']:.0f} s expected"
                if one["words"].startswith("not tried")
                else ""
            ),
        ]
        for one in record["not_run"]
    ]
    return "\n".join(
        [
            "## Without an answer",
            "",
            "Sizes of which a contestant answered no request, and why.",
            "",
            markdown_table(["contestant", *SIZE, "why"], rows),
        ]
    )
