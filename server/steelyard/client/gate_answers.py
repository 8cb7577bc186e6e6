"""A gate's verdict for people: its reasons in words, its changes on a number line, its frames."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from steelyard.client.display import table_html
from steelyard.client.drawings import Interval, draw_intervals
from steelyard.wire.gates import BeforeAfter, Gate, GateChange, GateGroup, GateSlice

if TYPE_CHECKING:
    import polars as pl

#: A table shows this many decisions, and as many outcomes; the frame has all that were told.
SHOWN_SLICES = 10
_AGAINST = {"parent": "the model it was trained from", "base": "the base model"}
_GROUPS = {"new": "new rows", "earlier": "earlier rows"}
_TEXTS = ("slice", "decision", "outcome", "measure")
_COUNTS = ("decisions", "contexts", "fixed", "broken")
_FIGURES = ("before", "after", "change", "low", "high")
_COLUMNS = (*_TEXTS[:3], *_COUNTS[:2], "measure", *_FIGURES, *_COUNTS[2:], "worse")


class GateAnswer(Gate, frozen=True, kw_only=True):
    """A gate's verdict; in a notebook its reasons, a number line of the changes, and flips."""

    @property
    def sentences(self) -> list[str]:
        """Why it did not pass, in words; empty when it passed."""
        return [_sentence(self, reason) for reason in self.reasons]

    def to_polars(self) -> pl.DataFrame:
        """Give a row for each group, decision and outcome that was compared.

        Returns
        -------
        polars.DataFrame
            ``slice`` (``new``, ``earlier``, ``decision``, ``outcome`` or ``baseline``), what it is
            of, ``measure`` with ``before``, ``after``, ``change``, ``low`` and ``high``, and flips.
        """
        import polars as pl  # noqa: PLC0415  a client without frames needs none

        rows = [_frame_row(name, group) for name, group in self.groups.items()]
        rows += [_frame_row("decision", one) for one in self.by_decision]
        rows += [_frame_row("outcome", one) for one in self.by_outcome]
        if self.baseline is not UNSET:
            rows.append(_frame_row("baseline", self.baseline))
        types: dict[str, Any] = {
            **dict.fromkeys(_TEXTS, pl.String),
            **dict.fromkeys(_COUNTS, pl.Int64),
            **dict.fromkeys(_FIGURES, pl.Float64),
            "worse": pl.Boolean,
        }
        return pl.DataFrame(rows, schema={name: types[name] for name in _COLUMNS})

    def _repr_html_(self) -> str:
        against = escape(_AGAINST[self.against])
        parts = [f"<p><b>{verdict_of(self)}</b>, against {against}.</p>"]
        if not self.passed:
            items = "".join(f"<li>{escape(text)}</li>" for text in self.sentences)
            parts.append(f"<ul>{items}</ul>")
        lines = list(intervals_of(self))
        if lines:
            measure = measure_of(self)
            unit = f"change of {measure.replace('_', ' ')} with its 95 % interval"
            parts.append(draw_intervals(lines, unit=unit, fall_is_good=measure == "loss"))
        parts.append(
            table_html("Against its predecessor", ("rows", *GATE_COLUMNS), [*group_rows(self)])
        )
        worse = slice_rows(self)
        if worse:
            parts.append(table_html("By decision and outcome", ("decision", *GATE_COLUMNS), worse))
        return f"<div>{''.join(parts)}</div>"


#: Columns of ``group_rows`` and ``slice_rows`` after the first.
GATE_COLUMNS = ("n", "before", "after", "change, 95 % interval", "share right", "fixed", "broken")


def verdict_of(gate: Gate) -> str:
    """Say whether a gate passed the model."""
    return "The gate passed it" if gate.passed else "The gate did not pass it"


def measure_of(gate: Gate) -> str:
    """Give what a gate compares: ``loss`` with targets, ``scaled_reward`` with rewards."""
    is_reward = any(group.scaled_reward is not UNSET for group in gate.groups.values())
    return "scaled_reward" if is_reward else "loss"


def intervals_of(gate: Gate) -> Iterator[Interval]:
    """Give the changes of a gate's groups, for drawing."""
    for name, group in gate.groups.items():
        change = _change(group)
        if change is not None:
            yield Interval(
                label=_GROUPS.get(name, name),
                change=change.change,
                low=change.low,
                high=change.high,
            )
    if gate.baseline is not UNSET and (change := _change(gate.baseline)) is not None:
        yield Interval(
            label="text baseline", change=change.change, low=change.low, high=change.high
        )


