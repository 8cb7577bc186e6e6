"""Time in an account's lineage: hours end, idle switches go off, moves go through."""

from __future__ import annotations

from steelyard.families.lineage.draft import LineageChange, LineageDraft
from steelyard.families.lineage.lineage import Conditions, Lineage, idle_at, model_idle_at
from steelyard.families.lineage.moving import move_families
from steelyard.families.lineage.switching import switch_idle_off
from steelyard.families.lineage.warmth import renew_windows


def pass_time(lineage: Lineage, conditions: Conditions) -> LineageChange:
    """Apply the passing of time: renew or end hours of keep warm, idle switches off, move families."""
    draft = LineageDraft(lineage, conditions)
    renew_windows(draft)
    switch_idle_off(draft)
    draft.square_windows()
    move_families(draft)
    return draft.done()


def next_due(lineage: Lineage, conditions: Conditions) -> float | None:
    """Return the earliest time at which ``pass_time`` has an hour or an idle switch to see to."""
    times = [window.ends_at for window in lineage.windows.values()]
    times.extend(
        at for f in lineage.families.values() if (at := idle_at(f, conditions)) is not None
    )
    times.extend(
        at for m in lineage.models.values() if (at := model_idle_at(m, conditions)) is not None
    )
    return min(times, default=None)
