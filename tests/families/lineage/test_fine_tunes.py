"""Fine-tunes: queueing, endings, charges, and joining models."""

from __future__ import annotations

import pytest
from msgspec import UNSET, structs

from steelyard import errors
from steelyard.families.fine_tune_wire import JobError
from steelyard.families.lineage.continuing import trained_version
from steelyard.families.lineage.events import AddEvent, CancelFineTune, Hold, QueueJob, Settle
from steelyard.families.lineage.fine_tunes import (
    cancel_job,
    continue_family,
    fail_job,
    finish_job,
    report_job,
    start_family,
    start_job,
    stop_job,
)
from steelyard.families.lineage.lineage import Lineage, is_only_compared, next_base
from steelyard.families.lineage.rollback import roll_back
from support.families.lineage_cases import (
    BASE,
    OTHER_BASE,
    START,
    WORDS_FIRST,
    adapter,
    at,
    grow,
    join,
    make_gate,
    make_growth,
    make_order,
    start,
)

FAILURE = JobError(code="internal_error", message="The trainer broke.\nTraceback …")


@pytest.fixture
def queued() -> Lineage:
    """The first fine-tune of ant, for 70 nano-USD."""
    return start_family(Lineage(), "ant", BASE, make_order("ftj_1", price_nano=70), at()).lineage


@pytest.fixture
def running(queued) -> Lineage:
    return start_job(queued, "ftj_1", at()).lineage


def events(change) -> list[str]:
    return [effect.event.type for effect in change.effects if isinstance(effect, AddEvent)]


def money(change) -> list:
    return [effect for effect in change.effects if isinstance(effect, Hold | Settle)]


def test_a_start_holds_the_fee_and_queues():
    change = start_family(Lineage(), "ant", BASE, make_order("ftj_1", price_nano=70), at())
    job, family = change.lineage.jobs["ftj_1"], change.lineage.families["ant"]
    assert (job.status, job.outcome, job.charge, job.parent) == ("queued", None, "reserved", None)
    assert job.base == BASE
    assert (family.origin, family.dataset_id, family.created_at) == (BASE, "ds_1", START)
    assert (family.served, family.models, family.jobs) == (None, (), ("ftj_1",))
    assert money(change) == [Hold("ftj_1", 70)]
    assert QueueJob("ftj_1") in change.effects
    assert events(change) == ["queued"]


def test_a_free_fine_tune_stays_free(queued):
    lineage = start(Lineage(), "bee")
    assert lineage.jobs["ftj_bee_1"].charge == "free"
    change = cancel_job(lineage, "ftj_bee_1", at())
    assert (change.lineage.jobs["ftj_bee_1"].charge, money(change)) == ("free", [])


@pytest.mark.parametrize(
    "name", ["", "Ant", "1ant", "ant_1", "ant@1", "-a", "a" * 49, "ant ", "ant\n", "änt", BASE]
)
def test_names_that_no_family_may_have(name):
    with pytest.raises(errors.InvalidNameError):
        start_family(Lineage(), name, BASE, make_order("ftj_1"), at())


def test_a_taken_name(queued):
    with pytest.raises(errors.FamilyExistsError):
        start_family(queued, "ant", BASE, make_order("ftj_2"), at())


@pytest.mark.parametrize("origin", ["base-2", "base-3", "ant@9", "fox@1", "ant", "ft-ftj_ant_1"])
def test_bases_that_are_refused(origin):
    with pytest.raises(errors.InvalidReferenceError):
        start_family(grow(Lineage(), "ant", 1), "bee", origin, make_order("ftj_2"), at())


def test_a_start_from_a_number():
    lineage = grow(Lineage(), "ant", 2)
    change = start_family(lineage, "bee", "ant@1", make_order("ftj_2"), at())
    assert change.lineage.jobs["ftj_2"].parent == adapter("ant", 1)
    assert change.lineage.families["bee"].origin == "ant@1"
    gone = roll_back(lineage, "ant", "ant@1", ["ant@2"], at()).lineage
    with pytest.raises(errors.ModelDiscardedError):
        start_family(gone, "bee", "ant@2", make_order("ftj_2"), at())


