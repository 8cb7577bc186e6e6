"""Rollback: exactly the confirmed plan, all in one step."""

from __future__ import annotations

import pytest

from steelyard import errors
from steelyard.families.lineage.deletion import delete_model
from steelyard.families.lineage.events import (
    CancelEvaluation,
    CancelFineTune,
    DropModel,
    LoadModel,
    Settle,
)
from steelyard.families.lineage.fine_tunes import continue_family, start_family, start_job
from steelyard.families.lineage.lineage import Lineage, SelfMove, answering, latest_of
from steelyard.families.lineage.moving import move_ready
from steelyard.families.lineage.references import resolve_call
from steelyard.families.lineage.rollback import plan_rollback, roll_back
from steelyard.families.lineage.switching import switch_family, switch_model
from steelyard.families.lineage.warmth import keep_family_warm
from steelyard.families.serializers import family_to_wire
from steelyard.model_use import ModelUse
from support.families.lineage_cases import (
    START,
    AllLoaded,
    adapter,
    at,
    grow,
    join,
    make_growth,
    make_order,
    start,
)


@pytest.fixture
def lineage() -> Lineage:
    """ant@1 to ant@3; ant serves the last."""
    return grow(Lineage(), "ant", 3)


def test_the_newer_models_are_discarded_and_the_older_one_served(lineage):
    later = at(START + 9)
    change = roll_back(lineage, "ant", "ant@1", ["ant@3", "ant@2"], later)
    family = change.lineage.families["ant"]
    assert (family.served, family.moved) == (adapter("ant", 1), None)
    assert latest_of(change.lineage, family).ref == "ant@1"
    for version in (2, 3):
        model = change.lineage.models[adapter("ant", version)]
        assert (model.status, model.discarded_at) == ("discarded", START + 9)
        job = change.lineage.jobs[model.job_id]
        assert (job.status, job.outcome) == ("succeeded", "rolled_back")
        assert job.output_model == model.adapter
        assert DropModel(model.adapter) in change.effects
    with pytest.raises(errors.ModelDiscardedError):
        resolve_call(change.lineage, "ant@3")
    told = family_to_wire(change.lineage, family, later, with_jobs=True)
    assert [model.ref for model in told.models] == ["ant@1", "ant@2", "ant@3"]
    assert [job.reason for job in told.jobs] == [None, None, None]


def test_the_next_model_gets_the_next_number(lineage):
    lineage = roll_back(lineage, "ant", "ant@1", ["ant@2", "ant@3"], at()).lineage
    lineage = grow(lineage, "ant", 4)
    family = lineage.families["ant"]
    assert latest_of(lineage, family).ref == "ant@4"
    assert lineage.models[adapter("ant", 4)].parent == adapter("ant", 1)


@pytest.mark.parametrize("discard", [[], ["ant@3"], ["ant@2", "ant@3", "ant@1"], ["bee@1"]])
def test_another_list_is_refused_with_its_effect(lineage, discard):
    order = make_order("ftj_ant_4", dataset_version=4)
    lineage = continue_family(lineage, "ant", order, make_growth(4), at()).lineage
    work = (ModelUse(id="evl_1", adapter=adapter("ant", 3), yields=True),)
    with pytest.raises(errors.RollbackChangedError) as refused:
        roll_back(lineage, "ant", "ant@1", discard, at(work=work))
    assert refused.value.details == [
        {"discard": ["ant@2", "ant@3"], "cancel": ["ftj_ant_4", "evl_1"]}
    ]


def test_models_that_are_gone_already_are_not_to_be_confirmed(lineage):
    lineage = delete_model(lineage, "ant@2", at()).lineage
    assert [m.ref for m in plan_rollback(lineage, "ant", "ant@1", at()).discard] == ["ant@3"]
    change = roll_back(lineage, "ant", "ant@1", ["ant@3"], at())
    assert change.lineage.models[adapter("ant", 2)].status == "deleted"


def test_the_work_on_them_is_cancelled(lineage):
    order = make_order("ftj_ant_4", dataset_version=4, price_nano=70)
    lineage = continue_family(lineage, "ant", order, make_growth(4), at()).lineage
    work = (
        ModelUse(id="evl_1", adapter=adapter("ant", 3), yields=True),
        ModelUse(id="evl_2", adapter=adapter("ant", 2), yields=True),
    )
    change = roll_back(lineage, "ant", "ant@2", ["ant@3"], at(work=work))
    assert [
        e for e in change.effects if isinstance(e, CancelFineTune | CancelEvaluation | Settle)
    ] == [
        CancelFineTune("ftj_ant_4"),
        Settle("ftj_ant_4", 70, 0),
        CancelEvaluation("evl_1"),
    ]
    assert change.lineage.jobs["ftj_ant_4"].status == "cancelled"
    running = start_job(lineage, "ftj_ant_4", at()).lineage
    change = roll_back(running, "ant", "ant@2", ["ant@3"], at(work=work))
    assert change.lineage.jobs["ftj_ant_4"].status == "cancelling"


