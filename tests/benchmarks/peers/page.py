"""The results page, from a run's record and nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from peers.contestants import OURS, PEERS
from peers.figures import spread
from peers.loads_page import make_loads_page
from peers.markdown import SIZE, TABLES, markdown_table, shown, size_of
from peers.plan import CLOSED, OPEN

#: How many times the best peer's decisions a second are wanted, by questions of a request.
WANTED = {3: 3.0, 32: 10.0}
#: The number of outcomes by which questions are compared.
_USUAL = 4
#: Questions and outcomes of the request whose loads are on this page.
_LOADED = (3, 4)
#: How the words about a rate end that was measured.
_MEASURED = ("client", "clients", "request alone")


def write_pages(
    record: Mapping[str, Any], quality: Sequence[Mapping[str, Any]], file: Path, loads: Path
) -> None:
    """Write the page of a run, and that of every size and load.

    ``quality`` is the output of ``finetune.py``, or empty.
    """
    file.write_text(make_page(record, quality), encoding="utf-8")
    loads.write_text(make_loads_page(record), encoding="utf-8")


def make_page(record: Mapping[str, Any], quality: Sequence[Mapping[str, Any]]) -> str:
    parts = [_opening(record), _reached(record), _why(record), _under_load(record)]
    parts += [_contestants(record), _quality(quality)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _opening(record: Mapping[str, Any]) -> str:
    cores = record["cores"]
    server, client = (", ".join(map(str, cores[name])) for name in ("server", "client"))
    apart = (
        f"Every server ran on core {server}, every client on core {client}."
        if server != client
        else f"Servers and clients shared core {server}: there was no other."
    )
    return "\n".join(
        [
            "# Steelyard beside its peers",
            "",
            (
                "Written by `run.py` from its results file; what each column means is in "
                "[README.md](README.md)."
            ),
            "",
            f"- date: {record['date']}; {record['minutes']} minutes",
            f"- command: `{record['command']}`",
            *(f"- {line}" for line in record["machine"]),
            f"- {apart} Threads of a server: as many as its cores.",
            (
                f"- {record['rounds']} rounds in which all contestants take turns. A figure is the "
                "median of rounds, with their range in parentheses."
            ),
            (
                "- Every contestant was sent the same bytes: `POST /v1/systemone` is a dialect that "
                "all of them speak. A new context in each request; questions and outcomes stay."
            ),
        ]
    )


def throughput(
    record: Mapping[str, Any], key: str, size: tuple[int, int, str]
) -> tuple[float, str]:
    """Return a contestant's most decisions a second at a size, and how that is known.

    The largest median over numbers of clients in closed loop; where no load could be run, by the time
    of one request alone; where that was not waited for, the most that it can be, or its expected value;
    0 where there is no answer at all.
    """
    best, words = 0.0, "no answer"
    for cell in record["cells"]:
        if cell["key"] == key and size_of(cell) == size and cell["loop"] == CLOSED:
            found = spread(cell["rounds"], "decisions_s")
            if found and found[0] > best:
                best, words = found[0], f"{cell['clients']} client{'s' * (cell['clients'] > 1)}"
    if not best:
        for entry in record["alone"]:
            if entry["key"] == key and size_of(entry) == size:
                best, words = size[0] / entry["seconds"], "one request alone"
        for entry in record["not_run"]:
            if entry["key"] == key and size_of(entry) == size and entry["seconds"]:
                best = size[0] / entry["seconds"]
                words = "at most" if entry["words"].startswith("not answered") else "expected"
                words += f": {entry['words']}"
    return best, words


def ratios(record: Mapping[str, Any], table: int) -> list[dict[str, Any]]:
    """Return Steelyard's decisions a second over the best peer's, at each size with a target."""
    entries = [
        one for one in record["contestants"] if one["table"] == table and "left_out" not in one
    ]
    ours = [one["key"] for one in entries if one["peer"] == OURS]
    peers = [one["key"] for one in entries if one["peer"] != OURS]
    found = []
    for size in sorted({size_of(one) for one in record["alone"]}):
        if size[0] not in WANTED or not ours or not peers:
            continue
        own, _ = throughput(record, ours[0], size)
        rivals = {key: throughput(record, key, size) for key in peers}
        key = max(rivals, key=lambda name: rivals[name][0])
        best, words = rivals[key]
        found.append(
            {
                "size": size,
                "own": own,
                "best": best,
                "peer": key,
                "words": words,
                "ratio": own / best if best else None,
                "wanted": WANTED[size[0]],
            }
        )
    return found


def verdict(found: Mapping[str, Any]) -> str:
    """Whether a ratio reaches its goal, and whether the peer's side was measured in rounds."""
    reached = "reached" if found["ratio"] >= found["wanted"] else "not reached"
    return reached if "client" in found["words"] else f"{reached}; peer not measured in rounds"