def group_rows(gate: Gate) -> Iterator[tuple[str, ...]]:
    """Give a table row for each group of a gate, and one for its calibration."""
    for name, group in gate.groups.items():
        yield (_GROUPS.get(name, name), *_cells(group))
    if gate.baseline is not UNSET:
        yield ("against a text baseline", *_cells(gate.baseline))
    before, after = gate.ece.before, gate.ece.after
    if before is not None and after is not None:
        change = f"{after - before:+.4f}"
        yield ("calibration error", "", f"{before:.4f}", f"{after:.4f}", change, "", "", "")


def slice_rows(gate: Gate) -> list[tuple[str, ...]]:
    """Give table rows of the decisions and outcomes that became worse, then of the largest."""
    shown = (*gate.by_decision[:SHOWN_SLICES], *gate.by_outcome[:SHOWN_SLICES])
    return [(f"{_name(one)} (worse)" if one.worse else _name(one), *_cells(one)) for one in shown]


def _cells(group: GateGroup | GateSlice) -> tuple[str, ...]:
    change = _change(group)
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


def _show_right(right: Any) -> str:
    if not isinstance(right, BeforeAfter) or right.before is None or right.after is None:
        return "-"
    return f"{right.before:.3f} → {right.after:.3f}"


def _change(group: GateGroup | GateSlice) -> GateChange | None:
    for change in (group.loss, group.scaled_reward):
        if change is not UNSET:
            return change
    return None


#: Reasons that a group's change tells: the group, and what is said before the change.
_CHANGES = {
    "new_rows_worse": ("new", "It is worse on new rows"),
    "no_gain_on_new_rows": ("new", "It is no better on new rows"),
    "inconclusive_on_new_rows": ("new", "Nothing is proven on new rows; add evaluation rows"),
    "earlier_rows_worse": ("earlier", "It is worse on earlier rows"),
}
#: Reasons that slices tell, and where they are.
_SLICES = {"decision_worse": "by_decision", "outcome_worse": "by_outcome"}


def _sentence(gate: Gate, reason: str) -> str:
    """Say a reason in words, with its figures where the gate has them."""
    what = measure_of(gate).replace("_", " ")
    said = f"{reason.replace('_', ' ').capitalize()}."
    if reason in _CHANGES:
        name, words = _CHANGES[reason]
        said = f"{words}: {_told(gate.groups.get(name), what)}."
    elif reason in _SLICES:
        worse = [one for one in getattr(gate, _SLICES[reason]) if one.worse]
        told = "; ".join(f"{_name(one)}: {_told(one, what)}" for one in worse[:SHOWN_SLICES])
        said = f"It is worse on {told or 'some of them'}."
    elif reason == "below_text_baseline" and gate.baseline is not UNSET:
        said = f"A plain text classifier does better: {_told(gate.baseline, what)}."
    elif reason == "calibration_worse" and gate.ece.before is not None:
        said = (
            "Its probabilities are less to be relied on: the calibration error goes from "
            f"{gate.ece.before:.4f} to {gate.ece.after:.4f}."
        )
    elif reason == "too_few_evaluation_decisions":
        n = gate.groups["new"].decisions if "new" in gate.groups else 0
        said = f"{n:,} new evaluation decisions are too few to judge by; add rows."
    return said


def _name(one: GateSlice) -> str:
    return one.decision_id if one.outcome is UNSET else f"{one.decision_id}: {one.outcome}"


def _told(group: GateGroup | GateSlice | None, what: str) -> str:
    change = None if group is None else _change(group)
    if change is None:
        return "there is nothing to compare"
    return f"the {what} changes by {change.change:+.4f} [{change.low:+.4f}, {change.high:+.4f}]"


def _frame_row(name: str, group: GateGroup | GateSlice) -> dict[str, Any]:
    change = _change(group)
    one = group if isinstance(group, GateSlice) else None
    row: dict[str, Any] = {
        "slice": name,
        "decision": None if one is None else one.decision_id,
        "outcome": None if one is None or one.outcome is UNSET else one.outcome,
        "decisions": group.decisions,
        "contexts": group.contexts,
        "measure": "loss" if group.loss is not UNSET else "scaled_reward",
        "fixed": group.flips.fixed,
        "broken": group.flips.broken,
        "worse": None if one is None else one.worse,
    }
    for figure in _FIGURES:
        row[figure] = None if change is None else getattr(change, figure)
    return row
