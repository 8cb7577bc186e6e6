"""The models that an account can ask, in the order in which a person looks for one."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Struct

from steelyard.families.wire import Family, FamilyList
from steelyard.models.wire import GONE, Model, ModelList
from steelyard.wire.schemas import doc

ChoiceKind = Literal["family", "base", "connected", "route", "number"]

_UNAVAILABLE = {
    "engine_unavailable": "its engine does not answer",
    "engine_unconfigured": "its base model is not on this server",
    "no_engine": "its files cannot be used",
}
_NOTES = {"connected": "on another server", "route": "asks several models"}
_READER = "reads yes or no"
_ORDER: dict[ChoiceKind, int] = {"family": 0, "base": 1, "connected": 2, "route": 3, "number": 4}


class ModelChoice(Struct, frozen=True, kw_only=True):
    """A name that a request may have as its model."""

    name: Annotated[str, doc("What a request names.")]
    kind: ChoiceKind
    note: Annotated[str, doc("In a few words, such as `version 1 answers`; may be empty.")] = ""
    reason: Annotated[str | None, doc("Why it cannot answer now; null where it can.")] = None
    dataset_id: Annotated[str | None, doc("The dataset that a family grows on.")] = None

    @property
    def label(self) -> str:
        """The name with its remarks."""
        return ", ".join(part for part in (self.name, self.reason or self.note) if part)


def list_choices(models: ModelList, families: FamilyList) -> list[ModelChoice]:
    """Return families, base models, connected models, routes, and numbers of families last.

    Each is there once, under its own name: names that clients of another vendor know are not among
    them, nor are models that are gone for good, nor a number that answers under its family's name alone.
    """
    choices = [_of_family(family, models) for family in families.data]
    answering = {
        family.served.ref
        for family, choice in zip(families.data, choices, strict=True)
        if family.served is not None and choice.reason is None
    }
    for model in models.data:
        choice = _of_model(model)
        is_under_family = choice.reason is not None and model.id in answering
        if model.status not in GONE and not is_under_family:
            choices.append(choice)
    return sorted(choices, key=lambda choice: _ORDER[choice.kind])


def _of_family(family: Family, models: ModelList) -> ModelChoice:
    served = family.served
    reason = None
    if not family.switched_on:
        reason = "switched off"
    elif served is None:
        reason = "serves no model yet"
    else:
        model = next((model for model in models.data if model.id == served.ref), None)
        reason = None if model is None else _why_unavailable(model)
    note = "" if served is None else f"version {served.version} answers"
    return ModelChoice(
        name=family.id, kind="family", note=note, reason=reason, dataset_id=family.dataset_id
    )


def _of_model(model: Model) -> ModelChoice:
    if model.lora is not None:
        reason = "switched off" if model.on_at in (UNSET, None) else _why_unavailable(model)
        return ModelChoice(name=model.id, kind="number", reason=reason)
    kind: ChoiceKind = "base"
    if model.engine == "route":
        kind = "route"
    elif model.engine.startswith("connected-"):
        kind = "connected"
    note = _READER if model.engine == "connected-entailment" else _NOTES.get(kind, "")
    return ModelChoice(name=model.id, kind=kind, note=note, reason=_why_unavailable(model))


def _why_unavailable(model: Model) -> str | None:
    if model.status == "ready":
        return None
    return _UNAVAILABLE.get(str(model.availability_reason), "it cannot answer now")
