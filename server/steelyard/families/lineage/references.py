"""Names of families and models, resolved for a call, a command or a guard."""

from __future__ import annotations

import re

from msgspec import UNSET, UnsetType, structs

from steelyard import errors
from steelyard.families.lineage.lineage import FamilyModel, Lineage, TunedFamily, latest_of
from steelyard.families.wire import FAMILY_NAME
from steelyard.wire.names import FOREIGN_PREFIX
from steelyard.wire.violations import BODY, Path

#: What a caller saw of a model: its adapter, none, or nothing said.
Guard = str | UnsetType | None

#: Where most references stand: in the address.
_MODEL: Path = ("path", "model")
#: Where the name of a new family stands.
_NEW: Path = (*BODY, "family")
#: Names of routes below ``/v1/families``, where a family's own name stands.
_TAKEN = frozenset({"estimate"})
_NAME = re.compile(FAMILY_NAME)
_REFERENCE = re.compile(r"([a-z][a-z0-9-]{0,47})(?:@([1-9][0-9]{0,8}))?")


def check_name(name: str, base_models: frozenset[str]) -> None:
    """Refuse a name that no family may have."""
    refusal = None
    if name in base_models:
        refusal = f"{name!r} is a base model; give the family another name."
    elif name in _TAKEN:
        refusal = f"{name!r} is an address of the API; give the family another name."
    elif name.startswith(FOREIGN_PREFIX):
        refusal = (
            f"{name[:60]!r} begins with {FOREIGN_PREFIX!r}, which names the default base model; "
            "give the family another name."
        )
    elif _NAME.fullmatch(name) is None:
        refusal = (
            f"{name[:60]!r} cannot name a family; begin with a letter from a to z, and use letters from "
            "a to z, digits and hyphens, 48 at most."
        )
    if refusal is not None:
        raise errors.InvalidNameError(refusal, path=_NEW)


def parse_reference(text: str, path: Path = _MODEL) -> tuple[str, int | None]:
    """Return the family that a text names, and the number if it names a model."""
    match = _REFERENCE.fullmatch(text)
    if match is None:
        raise errors.InvalidReferenceError(
            f"{text[:60]!r} names no family or model; give a name such as 'router' or 'router@3'.",
            path=path,
        )
    name, number = match.groups()
    return name, None if number is None else int(number)


def find_family(lineage: Lineage, name: str) -> TunedFamily:
    """Return a family by name."""
    family = lineage.families.get(name)
    if family is None:
        raise errors.NotFoundError(f"There is no family named {name[:60]!r}; see GET /v1/families.")
    if family.deleted_at is not None:
        raise errors.FamilyDeletedError(f"The family {name!r} was deleted; use another one.")
    return family


def find_model(lineage: Lineage, reference: str, path: Path = _MODEL) -> FamilyModel:
    """Return a model by number, also one that is deleted or discarded."""
    name, version = parse_reference(reference, path)
    if version is None:
        raise errors.InvalidReferenceError(
            f"{reference!r} is no model's number; give one such as '{name[:40]}@3'.", path=path
        )
    family = lineage.families.get(name)
    if family is None or version > len(family.models):
        raise errors.NotFoundError(f"There is no model {reference!r}; see GET /v1/models.")
    return lineage.models[family.models[version - 1]]


def find_ready_model(lineage: Lineage, reference: str, path: Path = _MODEL) -> FamilyModel:
    """Return a model by number."""
    model = find_model(lineage, reference, path)
    require_ready(model)
    return model


def require_ready(model: FamilyModel) -> None:
    """Refuse a model that is gone for good."""
    if model.status == "deleted":
        raise errors.ModelDeletedError(f"The model {model.ref} was deleted; use another one.")
    if model.status == "discarded":
        raise errors.ModelDiscardedError(
            f"A rollback of {model.family} discarded the model {model.ref}; use another one."
        )


def resolve_call(lineage: Lineage, name: str) -> FamilyModel:
    """Return the model that answers a call to a family's name or a model's number."""
    _, version = parse_reference(name)
    if version is not None:
        model = find_ready_model(lineage, name)
        if not model.switch.is_on:
            raise errors.ModelOffError(
                f"The model {name} is switched off; switch it on to call it."
            )
        return model
    family = find_family(lineage, name)
    if not family.switch.is_on:
        raise errors.FamilyOffError(f"The family {name} is switched off; switch it on to call it.")
    if family.served is None:
        raise errors.FamilyEmptyError(
            f"The family {name} serves no model yet; see its jobs and the move that it waits for."
        )
    return lineage.models[family.served]


def record_use(lineage: Lineage, name: str, at: float) -> Lineage:
    """Move the idle clock of the switch that a call or an evaluation named; others stay."""
    _, version = parse_reference(name)
    if version is None:
        family = find_family(lineage, name)
        used = structs.replace(family, switch=family.switch.used(at))
        return structs.replace(lineage, families={**lineage.families, name: used})
    model = find_model(lineage, name)
    called = structs.replace(model, switch=model.switch.used(at))
    return structs.replace(lineage, models={**lineage.models, model.adapter: called})


def check_served(family: TunedFamily, served: Guard) -> None:
    """Refuse to go on when a family serves another model than the caller saw."""
    if served is not UNSET and served != family.served:
        raise errors.ServedChangedError(
            f"The family {family.name} serves {family.served or 'no model'} now, not "
            f"{served or 'none'}; read it again and decide again."
        )


def check_latest(lineage: Lineage, family: TunedFamily, latest: Guard) -> None:
    """Refuse to go on when a family's latest model is another than the caller saw."""
    model = latest_of(lineage, family)
    adapter = None if model is None else model.adapter
    if latest is not UNSET and latest != adapter:
        raise errors.FamilyChangedError(
            f"The latest model of {family.name} is {adapter or 'none'} now, not "
            f"{latest or 'none'}; read the family again and decide again."
        )


def check_adapter(model: FamilyModel, adapter: str | None) -> None:
    """Refuse to go on when a number is another model than the caller saw."""
    if adapter is not None and adapter != model.adapter:
        raise errors.ModelChangedError(
            f"{model.ref} is the model {model.adapter}, not {adapter[:60]}; read it again and "
            "decide again."
        )
