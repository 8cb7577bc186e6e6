"""Why a gate did not pass a model, in words, with the figures that the gate has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import UNSET

if TYPE_CHECKING:
    from steelyard.evaluations.gate_wire import Gate, GateChange, GateGroup, GateSlice

#: A sentence and a table name this many decisions, and as many outcomes.
SHOWN_SLICES = 10
#: Reasons that a group's change tells: the group, and what is said before the change.
_CHANGES = {
    "new_rows_worse": ("new", "It is worse on new rows"),
    "no_gain_on_new_rows": ("new", "It is no better on new rows"),
    "inconclusive_on_new_rows": ("new", "Nothing is proven on new rows; add evaluation rows"),
    "earlier_rows_worse": ("earlier", "It is worse on earlier rows"),
    "inconclusive_on_earlier_rows": (
        "earlier",
        "It may be worse on the rows by their present labels; add evaluation rows",
    ),
}
#: Reasons that slices tell, and where they are.
_SLICES = {"decision_worse": "by_decision", "outcome_worse": "by_outcome"}


def measure_of(gate: Gate) -> str:
    """Return what a gate compares: ``loss`` with targets, ``scaled_reward`` with rewards."""
    is_reward = any(group.scaled_reward is not UNSET for group in gate.groups.values())
    return "scaled_reward" if is_reward else "loss"


def paired_change(group: GateGroup | GateSlice) -> GateChange | None:
    """Return what was compared on a group; ``None`` where there was too little."""
    for change in (group.loss, group.scaled_reward):
        if change is not UNSET:
            return change
    return None


def sentence_of(gate: Gate, reason: str) -> str:
    """Return a reason in words, with its figures where the gate has them."""
    what = measure_of(gate).replace("_", " ")
    said = f"{reason.replace('_', ' ').capitalize()}."
    if reason in _CHANGES:
        name, words = _CHANGES[reason]
        if gate.judged_on == "all":
            words = words.replace("earlier rows", "the rows by their present labels")
        said = f"{words}: {_told(gate.groups.get(name), what)}."
    elif reason in _SLICES:
        worse = [one for one in getattr(gate, _SLICES[reason]) if one.worse]
        told = "; ".join(f"{name_of(one)}: {_told(one, what)}" for one in worse[:SHOWN_SLICES])
        said = f"It is worse on {told or 'some of them'}."
    elif reason == "below_text_baseline" and gate.baseline is not UNSET:
        said = f"A plain text classifier does better: {_told(gate.baseline, what)}."
    elif reason == "calibration_worse" and gate.ece.before is not None:
        said = (
            "Its probabilities are less to be relied on: the calibration error goes from "
            f"{gate.ece.before:.4f} to {gate.ece.after:.4f}."
        )
    elif reason == "too_few_evaluation_decisions":
        is_all = gate.judged_on == "all"
        group = gate.groups.get("earlier" if is_all else "new")
        kind = "evaluation decisions in all" if is_all else "new evaluation decisions"
        n = 0 if group is None else group.decisions
        said = f"{n:,} {kind} are too few to judge by; add rows."
    return said


def name_of(one: GateSlice) -> str:
    """Return the decision of a slice, and its outcome where it has one."""
    return one.decision_id if one.outcome is UNSET else f"{one.decision_id}: {one.outcome}"


def _told(group: GateGroup | GateSlice | None, what: str) -> str:
    change = None if group is None else paired_change(group)
    if change is None:
        return "there is nothing to compare"
    return f"the {what} changes by {change.change:+.4f} [{change.low:+.4f}, {change.high:+.4f}]"
