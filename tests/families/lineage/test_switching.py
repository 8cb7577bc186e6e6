"""Switches: places, models switched off in the same step, guards, and the idle clock."""

from __future__ import annotations

import pytest

from steelyard import errors
from steelyard.families.lineage.clock import next_due, pass_time
from steelyard.families.lineage.deletion import delete_family
from steelyard.families.lineage.events import LoadModel, UnloadModel
from steelyard.families.lineage.lineage import Lineage, answering, idle_at, model_idle_at
from steelyard.families.lineage.references import record_use
from steelyard.families.lineage.rollback import roll_back
from steelyard.families.lineage.switching import NotLoadedError, switch_family, switch_model
from support.families.lineage_cases import DAY, START, AllLoaded, adapter, at, grow, join, start


@pytest.fixture
def lineage() -> Lineage:
    """ant@1 and ant@2 served by ant, bee@1 served by bee; both are on."""
    return grow(grow(Lineage(), "ant", 2), "bee", 1)


def off(lineage: Lineage, name: str, now: float = START) -> Lineage:
    return switch_family(lineage, name, at(now), on=False).lineage


def test_a_family_is_on_from_its_birth_and_serves_nothing():
    family = start(Lineage(), "ant").families["ant"]
    assert (family.switch.is_on, family.served, family.switch.used_at) == (True, None, START)


def test_off_by_hand_says_who_and_when_and_frees_the_model(lineage):
    change = switch_family(lineage, "ant", at(START + 5), on=False)
    switch = change.lineage.families["ant"].switch
    assert (switch.is_on, switch.off_reason, switch.off_at) == (False, "owner", START + 5)
    assert change.effects == (UnloadModel(adapter("ant", 2)),)
    again = switch_family(change.lineage, "ant", at(START + 9), on=False)
    assert again.lineage == change.lineage


def test_on_serves_the_latest_and_clears_why_it_was_off(lineage):
    lineage = switch_family(off(lineage, "ant"), "ant", at(START + 5), on=True).lineage
    family = lineage.families["ant"]
    assert family.served == adapter("ant", 2)
    assert (family.switch.on_at, family.switch.used_at) == (START + 5, START + 5)
    assert (family.switch.off_at, family.switch.off_reason) == (None, None)


def test_on_again_is_a_use_and_nothing_else(lineage):
    before = lineage.families["ant"]
    after = switch_family(lineage, "ant", at(START + 5), on=True).lineage.families["ant"]
    assert after.switch.used_at == START + 5
    assert (after.switch.on_at, after.served) == (before.switch.on_at, before.served)
    assert after.moved == before.moved


def test_past_the_limit_the_details_list_models_least_used_first(lineage):
    lineage = switch_model(lineage, "ant@2", at(START + 1), on=True).lineage
    lineage = record_use(lineage, "bee", START + 2)
    lineage = record_use(lineage, "ant", START + 3)
    with pytest.raises(errors.LiveLimitError) as refused:
        switch_model(lineage, "ant@1", at(START + 4, live_limit=2), on=True)
    assert refused.value.details == [
        {
            "answering": [
                {"model": "bee@1", "on": False, "serves": ["bee"], "used_at": START + 2},
                {"model": "ant@2", "on": True, "serves": ["ant"], "used_at": START + 3},
            ]
        }
    ]


def test_places_count_models_and_not_switches(lineage):
    limited = at(live_limit=2)
    assert len(answering(lineage)) == 2
    lineage = switch_model(lineage, "ant@2", limited, on=True).lineage
    assert len(answering(lineage)) == 2
    lineage = switch_family(lineage, "ant", limited, on=False).lineage
    assert answering(lineage).keys() == {adapter("ant", 2), adapter("bee", 1)}
    lineage = switch_family(lineage, "ant", limited, on=True).lineage
    assert len(answering(lineage)) == 2


def test_places_are_freed_in_the_same_step_or_not_at_all(lineage):
    limited = at(live_limit=2)
    change = switch_model(lineage, "ant@1", limited, on=True, switch_off=["bee"])
    assert not change.lineage.families["bee"].switch.is_on
    assert change.lineage.families["bee"].switch.off_reason == "owner"
    assert change.effects[-1] == UnloadModel(adapter("bee", 1))
    with pytest.raises(errors.LiveLimitError):  # ant@2 answers through ant, whatever its own switch
        switch_model(lineage, "ant@1", limited, on=True, switch_off=["ant@2"])
    assert lineage.families["bee"].switch.is_on
    with pytest.raises(errors.NotFoundError):
        switch_model(lineage, "ant@1", limited, on=True, switch_off=["bee", "fox"])


def test_switch_off_excludes_the_switched_model_and_is_empty_when_off(lineage):
    with pytest.raises(errors.InvalidReferenceError, match="take it out"):
        switch_family(lineage, "ant", at(), on=True, switch_off=["ant"])
    with pytest.raises(errors.InvalidReferenceError, match="on: true"):
        switch_family(lineage, "ant", at(), on=False, switch_off=["bee"])


