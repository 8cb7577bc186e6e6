"""Deletion: guards, what holds it back, and names that come back or never do."""

from __future__ import annotations

import pytest

from steelyard.errors import (
    FamilyAnswersError,
    FamilyChangedError,
    FamilyDeletedError,
    FamilyExistsError,
    FamilyTrainingError,
    InvalidReferenceError,
    LatestModelError,
    ModelAnswersError,
    ModelChangedError,
    ModelDeletedError,
    NotFoundError,
    VersionInUseError,
)
from steelyard.families.deletion import delete_family, delete_model
from steelyard.families.events import DropModel
from steelyard.families.fine_tunes import cancel_job, continue_family, start_family
from steelyard.families.lineage import Lines, Work
from steelyard.families.references import find_family, resolve_call
from steelyard.families.rollback import roll_back
from steelyard.families.serializers import tell_job, tell_model
from steelyard.families.switching import switch_family, switch_model
from support.family_lines import (
    BASE,
    START,
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
    """ant@1 to ant@3, off."""
    return switch_family(grow(Lines(), "ant", 3), "ant", at(), on=False).lines


def test_a_family_that_never_had_a_model_goes_and_its_name_is_free():
    lines = cancel_job(start(Lines(), "ant"), "ftj_ant_1", at()).lines
    assert lines.families["ant"].switch.is_on  # it answers nothing, so it may go
    lines = delete_family(lines, "ant", at(), latest=None, dataset_id="ds_1").lines
    assert "ant" not in lines.families
    assert tell_job(lines.jobs["ftj_ant_1"]).family_deleted
    with pytest.raises(NotFoundError):
        delete_family(lines, "ant", at())
    again = start_family(lines, "ant", BASE, make_order("ftj_2"), at()).lines
    assert again.families["ant"].jobs == ("ftj_2",)
    assert not again.jobs["ftj_2"].family_deleted


def test_one_that_had_models_goes_with_its_line_for_ever(lines):
    lines = roll_back(lines, "ant", "ant@2", ["ant@3"], at()).lines
    change = delete_family(lines, "ant", at(START + 9), latest=adapter("ant", 2))
    assert change.effects == (DropModel(adapter("ant", 1)), DropModel(adapter("ant", 2)))
    lines = change.lines
    for model in lines.models.values():
        assert tell_model(lines, model, at()).deleted_at == START + 9
    assert delete_family(lines, "ant", at(START + 20)).lines == lines
    with pytest.raises(FamilyDeletedError):
        find_family(lines, "ant")
    with pytest.raises(ModelDeletedError):
        resolve_call(lines, "ant@1")
    with pytest.raises(FamilyExistsError):
        start_family(lines, "ant", BASE, make_order("ftj_2"), at())


def test_what_answers_trains_or_is_used_stays(lines):
    on = switch_family(lines, "ant", at(), on=True).lines
    with pytest.raises(FamilyAnswersError):
        delete_family(on, "ant", at())
    with pytest.raises(FamilyAnswersError):
        delete_family(switch_model(lines, "ant@1", at(), on=True).lines, "ant", at())
    order = make_order("ftj_ant_4", dataset_version=4)
    training = continue_family(lines, "ant", order, make_growth(4), at()).lines
    with pytest.raises(FamilyTrainingError):
        delete_family(training, "ant", at())
    for kind in ("evaluation", "prompt_tuning"):
        work = (Work(id="x_1", kind=kind, adapter=adapter("ant", 1)),)
        with pytest.raises(VersionInUseError, match="x_1"):
            delete_family(lines, "ant", at(work=work))
    child = start_family(lines, "bee", "ant@1", make_order("ftj_bee_1"), at()).lines
    with pytest.raises(VersionInUseError, match="ftj_bee_1"):
        delete_family(child, "ant", at())
    gone = delete_family(join(child, "ftj_bee_1"), "ant", at()).lines
    assert resolve_call(gone, "bee").parent == adapter("ant", 1)


def test_guards_of_a_family(lines):
    for guards in ({"latest": None}, {"latest": adapter("ant", 2)}, {"dataset_id": "ds_2"}):
        with pytest.raises(FamilyChangedError):
            delete_family(lines, "ant", at(), **guards)


def test_a_model_goes_once(lines):
    change = delete_model(lines, "ant@2", at(START + 9), adapter=adapter("ant", 2))
    assert change.effects == (DropModel(adapter("ant", 2)),)
    told = tell_model(change.lines, change.lines.models[adapter("ant", 2)], at())
    assert (told.ref, told.parent, told.deleted_at) == ("ant@2", adapter("ant", 1), START + 9)
    again = delete_model(change.lines, "ant@2", at(START + 20))
    assert (again.lines, again.effects) == (change.lines, ())


def test_a_model_that_is_the_latest_answers_or_is_used_stays(lines):
    with pytest.raises(LatestModelError):
        delete_model(lines, "ant@3", at())
    with pytest.raises(ModelAnswersError):
        delete_model(switch_model(lines, "ant@2", at(), on=True).lines, "ant@2", at())
    work = (Work(id="evl_1", kind="evaluation", adapter=adapter("ant", 2)),)
    with pytest.raises(VersionInUseError):
        delete_model(lines, "ant@2", at(work=work))
    with pytest.raises(ModelChangedError):
        delete_model(lines, "ant@2", at(), adapter=adapter("ant", 1))
    for name in ("ant", adapter("ant", 2)):
        with pytest.raises(InvalidReferenceError):
            delete_model(lines, name, at())


def test_a_model_that_only_an_off_family_would_serve_may_go():
    slow = at(states={adapter("ant", 1): "loaded"})
    lines = grow(Lines(), "ant", 2, conditions=slow)
    assert lines.families["ant"].served == adapter("ant", 1)
    with pytest.raises(ModelAnswersError):
        delete_model(lines, "ant@1", at())
    lines = switch_family(lines, "ant", at(), on=False).lines
    lines = delete_model(lines, "ant@1", at()).lines
    assert lines.families["ant"].served is None
