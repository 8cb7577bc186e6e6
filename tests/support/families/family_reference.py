"""A small reference of families: plain values, changed in place, one rule of the contract
after the other. Whatever it refuses it refuses by code, before it changes anything."""

from __future__ import annotations

import copy
import math
from collections.abc import Collection
from dataclasses import dataclass, field

HOUR = 3600.0
UNENDED = {"queued", "running", "cancelling"}

#: A model: its family and its number.
Number = tuple[str, int]


class RefusedError(Exception):
    """The code of the refusal."""

    @property
    def code(self) -> str:
        return str(self.args[0])


@dataclass
class RefModel:
    origin: Number | None
    base: str
    status: str = "ready"
    on: bool = False
    used_at: float | None = None
    off_reason: str | None = None
    warm: bool = False


@dataclass
class RefFamily:
    dataset: str
    origin: Number | None
    base: str
    used_at: float
    on: bool = True
    off_reason: str | None = None
    served: Number | None = None
    warm: bool = False
    is_deleted: bool = False
    models: list[Number] = field(default_factory=list)
    jobs: list[str] = field(default_factory=list)


@dataclass
class RefJob:
    family: str
    version: int
    parent: Number | None
    base: str
    status: str = "queued"
    outcome: str | None = None


@dataclass
class RefWindow:
    starts_at: float
    ends_at: float
    price: int