def test_refusals_hold_nothing(queued):
    order = make_order("ftj_2", price_nano=70)
    for conditions, bound, error in [
        (at(), "0.000000069", errors.PriceChangedError),
        (at(available_nano=69), None, errors.InsufficientCreditError),
        (at(account_queue=1), None, errors.TenantQueueFullError),
        (at(queue_room=0), None, errors.QueueFullError),
    ]:
        with pytest.raises(error):
            start_family(queued, "bee", BASE, order, conditions, max_price_usd=bound)
    allowed = at(available_nano=70)
    assert start_family(queued, "bee", BASE, order, allowed, max_price_usd="0.00000007")


def test_a_queue_counts_waiting_jobs(running):
    start_family(running, "bee", BASE, make_order("ftj_2"), at(account_queue=1))


def test_a_passed_gate_makes_a_model(running):
    change = finish_job(running, "ftj_1", make_gate(), {"accuracy": 0.9}, at(START + 9))
    job, family = change.lineage.jobs["ftj_1"], change.lineage.families["ant"]
    assert (job.status, job.outcome, job.charge) == ("succeeded", "joined", "charged")
    assert (job.output_model, job.updated_at) == ("ft-ftj_1", START + 9)
    model = change.lineage.models["ft-ftj_1"]
    assert (model.ref, model.parent, model.created_at) == ("ant@1", None, START + 9)
    assert (model.heldout, model.gate) == ({"accuracy": 0.9}, make_gate())
    assert (family.models, family.served) == (("ft-ftj_1",), None)
    assert money(change) == [Settle("ftj_1", 70, 70)]
    assert events(change) == ["gate_passed", "joined", "succeeded"]


def test_a_failed_gate_is_charged_and_makes_none(running):
    change = finish_job(running, "ftj_1", make_gate(passed=False), {}, at())
    job = change.lineage.jobs["ftj_1"]
    assert (job.status, job.outcome, job.charge) == ("succeeded", "gate_failed", "charged")
    assert (job.output_model, job.reason) == (None, "new_rows_worse")
    assert change.lineage.models == {}
    assert events(change) == ["gate_failed", "succeeded"]
    told = finish_job(running, "ftj_1", make_gate(passed=False), {}, at(), reason="It got worse.")
    assert told.lineage.jobs["ftj_1"].reason == "It got worse."


def test_a_failure_is_released(running):
    change = fail_job(running, "ftj_1", FAILURE, at())
    job = change.lineage.jobs["ftj_1"]
    assert (job.status, job.outcome, job.charge) == ("failed", "failed", "released")
    assert (job.error, job.reason) == (FAILURE, "The trainer broke.")
    assert money(change) == [Settle("ftj_1", 70, 0)]


def test_a_queued_one_is_cancelled_at_once(queued):
    change = cancel_job(queued, "ftj_1", at())
    job = change.lineage.jobs["ftj_1"]
    assert (job.status, job.outcome, job.charge) == ("cancelled", "cancelled", "released")
    assert CancelFineTune("ftj_1") in change.effects


def test_a_running_one_is_cancelled_when_its_trainer_stops(running):
    change = cancel_job(running, "ftj_1", at())
    job = change.lineage.jobs["ftj_1"]
    assert (job.status, job.outcome, job.charge) == ("cancelling", None, "reserved")
    again = cancel_job(change.lineage, "ftj_1", at())
    assert (again.lineage, again.effects) == (change.lineage, ())
    stopped = stop_job(change.lineage, "ftj_1", at())
    job = stopped.lineage.jobs["ftj_1"]
    assert (job.status, job.outcome, job.charge) == ("cancelled", "cancelled", "released")
    too_late = finish_job(change.lineage, "ftj_1", make_gate(), {}, at())
    assert too_late.lineage.models == {}
    assert too_late.lineage.jobs["ftj_1"].status == "cancelled"
    broke = fail_job(change.lineage, "ftj_1", FAILURE, at())
    assert broke.lineage.jobs["ftj_1"].outcome == "failed"


