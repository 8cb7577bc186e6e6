"""Rollback: exactly what was confirmed, all in one step."""

from __future__ import annotations

import pytest

from steelyard.errors import (
    InvalidReferenceError,
    ModelDeletedError,
    ModelDiscardedError,
    NotFoundError,
    NothingToRollBackError,
    RollbackChangedError,
    ServedChangedError,
    VersionInUseError,
)
from steelyard.families.deletion import delete_model
from steelyard.families.events import CancelEvaluation, CancelJob, DropModel, LoadModel, Settle
from steelyard.families.fine_tunes import continue_family, start_family, start_job
from steelyard.families.lineage import Lines, SelfMove, Work, answering, latest_of
from steelyard.families.moving import move_ready
from steelyard.families.references import resolve_call
from steelyard.families.rollback import plan_rollback, roll_back
from steelyard.families.serializers import tell_family
from steelyard.families.switching import switch_family, switch_model
from steelyard.families.warmth import keep_family_warm
from support.family_lines import (
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
def lines() -> Lines:
    """ant@1 to ant@3; ant serves the last."""
    return grow(Lines(), "ant", 3)


def test_the_newer_models_are_discarded_and_the_older_one_served(lines):
    later = at(START + 9)
    change = roll_back(lines, "ant", "ant@1", ["ant@3", "ant@2"], later)
    family = change.lines.families["ant"]
    assert (family.served, family.moved) == (adapter("ant", 1), None)
    assert latest_of(change.lines, family).ref == "ant@1"
    for version in (2, 3):
        model = change.lines.models[adapter("ant", version)]
        assert (model.status, model.discarded_at) == ("discarded", START + 9)
        job = change.lines.jobs[model.job_id]
        assert (job.status, job.outcome, job.output_model) == (
            "succeeded",
            "rolled_back",
            model.adapter,
        )
        assert DropModel(model.adapter) in change.effects
    with pytest.raises(ModelDiscardedError):
        resolve_call(change.lines, "ant@3")
    told = tell_family(change.lines, family, later, with_jobs=True)
    assert [model.ref for model in told.models] == ["ant@1", "ant@2", "ant@3"]
    assert [job.reason for job in told.jobs] == [None, None, None]


def test_the_next_model_gets_the_next_number(lines):
    lines = roll_back(lines, "ant", "ant@1", ["ant@2", "ant@3"], at()).lines
    lines = grow(lines, "ant", 4)
    family = lines.families["ant"]
    assert latest_of(lines, family).ref == "ant@4"
    assert lines.models[adapter("ant", 4)].parent == adapter("ant", 1)


@pytest.mark.parametrize("discard", [[], ["ant@3"], ["ant@2", "ant@3", "ant@1"], ["bee@1"]])
def test_another_list_is_refused_with_what_it_would_do(lines, discard):
    order = make_order("ftj_ant_4", dataset_version=4)
    lines = continue_family(lines, "ant", order, make_growth(4), at()).lines
    work = (Work(id="evl_1", kind="evaluation", adapter=adapter("ant", 3)),)
    with pytest.raises(RollbackChangedError) as refused:
        roll_back(lines, "ant", "ant@1", discard, at(work=work))
    assert refused.value.details == [
        {"discard": ["ant@2", "ant@3"], "cancel": ["ftj_ant_4", "evl_1"]}
    ]


def test_models_that_are_gone_already_are_not_to_be_confirmed(lines):
    lines = delete_model(lines, "ant@2", at()).lines
    assert [m.ref for m in plan_rollback(lines, "ant", "ant@1", at()).discard] == ["ant@3"]
    change = roll_back(lines, "ant", "ant@1", ["ant@3"], at())
    assert change.lines.models[adapter("ant", 2)].status == "deleted"


def test_the_work_on_them_is_cancelled(lines):
    order = make_order("ftj_ant_4", dataset_version=4, price_nano=70)
    lines = continue_family(lines, "ant", order, make_growth(4), at()).lines
    work = (
        Work(id="evl_1", kind="evaluation", adapter=adapter("ant", 3)),
        Work(id="evl_2", kind="evaluation", adapter=adapter("ant", 2)),
    )
    change = roll_back(lines, "ant", "ant@2", ["ant@3"], at(work=work))
    assert [e for e in change.effects if isinstance(e, CancelJob | CancelEvaluation | Settle)] == [
        CancelJob("ftj_ant_4"),
        Settle("ftj_ant_4", 70, 0),
        CancelEvaluation("evl_1"),
    ]
    assert change.lines.jobs["ftj_ant_4"].status == "cancelled"
    running = start_job(lines, "ftj_ant_4", at()).lines
    change = roll_back(running, "ant", "ant@2", ["ant@3"], at(work=work))
    assert change.lines.jobs["ftj_ant_4"].status == "cancelling"


def test_work_of_another_kind_holds_them(lines):
    tuned = at(work=(Work(id="pt_1", kind="prompt_tuning", adapter=adapter("ant", 3)),))
    with pytest.raises(VersionInUseError, match="pt_1"):
        roll_back(lines, "ant", "ant@2", ["ant@3"], tuned)
    child = start_family(lines, "bee", "ant@3", make_order("ftj_bee_1"), at()).lines
    with pytest.raises(VersionInUseError, match="ftj_bee_1"):
        roll_back(child, "ant", "ant@2", ["ant@3"], at())
    assert roll_back(join(child, "ftj_bee_1"), "ant", "ant@2", ["ant@3"], at())


def test_refusals_of_the_target(lines):
    lines = grow(lines, "bee", 1)
    for to, error in [
        ("ant@3", NothingToRollBackError),
        ("ant@9", NotFoundError),
        ("bee@1", InvalidReferenceError),
        ("ant", InvalidReferenceError),
        ("ft-ftj_ant_1", InvalidReferenceError),
    ]:
        with pytest.raises(error):
            roll_back(lines, "ant", to, [], at())
    gone = delete_model(lines, "ant@1", at()).lines
    with pytest.raises(ModelDeletedError):
        roll_back(gone, "ant", "ant@1", ["ant@2", "ant@3"], at())
    back = roll_back(lines, "ant", "ant@1", ["ant@2", "ant@3"], at()).lines
    with pytest.raises(ModelDiscardedError):
        roll_back(back, "ant", "ant@2", [], at())
    with pytest.raises(ServedChangedError):
        roll_back(lines, "ant", "ant@1", ["ant@2", "ant@3"], at(), served=adapter("ant", 1))


def test_switches_and_keep_warm_of_the_discarded_end(lines):
    lines = switch_model(lines, "ant@3", at(), on=True).lines
    lines = keep_family_warm(lines, "ant", at(), enabled=True).lines
    change = roll_back(lines, "ant", "ant@2", ["ant@3"], at(START + 9, live_limit=1))
    model = change.lines.models[adapter("ant", 3)]
    assert (model.switch.off_reason, model.switch.off_at) == ("owner", START + 9)
    assert change.lines.families["ant"].keep_warm
    assert change.lines.windows.keys() == answering(change.lines).keys() == {adapter("ant", 2)}


def test_an_older_model_that_is_not_loaded_is_asked_for(lines):
    states = AllLoaded({adapter("ant", 1): "unloaded"})
    change = roll_back(lines, "ant", "ant@1", ["ant@2", "ant@3"], at(states=states))
    assert LoadModel(adapter("ant", 1)) in change.effects
    assert resolve_call(change.lines, "ant").ref == "ant@1"


def test_a_family_that_is_off_stays_off(lines):
    lines = switch_family(lines, "ant", at(), on=False).lines
    family = roll_back(lines, "ant", "ant@2", ["ant@3"], at()).lines.families["ant"]
    assert (family.switch.is_on, family.served) == (False, adapter("ant", 2))


def test_one_that_serves_an_older_model_still_moves_up_to_the_target():
    lines = grow(Lines(), "ant", 1)
    held = at(states=AllLoaded({adapter("ant", 2): "loading", adapter("ant", 3): "loading"}))
    lines = grow(lines, "ant", 3, conditions=held)
    assert lines.families["ant"].served == adapter("ant", 1)
    lines = roll_back(lines, "ant", "ant@2", ["ant@3"], held).lines
    assert (lines.families["ant"].served, lines.families["ant"].moved) == (adapter("ant", 1), None)
    lines = move_ready(lines, at(START + 9)).lines
    assert lines.families["ant"].moved == SelfMove(at=START + 9, from_ref="ant@1")


def test_a_family_without_models_has_nothing_to_go_back_to():
    with pytest.raises(NotFoundError):
        roll_back(start(Lines(), "ant"), "ant", "ant@1", [], at())
