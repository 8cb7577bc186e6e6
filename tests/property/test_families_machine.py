"""Families, models, fine-tunes, evaluations and time, against a small reference and with crashes.

The services are real, on a state on the disk. Engines and trainers are doubles, since the test chooses
when they load, end and die.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from steelyard.errors import SteelyardError
from steelyard.evaluations.store import EVALUATIONS
from steelyard.families import fine_tune_store as job_rows
from steelyard.families.lineage.fees import Tariff
from steelyard.families.lineage.fine_tunes import cancel_job
from steelyard.storage import open_state
from support.accounts.operating import LOCAL, Desk
from support.families.family_reference import UNENDED, Number, Reference, RefusedError
from support.families.stored_lineage import BASE, OTHER_BASE, Kept, base_models

FEE, HOUR_PRICE = 700, 600
LIVE, WARM, QUEUE = 2, 1, 2
DAY = 86_400.0
FAMILIES = ("ant", "bee", "cat")
DATASETS = ("ds_1", "ds_2")

names = st.sampled_from(FAMILIES)
numbers = st.tuples(names, st.integers(1, 4))
#: Draws of ten of which one may name what there is not.
anything = st.integers(0, 9).map(lambda n: n == 0)


def ref_of(number: Number) -> str:
    return f"{number[0]}@{number[1]}"


class Lineages(RuleBasedStateMachine):
    """One account. After each rule due work is done, then state and reference are compared."""

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        self._hosting = base_models()
        self._bases = self._hosting.__enter__()
        self._states: list[Any] = []
        self.kept: Kept
        self.n_jobs = self.n_evaluations = self.n_keys = 0
        self.versions = dict.fromkeys(DATASETS, 1)
        #: The adapter that a number was first seen with.
        self.adapters: dict[Number, str] = {}
        self.ids: dict[str, str] = {}
        self.last: tuple[str, tuple[str, ...], dict[str, Any], bytes] | None = None

    @initialize(
        credit=st.sampled_from([0, 2_000, 50_000, 50_000]),
        n_models=st.tuples(st.integers(0, 4), st.integers(0, 2)),
    )
    def begin(self, credit: int, n_models: tuple[int, int]) -> None:
        """Lineages that have grown a little, paid for, and credit beside."""
        self._open()
        for dataset in DATASETS:
            self.kept.add_dataset(dataset)
        self.reference = Reference(
            base=BASE,
            live_limit=LIVE,
            warm_limit=WARM,
            idle_s=7 * DAY,
            fee=FEE,
            hour=HOUR_PRICE,
            queue=QUEUE,
        )
        self._see_engines()
        self.add_credit(FEE * sum(n_models) + credit)
        for name, n in zip(FAMILIES, n_models, strict=False):
            for _ in range(n):
                self.grow(name, "ds_1")
                self._settle()

    def teardown(self) -> None:
        for state in self._states:
            state.close()
        self._hosting.__exit__(None, None, None)
        self._folder.cleanup()

    def _open(self) -> None:
        clock = self.kept.clock if self._states else None
        self._states.append(open_state(f"sqlite:///{Path(self._folder.name) / 'state.sqlite'}"))
        self.kept = Kept(
            self._states[-1],
            self._bases,
            clock=clock,
            tariff=Tariff(minimum_nano=FEE),
            hour_nano={BASE: HOUR_PRICE, OTHER_BASE: HOUR_PRICE},
            live_limit=LIVE,
            warm_limit=WARM,
            account_queue=QUEUE,
            accounts_enabled=True,
        )
        self.desk = Desk(self.kept.state, self.kept.clock)

    # Fine-tunes.

    @rule(name=names, dataset=st.sampled_from(DATASETS))
    def grow(self, name: str, dataset: str) -> None:
        """Start or continue a family, and train the queued fine-tune."""
        n_jobs = len(self.reference.jobs)
        family = self.reference.families.get(name)
        if family is None:
            self.start(name, dataset, None)
        else:
            self.grow_dataset(family.dataset)
            self.resume(name)
        if len(self.reference.jobs) > n_jobs:
            job = list(self.reference.jobs)[-1]
            self._take(job)
            self._finish(job, passed=True)

    @rule(name=names, dataset=st.sampled_from(DATASETS), data=st.data())
    def start_from(self, name: str, dataset: str, data: st.DataObject) -> None:
        self.start(name, dataset, self._number(data))

    @rule(name=names, dataset=st.sampled_from(DATASETS), origin=st.none())
    def start(self, name: str, dataset: str, origin: Number | None) -> None:
        body = {} if origin is None else {"from": ref_of(origin)}
        body |= {"family": name, "dataset_id": dataset}
        version = self.versions[dataset]
        self._queue(
            "start",
            (),
            body,
            lambda job_id: self.reference.start(job_id, name, dataset, version, origin),
        )

    @rule(name=names, base=st.sampled_from([None, BASE, OTHER_BASE]))
    def resume(self, name: str, base: str | None = None) -> None:
        family = self.reference.families.get(name)
        version = 0 if family is None else self.versions[family.dataset]
        self._queue(
            "continue_",
            (name,),
            {} if base is None else {"base": base},
            lambda job_id: self.reference.resume(job_id, name, version, base),
        )

    @rule(dataset=st.sampled_from(DATASETS))
    def grow_dataset(self, dataset: str) -> None:
        self.kept.grow_dataset(dataset)
        self.versions[dataset] += 1

    @precondition(lambda self: self._jobs())
    @rule(data=st.data(), how=st.sampled_from(["pass", "pass", "pass", "gate", "fail"]))
    def train(self, data: st.DataObject, how: str) -> None:
        """Take a fine-tune and end it."""
        job = data.draw(st.sampled_from(self._jobs()))
        self._take(job)
        if how == "fail":
            self.kept.fail(self.ids[job])
            self.reference.fail(job)
        else:
            self._finish(job, passed=how == "pass")

    @precondition(lambda self: self._jobs())
    @rule(data=st.data())
    def take(self, data: st.DataObject) -> None:
        self._take(data.draw(st.sampled_from(self._jobs())))

    @precondition(lambda self: self.reference.jobs)
    @rule(data=st.data(), passed=st.booleans())
    def finish_again(self, data: st.DataObject, passed: bool) -> None:
        """A step of a trainer may be reported twice, or after the end."""
        self._finish(data.draw(st.sampled_from(sorted(self.reference.jobs))), passed=passed)

    @precondition(lambda self: self.reference.jobs)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        job = data.draw(st.sampled_from(sorted(self.reference.jobs)))
        job_id = self.ids[job]
        self.kept.lineages.apply_now("local", lambda lineage, c: cancel_job(lineage, job_id, c))
        self.reference.cancel(job)

    @precondition(lambda self: self.reference.jobs)
    @rule(data=st.data())
    def stop(self, data: st.DataObject) -> None:
        job = data.draw(st.sampled_from(sorted(self.reference.jobs)))
        self.kept.stop(self.ids[job])
        self.reference.stop(job)

    # Switches, warmth, rollback, deletion.

    @rule(name=names, on=st.booleans(), data=st.data())
    def switch(self, name: str, on: bool, data: st.DataObject) -> None:
        off = self._others(name, data) if on else []
        target = self._would_serve(name)
        self._command(
            "switch",
            (name,),
            {"on": on, **_switch_off(off)},
            lambda: self.reference.switch(name, on=on, off=off),
            loads=target,
        )

    @rule(on=st.booleans(), data=st.data())
    def switch_model(self, on: bool, data: st.DataObject) -> None:
        number = self._number(data)
        off = self._others(number, data) if on else []
        self._command(
            "switch_model",
            (ref_of(number),),
            {"on": on, **_switch_off(off)},
            lambda: self.reference.switch_model(number, on=on, off=off),
            loads=number,
        )

    @rule(enabled=st.sampled_from([True, True, False]), data=st.data())
    def keep_warm(self, enabled: bool, data: st.DataObject) -> None:
        one = self._one(data)
        what = "keep_warm" if isinstance(one, str) else "keep_model_warm"
        self._command(
            what,
            (one if isinstance(one, str) else ref_of(one),),
            {"enabled": enabled},
            lambda: self.reference.keep_warm(one, enabled=enabled),
        )

    @rule(data=st.data())
    def roll_back(self, data: st.DataObject) -> None:
        to = self._number(data)
        family = self.reference.families.get(to[0])
        newer = (
            []
            if family is None
            else [
                one
                for one in family.models
                if one > to and self.reference.models[one].status == "ready"
            ]
        )
        self._command(
            "roll_back",
            (to[0],),
            {"to": ref_of(to), "discard": [ref_of(one) for one in newer]},
            lambda: self.reference.roll_back(to[0], to),
        )

    @rule(name=names)
    def delete(self, name: str) -> None:
        self._command("delete", (name,), {}, lambda: self.reference.delete(name))

    @rule(data=st.data())
    def delete_model(self, data: st.DataObject) -> None:
        number = self._number(data)
        self._command(
            "delete_model",
            (ref_of(number),),
            {},
            lambda: self.reference.delete_model(number),
        )

    # Calls and evaluations.

    @rule(data=st.data())
    def call(self, data: st.DataObject) -> None:
        one = self._one(data)
        name = one if isinstance(one, str) else ref_of(one)
        try:
            wanted = self.reference.call(one)
        except RefusedError as error:
            with pytest.raises(SteelyardError) as caught:
                asyncio.run(self.kept.family_models.resolve(LOCAL, name))
            _check_code(caught.value, error)
            return
        resolved = asyncio.run(self.kept.family_models.resolve(LOCAL, name))
        assert resolved.model.ref == ref_of(wanted)
        self.reference.use(one)
        self.kept.family_models.note_use("local", name)
        self.kept.state.write_now(lambda connection: None)
        self._wait(1.0)

    @precondition(lambda self: self.reference.models)
    @rule(data=st.data())
    def evaluate(self, data: st.DataObject) -> None:
        number = data.draw(st.sampled_from(sorted(self.reference.models)))
        if self.reference.models[number].status != "ready":
            return
        self.n_evaluations += 1
        evaluation = f"eval_{self.n_evaluations}"
        values = dict.fromkeys(("dataset_sha256", "evaluation_sha256", "model_sha256"), "0" * 64)
        values |= {
            "id": evaluation,
            "account_id": "local",
            "dataset_id": "ds_1",
            "method": "sft",
            "model_id": self.adapters[number],
            "model_label": ref_of(number),
        }
        counts = dict.fromkeys(("dataset_version", "evaluation_rows", "decisions"), 1)
        times = dict.fromkeys(("created_at", "updated_at"), self.kept.clock.at)
        self.kept.state.write_now(lambda c: EVALUATIONS.add(c, {**values, **counts, **times}))
        self.reference.evaluations[evaluation] = number

    @precondition(lambda self: self.reference.evaluations)
    @rule(data=st.data())
    def end_evaluation(self, data: st.DataObject) -> None:
        evaluation = data.draw(st.sampled_from(sorted(self.reference.evaluations)))
        self.kept.state.write_now(
            lambda c: EVALUATIONS.move(c, evaluation, "succeeded", at=0.0, only_if=("queued",))
        )
        del self.reference.evaluations[evaluation]

    # The world.

    @rule(amount=st.sampled_from([100, 1_500, 20_000]))
    def add_credit(self, amount: int) -> None:
        if amount:
            self.desk.accounts.add_credit("local", amount)
        self.reference.credit += amount

    @rule(seconds=st.sampled_from([1.0, 59.0, 1_800.0, 3_600.0, 2 * DAY, 8 * DAY]))
    def wait(self, seconds: float) -> None:
        self._wait(seconds)

    @rule(is_slow=st.booleans())
    def change_engines(self, is_slow: bool) -> None:
        self.kept.engines.is_slow = is_slow

    @rule()
    def finish_loading(self) -> None:
        self.kept.engines.finish_loading()

    @precondition(lambda self: self.kept.engines.held)
    @rule(data=st.data())
    def let_go(self, data: st.DataObject) -> None:
        """Engines may let go of any model at any time."""
        held = self.kept.engines.held
        numbers = sorted(number for number, one in self.adapters.items() if one in held)
        self.kept.engines.forget(self.adapters[data.draw(st.sampled_from(numbers))])

    @rule()
    def crash(self) -> None:
        """The process dies as it stands, and another takes its place."""
        is_slow = self.kept.engines.is_slow
        self._open()
        self.kept.engines.is_slow = is_slow

    @rule(name=names, on=st.booleans())
    def crash_after_the_commit(self, name: str, on: bool) -> None:
        """A switch is durable, and the process dies before it tells anyone."""
        self.kept.lineages.follow = lambda applied: None  # type: ignore[method-assign]
        self._command(
            "switch",
            (name,),
            {"on": on},
            lambda: self.reference.switch(name, on=on),
            loads=self._would_serve(name),
        )
        self.crash()

    @precondition(lambda self: self.last is not None)
    @rule()
    def send_again(self) -> None:
        """The newest command comes once more with its key: it is answered and not done again."""
        assert self.last is not None
        what, given, body, answer = self.last
        reply = self.kept.post(what, *given, key=f"k{self.n_keys}", **body)
        assert reply.is_replay
        assert reply.body == answer

    # What always holds.

    @invariant()
    def state_and_reference_agree(self) -> None:
        self._settle()
        lineage = self.kept.lineage()
        wanted = self.reference
        assert lineage.families.keys() == wanted.families.keys()
        for name, family in wanted.families.items():
            found = lineage.families[name]
            served = None if found.served is None else lineage.models[found.served].ref
            assert (
                found.switch.is_on,
                found.switch.off_reason,
                found.switch.used_at,
                served,
                found.keep_warm,
                found.deleted_at is not None,
                len(found.models),
            ) == (
                family.on,
                family.off_reason,
                family.used_at,
                None if family.served is None else ref_of(family.served),
                family.warm,
                family.is_deleted,
                len(family.models),
            ), name
        assert {m.ref for m in lineage.models.values()} == {ref_of(one) for one in wanted.models}
        for model in lineage.models.values():
            number = (model.family, model.version)
            ref = wanted.models[number]
            assert (model.status, model.switch.is_on, model.keep_warm, model.base) == (
                ref.status,
                ref.on,
                ref.warm,
                ref.base,
            ), number
            assert model.switch.used_at == ref.used_at, number
            assert self.adapters.setdefault(number, model.adapter) == model.adapter
        assert lineage.jobs.keys() == {self.ids[job] for job in wanted.jobs}
        for job_id, job in wanted.jobs.items():
            found_job = lineage.jobs[self.ids[job_id]]
            assert (found_job.status, found_job.outcome, found_job.base) == (
                job.status,
                job.outcome,
                job.base,
            ), job_id
        warm = {(lineage.models[a].family, lineage.models[a].version) for a in lineage.windows}
        assert warm == wanted.windows.keys() == wanted.kept_warm()

    @invariant()
    def limits_hold(self) -> None:
        assert len(self.reference.answering()) <= LIVE
        assert len(self.reference.kept_warm()) <= WARM

    @invariant()
    def no_money_leaks(self) -> None:
        self.desk.check_ledger()
        wanted = self.reference
        assert self.desk.books() == {
            "paid": wanted.available,
            "held": wanted.held,
            "revenue": wanted.charged,
            "funding": -wanted.credit,
        }
        assert wanted.available >= 0

    @invariant()
    def what_is_kept_is_what_is_told(self) -> None:
        """The state alone has everything: a process that knows nothing reads the same."""
        known = self.kept.lineages.read_now("local")
        self.kept.lineages._cache.clear()
        assert self.kept.lineages.read_now("local") == known
        told = asyncio.run(self.kept.service.page(LOCAL)).data
        is_there = [name for name, one in self.reference.families.items() if not one.is_deleted]
        assert [family.id for family in told] == sorted(is_there)
        for evaluation in self.reference.evaluations:
            row = self.kept.state.read_now(lambda c, one=evaluation: EVALUATIONS.find(c, one))
            assert row is not None
            assert row.status == "queued"

    @invariant()
    def events_have_no_gaps(self) -> None:
        for job in self.kept.lineage().jobs.values():
            events = self.kept.state.read_now(lambda c, one=job.id: job_rows.events_of(c, one))
            assert [event.seq for event in events] == list(range(1, job.n_events + 1))

    # Short ways.

    def _number(self, data: st.DataObject) -> Number:
        there = sorted(self.reference.models)
        if not there or data.draw(anything):
            return data.draw(numbers)
        return data.draw(st.sampled_from(there))

    def _one(self, data: st.DataObject) -> str | Number:
        return data.draw(names) if data.draw(st.booleans()) else self._number(data)

    def _jobs(self) -> list[str]:
        return sorted(
            job_id for job_id, job in self.reference.jobs.items() if job.status in UNENDED
        )

    def _others(self, one: str | Number, data: st.DataObject) -> list[str | Number]:
        """Some families and numbers that there are, but not the one itself."""
        there: list[str | Number] = [
            name
            for name, family in sorted(self.reference.families.items())
            if not family.is_deleted
        ]
        there += sorted(self.reference.models)
        there = [other for other in there if other != one]
        if not there:
            return []
        return data.draw(st.lists(st.sampled_from(there), max_size=3, unique=True))

    def _would_serve(self, name: str) -> Number | None:
        family = self.reference.families.get(name)
        return None if family is None else self.reference.latest(family)

    def _take(self, job: str) -> None:
        self.kept.run(self.ids[job])
        self.reference.run(job)

    def _finish(self, job: str, *, passed: bool) -> None:
        self._see_engines()
        self.kept.finish(self.ids[job], passed=passed)
        self.reference.finish(job, passed=passed)

    def _queue(
        self, what: str, given: tuple[str, ...], body: dict[str, Any], refer: Callable[[str], None]
    ) -> None:
        job = f"job-{self.n_jobs}"
        self.n_jobs += 1
        answer = self._command(what, given, body, lambda: refer(job))
        if answer is not None:
            self.ids[job] = answer["id"]

    def _command(
        self,
        what: str,
        given: tuple[str, ...],
        body: dict[str, Any],
        refer: Callable[[], None],
        *,
        loads: Number | None = None,
    ) -> dict[str, Any] | None:
        """Send a command to both, with a key; their refusals have one code."""
        self._see_engines()
        if loads is not None and not self.kept.engines.is_slow:
            # It is loaded for the command, which is then given again.
            self.reference.loaded.add(loads)
        self.n_keys += 1
        try:
            refer()
        except RefusedError as error:
            with pytest.raises(SteelyardError) as caught:
                self.kept.post(what, *given, key=f"k{self.n_keys}", **body)
            _check_code(caught.value, error)
            self.last = None
            return None
        reply = self.kept.post(what, *given, key=f"k{self.n_keys}", **body)
        assert not reply.is_replay
        self.last = (what, given, body, reply.body)
        answer: dict[str, Any] = json.loads(reply.body)
        return answer

    def _see_engines(self) -> None:
        held = self.kept.engines.held
        self.reference.now = self.kept.clock.at
        self.reference.loaded = {
            number for number, adapter in self.adapters.items() if held.get(adapter) == "loaded"
        }

    def _wait(self, seconds: float) -> None:
        self.kept.clock.at += seconds
        self.last = None  # its answer may no longer be kept

    def _settle(self) -> None:
        """Do due work until nothing more is due: a tick may load a model that the next one moves to."""
        for model in self.kept.lineage().models.values():
            self.adapters.setdefault((model.family, model.version), model.adapter)
        for _ in range(8):
            before = (dict(self.kept.engines.held), self.kept.lineages.read_now("local").revision)
            self._see_engines()
            self.reference.pass_time()
            self.kept.service.tick()
            self.kept.state.write_now(lambda connection: None)
            if before == (
                self.kept.engines.held,
                self.kept.lineages.read_now("local").revision,
            ):
                return
        raise AssertionError("It never comes to rest.")


def _switch_off(off: list[str | Number]) -> dict[str, list[str]]:
    named = [one if isinstance(one, str) else ref_of(one) for one in off]
    return {"switch_off": named} if named else {}


def _check_code(raised: SteelyardError, wanted: RefusedError) -> None:
    assert raised.code == wanted.code, raised


class ManyLineages(Lineages):
    """The same for longer."""


Lineages.TestCase.settings = settings(max_examples=6, stateful_step_count=30, deadline=None)
ManyLineages.TestCase.settings = settings(max_examples=150, stateful_step_count=60, deadline=None)

TestLineages = Lineages.TestCase
TestManyLineages = pytest.mark.slow(pytest.mark.timeout(3600)(ManyLineages.TestCase))
