"""A gate on a card: its verdict, a number line, its reasons, and the rows behind each of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import panel_material_ui as pmui
from bokeh.models import ColumnDataSource, Span
from msgspec import UNSET, structs
from panel.viewable import Viewable

from steelyard.client.display_gates import GATE_COLUMNS, group_rows
from steelyard.evaluations.gate_wire import (
    Gate,
    GateGroup,
    GateSlice,
    labels_of,
    measure_of,
    paired_change,
    unchanged_of,
    words_of,
)
from steelyard.evaluations.measures.gate_rules import (
    BELOW_BASELINE,
    EARLIER_ALLOWANCE,
    EARLIER_INCONCLUSIVE,
    EARLIER_WORSE,
    NEEDED,
    NEW_WORSE,
    NO_GAIN,
)
from steelyard_workbench.kit.basics import action_button, bullets, small_text, stack
from steelyard_workbench.kit.components import figures
from steelyard_workbench.kit.theme import BLUE, GREY, ORANGE
from steelyard_workbench.kit.views import heading, table
from steelyard_workbench.kit.words import cut
from steelyard_workbench.parts.families.verdicts import is_fall_good, verdict_of

#: Decisions, and outcomes, that the number line of each shows; the worst come first.
_SHOWN_SLICES = 15
_AGAINST = {"parent": "the model it was trained from", "base": "the base model"}
_GROUPS = {"new": "new rows", "earlier": "earlier rows"}
_ON_ALL = (
    "This version corrects rows, so all rows were judged by their present labels: they must not "
    "become worse, and no gain was asked for."
)
#: Reasons that say that a group became worse.
_WORSE = {
    "new": frozenset({NEW_WORSE, NO_GAIN}),
    "earlier": frozenset({EARLIER_WORSE, EARLIER_INCONCLUSIVE}),
}
_ROW = 34
_MOST_LABEL = 40


@dataclass(frozen=True, slots=True)
class HeldOutRequest:
    """Held-out decisions to be shown; all where a field is empty.

    Those since the family last trained (``new``), or before; of one decision, and of one right
    outcome of it; by how the two models differ on them (``flip``).
    """

    group: str = ""
    decision: str = ""
    outcome: str = ""
    flip: str = ""


def show_gate(
    gate: Gate,
    open_rows: Callable[[HeldOutRequest], None],
    *,
    needed: int = NEEDED,
    place: Viewable | None = None,
) -> Viewable:
    """Show a gate."""
    # New rows first: they decide whether it joins.
    groups = {name: gate.groups[name] for name in sorted(gate.groups, key="new".__ne__)}
    gate = structs.replace(gate, groups=groups)
    gate_verdict = verdict_of(gate, needed=needed)
    settled = f"Checked against {_AGAINST[gate.against]}. {gate_verdict.settles}".strip()
    parts: list[Viewable] = [small_text(settled)]
    if gate.judged_on == "all":
        parts.append(small_text(_ON_ALL))
    if gate.sentences:
        parts.append(bullets(gate.sentences))
    notes = (unchanged_of(gate), labels_of(gate), words_of(gate))
    parts += [small_text(note) for note in notes if note]
    lines, requests = _lines_of_groups(gate)
    if lines:
        parts.append(
            _draw("What changed on rows that neither has seen", lines, requests, gate, open_rows)
        )
    rows = list(group_rows(gate))
    if rows:
        parts.append(
            table(("rows", *GATE_COLUMNS), rows, label="Before and after", numbers=(1, 2, 3, 6, 7))
        )
        parts.append(_explain(gate))
    parts += _flips(gate, open_rows)
    parts += [] if place is None else [place]
    for title, slices in (("By decision", gate.by_decision), ("By answer", gate.by_outcome)):
        parts += _slices(title, slices, gate, open_rows)
    if gate.unlisted:
        parts.append(small_text(f"{gate.unlisted:,} more slices were looked at."))
    return stack(*parts)


def _lines_of_groups(gate: Gate) -> tuple[list[Line], list[HeldOutRequest]]:
    lines, requests = [], []
    for name, group in gate.groups.items():
        is_worse = not _WORSE.get(name, frozenset()).isdisjoint(gate.reasons)
        line = _line(_GROUPS.get(name, name), group, _limit(name, group), is_worse=is_worse)
        if line is not None:
            lines.append(line)
            requests.append(HeldOutRequest(group=name))
    if gate.baseline is not UNSET:
        is_worse = BELOW_BASELINE in gate.reasons
        line = _line("against a text baseline", gate.baseline, is_worse=is_worse)
        if line is not None:
            lines.append(line)
            requests.append(HeldOutRequest())
    return lines, requests


def _limit(name: str, group: GateGroup) -> float | None:
    """Return the gate's limit for a group: a margin below no change, or a least rise."""
    sign = 1.0 if is_fall_good(group) else -1.0
    if name == "earlier":
        return sign * EARLIER_ALLOWANCE
    return -sign * group.margin if isinstance(group.margin, float) else None