@pytest.mark.parametrize("end", ["joined", "failed", "cancelled"])
def test_ended_jobs_stay_as_they_ended(running, end):
    lineage = {
        "joined": lambda: finish_job(running, "ftj_1", make_gate(), {}, at()),
        "failed": lambda: fail_job(running, "ftj_1", FAILURE, at()),
        "cancelled": lambda: stop_job(cancel_job(running, "ftj_1", at()).lineage, "ftj_1", at()),
    }[end]().lineage
    for again in (
        start_job(lineage, "ftj_1", at()),
        report_job(lineage, "ftj_1", "step", "Step 5.", at()),
        cancel_job(lineage, "ftj_1", at()),
        stop_job(lineage, "ftj_1", at()),
        fail_job(lineage, "ftj_1", FAILURE, at()),
        finish_job(lineage, "ftj_1", make_gate(), {}, at()),
    ):
        assert (again.lineage, again.effects) == (lineage, ())


def test_events_are_numbered_without_gaps(queued):
    change = start_job(queued, "ftj_1", at(START + 1))
    report = report_job(change.lineage, "ftj_1", "step", "Step 5 of 20.", at(START + 2))
    (effect,) = report.effects
    assert (effect.event.seq, effect.event.created_at) == (3, START + 2)
    assert effect.event.message == "Step 5 of 20."


class TestWordsFirst:
    """Words answer first, and the fine-tune that follows them has the one fee of both."""

    @pytest.fixture
    def first(self) -> Lineage:
        order = make_order("ftj_1", price_nano=70, hyperparameters=WORDS_FIRST)
        lineage = start_family(Lineage(), "ant", BASE, order, at()).lineage
        return start_job(lineage, "ftj_1", at()).lineage

    @staticmethod
    def follow(first: Lineage, *, passed: bool = True):
        # A queue that is full refuses new fine-tunes, and this one was accepted; its credit is held.
        full = at(START + 9, account_queue=0, queue_room=0, available_nano=0)
        return finish_job(first, "ftj_1", make_gate(passed), {}, full, next_id="ftj_2")

    @pytest.mark.parametrize("passed", [True, False])
    def test_the_rest_is_queued_under_the_fee_that_is_held(self, first, passed):
        words = first.jobs["ftj_1"]
        trained = words.hyperparameters
        assert (trained.heads, trained.lora_rank, trained.first) == ("words", 0, "words")
        change = self.follow(first, passed=passed)
        ended, job = (change.lineage.jobs[name] for name in ("ftj_1", "ftj_2"))
        assert (ended.status, ended.charge, ended.price_nano) == ("succeeded", "free", 0)
        assert (job.status, job.charge, job.price_nano) == ("queued", "reserved", 70)
        assert job.hyperparameters == structs.replace(WORDS_FIRST, first=UNSET)
        assert (job.follows, job.parent) == ("ftj_1", "ft-ftj_1" if passed else None)
        assert (job.created_at, job.outcome, job.gate) == (START + 9, None, None)
        assert money(change) == []
        assert QueueJob("ftj_2") in change.effects
        assert change.lineage.families["ant"].jobs == ("ftj_1", "ftj_2")
        again = finish_job(change.lineage, "ftj_1", make_gate(), {}, at(), next_id="ftj_3")
        assert (again.lineage, again.effects) == (change.lineage, ())

    @pytest.mark.parametrize("passed", [True, False])
    def test_the_fee_is_charged_once_whatever_the_gate_says_of_the_second(self, first, passed):
        lineage = start_job(self.follow(first).lineage, "ftj_2", at()).lineage
        change = finish_job(lineage, "ftj_2", make_gate(passed), {}, at())
        family = change.lineage.families["ant"]
        assert family.models == ("ft-ftj_1", "ft-ftj_2")[: 1 + passed]
        assert change.lineage.jobs["ftj_2"].charge == "charged"
        assert money(change) == [Settle("ftj_1", 70, 70)]
        # A model of words that answers first has learned no row for the next.
        assert trained_version(change.lineage, family) == (1 if passed else None)
        assert is_only_compared(change.lineage, family, family.models[-1]) != passed

    @pytest.mark.parametrize("end", ["failed", "cancelled"])
    def test_a_second_that_makes_nothing_costs_nothing_and_is_tried_again(self, first, end):
        lineage = start_job(self.follow(first).lineage, "ftj_2", at()).lineage
        change = (
            fail_job(lineage, "ftj_2", FAILURE, at())
            if end == "failed"
            else stop_job(cancel_job(lineage, "ftj_2", at()).lineage, "ftj_2", at())
        )
        assert money(change) == [Settle("ftj_1", 70, 0)]
        assert change.lineage.jobs["ftj_2"].charge == "released"
        order = make_order("ftj_3")
        lineage = continue_family(change.lineage, "ant", order, make_growth(1), at()).lineage
        assert lineage.jobs["ftj_3"].parent == "ft-ftj_1"

    def test_nothing_follows_words_that_fail_or_are_cancelled(self, first):
        failed = fail_job(first, "ftj_1", FAILURE, at())
        cancelled = stop_job(cancel_job(first, "ftj_1", at()).lineage, "ftj_1", at())
        for change in (failed, cancelled):
            assert money(change) == [Settle("ftj_1", 70, 0)]
            assert change.lineage.families["ant"].jobs == ("ftj_1",)


