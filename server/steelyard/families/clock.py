"""What time does to an account's lines: hours end, switches idle off, moves go through."""

from __future__ import annotations

from steelyard.families.draft import Change, Draft
from steelyard.families.lineage import Conditions, Lines, idle_at, model_idle_at
from steelyard.families.moving import move_families
from steelyard.families.switching import switch_idle_off
from steelyard.families.warmth import renew_windows


def pass_time(lines: Lines, conditions: Conditions) -> Change:
    """Do what is due by now: renew or end hours of keep warm, idle switches off, move families."""
    draft = Draft(lines, conditions)
    renew_windows(draft)
    switch_idle_off(draft)
    draft.square_windows()
    move_families(draft)
    return draft.done()


def next_due(lines: Lines, conditions: Conditions) -> float | None:
    """Return the earliest time at which ``pass_time`` has an hour or an idle switch to see to."""
    times = [window.ends_at for window in lines.windows.values()]
    times.extend(at for f in lines.families.values() if (at := idle_at(f, conditions)) is not None)
    times.extend(
        at for m in lines.models.values() if (at := model_idle_at(m, conditions)) is not None
    )
    return min(times, default=None)
