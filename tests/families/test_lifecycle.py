"""A stateful test: after any commands on an account's lineage, the contract holds."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from steelyard.errors import SteelyardError
from steelyard.evaluations.gate_wire import Gate
from steelyard.families.fine_tune_wire import JobError
from steelyard.families.lineage.clock import next_due, pass_time
from steelyard.families.lineage.continuing import continue_state
from steelyard.families.lineage.deletion import delete_family, delete_model
from steelyard.families.lineage.draft import LineageChange
from steelyard.families.lineage.events import (
    AddEvent,
    CancelEvaluation,
    CancelFineTune,
    DropModel,
    Hold,
    LoadModel,
    QueueJob,
    Settle,
)
from steelyard.families.lineage.fine_tunes import (
    cancel_job,
    continue_family,
    fail_job,
    finish_job,
    start_family,
    start_job,
    stop_job,
)
from steelyard.families.lineage.lineage import (
    Conditions,
    Lineage,
    answering,
    idle_at,
    kept_warm,
    latest_of,
    models_of,
)
from steelyard.families.lineage.moving import move_ready
from steelyard.families.lineage.references import find_family, record_use, resolve_call
from steelyard.families.lineage.rollback import roll_back
from steelyard.families.lineage.switching import NotLoadedError, switch_family, switch_model
from steelyard.families.lineage.warmth import keep_family_warm, keep_model_warm
from steelyard.families.serializers import family_to_wire, fine_tune_to_wire
from steelyard.model_use import ModelUse
from support.families.lineage_cases import (
    BASE,
    DAY,
    HOUR,
    START,
    WORDS_FIRST,
    make_gate,
    make_growth,
    make_order,
)

NAMES = ("ant", "bee", "cat")
CREDIT = 3000
HOUR_PRICE = 600
JOB_PRICE = 250
REASONS = {
    "place": "live_limit",
    "warm_place": "warm_limit",
    "warm_capacity": "warm_capacity",
    "engines": None,
}

names = st.sampled_from([*NAMES[:2] * 3, NAMES[2]])
numbers = st.sampled_from([1, 1, 1, 2, 2, 3])
mostly = st.sampled_from([True, True, True, False])
seldom = st.sampled_from([False, False, False, True])
some_names = st.one_of(
    st.just([]),
    st.lists(st.one_of(names, st.builds("{}@{}".format, names, numbers)), max_size=2, unique=True),
)


class AnAccount(RuleBasedStateMachine):
    """One account, its engines, its evaluations, its money, and the time."""

    def __init__(self) -> None:
        super().__init__()
        self.lineage = Lineage()
        self.now = START
        self.states: dict[str, str] = {}
        self.work: dict[str, ModelUse] = {}
        self.available = CREDIT
        self.held: dict[str, int] = {}
        self.charged = 0
        self.references: set[str] = set()
        self.events: dict[str, int] = {}
        self.numbers: dict[str, str] = {}
        self.names_with_models: set[str] = set()
        self.n_ids = 0
        self.idle_s = 7 * DAY
        self.room: dict[str, int] = {}

    @initialize(
        live_limit=st.integers(1, 3),
        warm_limit=st.integers(0, 2),
        idle_s=st.sampled_from([0.0, 2 * HOUR, 7 * DAY]),
        is_priced=st.booleans(),
        n_models=st.tuples(st.integers(1, 3), st.integers(0, 3)),
    )
    def begin(self, live_limit, warm_limit, idle_s, is_priced, n_models):
        self.live_limit, self.warm_limit, self.idle_s = live_limit, warm_limit, idle_s
        self.is_priced = False
        for name, n in zip(NAMES, n_models, strict=False):
            order = make_order(self.new_id("ftj"))
            self.attempt(lambda lineage, now: start_family(lineage, name, BASE, order, now))  # noqa: B023
            for _ in range(n):
                self.train(name, passed=True)
        self.is_priced = is_priced

    # What the machine does to make a command and to carry out what it asks for.

    def conditions(self) -> Conditions:
        warm = len(kept_warm(self.lineage))
        return Conditions(
            now=self.now,
            live_limit=self.live_limit,
            warm_limit=self.warm_limit,
            idle_s=self.idle_s,
            states=dict(self.states),
            warm_room={BASE: max(self.room.get(BASE, 2) - warm, 0)},
            hour_nano={BASE: HOUR_PRICE} if self.is_priced else {},
            available_nano=self.available,
            work=tuple(self.work.values()),
            base_models=frozenset({BASE}),
        )

    def new_id(self, prefix: str) -> str:
        self.n_ids += 1
        return f"{prefix}_{self.n_ids}"

    def attempt(self, command: Callable[[Lineage, Conditions], LineageChange]) -> bool:
        """Send a command; a refused one must have changed nothing."""
        before = msgspec.json.encode(self.lineage)
        conditions = self.conditions()
        try:
            change = command(self.lineage, conditions)
        except NotLoadedError as error:
            self.states[error.adapter] = "loaded"
            return False
        except SteelyardError:
            return False
        finally:
            assert msgspec.json.encode(self.lineage) == before
        self.lineage = change.lineage
        for effect in change.effects:
            self.carry_out(effect)
        return True

    def carry_out(self, effect) -> None:
        match effect:
            case Hold(reference, reserved):
                assert reference not in self.references
                assert reserved > 0
                self.references.add(reference)
                self.held[reference] = reserved
                self.available -= reserved
            case Settle(reference, reserved, amount):
                assert self.held.pop(reference) == reserved
                assert 0 <= amount <= reserved
                self.available += reserved - amount
                self.charged += amount
            case CancelEvaluation(evaluation):
                del self.work[evaluation]
            case AddEvent(job, event):
                assert event.seq == self.events.get(job, 0) + 1
                self.events[job] = event.seq
            case LoadModel(adapter):
                assert self.states.get(adapter, "unloaded") == "unloaded"
                self.states[adapter] = "loading"
            case DropModel(adapter):
                assert self.lineage.models[adapter].status != "ready"
                self.states.pop(adapter, None)
            case QueueJob(job) | CancelFineTune(job):
                assert job in self.lineage.jobs
            case _:
                self.states.pop(effect.adapter, None)

    def train(self, name: str, *, passed: bool) -> None:
        """Queue a fine-tune of a family unless one is, and take it to its end."""
        family = self.lineage.families[name]
        if not any(self.lineage.jobs[job].is_active for job in family.jobs):
            version = len(family.jobs) + 1
            order = make_order(self.new_id("ftj"), dataset_version=version, price_nano=self.price())
            growth = make_growth(version)
            self.attempt(lambda lineage, now: continue_family(lineage, name, order, growth, now))
        job_id = self.lineage.families[name].jobs[-1]
        gate = make_gate(passed)
        self.attempt(lambda lineage, now: start_job(lineage, job_id, now))
        self.finish(job_id, gate)
        self.attempt(move_ready)
        self.load()
        self.attempt(move_ready)

    def finish(self, job_id: str, gate: Gate) -> None:
        """End a fine-tune; after one of words that answer first the next is queued."""
        follower = self.new_id("ftj")
        self.attempt(
            lambda lineage, now: finish_job(
                lineage, job_id, gate, {"n": 1.0}, now, next_id=follower
            )
        )

    def load(self) -> None:
        """Load the requested models in the engines."""
        self.states = {
            adapter: "loaded" if state == "loading" else state
            for adapter, state in self.states.items()
        }

    def families(self) -> list[str]:
        """Families that are not deleted."""
        return [f.name for f in self.lineage.families.values() if f.deleted_at is None]

    def price(self) -> int:
        return JOB_PRICE if self.is_priced else 0

    def jobs(self, *statuses: str) -> list[str]:
        return [job.id for job in self.lineage.jobs.values() if job.status in statuses]

    # Fine-tunes.

    @rule(
        name=names,
        origin=st.one_of(st.just(BASE), st.builds("{}@{}".format, names, numbers)),
        has_first=seldom,
    )
    def start_a_family(self, name: str, origin: str, has_first: bool):
        training = {"hyperparameters": WORDS_FIRST} if has_first else {}
        order = make_order(self.new_id("ftj"), price_nano=self.price(), **training)
        if self.attempt(lambda lineage, now: start_family(lineage, name, origin, order, now)):
            assert name not in self.names_with_models
            assert self.lineage.families[name].switch.is_on

    @rule(name=names, is_guarded=st.booleans())
    def continue_a_family(self, name: str, is_guarded: bool):
        if name not in self.lineage.families:
            return
        family = self.lineage.families[name]
        version = len(family.jobs) + 1
        latest = latest_of(self.lineage, family)
        guard = (latest.adapter if latest else None) if is_guarded else msgspec.UNSET
        order = make_order(self.new_id("ftj"), dataset_version=version, price_nano=self.price())
        growth = make_growth(version)
        state = continue_state(self.lineage, family, growth, self.conditions())
        done = self.attempt(
            lambda lineage, now: continue_family(lineage, name, order, growth, now, latest=guard)
        )
        assert not done or state in {"new_data", "retry"}

    @precondition(lambda self: self.jobs("queued", "running", "cancelling"))
    @rule(data=st.data(), passed=mostly)
    def advance_a_job(self, data, passed: bool):
        job_id = data.draw(st.sampled_from(self.jobs("queued", "running", "cancelling")))
        status = self.lineage.jobs[job_id].status
        if status == "queued":
            self.attempt(lambda lineage, now: start_job(lineage, job_id, now))
        elif status == "running":
            gate = make_gate(passed)
            self.finish(job_id, gate)
            before = self.lineage
            assert finish_job(before, job_id, gate, {}, self.conditions()).lineage == before
        else:
            self.attempt(lambda lineage, now: stop_job(lineage, job_id, now))

    @precondition(lambda self: self.lineage.jobs)
    @rule(data=st.data(), fails=st.booleans())
    def end_a_job_early(self, data, fails: bool):
        job_id = data.draw(st.sampled_from(sorted(self.lineage.jobs)))
        if fails:
            error = JobError(code="internal_error", message="The trainer broke.")
            self.attempt(lambda lineage, now: fail_job(lineage, job_id, error, now))
        else:
            self.attempt(lambda lineage, now: cancel_job(lineage, job_id, now))

    @rule(name=st.sampled_from(NAMES[:2]), passed=mostly)
    def train_a_model(self, name: str, passed: bool):
        if name in self.families():
            self.train(name, passed=passed)

    # Switches and keep warm.

    @rule(name=names, on=mostly, switch_off=some_names)
    def switch_a_family(self, name: str, on: bool, switch_off: list[str]):
        was = self.lineage.families.get(name)
        done = self.attempt(
            lambda lineage, now: switch_family(
                lineage, name, now, on=on, switch_off=switch_off if on else ()
            )
        )
        if done:
            family = self.lineage.families[name]
            assert family.switch.is_on == on
            for other in switch_off if on else ():
                assert (
                    other not in self.lineage.families
                    or not self.lineage.families[other].switch.is_on
                )
            if on and was is not None and not was.switch.is_on:
                latest = latest_of(self.lineage, family)
                assert family.served == (latest.adapter if latest else None)

    @rule(name=names, number=numbers, on=mostly, switch_off=some_names)
    def switch_a_model(self, name: str, number: int, on: bool, switch_off: list[str]):
        self.attempt(
            lambda lineage, now: switch_model(
                lineage, f"{name}@{number}", now, on=on, switch_off=switch_off if on else ()
            )
        )

    @rule(name=names, enabled=mostly, switch_off=some_names)
    def keep_a_family_warm(self, name: str, enabled: bool, switch_off: list[str]):
        self.attempt(
            lambda lineage, now: keep_family_warm(
                lineage, name, now, enabled=enabled, switch_off=switch_off if enabled else ()
            )
        )

    @rule(name=names, number=numbers, enabled=mostly)
    def keep_a_model_warm(self, name: str, number: int, enabled: bool):
        self.attempt(
            lambda lineage, now: keep_model_warm(lineage, f"{name}@{number}", now, enabled=enabled)
        )

    # Rollback and deletion.

    @rule(name=names, number=numbers, is_exact=mostly)
    def roll_a_family_back(self, name: str, number: int, is_exact: bool):
        if name not in self.lineage.families:
            return
        family = self.lineage.families[name]
        newer = [m for m in models_of(self.lineage, family) if m.version > number]
        discard = [m.ref for m in newer if m.status == "ready"]
        confirmed = discard if is_exact else [*discard, f"{name}@99"]
        to = f"{name}@{number}"
        if self.attempt(lambda lineage, now: roll_back(lineage, name, to, confirmed, now)):
            assert is_exact
            rolled = self.lineage.families[name]
            latest = latest_of(self.lineage, rolled)
            assert latest is not None
            assert (latest.ref, rolled.moved) == (to, None)
            for model in newer:
                assert self.lineage.models[model.adapter].status != "ready"
                if model.ref in discard:
                    job = self.lineage.jobs[model.job_id]
                    assert (job.status, job.outcome) == ("succeeded", "rolled_back")
            assert not [
                job for job in rolled.jobs if self.lineage.jobs[job].status in {"queued", "running"}
            ]

    @rule(name=names, is_meant=seldom)
    def delete_a_family(self, name: str, is_meant: bool):
        if not is_meant:
            return
        had_models = name in self.lineage.families and self.lineage.families[name].models
        if self.attempt(lambda lineage, now: delete_family(lineage, name, now)):
            assert (name in self.lineage.families) == bool(had_models)

    @rule(name=names, number=numbers)
    def delete_a_model(self, name: str, number: int):
        self.attempt(lambda lineage, now: delete_model(lineage, f"{name}@{number}", now))

    # Time, engines, calls and evaluations.

    @rule(hours=st.sampled_from([0.01, 0.5, 1.0, 1.0, 3.0, 30.0, 200.0]))
    def let_time_pass(self, hours: float):
        self.now += hours * HOUR
        assert self.attempt(pass_time)
        due = next_due(self.lineage, self.conditions())
        assert due is None or due > self.now

    @rule()
    def let_engines_load(self):
        self.load()
        assert self.attempt(move_ready)

    @rule(name=names, number=st.one_of(st.none(), numbers))
    def call(self, name: str, number: int | None):
        called = name if number is None else f"{name}@{number}"
        try:
            model = resolve_call(self.lineage, called)
        except SteelyardError:
            return
        assert model.status == "ready"
        assert model.adapter in answering(self.lineage)
        self.lineage = record_use(self.lineage, called, self.now)

    @rule(data=st.data())
    def evaluate(self, data):
        if self.work and data.draw(st.booleans()):
            del self.work[data.draw(st.sampled_from(sorted(self.work)))]
        elif ready := sorted(a for a, m in self.lineage.models.items() if m.status == "ready"):
            work = ModelUse(
                id=self.new_id("evl"),
                adapter=data.draw(st.sampled_from(ready)),
                yields=data.draw(st.booleans()),
            )
            self.work[work.id] = work

    @rule(room=st.integers(0, 2))
    def change_the_room(self, room: int):
        self.room = {BASE: room}

    # What must always hold.

    @invariant()
    def families_serve_what_they_may(self):
        for family in self.lineage.families.values():
            line = models_of(self.lineage, family)
            ready = [model for model in line if model.status == "ready"]
            latest = latest_of(self.lineage, family)
            assert latest == (ready[-1] if ready else None)
            assert [model.version for model in line] == list(range(1, len(line) + 1))
            if family.served is not None:
                assert family.served in {model.adapter for model in ready}
            if family.moved is not None:
                assert family.served is not None
                assert family.moved.from_ref != self.lineage.models[family.served].ref
            if family.deleted_at is not None:
                assert not ready
                assert not family.switch.is_on

    @invariant()
    def places_are_within_their_limits(self):
        assert len(answering(self.lineage)) <= self.live_limit
        warm = kept_warm(self.lineage)
        assert len(warm) <= self.warm_limit
        assert warm.keys() <= answering(self.lineage).keys()
        assert warm.keys() == self.lineage.windows.keys()

    @invariant()
    def switches_make_sense(self):
        switched = [*self.lineage.families.values(), *self.lineage.models.values()]
        for thing in switched:
            switch = thing.switch
            assert (switch.off_at is None) == (switch.off_reason is None)
            assert not (switch.is_on and switch.off_at is not None)
            assert not thing.keep_warm or switch.is_on
            assert not thing.keep_warm or thing.keep_warm_stopped_at is None
        for model in self.lineage.models.values():
            assert model.status == "ready" or not model.switch.is_on

    @invariant()
    def numbers_are_for_ever(self):
        for model in self.lineage.models.values():
            assert self.numbers.setdefault(model.ref, model.adapter) == model.adapter
            self.names_with_models.add(model.family)

    @invariant()
    def money_adds_up(self):
        assert self.available >= 0
        assert self.available + sum(self.held.values()) + self.charged == CREDIT
        owed = {
            job.id: job.price_nano for job in self.lineage.jobs.values() if job.charge == "reserved"
        }
        owed |= {w.id: w.reserved_nano for w in self.lineage.windows.values() if w.reserved_nano}
        assert owed == self.held

    @invariant()
    def jobs_end_as_they_may(self):
        charges = {"queued": "reserved", "running": "reserved", "cancelling": "reserved"}
        charges |= {"succeeded": "charged", "failed": "released", "cancelled": "released"}
        outcomes = {
            "succeeded": {"joined", "gate_failed", "rolled_back"},
            "failed": {"failed"},
            "cancelled": {"cancelled"},
        }
        for job in self.lineage.jobs.values():
            assert job.charge == (charges[job.status] if job.price_nano else "free")
            assert job.outcome in outcomes.get(job.status, {None})
            assert (job.output_model is not None) == (job.outcome in {"joined", "rolled_back"})
            assert job.n_events == self.events[job.id]
        for family in self.lineage.families.values():
            assert sum(self.lineage.jobs[job].is_active for job in family.jobs) <= 1

    @invariant()
    def everything_can_be_told_and_stored(self):
        conditions = self.conditions()
        assert msgspec.json.decode(msgspec.json.encode(self.lineage), type=Lineage) == self.lineage
        for family in self.lineage.families.values():
            told = family_to_wire(self.lineage, family, conditions, growth=None, with_jobs=True)
            is_idling = told.switched_on and not told.keep_warm and told.served and self.idle_s > 0
            assert (told.switches_off_at is not None) == bool(is_idling)
            assert (told.keep_warm_window is not None) == told.keep_warm
            assert (told.move is not None) == (told.switched_on and told.served != told.latest)
            if told.move is not None:
                assert told.move.reason == REASONS[told.move.waiting_for]
                assert told.move.to == told.latest.ref
            assert idle_at(family, conditions) == told.switches_off_at
            assert find_family(self.lineage, family.name) if family.deleted_at is None else True
        for job in self.lineage.jobs.values():
            msgspec.json.encode(fine_tune_to_wire(job))


TestAnAccount = AnAccount.TestCase
TestAnAccount.settings = settings(max_examples=100, stateful_step_count=50, deadline=None)