def test_a_model_is_loaded_before_its_switch_goes_on(lineage):
    lineage = off(lineage, "ant")
    states = AllLoaded({adapter("ant", 2): "unloaded"})
    with pytest.raises(NotLoadedError) as refused:
        switch_family(lineage, "ant", at(states=states), on=True)
    assert (refused.value.adapter, refused.value.code) == (adapter("ant", 2), "engine_unavailable")
    assert refused.value.retryable is True
    with pytest.raises(NotLoadedError):
        switch_model(lineage, "ant@2", at(states=states), on=True)


def test_one_that_cannot_be_loaded_is_refused_for_good(lineage):
    states = AllLoaded({adapter("ant", 2): "failed"})
    with pytest.raises(errors.ModelUnavailableError):
        switch_model(lineage, "ant@2", at(states=states), on=True)
    with pytest.raises(errors.EngineUnavailableError) as refused:
        switch_family(off(lineage, "ant"), "ant", at(states=states), on=True)
    assert not isinstance(refused.value, NotLoadedError)


def test_guards_hold_the_state_that_the_caller_saw(lineage):
    with pytest.raises(errors.ServedChangedError):
        switch_family(lineage, "ant", at(), on=False, served=adapter("ant", 1))
    with pytest.raises(errors.ServedChangedError):
        switch_family(lineage, "ant", at(), on=False, served=None)
    assert switch_family(lineage, "ant", at(), on=False, served=adapter("ant", 2)).effects
    switch_family(start(Lineage(), "ant"), "ant", at(), on=False, served=None)
    with pytest.raises(errors.ModelChangedError):
        switch_model(lineage, "ant@1", at(), on=True, adapter=adapter("ant", 2))


def test_deleted_models_are_not_switched(lineage):
    gone = roll_back(lineage, "ant", "ant@1", ["ant@2"], at()).lineage
    with pytest.raises(errors.ModelDiscardedError):
        switch_model(gone, "ant@2", at(), on=True)
    deleted = delete_family(off(lineage, "bee"), "bee", at()).lineage
    with pytest.raises(errors.FamilyDeletedError):
        switch_family(deleted, "bee", at(), on=True)
    for name in ("ant", "ft-ftj_ant_1", "Ant@1", "ant@0"):
        with pytest.raises(errors.InvalidReferenceError):
            switch_model(lineage, name, at(), on=True)


class TestIdle:
    def test_it_was_unused_for_the_period(self, lineage):
        lineage = switch_model(lineage, "ant@1", at(START + 9), on=True).lineage
        lineage = record_use(lineage, "bee", START + DAY)
        assert next_due(lineage, at()) == START + 7 * DAY
        quiet = pass_time(lineage, at(START + 7 * DAY - 1)).lineage
        assert quiet == lineage
        lineage = pass_time(lineage, at(START + 7 * DAY + 9)).lineage
        ant, bee, model = (
            lineage.families["ant"],
            lineage.families["bee"],
            lineage.models[adapter("ant", 1)],
        )
        assert (ant.switch.off_reason, ant.switch.off_at) == ("idle", START + 7 * DAY + 9)
        assert (model.switch.is_on, model.switch.off_reason) == (False, "idle")
        assert bee.switch.is_on

    def test_zero_never_switches_anything_off(self, lineage):
        forever = at(START + 999 * DAY, idle_s=0.0)
        assert pass_time(lineage, forever).lineage == lineage
        assert idle_at(lineage.families["ant"], forever) is None

    def test_the_clock_of_a_first_model_starts_when_it_is_served(self):
        lineage = start(Lineage(), "ant")
        assert idle_at(lineage.families["ant"], at()) is None
        late = at(START + 30 * DAY)
        lineage = join(lineage, "ftj_ant_1", conditions=late)
        assert idle_at(lineage.families["ant"], late) == START + 37 * DAY
        assert lineage.families["ant"].switch.used_at == START + 30 * DAY
        assert pass_time(lineage, late).lineage.families["ant"].switch.is_on

    def test_an_earlier_use_never_sets_the_clock_back(self, lineage):
        lineage = record_use(lineage, "ant", START + 50)
        assert record_use(lineage, "ant", START + 10) == lineage

    def test_a_models_clock_is_its_own(self, lineage):
        lineage = switch_model(lineage, "ant@2", at(), on=True).lineage
        lineage = record_use(lineage, "ant", START + DAY)
        assert model_idle_at(lineage.models[adapter("ant", 2)], at()) == START + 7 * DAY
        lineage = record_use(lineage, "ant@2", START + 2 * DAY)
        assert model_idle_at(lineage.models[adapter("ant", 2)], at()) == START + 9 * DAY


def test_a_newly_served_model_is_loaded_when_no_engine_holds_it(lineage):
    states = AllLoaded({adapter("ant", 1): "unloaded"})
    change = roll_back(lineage, "ant", "ant@1", ["ant@2"], at(states=states))
    assert LoadModel(adapter("ant", 1)) in change.effects
