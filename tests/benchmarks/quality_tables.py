"""Tables of the quality benchmark, as plain text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from estimates import Estimate

if TYPE_CHECKING:
    from quality import EngineResult

#: Columns of the quality table: heading, figure, factor, digits.
_COLUMNS = (
    ("accuracy", "accuracy", 1, 3),
    ("log loss", "log_loss", 1, 3),
    ("Brier", "brier", 1, 3),
    ("ECE", "ece", 1, 3),
)
_BESIDE = (
    ("similarity", "similarity", 1, 3),
    ("top label", "majority", 1, 3),
    ("gain, points", "gain", 100, 1),
)


def text_table(header: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Align columns: the first to the left, the others to the right."""
    cells = [list(header), *(list(line) for line in lines)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(header))]
    texts = []
    for line in cells:
        padded = [line[0].ljust(widths[0])]
        padded += [cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True)]
        texts.append("  ".join(padded).rstrip())
    rule = "  ".join("-" * width for width in widths)
    return "\n".join([texts[0], rule, *texts[1:]]) + "\n"


def figure_text(one: Estimate | None, factor: float, digits: int) -> str:
    """Write a figure and its interval, or a dash for none."""
    if one is None:
        return "-"
    interval = one.interval()
    low, high = (f"{factor * end:.{digits}f}" for end in (interval.low, interval.high))
    return f"{factor * one.point:.{digits}f} [{low}, {high}]"


def quality_table(result: EngineResult) -> str:
    """Return an engine's table: two lines a task, before and after calibration."""
    header = ["task", "n", "calibration"]
    header += [name for name, *_ in (*_COLUMNS, *_BESIDE)]
    groups = [(task, str(result.n_decisions[task]), one) for task, one in result.tasks.items()]
    groups += [
        (f"{source} (mean of its tasks)", "", figures)
        for source, figures in result.sources.items()
        if source not in result.tasks
    ]
    groups.append((f"mean of {len(result.sources)} sources", "", result.overall()))
    lines = []
    for task, n, figures in groups:
        whens = [when for when in ("before", "after") if f"accuracy.{when}" in figures] or [""]
        for when in whens:
            line = [task, n, when or "-"] if when == whens[0] else ["", "", when]
            line += [
                figure_text(figures.get(f"{name}.{when}"), factor, digits)
                for _, name, factor, digits in _COLUMNS
            ]
            line += [
                figure_text(figures.get(name), factor, digits) if when == whens[-1] else ""
                for _, name, factor, digits in _BESIDE
            ]
            lines.append(line)
    return f"engine {result.engine}\n{text_table(header, lines)}"


def reliability_text(result: EngineResult) -> str:
    """Return an engine's reliability tables, one a task, before beside after."""
    texts = []
    for task, tables in result.reliability.items():
        header = ["top probability"]
        for when in tables:
            header += [f"{when}: n", "mean p", "accuracy"]
        lines = []
        for bins in zip(*tables.values(), strict=True):
            line = [f"{bins[0].low:.1f} to {bins[0].high:.1f}"]
            for one in bins:
                if one.interval is None:
                    line += ["0", "-", "-"]
                    continue
                ends = f"[{one.interval.low:.3f}, {one.interval.high:.3f}]"
                line += [
                    str(one.n),
                    f"{one.mean_top_probability:.3f}",
                    f"{one.accuracy:.3f} {ends}",
                ]
            lines.append(line)
        texts.append(f"reliability of {task}, engine {result.engine}\n{text_table(header, lines)}")
    return "\n".join(texts)


def engine_table(results: Sequence[EngineResult]) -> str:
    """Return the first float32 engine, or else the first, beside the others, paired by context."""
    results = [result for result in results if "log_loss.after" in result.overall()]
    if len(results) < 2:
        return ""
    reference = next((one for one in results if "float32" in one.engine), results[0])
    others = [one for one in results if one is not reference]
    header = [
        "task",
        *(f"{one.engine}: {what}" for one in others for what in ("loss ratio", "accuracy, points")),
    ]
    groups = [(task, [one.tasks[task] for one in (reference, *others)]) for task in reference.tasks]
    groups.append(
        (
            f"mean of {len(reference.sources)} sources",
            [one.overall() for one in (reference, *others)],
        )
    )
    lines = []
    for task, (base, *compared) in groups:
        line = [task]
        for figures in compared:
            ratio = figures["log_loss.after"] / base["log_loss.after"]
            change = figures["accuracy.after"] - base["accuracy.after"]
            line += [figure_text(ratio, 1, 4), figure_text(change, 100, 2)]
        lines.append(line)
    return f"against {reference.engine}, after calibration\n{text_table(header, lines)}"
