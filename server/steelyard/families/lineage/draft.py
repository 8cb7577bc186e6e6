"""One command in the making: the lineage as it would be, and the effects so far.

A command builds a draft, changes it, and gives it as a ``Change``; whatever it raises on the way,
the lineage that it was given is as it was.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from msgspec import structs

from steelyard.errors import InsufficientCreditError
from steelyard.families.fine_tune_wire import EventType, JobEvent
from steelyard.families.lineage.events import AddEvent, Effect, Hold, LoadModel, Settle, UnloadModel
from steelyard.families.lineage.fees import charge_minutes
from steelyard.families.lineage.lineage import (
    HOUR_S,
    Conditions,
    FamilyModel,
    FineTune,
    Lineage,
    TunedFamily,
    WarmHour,
    answering,
    kept_warm,
)
from steelyard.families.wire import OffReason
from steelyard.ledger.money import to_usd


@dataclass(frozen=True, slots=True)
class LineageChange:
    """The result of a command: the new lineage, and its effects, in order."""

    lineage: Lineage
    effects: tuple[Effect, ...]


class LineageDraft:
    """Lineage being changed under some conditions."""

    def __init__(self, lineage: Lineage, conditions: Conditions) -> None:
        self.lineage = lineage
        self.conditions = conditions
        self.effects: list[Effect] = []
        self.available_nano = conditions.available_nano
        self._before = lineage

    @property
    def now(self) -> float:
        """The time of the command."""
        return self.conditions.now

    def put_family(self, family: TunedFamily) -> None:
        """Add a family, or put another state of it in its place."""
        families = {**self.lineage.families, family.name: family}
        self.lineage = structs.replace(self.lineage, families=families)

    def put_model(self, model: FamilyModel) -> None:
        """Add a model, or put another state of it in its place."""
        models = {**self.lineage.models, model.adapter: model}
        self.lineage = structs.replace(self.lineage, models=models)

    def put_job(self, job: FineTune) -> None:
        """Add a fine-tune, or put another state of it in its place."""
        self.lineage = structs.replace(self.lineage, jobs={**self.lineage.jobs, job.id: job})

    def change_family(self, name: str, **changes: Any) -> TunedFamily:
        """Change some members of a family."""
        family = structs.replace(self.lineage.families[name], **changes)
        self.put_family(family)
        return family

    def change_model(self, adapter: str, **changes: Any) -> FamilyModel:
        """Change some members of a model."""
        model = structs.replace(self.lineage.models[adapter], **changes)
        self.put_model(model)
        return model

    def change_job(self, job_id: str, **changes: Any) -> FineTune:
        """Change some members of a fine-tune, and when it last changed."""
        job = structs.replace(self.lineage.jobs[job_id], updated_at=self.now, **changes)
        self.put_job(job)
        return job

    def switch_family_off(self, name: str, reason: OffReason) -> None:
        """Switch a family off, and its keep warm with it; one that is off stays as it is."""
        family = self.lineage.families[name]
        self.change_family(name, switch=family.switch.turned_off(self.now, reason), keep_warm=False)

    def switch_model_off(self, adapter: str, reason: OffReason) -> None:
        """Switch a model's own switch off, and its own keep warm with it."""
        model = self.lineage.models[adapter]
        self.change_model(
            adapter, switch=model.switch.turned_off(self.now, reason), keep_warm=False
        )

    def add_event(self, job_id: str, type_: EventType, message: str) -> None:
        """Add an event to a fine-tune."""
        job = self.lineage.jobs[job_id]
        event = JobEvent(seq=job.n_events + 1, created_at=self.now, type=type_, message=message)
        self.put_job(structs.replace(job, n_events=event.seq))
        self.effects.append(AddEvent(job_id, event))

    def can_hold(self, amount_nano: int) -> bool:
        """Whether the credit left covers an amount."""
        return amount_nano == 0 or self.available_nano is None or amount_nano <= self.available_nano

    def hold(self, reference: str, amount_nano: int, what: str) -> None:
        """Hold money; nothing happens for an amount of 0."""
        if not self.can_hold(amount_nano):
            raise InsufficientCreditError(
                f"{what} costs up to {to_usd(amount_nano)} USD, and "
                f"{to_usd(self.available_nano or 0)} USD is available; add credit."
            )
        self._spend(amount_nano)
        if amount_nano:
            self.effects.append(Hold(reference, amount_nano))

    def settle(self, reference: str, reserved_nano: int, amount_nano: int) -> None:
        """Charge a part of a hold, and release the rest; nothing happens without a hold."""
        self._spend(amount_nano - reserved_nano)
        if reserved_nano:
            self.effects.append(Settle(reference, reserved_nano, amount_nano))

    def open_window(self, adapter: str, started_at: float) -> None:
        """Hold an hour of keep warm of a model."""
        n = self.lineage.n_windows + 1
        window = WarmHour(
            id=f"keep_warm_{n}",
            started_at=started_at,
            ends_at=started_at + HOUR_S,
            reserved_nano=self.hour_price(adapter),
        )
        self.hold(window.id, window.reserved_nano, "An hour of keep warm")
        windows = {**self.lineage.windows, adapter: window}
        self.lineage = structs.replace(self.lineage, windows=windows, n_windows=n)

    def close_window(self, adapter: str) -> None:
        """Charge the minutes used of a model's hour, and release the rest."""
        windows = dict(self.lineage.windows)
        window = windows.pop(adapter)
        used_s = min(self.now, window.ends_at) - window.started_at
        self.settle(window.id, window.reserved_nano, charge_minutes(window.reserved_nano, used_s))
        self.lineage = structs.replace(self.lineage, windows=windows)

    def hour_price(self, adapter: str) -> int:
        """Return the price of an hour of a model's keep warm, in nano-USD."""
        return self.conditions.hour_nano.get(self.lineage.models[adapter].base, 0)

    def square_windows(self, follow: Mapping[str, str] | None = None) -> None:
        """Make the hours held those of the models kept warm: end the others, hold the new ones."""
        warm = kept_warm(self.lineage)
        for old, new in (follow or {}).items():
            windows = dict(self.lineage.windows)
            if old in windows and old not in warm and new in warm and new not in windows:
                windows[new] = windows.pop(old)
                self.lineage = structs.replace(self.lineage, windows=windows)
        for adapter in sorted(self.lineage.windows.keys() - warm.keys()):
            self.close_window(adapter)
        for adapter in sorted(warm.keys() - self.lineage.windows.keys()):
            self.open_window(adapter, self.now)

    def done(self, follow: Mapping[str, str] | None = None) -> LineageChange:
        """Return the change; ``follow`` as ``square_windows`` takes it."""
        self.square_windows(follow)
        before, after = answering(self._before), answering(self.lineage)
        newly_warm = kept_warm(self.lineage).keys() - kept_warm(self._before).keys()
        for adapter in sorted((after.keys() - before.keys()) | newly_warm):
            self.load(adapter)
        self.effects.extend(
            UnloadModel(adapter) for adapter in sorted(before.keys() - after.keys())
        )
        return LineageChange(self.lineage, tuple(self.effects))

    def load(self, adapter: str) -> None:
        """Ask for a model that no engine holds; a second time changes nothing."""
        effect = LoadModel(adapter)
        if self.conditions.state_of(adapter) == "unloaded" and effect not in self.effects:
            self.effects.append(effect)

    def _spend(self, amount_nano: int) -> None:
        if self.available_nano is not None:
            self.available_nano -= amount_nano
