"""Keep warm: models that stay loaded between calls, by the hour.

The hours are the models': one that is kept warm through its own switch and through its family is
billed once. ``Draft.square_windows`` holds and ends them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec import UNSET, to_builtins

from steelyard import errors
from steelyard.families.lineage import references
from steelyard.families.lineage.draft import LineageChange, LineageDraft
from steelyard.families.lineage.lineage import HOUR_S, Conditions, Holders, Lineage, kept_warm
from steelyard.families.lineage.switching import list_holders
from steelyard.families.wire import KeptWarm
from steelyard.ledger.max_price import check_price
from steelyard.wire.violations import BODY

_WHAT = "An hour of keep warm"


def keep_family_warm(
    lineage: Lineage,
    name: str,
    conditions: Conditions,
    *,
    enabled: bool,
    max_price_usd: str | None = None,
    switch_off: Sequence[str] = (),
    served: references.Guard = UNSET,
) -> LineageChange:
    """Keep the model that a family serves loaded, or stop; it follows the family when it moves."""
    draft = LineageDraft(lineage, conditions)
    family = references.find_family(lineage, name)
    references.check_served(family, served)
    if not enabled:
        _refuse_names(switch_off)
        draft.change_family(name, keep_warm=False)
        return draft.done()
    if not family.switch.is_on:
        raise errors.FamilyOffError(
            f"The family {name} is switched off; switch it on to keep it warm."
        )
    if family.served is None:
        raise errors.FamilyEmptyError(
            f"The family {name} serves no model yet, so nothing can stay warm."
        )
    _check_hour(draft, family.served, max_price_usd)
    _stop(draft, switch_off, besides=name)
    before = kept_warm(draft.lineage)
    draft.change_family(name, keep_warm=True, keep_warm_stopped_at=None)
    _check_room(draft, before)
    return draft.done()


def keep_model_warm(
    lineage: Lineage,
    reference: str,
    conditions: Conditions,
    *,
    enabled: bool,
    max_price_usd: str | None = None,
    switch_off: Sequence[str] = (),
    adapter: str | None = None,
) -> LineageChange:
    """Keep a model loaded through its own switch, or stop."""
    draft = LineageDraft(lineage, conditions)
    model = references.find_ready_model(lineage, reference)
    references.check_adapter(model, adapter)
    if not enabled:
        _refuse_names(switch_off)
        draft.change_model(model.adapter, keep_warm=False)
        return draft.done()
    if not model.switch.is_on:
        raise errors.ModelOffError(f"The model {model.ref} is switched off; switch it on first.")
    _check_hour(draft, model.adapter, max_price_usd)
    _stop(draft, switch_off, besides=reference)
    before = kept_warm(draft.lineage)
    draft.change_model(model.adapter, keep_warm=True, keep_warm_stopped_at=None)
    _check_room(draft, before)
    return draft.done()


def renew_windows(draft: LineageDraft) -> None:
    """Charge every hour that is over and hold the next, in a draft.

    Where the next cannot be held, everything that keeps the model warm stops. Hours that passed
    while no server ran are not billed: nothing was kept warm.
    """
    for adapter, window in sorted(draft.lineage.windows.items()):
        if window.ends_at > draft.now:
            continue
        draft.close_window(adapter)
        if draft.can_hold(draft.hour_price(adapter)):
            is_next = draft.now < window.ends_at + HOUR_S
            draft.open_window(adapter, window.ends_at if is_next else draft.now)
        else:
            stop_for_credit(draft, adapter)


def stop_for_credit(draft: LineageDraft, adapter: str) -> None:
    """Stop everything that keeps a model warm because its hour cannot be held, in a draft."""
    holders = kept_warm(draft.lineage)[adapter]
    if holders.is_own:
        draft.change_model(adapter, keep_warm=False, keep_warm_stopped_at=draft.now)
    for name in holders.families:
        draft.change_family(name, keep_warm=False, keep_warm_stopped_at=draft.now)


def lacks_room(draft: LineageDraft, before: dict[str, Holders]) -> bool:
    """Whether engines lack the room for a draft's additional warm models."""
    models, room = draft.lineage.models, draft.conditions.warm_room
    had = Counter(models[adapter].base for adapter in before)
    has = Counter(models[adapter].base for adapter in kept_warm(draft.lineage))
    return any(n - had[base] > room.get(base, n) for base, n in has.items())


def _check_hour(draft: LineageDraft, adapter: str, max_price_usd: str | None) -> None:
    if adapter not in draft.lineage.windows:
        check_price(draft.hour_price(adapter), max_price_usd, _WHAT)


def _stop(draft: LineageDraft, names: Sequence[str], *, besides: str) -> None:
    if besides in names:
        raise errors.InvalidReferenceError(
            f"{besides} cannot be in switch_off: it is what is kept warm; take it out.",
            path=(*BODY, "switch_off", names.index(besides)),
        )
    for place, name in enumerate(names):
        _, version = references.parse_reference(name, (*BODY, "switch_off", place))
        if version is None:
            draft.change_family(references.find_family(draft.lineage, name).name, keep_warm=False)
        else:
            draft.change_model(references.find_model(draft.lineage, name).adapter, keep_warm=False)


def _refuse_names(switch_off: Sequence[str]) -> None:
    if switch_off:
        raise errors.InvalidReferenceError(
            "switch_off frees places for what is kept warm; leave it out, or send enabled: true.",
            path=(*BODY, "switch_off"),
        )


def _check_room(draft: LineageDraft, before: dict[str, Holders]) -> None:
    after, limit = kept_warm(draft.lineage), draft.conditions.warm_limit
    if not after.keys() - before.keys():
        return
    if len(after) > limit:
        listed = [
            KeptWarm(
                model=model.ref,
                keep_warm=holder.is_own,
                families=list(holder.families),
                used_at=holder.used_at,
            )
            for model, holder in list_holders(draft.lineage, before)
        ]
        raise errors.WarmLimitError(
            f"{len(before)} models are kept warm, and the account may have {limit}; name whose "
            "keep warm to stop in switch_off.",
            details=[{"warm": to_builtins(listed)}],
        )
    if lacks_room(draft, before):
        raise errors.WarmCapacityError(
            "The engines have no room to keep another model of this size loaded; try again later."
        )