class Reference:
    """An account: ``live_limit`` models may answer, ``warm_limit`` may be kept warm."""

    def __init__(
        self,
        *,
        base: str,
        live_limit: int,
        warm_limit: int,
        idle_s: float,
        fee: int,
        hour: int,
        queue: int,
    ) -> None:
        self.base = base
        self.live_limit, self.warm_limit = live_limit, warm_limit
        self.idle_s, self.fee, self.hour, self.queue = idle_s, fee, hour, queue
        self.now = 0.0
        self.families: dict[str, RefFamily] = {}
        self.models: dict[Number, RefModel] = {}
        self.jobs: dict[str, RefJob] = {}
        self.windows: dict[Number, RefWindow] = {}
        #: Evaluations that have not ended: id to model.
        self.evaluations: dict[str, Number] = {}
        self.credit = self.charged = 0
        self.loaded: set[Number] = set()

    # What there is.

    @property
    def held(self) -> int:
        jobs = sum(job.status in UNENDED for job in self.jobs.values())
        return jobs * self.fee + sum(window.price for window in self.windows.values())

    @property
    def available(self) -> int:
        return self.credit - self.charged - self.held

    def answering(self) -> set[Number]:
        own = {number for number, model in self.models.items() if model.on}
        return own | {f.served for f in self.families.values() if f.on and f.served}

    def kept_warm(self) -> set[Number]:
        own = {number for number, model in self.models.items() if model.warm}
        return own | {f.served for f in self.families.values() if f.warm and f.served}

    def latest(self, family: RefFamily) -> Number | None:
        ready = [one for one in family.models if self.models[one].status == "ready"]
        return ready[-1] if ready else None

    def active_job(self, family: RefFamily) -> str | None:
        return next((one for one in family.jobs if self.jobs[one].status in UNENDED), None)

    def family(self, name: str) -> RefFamily:
        if name not in self.families:
            raise RefusedError("not_found")
        if self.families[name].is_deleted:
            raise RefusedError("family_deleted")
        return self.families[name]

    def model(self, number: Number) -> RefModel:
        if number not in self.models:
            raise RefusedError("not_found")
        return self.models[number]

    def ready_model(self, number: Number) -> RefModel:
        model = self.model(number)
        if model.status != "ready":
            raise RefusedError(f"model_{model.status}")
        return model

    # Fine-tunes.

    def start(
        self, job_id: str, name: str, dataset: str, version: int, origin: Number | None
    ) -> None:
        if name in self.families:
            raise RefusedError("family_exists")
        if origin is not None:
            try:
                self.ready_model(origin)
            except RefusedError as refused:
                raise RefusedError(
                    "invalid_reference" if refused.code == "not_found" else refused.code
                ) from None
        self._check_queue()
        base = self.base if origin is None else self.models[origin].base
        self.families[name] = RefFamily(dataset, origin, base, self.now)
        self._queue(job_id, name, version, origin, base)

    def resume(self, job_id: str, name: str, version: int, base: str | None = None) -> None:
        family = self.family(name)
        latest = self.latest(family)
        if latest is None and family.origin is not None:
            self.ready_model(family.origin)
        if self.active_job(family) is not None:
            raise RefusedError("family_training")
        trained = [self.jobs[job] for job in family.jobs if self.jobs[job].status == "succeeded"]
        if trained and version <= trained[-1].version:
            raise RefusedError("no_new_data")
        self._check_queue()
        own = family.base if latest is None else self.models[latest].base
        parent = family.origin if latest is None else latest
        self._queue(job_id, name, version, parent, base or own)

    def _check_queue(self) -> None:
        if sum(job.status == "queued" for job in self.jobs.values()) >= self.queue:
            raise RefusedError("tenant_queue_full")
        if self.fee > self.available:
            raise RefusedError("insufficient_credit")

    def _queue(
        self, job_id: str, name: str, version: int, parent: Number | None, base: str
    ) -> None:
        self.jobs[job_id] = RefJob(name, version, parent, base)
        self.families[name].jobs.append(job_id)

    def run(self, job_id: str) -> None:
        if self.jobs[job_id].status == "queued":
            self.jobs[job_id].status = "running"

    def finish(self, job_id: str, *, passed: bool) -> None:
        job = self.jobs[job_id]
        if job.status == "cancelling":
            self._end(job, "cancelled", "cancelled")
        if job.status != "running":
            return
        self.charged += self.fee
        self._end(job, "succeeded", "joined" if passed else "gate_failed")
        if passed:
            family = self.families[job.family]
            number = (job.family, len(family.models) + 1)
            self.models[number] = RefModel(job.parent, job.base)
            family.models.append(number)
        self.move()

    def fail(self, job_id: str) -> None:
        if self.jobs[job_id].status in UNENDED:
            self._end(self.jobs[job_id], "failed", "failed")

    def cancel(self, job_id: str) -> None:
        job = self.jobs[job_id]
        if job.status == "queued":
            self._end(job, "cancelled", "cancelled")
        elif job.status == "running":
            job.status = "cancelling"

    def stop(self, job_id: str) -> None:
        if self.jobs[job_id].status == "cancelling":
            self._end(self.jobs[job_id], "cancelled", "cancelled")

    @staticmethod
    def _end(job: RefJob, status: str, outcome: str) -> None:
        job.status, job.outcome = status, outcome

    # Switches.

    def switch(self, name: str, *, on: bool, off: Collection[str | Number] = ()) -> None:
        family = self.family(name)
        if not on:
            self._off(name)
        else:
            after = self._copy()
            after._switch_all_off(off)
            target = after.families[name]
            if family.on:
                target.used_at = max(target.used_at, self.now)
            else:
                before = after.answering()
                latest = after.latest(target)
                target.served, target.on = latest, True
                target.off_reason, target.used_at = None, self.now
                after._check_place(before)
                if latest is not None and latest not in self.loaded:
                    raise RefusedError("model_warming")
            self._become(after)
        self.square()
        self.move()

    def switch_model(self, number: Number, *, on: bool, off: Collection[str | Number] = ()) -> None:
        model = self.ready_model(number)
        if not on:
            self._off(number)
        else:
            after = self._copy()
            after._switch_all_off(off)
            target, before = after.models[number], after.answering()
            target.on, target.off_reason, target.used_at = True, None, self.now
            if not model.on:
                after._check_place(before)
                if number not in self.loaded:
                    raise RefusedError("model_warming")
            self._become(after)
        self.square()
        self.move()

    def _switch_all_off(self, off: Collection[str | Number]) -> None:
        for one in off:
            self.family(one) if isinstance(one, str) else self.model(one)
            self._off(one)

    def _off(self, one: str | Number, reason: str = "owner") -> None:
        switch = self.families[one] if isinstance(one, str) else self.models[one]
        if switch.on:
            switch.on, switch.off_reason = False, reason
        switch.warm = False

    def _check_place(self, before: set[Number]) -> None:
        after = self.answering()
        if after - before and len(after) > self.live_limit:
            raise RefusedError("live_limit")

    def call(self, name: str | Number) -> Number:
        """Return the model that answers a call."""
        if isinstance(name, tuple):
            if not self.ready_model(name).on:
                raise RefusedError("model_off")
            return name
        family = self.family(name)
        if not family.on:
            raise RefusedError("family_off")
        if family.served is None:
            raise RefusedError("family_empty")
        return family.served

    def use(self, name: str | Number) -> None:
        switch = self.families[name] if isinstance(name, str) else self.models[name]
        switch.used_at = max(self.now, switch.used_at or 0.0)

    # Keep warm.

    def keep_warm(self, one: str | Number, *, enabled: bool) -> None:
        if isinstance(one, str):
            family = self.family(one)
            if enabled and not family.on:
                raise RefusedError("family_off")
            if enabled and family.served is None:
                raise RefusedError("family_empty")
        elif not self.ready_model(one).on and enabled:
            raise RefusedError("model_off")
        after = self._copy()
        before = after.kept_warm()
        switch = after.families[one] if isinstance(one, str) else after.models[one]
        switch.warm = enabled
        warm = after.kept_warm()
        if warm - before and len(warm) > self.warm_limit:
            raise RefusedError("warm_limit")
        after.square()
        self._become(after)
        self.move()

    def square(self, follow: dict[Number, Number] | None = None) -> None:
        """End the hours of versions no longer kept warm, and hold those of versions newly kept warm."""
        warm = self.kept_warm()
        for old, new in (follow or {}).items():
            if old in self.windows and old not in warm and new in warm and new not in self.windows:
                self.windows[new] = self.windows.pop(old)
        for number in sorted(self.windows.keys() - warm):
            self._close(number)
        for number in sorted(warm - self.windows.keys()):
            self._open(number, self.now)

    def _open(self, number: Number, at: float) -> None:
        if self.hour > self.available:
            raise RefusedError("insufficient_credit")
        self.windows[number] = RefWindow(at, at + HOUR, self.hour)

    def _close(self, number: Number) -> None:
        window = self.windows.pop(number)
        used = min(self.now, window.ends_at) - window.starts_at
        minutes = min(60, max(0, math.ceil(used / 60)))
        self.charged += math.ceil(window.price * minutes / 60)

    # Rollback and deletion.

    def roll_back(self, name: str, to: Number) -> None:
        family = self.family(name)
        self.ready_model(to)
        if to == self.latest(family):
            raise RefusedError("nothing_to_roll_back")
        gone = {one for one in family.models if one > to and self.models[one].status == "ready"}
        self._check_unused(gone, name, evaluations=False)
        job = self.active_job(family)
        if job is not None:
            self.cancel(job)
        self.evaluations = {k: v for k, v in self.evaluations.items() if v not in gone}
        for one in gone:
            self._off(one)
            self.models[one].status = "discarded"
            self._outcome_of(one).outcome = "rolled_back"
        follow = {}
        if family.served in gone:
            if family.on and family.warm and family.served is not None:
                follow = {family.served: to}
            family.served = to
        self.square(follow)
        self.move()

    def delete(self, name: str) -> None:
        if name not in self.families:
            raise RefusedError("not_found")
        family = self.families[name]
        if family.is_deleted:
            return
        if self.answering() & set(family.models):
            raise RefusedError("family_answers")
        if self.active_job(family) is not None:
            raise RefusedError("family_training")
        self._check_unused(set(family.models), name)
        if not family.models:
            del self.families[name]
        else:
            for one in family.models:
                self.models[one].status = "deleted"
            self._off(name)
            family.is_deleted, family.served = True, None
        self.move()

    def delete_model(self, number: Number) -> None:
        model = self.model(number)
        if model.status != "ready":
            return
        family = self.families[number[0]]
        if number == self.latest(family):
            raise RefusedError("latest_model")
        if number in self.answering():
            raise RefusedError("model_answers")
        self._check_unused({number}, number[0])
        model.status = "deleted"
        if family.served == number:
            family.served = None
        self.move()

    def _check_unused(self, numbers: set[Number], by: str, *, evaluations: bool = True) -> None:
        jobs = [job for job in self.jobs.values() if job.status in UNENDED and job.family != by]
        is_evaluated = evaluations and numbers & set(self.evaluations.values())
        if is_evaluated or any(job.parent in numbers for job in jobs):
            raise RefusedError("version_in_use")

    def _outcome_of(self, number: Number) -> RefJob:
        joined = [job for job in self.families[number[0]].jobs if self._made(job)]
        return self.jobs[joined[number[1] - 1]]

    def _made(self, job_id: str) -> bool:
        return self.jobs[job_id].outcome in {"joined", "rolled_back"}

    # Time.

    def pass_time(self) -> None:
        for number, window in sorted(self.windows.items()):
            if window.ends_at > self.now:
                continue
            self._close(number)
            if self.hour <= self.available:
                is_next = self.now < window.ends_at + HOUR
                self._open(number, window.ends_at if is_next else self.now)
            else:
                self._stop_warm(number)
        for name, family in self.families.items():
            is_idling = family.on and family.served is not None and not family.warm
            if is_idling and family.used_at + self.idle_s <= self.now:
                self._off(name, "idle")
        for number, model in self.models.items():
            if model.on and not model.warm and (model.used_at or 0.0) + self.idle_s <= self.now:
                self._off(number, "idle")
        self.square()
        self.move()

    def _stop_warm(self, number: Number) -> None:
        self.models[number].warm = False
        for family in self.families.values():
            if family.served == number:
                family.warm = False

    def move(self) -> None:
        """Move families that are on to their latest models, those used last first."""
        by_use = sorted(self.families.items(), key=lambda item: (-item[1].used_at, item[0]))
        for _, family in by_use:
            target, old = self.latest(family), family.served
            if not family.on or target is None or target == old or target not in self.loaded:
                continue
            n_answer, n_warm = len(self.answering()), len(self.kept_warm())
            family.served = target
            if len(self.answering()) > max(self.live_limit, n_answer) or len(
                self.kept_warm()
            ) > max(self.warm_limit, n_warm):
                family.served = old
                continue
            if old is None:
                family.used_at = max(family.used_at, self.now)
            if family.warm:
                is_free = old in self.windows and old not in self.kept_warm()
                if not (target in self.windows or is_free or self.hour <= self.available):
                    family.warm = False
            self.square({} if old is None else {old: target})

    # A command that is refused changes nothing.

    def _copy(self) -> Reference:
        return copy.deepcopy(self)

    def _become(self, other: Reference) -> None:
        self.__dict__.update(other.__dict__)
