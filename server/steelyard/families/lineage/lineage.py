"""An account's lineage: its stored families, models and fine-tunes, and queries on them.

Times are Unix seconds and money is nano-USD. A model is known by its adapter id, a family by its
name, a fine-tune by its id. No function changes the state in place: dictionaries are copied.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType

from steelyard.evaluations.gate_wire import Gate
from steelyard.families import fine_tune_wire
from steelyard.families.wire import Charge, FamilyBound, JobOutcome, JobStatus, LoadState, OffReason
from steelyard.model_use import ModelUse
from steelyard.settings import Settings
from steelyard.wire.jobs import UNFINISHED
from steelyard.wire.methods import Method

ModelStatus = Literal["ready", "deleted", "discarded"]

#: How long an hour of keep warm is.
HOUR_S = 3600.0
DAY_S = 86_400.0


class Switch(Struct, frozen=True, kw_only=True):
    """Whether calls to a name are answered, since when, and who stopped it."""

    on_at: float | None = None
    used_at: float | None = None
    off_at: float | None = None
    off_reason: OffReason | None = None

    @property
    def is_on(self) -> bool:
        """Whether it is on."""
        return self.on_at is not None

    def turned_on(self, now: float) -> Switch:
        """Return it switched on at a time; one that is on stays so and has been used."""
        return Switch(on_at=now if self.on_at is None else self.on_at, used_at=self._later(now))

    def turned_off(self, now: float, reason: OffReason) -> Switch:
        """Return it switched off at a time; one that is off stays as it is."""
        if not self.is_on:
            return self
        return Switch(used_at=self.used_at, off_at=now, off_reason=reason)

    def used(self, at: float) -> Switch:
        """Return it used at a time; the clock never goes back."""
        return Switch(
            on_at=self.on_at,
            used_at=self._later(at),
            off_at=self.off_at,
            off_reason=self.off_reason,
        )

    def _later(self, at: float) -> float:
        return at if self.used_at is None else max(at, self.used_at)


class WarmHour(Struct, frozen=True, kw_only=True):
    """An hour for which a model is kept warm, and the money held for it."""

    id: str
    started_at: float
    ends_at: float
    reserved_nano: int


class FamilyModel(Struct, frozen=True, kw_only=True):
    """A model of a family's line."""

    adapter: str
    family: str
    version: int
    job_id: str
    base: str
    parent: str | None
    created_at: float
    gate: Gate
    heldout: dict[str, float] = {}
    status: ModelStatus = "ready"
    deleted_at: float | None = None
    discarded_at: float | None = None
    switch: Switch = Switch()
    keep_warm: bool = False
    keep_warm_stopped_at: float | None = None

    @property
    def ref(self) -> str:
        """Its number as callers name it, such as ``router@3``."""
        return f"{self.family}@{self.version}"


class SelfMove(Struct, frozen=True, kw_only=True):
    """When a family moved by itself, and the number that it served before, if any."""

    at: float
    from_ref: str | None


class AnswerBound(Struct, frozen=True, kw_only=True):
    """From which top probability on a family's answers are certified, by one of its models.

    ``wordings`` are the fingerprints of the decisions that it was found on.
    """

    shown: FamilyBound
    adapter: str
    wordings: frozenset[str]


class TunedFamily(Struct, frozen=True, kw_only=True):
    """A family."""

    name: str
    dataset_id: str
    method: Method
    origin: str
    origin_adapter: str | None
    base: str
    created_at: float
    switch: Switch
    served: str | None = None
    keep_warm: bool = False
    keep_warm_stopped_at: float | None = None
    moved: SelfMove | None = None
    models: tuple[str, ...] = ()
    jobs: tuple[str, ...] = ()
    deleted_at: float | None = None
    bound: AnswerBound | None = None
    #: How often answers may abstain on texts like the held-out ones; None where novelty is no matter.
    false_alarms: float | None = None