def _reached(record: Mapping[str, Any]) -> str:
    parts = [
        "## What was reached",
        "",
        "Decisions a second of Steelyard over those of the best peer at that size, each at the "
        "number of clients that suits it best, closed loop. Wanted: at least "
        + ", ".join(f"{times:g} times at {n} questions" for n, times in WANTED.items())
        + ".",
    ]
    for table, name in TABLES.items():
        found = ratios(record, table)
        if not found:
            continue
        rows = [
            [
                str(one["size"][0]),
                str(one["size"][1]),
                one["size"][2],
                shown(one["own"]),
                shown(one["best"]),
                f"{one['peer']} ({one['words']})",
                "-" if one["ratio"] is None else f"{one['ratio']:.2f}",
                f"{one['wanted']:g}",
                "no peer answers" if one["ratio"] is None else verdict(one),
            ]
            for one in found
        ]
        parts += [
            "",
            f"{name}:",
            "",
            markdown_table([*SIZE, OURS, "best peer", "which", "ratio", "wanted", ""], rows),
        ]
        for n, wanted in WANTED.items():
            values = [one["ratio"] for one in found if one["size"][0] == n and one["ratio"]]
            if values:
                reached = sum(value >= wanted for value in values)
                parts += [
                    "",
                    (
                        f"At {n} questions: {median(values):.2f} times the best peer in the median of "
                        f"{len(values)} sizes ({min(values):.2f} to {max(values):.2f}); "
                        f"{wanted:g} times or more at {reached} of them."
                    ),
                ]
    return "\n".join(parts)


def _why(record: Mapping[str, Any]) -> str:
    """Set the questions of a request beside the decisions a second, which tells who reads once."""
    parts = [
        "## Why",
        "",
        (
            "Decisions a second by the questions of a request. Who reads the context again for every "
            "question decides as many a second however many come together; who reads it once decides "
            "more, up to what the questions' own text costs. "
            "[README.md](README.md#what-the-ratios-hang-on) says what that makes of the ratios."
        ),
    ]
    sizes = {size_of(one) for one in record["alone"]}
    questions = sorted({size[0] for size in sizes})
    contexts = list(dict.fromkeys(one["context"] for one in record["alone"]))
    if len(questions) < 2:
        return ""
    for table, name in TABLES.items():
        keys = [
            one["key"]
            for one in record["contestants"]
            if one["table"] == table and "left_out" not in one
        ]
        rows = []
        for context in contexts:
            outcomes = {size[1] for size in sizes if size[2] == context}
            wanted = _USUAL if _USUAL in outcomes else min(outcomes)
            for key in keys:
                found = [throughput(record, key, (n, wanted, context)) for n in questions]
                # A bound is no measurement.
                rates = [shown(rate) if words.endswith(_MEASURED) else "-" for rate, words in found]
                rows.append([context, str(wanted), key, *rates])
        if keys:
            asked = (f"{n} question{'s' * (n > 1)}" for n in questions)
            header = ["context", "outcomes", "contestant", *asked]
            parts += ["", f"{name}:", "", markdown_table(header, rows)]
    return "\n".join(parts)