def test_an_unknown_fine_tune():
    with pytest.raises(errors.NotFoundError):
        cancel_job(Lineage(), "ftj_1", at())


class TestContinuing:
    def test_it_trains_from_the_latest(self):
        lineage = grow(Lineage(), "ant", 2)
        order = make_order("ftj_ant_3", dataset_version=3)
        change = continue_family(
            lineage, "ant", order, make_growth(3), at(), latest=adapter("ant", 2)
        )
        assert change.lineage.jobs["ftj_ant_3"].parent == adapter("ant", 2)

    def test_guards_and_one_at_a_time(self):
        lineage = grow(Lineage(), "ant", 1)
        order = make_order("ftj_ant_2", dataset_version=2)
        for latest in (None, adapter("ant", 9)):
            with pytest.raises(errors.FamilyChangedError):
                continue_family(lineage, "ant", order, make_growth(2), at(), latest=latest)
        lineage = continue_family(lineage, "ant", order, make_growth(2), at()).lineage
        other = make_order("ftj_ant_3", dataset_version=2)
        with pytest.raises(errors.FamilyTrainingError):
            continue_family(lineage, "ant", other, make_growth(2), at())

    def test_another_base_is_that_of_the_next_ones_until_a_rollback(self):
        both = at(base_models=frozenset({BASE, OTHER_BASE}))

        def queue(lineage, version, **members):
            order = make_order(f"ftj_ant_{version}", dataset_version=version, **members)
            return continue_family(lineage, "ant", order, make_growth(version), both).lineage

        moved = {"base": OTHER_BASE, "is_move": True}
        lineage = grow(Lineage(), "ant", 1)
        # A plan of the other case has other rows and another price.
        for stale in ({"base": OTHER_BASE}, {"is_move": True}):
            with pytest.raises(errors.FamilyChangedError):
                queue(lineage, 2, **stale)
        lineage = join(queue(lineage, 2, **moved), "ftj_ant_2", conditions=both)
        model = lineage.models[adapter("ant", 2)]
        assert (model.base, model.parent) == (OTHER_BASE, adapter("ant", 1))
        family = lineage.families["ant"]
        assert (family.base, next_base(lineage, family)) == (BASE, OTHER_BASE)
        with pytest.raises(errors.FamilyChangedError):
            queue(lineage, 3, **moved)
        assert queue(lineage, 3, base=OTHER_BASE).jobs["ftj_ant_3"].base == OTHER_BASE
        back = roll_back(lineage, "ant", "ant@1", ["ant@2"], both).lineage
        assert next_base(back, back.families["ant"]) == BASE
        job = queue(back, 3).jobs["ftj_ant_3"]
        assert (job.base, job.parent) == (BASE, adapter("ant", 1))

    def test_a_family_without_a_model_starts_from_its_origin_again(self):
        lineage = grow(Lineage(), "ant", 1)
        lineage = start_family(lineage, "bee", "ant@1", make_order("ftj_b1"), at()).lineage
        lineage = cancel_job(lineage, "ftj_b1", at()).lineage
        order = make_order("ftj_b2")
        lineage = continue_family(lineage, "bee", order, make_growth(1), at(), latest=None).lineage
        assert lineage.jobs["ftj_b2"].parent == adapter("ant", 1)
        assert join(lineage, "ftj_b2").families["bee"].served == "ft-ftj_b2"
