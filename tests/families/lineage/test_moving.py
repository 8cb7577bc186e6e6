"""Moves: a family follows its latest model by itself, and says why it waits."""

from __future__ import annotations

import pytest

from steelyard.families.lineage.events import LoadModel, UnloadModel
from steelyard.families.lineage.fine_tunes import continue_family, finish_job, start_job
from steelyard.families.lineage.lineage import Lineage, SelfMove, answering
from steelyard.families.lineage.moving import move_ready, waiting_move
from steelyard.families.lineage.switching import switch_family, switch_model
from steelyard.families.lineage.warmth import keep_family_warm, keep_model_warm
from steelyard.families.serializers import family_to_wire
from steelyard.families.wire import Move
from support.families.lineage_cases import (
    BASE,
    START,
    AllLoaded,
    adapter,
    at,
    grow,
    make_gate,
    make_growth,
    make_order,
)


def with_new_model(lineage: Lineage, name: str = "ant") -> Lineage:
    """The family's next model joined, and nothing has moved yet."""
    n = len(lineage.families[name].models) + 1
    order = make_order(f"ftj_{name}_{n}", dataset_version=n)
    lineage = continue_family(lineage, name, order, make_growth(n), at()).lineage
    lineage = start_job(lineage, order.id, at()).lineage
    return finish_job(lineage, order.id, make_gate(), {}, at()).lineage


@pytest.fixture
def lineage() -> Lineage:
    return with_new_model(grow(Lineage(), "ant", 1))


def move_of(lineage: Lineage, **members) -> Move | None:
    return waiting_move(lineage, lineage.families["ant"], at(**members))


def test_it_moves_when_the_model_is_loaded(lineage):
    change = move_ready(lineage, at(START + 5))
    family = change.lineage.families["ant"]
    assert family.served == adapter("ant", 2)
    assert family.moved == SelfMove(at=START + 5, from_ref="ant@1")
    assert change.effects == (UnloadModel(adapter("ant", 1)),)
    assert move_of(change.lineage) is None
    assert move_ready(change.lineage, at(START + 6)).lineage == change.lineage


def test_a_first_model_moves_from_none():
    family = grow(Lineage(), "ant", 1).families["ant"]
    assert family.moved == SelfMove(at=START, from_ref=None)


@pytest.mark.parametrize("state", ["unloaded", "loading", "failed"])
def test_it_waits_for_the_engines(lineage, state):
    states = AllLoaded({adapter("ant", 2): state})
    move = Move(to="ant@2", waiting_for="engines", reason=None)
    assert move_of(lineage, states=states) == move
    change = move_ready(lineage, at(states=states))
    assert change.lineage == lineage
    asked = (LoadModel(adapter("ant", 2)),) if state == "unloaded" else ()
    assert change.effects == asked


def test_one_for_one_needs_no_further_place(lineage):
    lineage = move_ready(lineage, at(live_limit=1)).lineage
    assert lineage.families["ant"].served == adapter("ant", 2)


def test_it_waits_for_a_place_while_the_old_model_answers_by_itself(lineage):
    lineage = switch_model(lineage, "ant@1", at(), on=True).lineage
    move = Move(to="ant@2", waiting_for="place", reason="live_limit")
    assert move_of(lineage, live_limit=1) == move
    assert move_ready(lineage, at(live_limit=1)).lineage == lineage
    lineage = switch_model(lineage, "ant@1", at(), on=False).lineage
    assert move_ready(lineage, at(live_limit=1)).lineage.families["ant"].served == adapter("ant", 2)


def test_a_limit_that_was_lowered_holds_no_move_of_one_for_one(lineage):
    lineage = grow(lineage, "bee", 1)
    lineage = move_ready(lineage, at(live_limit=1)).lineage
    assert answering(lineage).keys() == {adapter("ant", 2), adapter("bee", 1)}


def test_kept_warm_it_waits_for_a_warm_place_and_for_room(lineage):
    lineage = switch_model(lineage, "ant@1", at(), on=True).lineage
    lineage = keep_model_warm(lineage, "ant@1", at(), enabled=True).lineage
    lineage = keep_family_warm(lineage, "ant", at(), enabled=True).lineage
    held = Move(to="ant@2", waiting_for="warm_place", reason="warm_limit")
    assert move_of(lineage) == held
    short = Move(to="ant@2", waiting_for="warm_capacity", reason="warm_capacity")
    assert move_of(lineage, warm_limit=2, warm_room={BASE: 0}) == short
    assert move_of(lineage, warm_limit=2, warm_room={BASE: 1}).waiting_for == "engines"
    alone = keep_model_warm(lineage, "ant@1", at(), enabled=False).lineage
    assert move_ready(alone, at(warm_room={BASE: 0})).lineage.families["ant"].keep_warm


def test_off_it_neither_moves_nor_waits(lineage):
    lineage = switch_family(lineage, "ant", at(), on=False).lineage
    assert move_of(lineage) is None
    assert move_ready(lineage, at()).lineage == lineage
    family = switch_family(lineage, "ant", at(), on=True).lineage.families["ant"]
    assert (family.served, family.moved) == (adapter("ant", 2), None)


def test_the_family_used_last_gets_the_free_place():
    lineage = with_new_model(with_new_model(grow(grow(Lineage(), "ant", 1), "bee", 1)), "bee")
    for name in ("ant@1", "bee@1"):
        lineage = switch_model(lineage, name, at(), on=True).lineage
    lineage = switch_family(lineage, "bee", at(START + 9), on=True).lineage
    lineage = move_ready(lineage, at(START + 10, live_limit=3)).lineage
    assert lineage.families["bee"].served == adapter("bee", 2)
    assert lineage.families["ant"].served == adapter("ant", 1)
    told = family_to_wire(lineage, lineage.families["ant"], at(live_limit=3))
    assert told.move is not None
    assert told.move.waiting_for == "place"