def _under_load(record: Mapping[str, Any]) -> str:
    """Return latencies, and decisions a second by the number of clients, of one request."""
    cells = [cell for cell in record["cells"] if cell["rounds"]]
    counted = {size_of(cell)[:2] for cell in cells}
    if not counted:
        return ""
    asked = _LOADED if _LOADED in counted else min(counted)
    cells = [cell for cell in cells if size_of(cell)[:2] == asked]
    clients = sorted({cell["clients"] for cell in cells})
    parts = [
        "## Under load",
        "",
        (
            f"{asked[0]} questions of {asked[1]} outcomes: milliseconds of a request, and decisions a "
            "second in closed loop by the number of clients. A run writes all other sizes, the ranges of "
            "rounds, CPU and memory to `loads.md`."
        ),
    ]
    header = ["context", "contestant", "p50 ms, 1 client"]
    header += [f"p95 ms, {n} clients, open loop" for n in clients[-1:] if n > 1]
    header += [f"decisions a second, {n} client{'s' * (n > 1)}" for n in clients]
    for table, name in TABLES.items():
        rows = []
        for context in dict.fromkeys(cell["context"] for cell in cells):
            for one in record["contestants"]:
                mine = {
                    (cell["loop"], cell["clients"]): cell["rounds"]
                    for cell in cells
                    if cell["key"] == one["key"] and cell["context"] == context
                }
                if one["table"] == table and mine:
                    found = [_middle(mine, CLOSED, 1, "p50_ms")]
                    found += [_middle(mine, OPEN, n, "p95_ms") for n in clients[-1:] if n > 1]
                    found += [_middle(mine, CLOSED, n, "decisions_s") for n in clients]
                    rows.append([context, one["key"], *found])
        if rows:
            parts += ["", f"{name}:", "", markdown_table(header, rows)]
    return "\n".join(parts)


def _middle(loads: Mapping[tuple[str, int], Any], loop: str, clients: int, name: str) -> str:
    found = spread(loads.get((loop, clients), []), name)
    return shown(found[0]) if found else "-"


def _contestants(record: Mapping[str, Any]) -> str:
    rows = [
        [
            str(one["table"]),
            one["key"],
            one.get("versions", ""),
            shown(one["idle_mb"]) if "idle_mb" in one else "-",
            one.get("left_out") or one.get("lost") or "",
        ]
        for one in record["contestants"]
    ]
    parts = [
        "## Contestants",
        "",
        markdown_table(
            ["table", "contestant", "versions", "MB after its start", "left out"],
            rows,
        ),
    ]
    known = {one["peer"] for one in record["contestants"]}
    for peer in PEERS.values():
        if peer.name in known:
            parts += ["", f"**{peer.name}**", "", *(f"- {words}" for words in peer.says)]
    return "\n".join(parts)


def _quality(results: Sequence[Mapping[str, Any]]) -> str:
    command = "python tests/benchmarks/finetune.py --data DIR --json FILE"
    parts = ["## Quality", ""]
    if not results:
        return "\n".join(
            [
                *parts,
                (
                    "No quality was measured beside this run. "
                    f"`{command}`, and `run.py --only-page --quality FILE`, put it here."
                ),
            ]
        )

    def figure(value: Mapping[str, float] | None, digits: int = 3) -> str:
        if value is None:
            return ""
        return " ".join(
            (
                f"{value['value']:.{digits}f}",
                f"[{value['low']:.{digits}f}",
                f"{value['high']:.{digits}f}]",
            )
        )

    rows = [
        [
            one["task"],
            one["rows"],
            one["method"],
            f"{one['n_train']:,}",
            f"{one['n']:,}",
            figure(one["accuracy"]),
            figure(one["log_loss"]),
            figure(one["gain"]),
            figure(one["ece"]),
            figure(one["aurc"], 4),
            f"{one['served_ms']:.2f}",
            one["note"],
        ]
        for one in results
    ]
    header = [
        "task",
        "rows",
        "method",
        "n train",
        "n",
        "accuracy",
        "log loss",
        "more than ours by",
        "ECE",
        "AURC",
        "CPU ms",
        "note",
    ]
    return "\n".join(
        [
            *parts,
            (
                f"Measured here by `{command}`: every method learned the same rows on one machine, in "
                "one run or in several. No figure that somebody published is among them, and the peers "
                "above are not: their weights here are random."
            ),
            "",
            markdown_table(header, rows),
        ]
    )
