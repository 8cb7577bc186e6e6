"""A gate on a card: its verdict, a number line, its reasons, and the rows behind each of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from html import escape

import panel as pn
import panel_material_ui as pmui
from msgspec import UNSET, structs
from panel.viewable import Viewable

from steelyard.client.display_gates import GATE_COLUMNS, group_rows
from steelyard.evaluations.gate_wire import Gate, GateGroup, GateSlice, measure_of
from steelyard.evaluations.measures.gate import (
    BELOW_BASELINE,
    EARLIER_ALLOWANCE,
    EARLIER_INCONCLUSIVE,
    EARLIER_WORSE,
    NEEDED,
    NEW_WORSE,
    NO_GAIN,
)
from steelyard_workbench.components import figures
from steelyard_workbench.components.facts import heading, table
from steelyard_workbench.families.number_line import Line, number_line
from steelyard_workbench.families.verdicts import change_of, is_fall_good, verdict_of
from steelyard_workbench.states import verdict

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
class RowsAsked:
    """Held-out decisions that somebody wants to see.

    Parameters
    ----------
    group : {"", "new", "earlier"}
        Those since the family last trained, those before, or all.
    decision, outcome : str
        Of one decision, and of one right outcome of it; all when empty.
    flip : {"", "fixed", "broken", "same right", "same wrong"}
        How the two models differ on them; all when empty.
    """

    group: str = ""
    decision: str = ""
    outcome: str = ""
    flip: str = ""


def show_gate(
    gate: Gate,
    open_rows: Callable[[RowsAsked], None],
    *,
    needed: int = NEEDED,
    place: Viewable | None = None,
) -> Viewable:
    """Show a gate."""
    # New rows first: they decide whether it joins.
    groups = {name: gate.groups[name] for name in sorted(gate.groups, key="new".__ne__)}
    gate = structs.replace(gate, groups=groups)
    found = verdict_of(gate, needed=needed)
    told = f"against {_AGAINST[gate.against]}. {found.settles}".strip()
    parts: list[Viewable] = [verdict(found.status, found.word.capitalize(), told)]
    if gate.judged_on == "all":
        parts.append(pmui.Typography(_ON_ALL, variant="body2"))
    if gate.sentences:
        reasons = zip(gate.sentences, gate.reasons, strict=True)
        parts.append(_list([f"{sentence} ({reason})" for sentence, reason in reasons]))
    shown, asked = _lines_of_groups(gate)
    if shown:
        parts.append(_draw("What changed on held-out rows", shown, asked, gate, open_rows))
    rows = list(group_rows(gate))
    if rows:
        parts.append(
            table(("rows", *GATE_COLUMNS), rows, label="Before and after", numbers=(1, 2, 3, 6, 7))
        )
        parts.append(_explain(gate))
    parts += _flips(gate, open_rows)
    parts += [] if place is None else [place]
    for title, slices in (("By decision", gate.by_decision), ("By outcome", gate.by_outcome)):
        parts += _slices(title, slices, gate, open_rows)
    if gate.unlisted:
        parts.append(
            pmui.Typography(f"{gate.unlisted:,} more slices were looked at.", variant="body2")
        )
    return pn.Column(*parts, sizing_mode="stretch_width")


def _list(sentences: list[str]) -> Viewable:
    items = "".join(f"<li>{escape(sentence)}</li>" for sentence in sentences)
    return pn.pane.HTML(f"<ul>{items}</ul>", sizing_mode="stretch_width")


def _lines_of_groups(gate: Gate) -> tuple[list[Line], list[RowsAsked]]:
    shown, asked = [], []
    for name, group in gate.groups.items():
        is_worse = not _WORSE.get(name, frozenset()).isdisjoint(gate.reasons)
        line = _line(_GROUPS.get(name, name), group, _limit(name, group), is_worse=is_worse)
        if line is not None:
            shown.append(line)
            asked.append(RowsAsked(group=name))
    if gate.baseline is not UNSET:
        is_worse = BELOW_BASELINE in gate.reasons
        line = _line("against a text baseline", gate.baseline, is_worse=is_worse)
        if line is not None:
            shown.append(line)
            asked.append(RowsAsked())
    return shown, asked


def _limit(name: str, group: GateGroup) -> float | None:
    """Return what the gate allows a group: a margin below no change, or so much of a rise."""
    sign = 1.0 if is_fall_good(group) else -1.0
    if name == "earlier":
        return sign * EARLIER_ALLOWANCE
    return -sign * group.margin if isinstance(group.margin, float) else None


def _line(
    label: str, group: GateGroup | GateSlice, limit: float | None = None, *, is_worse: bool = False
) -> Line | None:
    change = change_of(group)
    if change is None:
        return None
    return Line(
        label, change.change, change.low, change.high, group.decisions, limit, is_worse
    )  # fmt: skip


def _draw(
    title: str,
    lines: list[Line],
    asked: list[RowsAsked],
    gate: Gate,
    open_rows: Callable[[RowsAsked], None],
) -> Viewable:
    measure = measure_of(gate)
    return figures.show(
        number_line(
            title,
            lines,
            measure=measure.replace("_", " "),
            fall_is_good=measure == "loss",
            open_=lambda place: open_rows(asked[place]),
        )
    )


def _explain(gate: Gate) -> Viewable:
    said = ["Click a mark to see the rows behind it."]
    new = gate.groups.get("new")
    if new is not None and isinstance(new.margin, float):
        said.insert(
            0,
            f"On new rows the interval must clear 0 by {new.margin:.4f} (dotted), to allow for one "
            "mistake more than was seen and for few contexts.",
        )
    if "earlier" in gate.groups:
        margin = gate.groups["earlier"].margin
        allowed = f", with a margin of {margin:.4f} for chance" if isinstance(margin, float) else ""
        said.insert(
            0, f"Earlier rows may become worse by {EARLIER_ALLOWANCE} at most (dotted){allowed}."
        )
    return pmui.Typography(" ".join(said), variant="body2")


def _flips(gate: Gate, open_rows: Callable[[RowsAsked], None]) -> list[Viewable]:
    """Return buttons that open the decisions that were fixed, broken and all of a group."""
    rows = []
    for name, group in gate.groups.items():
        words = _GROUPS.get(name, name)
        buttons = []
        for flip, count in (("broken", group.flips.broken), ("fixed", group.flips.fixed)):
            button = pmui.Button(
                label=f"{count:,} {flip} of {group.decisions:,} {words}",
                variant="outlined",
                size="small",
                disabled=count == 0,
            )
            button.on_click(_opener(open_rows, RowsAsked(group=name, flip=flip)))
            buttons.append(button)
        every = pmui.Button(label=f"All {words}", variant="outlined", size="small")
        every.on_click(_opener(open_rows, RowsAsked(group=name)))
        rows.append(pmui.Row(*buttons, every))
    return rows


def _opener(open_rows: Callable[[RowsAsked], None], asked: RowsAsked) -> Callable[[object], None]:
    return lambda _: open_rows(asked)


def _slices(
    title: str,
    slices: list[GateSlice],
    gate: Gate,
    open_rows: Callable[[RowsAsked], None],
) -> list[Viewable]:
    worst = sorted(slices, key=_badness, reverse=True)[:_SHOWN_SLICES]
    shown, asked, compared = [], [], []
    for one in worst:
        outcome = one.outcome if isinstance(one.outcome, str) else ""
        label = f"{one.decision_id}: {outcome}" if outcome else one.decision_id
        line = _line(label, one, is_worse=one.worse)
        if line is not None:
            shown.append(line)
            asked.append(RowsAsked(decision=one.decision_id, outcome=outcome))
            compared.append(one)
    if not shown:
        return []
    n_worse = sum(one.worse for one in slices)
    count = "none shown to be worse" if not n_worse else f"{n_worse} shown to be worse"
    few = "" if len(worst) == len(slices) else f", the worst {len(worst)} shown"
    parts = [
        heading(title, level=3),
        pmui.Typography(
            f"{len(slices):,} compared, {count}{few}; chances are corrected (Holm) for how many "
            "are looked at.",
            variant="body2",
        ),
        _draw(title, shown, asked, gate, open_rows),
    ]
    rows = [
        (
            line.label + (" (worse)" if line.is_worse else ""),
            f"{line.n:,}",
            f"{line.change:+.4f} ({line.low:+.4f} to {line.high:+.4f})",
            _chance(one.p_value),
            f"{one.flips.fixed:,}",
            f"{one.flips.broken:,}",
        )
        for line, one in zip(shown, compared, strict=True)
    ]
    columns = ("of", "n", "change, 95 % interval", "p, worse", "fixed", "broken")
    parts.append(table(columns, rows, label=title, numbers=(1, 3, 4, 5)))
    return parts


def _chance(p_value: float | None) -> str:
    if p_value is None:
        return "—"
    return "< 0.001" if p_value < 0.001 else f"{p_value:.3f}"


def _badness(one: GateSlice) -> tuple[bool, float]:
    change = change_of(one)
    if change is None:
        return (one.worse, float("-inf"))
    return (one.worse, change.change if is_fall_good(one) else -change.change)
