"""Moves: a family follows its latest model by itself, and says what it waits for."""

from __future__ import annotations

import pytest

from steelyard.families.events import LoadModel, UnloadModel
from steelyard.families.fine_tunes import continue_family, finish_job, start_job
from steelyard.families.lineage import Lines, SelfMove, answering
from steelyard.families.moving import move_ready, waiting_move
from steelyard.families.serializers import tell_family
from steelyard.families.switching import switch_family, switch_model
from steelyard.families.warmth import keep_family_warm, keep_model_warm
from steelyard.families.wire import Move
from support.family_lines import (
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


def with_new_model(lines: Lines, name: str = "ant") -> Lines:
    """The family's next model joined, and nothing has moved yet."""
    n = len(lines.families[name].models) + 1
    order = make_order(f"ftj_{name}_{n}", dataset_version=n)
    lines = continue_family(lines, name, order, make_growth(n), at()).lines
    lines = start_job(lines, order.id, at()).lines
    return finish_job(lines, order.id, make_gate(), {}, at()).lines


@pytest.fixture
def lines() -> Lines:
    return with_new_model(grow(Lines(), "ant", 1))


def move_of(lines: Lines, **members) -> Move | None:
    return waiting_move(lines, lines.families["ant"], at(**members))


def test_it_moves_when_the_model_is_loaded(lines):
    change = move_ready(lines, at(START + 5))
    family = change.lines.families["ant"]
    assert family.served == adapter("ant", 2)
    assert family.moved == SelfMove(at=START + 5, from_ref="ant@1")
    assert change.effects == (UnloadModel(adapter("ant", 1)),)
    assert move_of(change.lines) is None
    assert move_ready(change.lines, at(START + 6)).lines == change.lines


def test_a_first_model_moves_from_none():
    family = grow(Lines(), "ant", 1).families["ant"]
    assert family.moved == SelfMove(at=START, from_ref=None)


@pytest.mark.parametrize("state", ["unloaded", "loading", "failed"])
def test_it_waits_for_the_engines(lines, state):
    states = AllLoaded({adapter("ant", 2): state})
    move = Move(to="ant@2", waiting_for="engines", reason=None)
    assert move_of(lines, states=states) == move
    change = move_ready(lines, at(states=states))
    assert change.lines == lines
    asked = (LoadModel(adapter("ant", 2)),) if state == "unloaded" else ()
    assert change.effects == asked


def test_one_for_one_needs_no_further_place(lines):
    lines = move_ready(lines, at(live_limit=1)).lines
    assert lines.families["ant"].served == adapter("ant", 2)


def test_it_waits_for_a_place_while_the_old_model_answers_by_itself(lines):
    lines = switch_model(lines, "ant@1", at(), on=True).lines
    move = Move(to="ant@2", waiting_for="place", reason="live_limit")
    assert move_of(lines, live_limit=1) == move
    assert move_ready(lines, at(live_limit=1)).lines == lines
    lines = switch_model(lines, "ant@1", at(), on=False).lines
    assert move_ready(lines, at(live_limit=1)).lines.families["ant"].served == adapter("ant", 2)


def test_a_limit_that_was_lowered_holds_no_move_of_one_for_one(lines):
    lines = grow(lines, "bee", 1)
    lines = move_ready(lines, at(live_limit=1)).lines
    assert answering(lines).keys() == {adapter("ant", 2), adapter("bee", 1)}


def test_kept_warm_it_waits_for_a_warm_place_and_for_room(lines):
    lines = switch_model(lines, "ant@1", at(), on=True).lines
    lines = keep_model_warm(lines, "ant@1", at(), enabled=True).lines
    lines = keep_family_warm(lines, "ant", at(), enabled=True).lines
    held = Move(to="ant@2", waiting_for="warm_place", reason="warm_limit")
    assert move_of(lines) == held
    short = Move(to="ant@2", waiting_for="warm_capacity", reason="warm_capacity")
    assert move_of(lines, warm_limit=2, warm_room={BASE: 0}) == short
    assert move_of(lines, warm_limit=2, warm_room={BASE: 1}).waiting_for == "engines"
    alone = keep_model_warm(lines, "ant@1", at(), enabled=False).lines
    assert move_ready(alone, at(warm_room={BASE: 0})).lines.families["ant"].keep_warm


def test_off_it_neither_moves_nor_waits(lines):
    lines = switch_family(lines, "ant", at(), on=False).lines
    assert move_of(lines) is None
    assert move_ready(lines, at()).lines == lines
    family = switch_family(lines, "ant", at(), on=True).lines.families["ant"]
    assert (family.served, family.moved) == (adapter("ant", 2), None)


def test_the_family_used_last_gets_the_free_place():
    lines = with_new_model(with_new_model(grow(grow(Lines(), "ant", 1), "bee", 1)), "bee")
    for name in ("ant@1", "bee@1"):
        lines = switch_model(lines, name, at(), on=True).lines
    lines = switch_family(lines, "bee", at(START + 9), on=True).lines
    lines = move_ready(lines, at(START + 10, live_limit=3)).lines
    assert lines.families["bee"].served == adapter("bee", 2)
    assert lines.families["ant"].served == adapter("ant", 1)
    told = tell_family(lines, lines.families["ant"], at(live_limit=3))
    assert told.move is not None
    assert told.move.waiting_for == "place"