class FineTune(Struct, frozen=True, kw_only=True):
    """The facts of a fine-tune, but for its progress and its curve."""

    id: str
    family: str
    dataset_id: str
    dataset_version: int
    method: Method
    base: str
    parent: str | None
    hyperparameters: fine_tune_wire.ResolvedHyperparameters
    split: fine_tune_wire.JobSplit
    lineage: fine_tune_wire.JobLineage | None
    max_questions: int
    price_nano: int
    charge: Charge
    created_at: float
    updated_at: float
    status: JobStatus = "queued"
    outcome: JobOutcome | None = None
    reason: str | None = None
    error: fine_tune_wire.JobError | None = None
    gate: Gate | None = None
    output_model: str | None = None
    n_events: int = 0
    family_deleted: bool = False
    rows_deleted: bool = False
    #: How the fine-tune is trained that follows one whose model answers first.
    rest: fine_tune_wire.ResolvedHyperparameters | UnsetType = UNSET
    #: The fine-tune before this one, under whose id the fee of both is held.
    follows: str | UnsetType = UNSET

    @property
    def is_active(self) -> bool:
        """Whether it has not ended."""
        return self.status in UNFINISHED

    @property
    def is_first(self) -> bool:
        """Whether its model answers while the one that was asked for is trained."""
        return self.rest is not UNSET


class Lineage(Struct, frozen=True, kw_only=True):
    """Everything of one account."""

    families: dict[str, TunedFamily] = {}
    models: dict[str, FamilyModel] = {}
    jobs: dict[str, FineTune] = {}
    windows: dict[str, WarmHour] = {}
    n_windows: int = 0


def _nothing() -> Mapping[str, Any]:
    return MappingProxyType({})


@dataclass(frozen=True, kw_only=True)
class LineageRules:
    """The rules of every account's lineage on this server."""

    base_models: frozenset[str] = frozenset()
    live_limit: int = 4
    warm_limit: int = 1
    idle_s: float = 7 * DAY_S
    hour_nano: Mapping[str, int] = field(default_factory=_nothing)
    account_queue: int = 4
    queue: int = 20
    accounts_enabled: bool = False

    @classmethod
    def of(cls, settings: Settings, base_models: Collection[str]) -> LineageRules:
        """Return the rules that settings make for base models, each of which can be fine-tuned."""
        return cls(
            base_models=frozenset(base_models),
            live_limit=settings.live_limit,
            warm_limit=settings.warm_models,
            idle_s=settings.idle_days * DAY_S,
            hour_nano=dict.fromkeys(base_models, settings.keep_warm_price),
            account_queue=settings.fine_tune_queue_per_account,
            queue=settings.fine_tune_queue,
            accounts_enabled=settings.accounts == "on",
        )


@dataclass(frozen=True, kw_only=True)
class Conditions(LineageRules):
    """The conditions of a command, besides the account's lineage."""

    now: float
    states: Mapping[str, LoadState] = field(default_factory=_nothing)
    warm_room: Mapping[str, int] = field(default_factory=_nothing)
    available_nano: int | None = None
    work: Sequence[ModelUse] = ()
    queue_room: int = 20

    def state_of(self, adapter: str) -> LoadState:
        """Return a model's load state over all engines."""
        return self.states.get(adapter, "unloaded")


@dataclass(frozen=True, slots=True)
class Holders:
    """The switches and families that make a model answer, or keep it warm."""

    is_own: bool
    families: tuple[str, ...]
    used_at: float | None


def adapter_of(job_id: str) -> str:
    """Return the adapter id of the model that a fine-tune makes."""
    return f"ft-{job_id}"


def models_of(lineage: Lineage, family: TunedFamily) -> tuple[FamilyModel, ...]:
    """Return every model that ever joined a family, oldest first."""
    return tuple(lineage.models[adapter] for adapter in family.models)


