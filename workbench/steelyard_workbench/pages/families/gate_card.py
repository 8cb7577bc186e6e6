"""A gate on a card: its verdict, a number line, its reasons, and the rows behind each of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from html import escape

import panel_material_ui as pmui
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
from steelyard_workbench.kit.basics import action_button, html_pane, small_text, stack
from steelyard_workbench.kit.components import figures
from steelyard_workbench.kit.components.facts import heading, table
from steelyard_workbench.pages.families.number_line import Line, number_line
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
        parts.append(_list(gate.sentences))
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


def _list(sentences: list[str]) -> Viewable:
    items = "".join(f"<li>{escape(sentence)}</li>" for sentence in sentences)
    return html_pane(f"<ul>{items}</ul>")


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
        for flip, count in (("broken", group.flips.broken), ("fixed", group.flips.fixed)):
            button = action_button(
                f"{count:,} {flip} of {group.decisions:,} {words}",
                _opener(open_rows, HeldOutRequest(group=name, flip=flip)),
                size="small",
                disabled=count == 0,
            )
            buttons.append(button)
        every = action_button(
            f"All {words}", _opener(open_rows, HeldOutRequest(group=name)), size="small"
        )
        rows.append(pmui.Row(*buttons, every))
    return rows


def _opener(
    open_rows: Callable[[HeldOutRequest], None], request: HeldOutRequest
) -> Callable[[object], None]:
    return lambda _: open_rows(request)


def _slices(
    title: str,
    slices: list[GateSlice],
    gate: Gate,
    open_rows: Callable[[HeldOutRequest], None],
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
