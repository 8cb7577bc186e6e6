"""Deletion: guards, obstacles, and names that come back or never do."""

from __future__ import annotations

import pytest

from steelyard import errors
from steelyard.families.lineage.deletion import delete_family, delete_model
from steelyard.families.lineage.events import DropModel
from steelyard.families.lineage.fine_tunes import cancel_job, continue_family, start_family
from steelyard.families.lineage.lineage import Lineage
from steelyard.families.lineage.references import find_family, resolve_call
from steelyard.families.lineage.rollback import roll_back
from steelyard.families.lineage.switching import switch_family, switch_model
from steelyard.families.serializers import fine_tune_to_wire, model_to_wire
from steelyard.model_use import ModelUse
from support.families.lineage_cases import (
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
def lineage() -> Lineage:
    """ant@1 to ant@3, off."""
    return switch_family(grow(Lineage(), "ant", 3), "ant", at(), on=False).lineage


def test_a_family_that_never_had_a_model_goes_and_its_name_is_free():
    lineage = cancel_job(start(Lineage(), "ant"), "ftj_ant_1", at()).lineage
    assert lineage.families["ant"].switch.is_on  # it answers nothing, so it may go
    lineage = delete_family(lineage, "ant", at(), latest=None, dataset_id="ds_1").lineage
    assert "ant" not in lineage.families
    assert fine_tune_to_wire(lineage.jobs["ftj_ant_1"]).family_deleted
    with pytest.raises(errors.NotFoundError):
        delete_family(lineage, "ant", at())
    again = start_family(lineage, "ant", BASE, make_order("ftj_2"), at()).lineage
    assert again.families["ant"].jobs == ("ftj_2",)
    assert not again.jobs["ftj_2"].family_deleted


def test_one_that_had_models_goes_with_its_line_for_ever(lineage):
    lineage = roll_back(lineage, "ant", "ant@2", ["ant@3"], at()).lineage
    change = delete_family(lineage, "ant", at(START + 9), latest=adapter("ant", 2))
    assert change.effects == (DropModel(adapter("ant", 1)), DropModel(adapter("ant", 2)))
    lineage = change.lineage
    for model in lineage.models.values():
        assert model_to_wire(lineage, model, at()).deleted_at == START + 9
    assert delete_family(lineage, "ant", at(START + 20)).lineage == lineage
    with pytest.raises(errors.FamilyDeletedError):
        find_family(lineage, "ant")
    with pytest.raises(errors.ModelDeletedError):
        resolve_call(lineage, "ant@1")
    with pytest.raises(errors.FamilyExistsError):
        start_family(lineage, "ant", BASE, make_order("ftj_2"), at())


def test_models_in_use_stay(lineage):
    on = switch_family(lineage, "ant", at(), on=True).lineage
    with pytest.raises(errors.FamilyAnswersError):
        delete_family(on, "ant", at())
    with pytest.raises(errors.FamilyAnswersError):
        delete_family(switch_model(lineage, "ant@1", at(), on=True).lineage, "ant", at())
    order = make_order("ftj_ant_4", dataset_version=4)
    training = continue_family(lineage, "ant", order, make_growth(4), at()).lineage
    with pytest.raises(errors.FamilyTrainingError):
        delete_family(training, "ant", at())
    for yields in (True, False):
        work = (ModelUse(id="x_1", adapter=adapter("ant", 1), yields=yields),)
        with pytest.raises(errors.VersionInUseError, match="x_1"):
            delete_family(lineage, "ant", at(work=work))
    child = start_family(lineage, "bee", "ant@1", make_order("ftj_bee_1"), at()).lineage
    with pytest.raises(errors.VersionInUseError, match="ftj_bee_1"):
        delete_family(child, "ant", at())
    gone = delete_family(join(child, "ftj_bee_1"), "ant", at()).lineage
    assert resolve_call(gone, "bee").parent == adapter("ant", 1)


def test_guards_of_a_family(lineage):
    for guards in ({"latest": None}, {"latest": adapter("ant", 2)}, {"dataset_id": "ds_2"}):
        with pytest.raises(errors.FamilyChangedError):
            delete_family(lineage, "ant", at(), **guards)


def test_a_model_goes_once(lineage):
    change = delete_model(lineage, "ant@2", at(START + 9), adapter=adapter("ant", 2))
    assert change.effects == (DropModel(adapter("ant", 2)),)
    told = model_to_wire(change.lineage, change.lineage.models[adapter("ant", 2)], at())
    assert (told.ref, told.parent, told.deleted_at) == ("ant@2", adapter("ant", 1), START + 9)
    again = delete_model(change.lineage, "ant@2", at(START + 20))
    assert (again.lineage, again.effects) == (change.lineage, ())


def test_a_model_that_is_the_latest_answers_or_is_used_stays(lineage):
    with pytest.raises(errors.LatestModelError):
        delete_model(lineage, "ant@3", at())
    with pytest.raises(errors.ModelAnswersError):
        delete_model(switch_model(lineage, "ant@2", at(), on=True).lineage, "ant@2", at())
    work = (ModelUse(id="evl_1", adapter=adapter("ant", 2), yields=True),)
    with pytest.raises(errors.VersionInUseError):
        delete_model(lineage, "ant@2", at(work=work))
    with pytest.raises(errors.ModelChangedError):
        delete_model(lineage, "ant@2", at(), adapter=adapter("ant", 1))
    for name in ("ant", adapter("ant", 2)):
        with pytest.raises(errors.InvalidReferenceError):
            delete_model(lineage, name, at())


def test_a_model_that_only_an_off_family_would_serve_may_go():
    slow = at(states={adapter("ant", 1): "loaded"})
    lineage = grow(Lineage(), "ant", 2, conditions=slow)
    assert lineage.families["ant"].served == adapter("ant", 1)
    with pytest.raises(errors.ModelAnswersError):
        delete_model(lineage, "ant@1", at())
    lineage = switch_family(lineage, "ant", at(), on=False).lineage
    lineage = delete_model(lineage, "ant@1", at()).lineage
    assert lineage.families["ant"].served is None