def test_work_of_another_kind_holds_them(lineage):
    tuned = at(work=(ModelUse(id="pt_1", adapter=adapter("ant", 3)),))
    with pytest.raises(errors.VersionInUseError, match="pt_1"):
        roll_back(lineage, "ant", "ant@2", ["ant@3"], tuned)
    child = start_family(lineage, "bee", "ant@3", make_order("ftj_bee_1"), at()).lineage
    with pytest.raises(errors.VersionInUseError, match="ftj_bee_1"):
        roll_back(child, "ant", "ant@2", ["ant@3"], at())
    assert roll_back(join(child, "ftj_bee_1"), "ant", "ant@2", ["ant@3"], at())


def test_refusals_of_the_target(lineage):
    lineage = grow(lineage, "bee", 1)
    for to, error in [
        ("ant@3", errors.NothingToRollBackError),
        ("ant@9", errors.NotFoundError),
        ("bee@1", errors.InvalidReferenceError),
        ("ant", errors.InvalidReferenceError),
        ("ft-ftj_ant_1", errors.InvalidReferenceError),
    ]:
        with pytest.raises(error):
            roll_back(lineage, "ant", to, [], at())
    gone = delete_model(lineage, "ant@1", at()).lineage
    with pytest.raises(errors.ModelDeletedError):
        roll_back(gone, "ant", "ant@1", ["ant@2", "ant@3"], at())
    back = roll_back(lineage, "ant", "ant@1", ["ant@2", "ant@3"], at()).lineage
    with pytest.raises(errors.ModelDiscardedError):
        roll_back(back, "ant", "ant@2", [], at())
    with pytest.raises(errors.ServedChangedError):
        roll_back(lineage, "ant", "ant@1", ["ant@2", "ant@3"], at(), served=adapter("ant", 1))


def test_switches_and_keep_warm_of_the_discarded_end(lineage):
    lineage = switch_model(lineage, "ant@3", at(), on=True).lineage
    lineage = keep_family_warm(lineage, "ant", at(), enabled=True).lineage
    change = roll_back(lineage, "ant", "ant@2", ["ant@3"], at(START + 9, live_limit=1))
    model = change.lineage.models[adapter("ant", 3)]
    assert (model.switch.off_reason, model.switch.off_at) == ("owner", START + 9)
    assert change.lineage.families["ant"].keep_warm
    assert change.lineage.windows.keys() == answering(change.lineage).keys() == {adapter("ant", 2)}


def test_an_older_model_that_is_not_loaded_is_asked_for(lineage):
    states = AllLoaded({adapter("ant", 1): "unloaded"})
    change = roll_back(lineage, "ant", "ant@1", ["ant@2", "ant@3"], at(states=states))
    assert LoadModel(adapter("ant", 1)) in change.effects
    assert resolve_call(change.lineage, "ant").ref == "ant@1"


def test_a_family_that_is_off_stays_off(lineage):
    lineage = switch_family(lineage, "ant", at(), on=False).lineage
    family = roll_back(lineage, "ant", "ant@2", ["ant@3"], at()).lineage.families["ant"]
    assert (family.switch.is_on, family.served) == (False, adapter("ant", 2))


def test_one_that_serves_an_older_model_still_moves_up_to_the_target():
    lineage = grow(Lineage(), "ant", 1)
    held = at(states=AllLoaded({adapter("ant", 2): "loading", adapter("ant", 3): "loading"}))
    lineage = grow(lineage, "ant", 3, conditions=held)
    assert lineage.families["ant"].served == adapter("ant", 1)
    lineage = roll_back(lineage, "ant", "ant@2", ["ant@3"], held).lineage
    assert lineage.families["ant"].served == adapter("ant", 1)
    assert lineage.families["ant"].moved is None
    lineage = move_ready(lineage, at(START + 9)).lineage
    assert lineage.families["ant"].moved == SelfMove(at=START + 9, from_ref="ant@1")


def test_a_family_without_models_has_nothing_to_go_back_to():
    with pytest.raises(errors.NotFoundError):
        roll_back(start(Lineage(), "ant"), "ant", "ant@1", [], at())
