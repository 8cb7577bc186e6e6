"""How a gate's verdict shows itself: reasons in words, changes on a number line, tables, frames."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Any

from msgspec import UNSET

from steelyard.client.display import table_html
from steelyard.client.display_evaluations import show_measure
from steelyard.client.drawings import DrawnInterval, draw_intervals
from steelyard.evaluations.gate_wire import (
    SHOWN_SLICES,
    BeforeAfter,
    Gate,
    GateF1,
    GateGroup,
    GateSlice,
    labels_of,
    measure_of,
    name_of,
    paired_change,
    reader_of,
    unchanged_of,
    words_of,
)
from steelyard.wire.measures import interval_text
from steelyard.wire.shown import to_frame, to_html

_AGAINST = {"parent": "the model it was trained from", "base": "the base model"}
_GROUPS = {"new": "new rows", "earlier": "earlier rows"}
_TEXTS = ("slice", "decision", "outcome", "measure")
_COUNTS = ("decisions", "contexts", "fixed", "broken")
_FIGURES = ("before", "after", "change", "low", "high")
_COLUMNS = (*_TEXTS[:3], *_COUNTS[:2], "measure", *_FIGURES, *_COUNTS[2:], "worse")


@to_html.register
def _(gate: Gate) -> str:
    against = escape(_AGAINST[gate.against])
    parts = [f"<p><b>{verdict_of(gate)}</b>, against {against}.</p>"]
    if not gate.passed:
        items = "".join(f"<li>{escape(text)}</li>" for text in gate.sentences)
        parts.append(f"<ul>{items}</ul>")
    parts += [
        f"<p>{escape(text)}</p>"
        for text in (unchanged_of(gate), labels_of(gate), words_of(gate), reader_of(gate))
        if text
    ]
    lines = list(intervals_of(gate))
    if lines:
        measure = measure_of(gate)
        unit = f"change of {measure.replace('_', ' ')} with its 95 % interval"
        parts.append(draw_intervals(lines, unit=unit, fall_is_good=measure == "loss"))
    parts.append(
        table_html("Against its predecessor", ("rows", *GATE_COLUMNS), [*group_rows(gate)])
    )
    worse = slice_rows(gate)
    if worse:
        parts.append(table_html("By decision and outcome", ("decision", *GATE_COLUMNS), worse))
    return f"<div>{''.join(parts)}</div>"


@to_frame.register
def _(gate: Gate) -> Any:
    """Return a row for each group, decision and outcome that was compared.

    ``slice`` is ``new``, ``earlier``, ``decision``, ``outcome`` or ``baseline``; ``measure`` has
    ``before``, ``after``, ``change``, ``low`` and ``high``.
    """
    import polars as pl  # noqa: PLC0415  a client without frames needs none

    rows = [_frame_row(name, group) for name, group in gate.groups.items()]
    rows += [_frame_row("decision", decision) for decision in gate.by_decision]
    rows += [_frame_row("outcome", outcome) for outcome in gate.by_outcome]
    if gate.baseline is not UNSET:
        rows.append(_frame_row("baseline", gate.baseline))
    types: dict[str, Any] = {
        **dict.fromkeys(_TEXTS, pl.String),
        **dict.fromkeys(_COUNTS, pl.Int64),
        **dict.fromkeys(_FIGURES, pl.Float64),
        "worse": pl.Boolean,
    }
    return pl.DataFrame(rows, schema={name: types[name] for name in _COLUMNS})


#: Columns of ``group_rows`` and ``slice_rows`` after the first.
GATE_COLUMNS = ("n", "before", "after", "change, 95 % interval", "share right", "fixed", "broken")


def verdict_of(gate: Gate) -> str:
    """Return whether a gate passed the model."""
    return "The gate passed it" if gate.passed else "The gate did not pass it"


def intervals_of(gate: Gate) -> Iterator[DrawnInterval]:
    """Yield the changes of a gate's groups, for drawing."""
    for name, group in gate.groups.items():
        change = paired_change(group)
        if change is not None:
            yield DrawnInterval(
                label=_GROUPS.get(name, name),
                change=change.change,
                low=change.low,
                high=change.high,
            )
    if gate.baseline is not UNSET and (change := paired_change(gate.baseline)) is not None:
        yield DrawnInterval(
            label="text baseline", change=change.change, low=change.low, high=change.high
        )


def group_rows(gate: Gate) -> Iterator[tuple[str, ...]]:
    """Yield a table row for each group of a gate, and one for its calibration."""
    for name, group in gate.groups.items():
        yield (_GROUPS.get(name, name), *_cells(group))
    if gate.baseline is not UNSET:
        yield ("against a text baseline", *_cells(gate.baseline))
    if gate.several is not UNSET:
        for name, figure in (("micro F1", gate.several.micro), ("macro F1", gate.several.macro)):
            yield (name, f"{gate.several.labels} labels", *_f1_cells(figure), "", "", "")
    before, after = gate.ece.before, gate.ece.after
    if before is not None and after is not None:
        change = f"{after - before:+.4f}"
        yield ("calibration error", "", f"{before:.4f}", f"{after:.4f}", change, "", "", "")


def slice_rows(gate: Gate) -> list[tuple[str, ...]]:
    """Return table rows of the decisions and outcomes that became worse, then of the largest."""
    shown = (*gate.by_decision[:SHOWN_SLICES], *gate.by_outcome[:SHOWN_SLICES])
    return [
        (f"{name_of(group)} (worse)" if group.worse else name_of(group), *_cells(group))
        for group in shown
    ]


def _cells(group: GateGroup | GateSlice) -> tuple[str, ...]:
    change = paired_change(group)
    right = group.accuracy if group.accuracy is not UNSET else group.picked_best
    compared = ("-", "-", "-")
    if change is not None:
        compared = (
            f"{change.before:.4f}",
            f"{change.after:.4f}",
            f"{change.change:+.4f} [{change.low:+.4f}, {change.high:+.4f}]",
        )
    flips = (f"{group.flips.fixed:,}", f"{group.flips.broken:,}")
    return (f"{group.decisions:,}", *compared, _show_right(right), *flips)


def _f1_cells(figure: GateF1) -> tuple[str, ...]:
    ends = f" [{interval_text(figure.low, figure.high, form='+.4f')}]"
    sides = (show_measure(side) for side in (figure.before, figure.after))
    return (*sides, f"{figure.change:+.4f}{ends}")


def _show_right(right: Any) -> str:
    if not isinstance(right, BeforeAfter) or right.before is None or right.after is None:
        return "-"
    return f"{right.before:.3f} → {right.after:.3f}"


def _frame_row(name: str, group: GateGroup | GateSlice) -> dict[str, Any]:
    change = paired_change(group)
    gate_slice = group if isinstance(group, GateSlice) else None
    row: dict[str, Any] = {
        "slice": name,
        "decision": None if gate_slice is None else gate_slice.decision_id,
        "outcome": None
        if gate_slice is None or gate_slice.outcome is UNSET
        else gate_slice.outcome,
        "decisions": group.decisions,
        "contexts": group.contexts,
        "measure": "loss" if group.loss is not UNSET else "scaled_reward",
        "fixed": group.flips.fixed,
        "broken": group.flips.broken,
        "worse": None if gate_slice is None else gate_slice.worse,
    }
    for figure in _FIGURES:
        row[figure] = None if change is None else getattr(change, figure)
    return row
