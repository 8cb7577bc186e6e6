"""Switches: whether calls to a family's name or to a model's number are answered.

A model that answers takes one place, through however many switches. A model is loaded and has
answered a probe before a switch goes on: until then the command raises ``NotLoadedError``, and is
given again once it has.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import UNSET, to_builtins

from steelyard import errors
from steelyard.families.lineage import references
from steelyard.families.lineage.draft import LineageChange, LineageDraft
from steelyard.families.lineage.lineage import (
    Conditions,
    FamilyModel,
    Holders,
    Lineage,
    answering,
    idle_at,
    latest_of,
    model_idle_at,
)
from steelyard.families.wire import Answering
from steelyard.wire.violations import BODY


class NotLoadedError(errors.EngineUnavailableError):
    """A command that is allowed once a model is loaded: load it, probe it and give it again."""

    def __init__(self, model: FamilyModel) -> None:
        super().__init__(f"The model {model.ref} is not loaded yet; try again in a moment.")
        self.adapter = model.adapter


def switch_family(
    lineage: Lineage,
    name: str,
    conditions: Conditions,
    *,
    on: bool,
    switch_off: Sequence[str] = (),
    served: references.Guard = UNSET,
) -> LineageChange:
    """Switch a family on or off; ``NotLoadedError`` when its latest model is to be loaded first."""
    draft = LineageDraft(lineage, conditions)
    family = references.find_family(lineage, name)
    references.check_served(family, served)
    if not on:
        _refuse_names(switch_off)
        draft.switch_family_off(name, "owner")
        return draft.done()
    _switch_off(draft, switch_off, besides=name)
    if family.switch.is_on:
        draft.change_family(name, switch=family.switch.turned_on(draft.now))
        return draft.done()
    before = answering(draft.lineage)
    latest = latest_of(lineage, family)
    adapter = None if latest is None else latest.adapter
    draft.change_family(
        name,
        switch=family.switch.turned_on(draft.now),
        served=adapter,
        moved=family.moved if adapter == family.served else None,
    )
    _check_place(draft, before)
    if latest is not None and conditions.state_of(latest.adapter) == "failed":
        raise errors.EngineUnavailableError(
            f"The model {latest.ref} cannot be loaded; roll {name} back to an older one, or try "
            "again later."
        )
    _check_loaded(latest, conditions)
    return draft.done()


def switch_model(
    lineage: Lineage,
    reference: str,
    conditions: Conditions,
    *,
    on: bool,
    switch_off: Sequence[str] = (),
    adapter: str | None = None,
) -> LineageChange:
    """Switch a model's own switch on or off; ``NotLoadedError`` when it is to be loaded first."""
    draft = LineageDraft(lineage, conditions)
    model = references.find_ready_model(lineage, reference)
    references.check_adapter(model, adapter)
    if not on:
        _refuse_names(switch_off)
        draft.switch_model_off(model.adapter, "owner")
        return draft.done()
    if conditions.state_of(model.adapter) == "failed":
        raise errors.ModelUnavailableError(
            f"The model {model.ref} can no longer be loaded; use another model of its family."
        )
    _switch_off(draft, switch_off, besides=reference)
    before = answering(draft.lineage)
    draft.change_model(model.adapter, switch=model.switch.turned_on(draft.now))
    if not model.switch.is_on:
        _check_place(draft, before)
        _check_loaded(model, conditions)
    return draft.done()


def switch_idle_off(draft: LineageDraft) -> None:
    """Switch off models that were idle for the idle period, in a draft."""
    for family in draft.lineage.families.values():
        due = idle_at(family, draft.conditions)
        if due is not None and due <= draft.now:
            draft.switch_family_off(family.name, "idle")
    for model in draft.lineage.models.values():
        due = model_idle_at(model, draft.conditions)
        if due is not None and due <= draft.now:
            draft.switch_model_off(model.adapter, "idle")


def list_holders(
    lineage: Lineage, holders: dict[str, Holders]
) -> list[tuple[FamilyModel, Holders]]:
    """Return models that answer or are kept warm, the least recently used first, then by number."""
    entries = [(lineage.models[adapter], holder) for adapter, holder in holders.items()]
    return sorted(
        entries,
        key=lambda entry: (
            entry[1].used_at if entry[1].used_at is not None else float("-inf"),
            entry[0].family,
            entry[0].version,
        ),
    )


def _switch_off(draft: LineageDraft, names: Sequence[str], *, besides: str) -> None:
    if besides in names:
        raise errors.InvalidReferenceError(
            f"{besides} cannot be in switch_off: it is what is switched on; take it out.",
            path=(*BODY, "switch_off", names.index(besides)),
        )
    for place, name in enumerate(names):
        _, version = references.parse_reference(name, (*BODY, "switch_off", place))
        if version is None:
            draft.switch_family_off(references.find_family(draft.lineage, name).name, "owner")
        else:
            draft.switch_model_off(references.find_model(draft.lineage, name).adapter, "owner")


def _refuse_names(switch_off: Sequence[str]) -> None:
    if switch_off:
        raise errors.InvalidReferenceError(
            "switch_off frees places for what is switched on; leave it out, or send on: true.",
            path=(*BODY, "switch_off"),
        )


def _check_place(draft: LineageDraft, before: dict[str, Holders]) -> None:
    after, limit = answering(draft.lineage), draft.conditions.live_limit
    if not after.keys() - before.keys() or len(after) <= limit:
        return
    listed = [
        Answering(
            model=model.ref, on=holder.is_own, serves=list(holder.families), used_at=holder.used_at
        )
        for model, holder in list_holders(draft.lineage, before)
    ]
    raise errors.LiveLimitError(
        f"{len(before)} models answer, and the account may have {limit}; name what to switch off "
        "in switch_off.",
        details=[{"answering": to_builtins(listed)}],
    )


def _check_loaded(model: FamilyModel | None, conditions: Conditions) -> None:
    if model is not None and conditions.state_of(model.adapter) != "loaded":
        raise NotLoadedError(model)