def _line(
    label: str, group: GateGroup | GateSlice, limit: float | None = None, *, is_worse: bool = False
) -> Line | None:
    change = paired_change(group)
    if change is None:
        return None
    return Line(label, change.change, change.low, change.high, group.decisions, limit, is_worse)


def _draw(
    title: str,
    lines: list[Line],
    requests: list[HeldOutRequest],
    gate: Gate,
    open_rows: Callable[[HeldOutRequest], None],
) -> Viewable:
    measure = measure_of(gate)
    return figures.show(
        number_line(
            title,
            lines,
            measure=measure.replace("_", " "),
            fall_is_good=measure == "loss",
            open_=lambda place: open_rows(requests[place]),
        )
    )


def _explain(gate: Gate) -> Viewable:
    sentences = ["Click a mark to see the rows behind it."]
    new = gate.groups.get("new")
    if new is not None and isinstance(new.margin, float):
        clears = (
            f"clear 0 by {new.margin:.4f} (dotted), to allow for one mistake more than was seen and "
            "for few texts."
            if new.margin
            else "lie on the side of a gain (dotted at 0)."
        )
        sentences.insert(0, f"On new rows the interval must {clears}")
    if "earlier" in gate.groups:
        margin = gate.groups["earlier"].margin
        allowed = f", with a margin of {margin:.4f} for chance" if isinstance(margin, float) else ""
        sentences.insert(
            0, f"Earlier rows may become worse by {EARLIER_ALLOWANCE} at most (dotted){allowed}."
        )
    return small_text(" ".join(sentences))


def _flips(gate: Gate, open_rows: Callable[[HeldOutRequest], None]) -> list[Viewable]:
    """Return buttons that open the decisions that were fixed, broken and all of a group."""
    rows = []
    for name, group in gate.groups.items():
        words = _GROUPS.get(name, name)
        buttons = []
        for flip, count, label in (
            ("broken", group.flips.broken, f"{group.flips.broken:,} broken of {group.decisions:,}"),
            ("fixed", group.flips.fixed, f"{group.flips.fixed:,} fixed of {group.decisions:,}"),
            ("", group.decisions, "All"),
        ):
            request = HeldOutRequest(group=name, flip=flip)
            buttons.append(
                action_button(
                    f"{label} {words}",
                    lambda _, request=request: open_rows(request),
                    size="small",
                    disabled=count == 0,
                )
            )
        rows.append(pmui.Row(*buttons))
    return rows


