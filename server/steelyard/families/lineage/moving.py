"""Moves: a family that is on follows its latest model by itself, when nothing holds it.

A move frees the place of the model before, unless something else makes that one answer, so a move
of one for one needs no further place; the same holds of keep warm.
"""

from __future__ import annotations

from msgspec import structs

from steelyard.families.lineage.draft import LineageChange, LineageDraft
from steelyard.families.lineage.lineage import (
    Conditions,
    FamilyModel,
    Lineage,
    SelfMove,
    TunedFamily,
    answering,
    kept_warm,
    latest_of,
)
from steelyard.families.lineage.warmth import lacks_room
from steelyard.families.wire import Move, MoveReason, WaitingFor

_REASONS: dict[WaitingFor, MoveReason | None] = {
    "place": "live_limit",
    "warm_place": "warm_limit",
    "warm_capacity": "warm_capacity",
    "engines": None,
}


def waiting_move(lineage: Lineage, family: TunedFamily, conditions: Conditions) -> Move | None:
    """Return the move that a family waits to make; ``None`` when it makes none.

    One that nothing holds and that was not made yet waits for the engines, which make it.
    """
    target = _target(lineage, family)
    if target is None:
        return None
    waiting_for = _obstacle_to(lineage, family, target, conditions) or "engines"
    return Move(to=target.ref, waiting_for=waiting_for, reason=_REASONS[waiting_for])


def move_families(draft: LineageDraft) -> None:
    """Make every move that nothing holds, in a draft, and ask for the models others wait for.

    Families used last go first, so that a free place is theirs.
    """
    families = sorted(
        draft.lineage.families.values(),
        key=lambda family: (-(family.switch.used_at or 0.0), family.name),
    )
    for family in families:
        target = _target(draft.lineage, family)
        if target is None:
            continue
        waiting_for = _obstacle_to(draft.lineage, family, target, draft.conditions)
        if waiting_for is None:
            _move(draft, family, target)
        elif waiting_for == "engines":
            draft.load(target.adapter)


def move_ready(lineage: Lineage, conditions: Conditions) -> LineageChange:
    """Return the change of ``move_families``; call it whenever a model has loaded or joined."""
    draft = LineageDraft(lineage, conditions)
    move_families(draft)
    return draft.done()


def _target(lineage: Lineage, family: TunedFamily) -> FamilyModel | None:
    if not family.switch.is_on:
        return None
    latest = latest_of(lineage, family)
    return None if latest is None or latest.adapter == family.served else latest


def _obstacle_to(
    lineage: Lineage, family: TunedFamily, target: FamilyModel, conditions: Conditions
) -> WaitingFor | None:
    draft = LineageDraft(lineage, conditions)
    draft.put_family(structs.replace(family, served=target.adapter))
    before, after = answering(lineage), answering(draft.lineage)
    if len(after) > max(conditions.live_limit, len(before)):
        return "place"
    warm_before, warm_after = kept_warm(lineage), kept_warm(draft.lineage)
    if len(warm_after) > max(conditions.warm_limit, len(warm_before)):
        return "warm_place"
    if lacks_room(draft, warm_before):
        return "warm_capacity"
    return None if conditions.state_of(target.adapter) == "loaded" else "engines"


def _move(draft: LineageDraft, family: TunedFamily, target: FamilyModel) -> None:
    old = None if family.served is None else draft.lineage.models[family.served]
    draft.change_family(
        family.name,
        served=target.adapter,
        moved=SelfMove(at=draft.now, from_ref=None if old is None else old.ref),
        # Nobody could use it before it served a model: its clock starts with the first.
        switch=family.switch.used(draft.now) if old is None else family.switch,
    )
    follow = {} if old is None else {old.adapter: target.adapter}
    if family.keep_warm and not _can_stay_warm(draft, follow, target):
        draft.change_family(family.name, keep_warm=False, keep_warm_stopped_at=draft.now)
    draft.square_windows(follow)


def _can_stay_warm(draft: LineageDraft, follow: dict[str, str], target: FamilyModel) -> bool:
    warm, windows = kept_warm(draft.lineage), draft.lineage.windows
    has_window = target.adapter in windows or any(
        old in windows and old not in warm for old in follow
    )
    return has_window or draft.can_hold(draft.hour_price(target.adapter))