def latest_of(lineage: Lineage, family: TunedFamily) -> FamilyModel | None:
    """Return a family's newest model that is neither deleted nor discarded."""
    ready = (model for model in reversed(models_of(lineage, family)) if model.status == "ready")
    return next(ready, None)


def active_job(lineage: Lineage, family: TunedFamily) -> FineTune | None:
    """Return a family's fine-tune that has not ended; there is at most one."""
    return next((lineage.jobs[job] for job in family.jobs if lineage.jobs[job].is_active), None)


def parent_of(lineage: Lineage, family: TunedFamily) -> str | None:
    """Return the adapter that a family's next fine-tune is trained from; ``None`` from a base."""
    model = latest_of(lineage, family)
    return family.origin_adapter if model is None else model.adapter


def base_under(lineage: Lineage, family: TunedFamily, adapter: str | None) -> str:
    """Return the base model under a model; without one, that which a family starts from."""
    return family.base if adapter is None else lineage.models[adapter].base


def is_only_compared(lineage: Lineage, family: TunedFamily, adapter: str | None) -> bool:
    """Whether a family's next model takes nothing of its parent, which is there to answer first."""
    return adapter in family.models and lineage.jobs[lineage.models[adapter].job_id].is_first


def next_base(lineage: Lineage, family: TunedFamily, requested: str | None = None) -> str:
    """Return the base model of a family's next fine-tune: its latest model's unless one is asked for."""
    return requested or base_under(lineage, family, parent_of(lineage, family))


def learned_from(lineage: Lineage, adapter: str | None) -> tuple[tuple[str, int], ...]:
    """Return the dataset versions that a model and those it was trained from were trained on."""
    versions: dict[tuple[str, int], None] = {}
    while adapter is not None and adapter in lineage.models:
        job = lineage.jobs[lineage.models[adapter].job_id]
        versions[job.dataset_id, job.dataset_version] = None
        adapter = job.parent
    return tuple(versions)


def answering(lineage: Lineage) -> dict[str, Holders]:
    """Return every answering model, by adapter, with its holders: each takes one place."""
    own = {adapter for adapter, model in lineage.models.items() if model.switch.is_on}
    serving = [family for family in lineage.families.values() if family.switch.is_on]
    return _holders(lineage, own, serving)


def kept_warm(lineage: Lineage) -> dict[str, Holders]:
    """Return every model that is kept warm, by adapter, with its holders."""
    own = {adapter for adapter, model in lineage.models.items() if model.keep_warm}
    return _holders(
        lineage, own, [family for family in lineage.families.values() if family.keep_warm]
    )


def idle_at(family: TunedFamily, conditions: Conditions) -> float | None:
    """Return when a family switches itself off unless it is used; ``None`` if it does not."""
    is_idling = family.served is not None and not family.keep_warm
    return _idle_at(family.switch, conditions) if is_idling else None


def model_idle_at(model: FamilyModel, conditions: Conditions) -> float | None:
    """Return when a model's own switch goes off unless it is used; ``None`` if it does not."""
    return None if model.keep_warm else _idle_at(model.switch, conditions)


def _idle_at(switch: Switch, conditions: Conditions) -> float | None:
    if not switch.is_on or switch.used_at is None or conditions.idle_s <= 0:
        return None
    return switch.used_at + conditions.idle_s


def _holders(lineage: Lineage, own: set[str], families: list[TunedFamily]) -> dict[str, Holders]:
    served: dict[str, list[TunedFamily]] = {}
    for family in families:
        if family.served is not None:
            served.setdefault(family.served, []).append(family)
    holders = {}
    for adapter in sorted(own | served.keys()):
        by = sorted(served.get(adapter, ()), key=lambda family: family.name)
        used = [family.switch.used_at for family in by]
        if adapter in own:
            used.append(lineage.models[adapter].switch.used_at)
        holders[adapter] = Holders(
            is_own=adapter in own,
            families=tuple(family.name for family in by),
            used_at=max((at for at in used if at is not None), default=None),
        )
    return holders