def _slices(
    title: str, slices: list[GateSlice], gate: Gate, open_rows: Callable[[HeldOutRequest], None]
) -> list[Viewable]:
    worst = sorted(slices, key=_badness, reverse=True)[:_SHOWN_SLICES]
    lines, requests, compared = [], [], []
    for gate_slice in worst:
        outcome = gate_slice.outcome if isinstance(gate_slice.outcome, str) else ""
        label = f"{gate_slice.decision_id}: {outcome}" if outcome else gate_slice.decision_id
        line = _line(label, gate_slice, is_worse=gate_slice.worse)
        if line is not None:
            lines.append(line)
            requests.append(HeldOutRequest(decision=gate_slice.decision_id, outcome=outcome))
            compared.append(gate_slice)
    if not lines:
        return []
    n_worse = sum(gate_slice.worse for gate_slice in slices)
    count = "none shown to be worse" if not n_worse else f"{n_worse} shown to be worse"
    few = "" if len(worst) == len(slices) else f", the worst {len(worst)} shown"
    parts = [
        heading(title, level=3),
        small_text(
            f"{len(slices):,} compared, {count}{few}; chances are corrected (Holm) for how many "
            "are looked at."
        ),
        _draw(title, lines, requests, gate, open_rows),
    ]
    rows = [
        (
            line.label + (" (worse)" if line.is_worse else ""),
            f"{line.n:,}",
            f"{line.change:+.4f} ({line.low:+.4f} to {line.high:+.4f})",
            _chance(gate_slice.p_value),
            f"{gate_slice.flips.fixed:,}",
            f"{gate_slice.flips.broken:,}",
        )
        for line, gate_slice in zip(lines, compared, strict=True)
    ]
    columns = ("of", "n", "change, 95 % interval", "p, worse", "fixed", "broken")
    parts.append(table(columns, rows, label=title, numbers=(1, 3, 4, 5)))
    return parts


def _chance(p_value: float | None) -> str:
    if p_value is None:
        return "—"
    return "< 0.001" if p_value < 0.001 else f"{p_value:.3f}"


def _badness(gate_slice: GateSlice) -> tuple[bool, float]:
    change = paired_change(gate_slice)
    if change is None:
        return (gate_slice.worse, float("-inf"))
    return (gate_slice.worse, change.change if is_fall_good(gate_slice) else -change.change)


@dataclass(frozen=True, slots=True)
class Line:
    """One change, after minus before, with its 95 % interval."""

    label: str
    change: float
    low: float
    high: float
    n: int
    limit: float | None = None
    is_worse: bool = False


def number_line(
    title: str,
    lines: Sequence[Line],
    *,
    measure: str,
    fall_is_good: bool,
    open_: Callable[[int], None],
) -> Any:
    """Draw changes, the first at the top; clicking one opens the rows behind it."""
    places = [float(len(lines) - i) for i in range(len(lines))]
    ends = [end for line in lines for end in (line.low, line.high, line.limit or 0.0)]
    side = "left" if fall_is_good else "right"
    chart = figures.plot(
        title,
        f"change of {measure} with its 95 % interval; {side} of 0 is better",
        "",
        height=90 + _ROW * max(1, len(lines)),
        x_range=figures.room_for([0.0, *ends]),
        y_range=(0.4, len(lines) + 0.6),
    )
    source = ColumnDataSource(
        {
            "y": places,
            "x": [line.change for line in lines],
            "low": [line.low for line in lines],
            "high": [line.high for line in lines],
            "n": [line.n for line in lines],
            "name": [line.label for line in lines],
            "color": [ORANGE if line.is_worse else BLUE for line in lines],
            "marker": ["inverted_triangle" if line.is_worse else "circle" for line in lines],
        }
    )
    figures.intervals(chart, source, base="y", low="low", high="high", dimension="width")
    marks = chart.scatter(
        x="x", y="y", size=11, marker="marker", color="color", line_color=GREY, source=source
    )
    limits = [(line.limit, y) for line, y in zip(lines, places, strict=True) if line.limit]
    if limits:
        look = {"line_color": GREY, "line_width": 2.5, "line_dash": "dotted"}
        x, low = [x for x, _ in limits], [y - 0.35 for _, y in limits]
        chart.segment(x0=x, x1=x, y0=low, y1=[y + 0.35 for _, y in limits], **look)
    chart.add_layout(Span(location=0, dimension="height", line_color=GREY, line_width=1.5))
    chart.yaxis.ticker = places
    chart.yaxis.major_label_overrides = {
        place: _tick(line) for place, line in zip(places, lines, strict=True)
    }
    chart.ygrid.visible = False
    tooltips = [
        ("", "@name"),
        ("change", "@x{+0.0000} (@low{+0.0000} to @high{+0.0000})"),
        ("decisions", "@n{0,0}"),
    ]
    figures.explain(chart, tooltips, marks=marks, source=source, open_=open_)
    return chart


def _tick(line: Line) -> str:
    worse = ", worse" if line.is_worse else ""
    return f"{cut(line.label, _MOST_LABEL)} (n = {line.n:,}{worse})"
