"""Keep warm: hours held and charged, places, room, credit, and holders."""

from __future__ import annotations

import pytest

from steelyard import errors
from steelyard.families.lineage.clock import next_due, pass_time
from steelyard.families.lineage.events import Hold, Settle
from steelyard.families.lineage.fine_tunes import continue_family
from steelyard.families.lineage.lineage import Conditions, Lineage
from steelyard.families.lineage.moving import move_ready
from steelyard.families.lineage.switching import switch_family, switch_model
from steelyard.families.lineage.warmth import keep_family_warm, keep_model_warm
from steelyard.families.serializers import family_to_wire, model_to_wire
from support.families.lineage_cases import (
    BASE,
    DAY,
    HOUR,
    START,
    adapter,
    at,
    grow,
    join,
    make_growth,
    make_order,
    start,
)

PRICE = 600


def priced(now: float = START, **members) -> Conditions:
    return at(now, **{"hour_nano": {BASE: PRICE}, "available_nano": 1_000, **members})


@pytest.fixture
def lineage() -> Lineage:
    """ant@1 and ant@2 served by ant, bee@1 served by bee; both are on."""
    return grow(grow(Lineage(), "ant", 2), "bee", 1)


@pytest.fixture
def warm(lineage) -> Lineage:
    """The same, ant kept warm."""
    return keep_family_warm(lineage, "ant", priced(), enabled=True).lineage


def money(change) -> list:
    return [effect for effect in change.effects if isinstance(effect, Hold | Settle)]


def test_the_first_hour_is_held(lineage):
    change = keep_family_warm(lineage, "ant", priced(), enabled=True, max_price_usd="0.0000006")
    assert money(change) == [Hold("keep_warm_1", PRICE)]
    told = family_to_wire(change.lineage, change.lineage.families["ant"], priced())
    assert told.keep_warm
    assert told.keep_warm_window.started_at == START
    assert told.keep_warm_window.ends_at == START + HOUR
    assert told.keep_warm_window.reserved_usd == "0.0000006"
    assert told.switches_off_at is None
    model = model_to_wire(change.lineage, change.lineage.models[adapter("ant", 2)], priced())
    assert (model.keep_warm, model.keep_warm_window) == (False, None)


def test_disabling_charges_the_minutes_used_and_releases_the_rest(warm):
    change = keep_family_warm(warm, "ant", priced(START + 90), enabled=False)
    assert money(change) == [Settle("keep_warm_1", PRICE, 20)]
    assert change.lineage.windows == {}
    assert change.lineage.families["ant"].keep_warm_stopped_at is None


def test_going_off_stops_it(warm):
    change = switch_family(warm, "ant", priced(START + HOUR), on=False)
    assert money(change) == [Settle("keep_warm_1", PRICE, PRICE)]
    assert not change.lineage.families["ant"].keep_warm


def test_enabling_twice_holds_once(warm):
    change = keep_family_warm(warm, "ant", priced(START + 9), enabled=True)
    assert (change.lineage, change.effects) == (warm, ())


def test_the_hour_is_renewed_without_a_gap(warm):
    assert next_due(warm, priced()) == START + HOUR
    change = pass_time(warm, priced(START + HOUR + 7))
    assert money(change) == [Settle("keep_warm_1", PRICE, PRICE), Hold("keep_warm_2", PRICE)]
    window = change.lineage.windows[adapter("ant", 2)]
    assert (window.started_at, window.ends_at) == (START + HOUR, START + 2 * HOUR)


def test_hours_in_which_no_server_was_there_are_not_billed(warm):
    change = pass_time(warm, priced(START + DAY))
    assert money(change) == [Settle("keep_warm_1", PRICE, PRICE), Hold("keep_warm_2", PRICE)]
    assert change.lineage.windows[adapter("ant", 2)].started_at == START + DAY


def test_without_credit_for_the_next_hour_it_stops_until_enabled_again(warm):
    change = pass_time(warm, priced(START + HOUR, available_nano=PRICE - 1))
    family = change.lineage.families["ant"]
    assert money(change) == [Settle("keep_warm_1", PRICE, PRICE)]
    assert (family.keep_warm, family.keep_warm_stopped_at) == (False, START + HOUR)
    assert family.switch.is_on
    again = keep_family_warm(change.lineage, "ant", priced(START + 2 * HOUR), enabled=True).lineage
    assert again.families["ant"].keep_warm_stopped_at is None


def test_a_model_warm_twice_is_billed_once(warm):
    lineage = switch_model(warm, "ant@2", priced(), on=True).lineage
    change = keep_model_warm(lineage, "ant@2", priced(START + 60), enabled=True)
    assert money(change) == []
    model = model_to_wire(change.lineage, change.lineage.models[adapter("ant", 2)], priced())
    assert model.keep_warm_window.started_at == START
    one = keep_family_warm(change.lineage, "ant", priced(START + 120), enabled=False)
    assert money(one) == []
    none = keep_model_warm(one.lineage, "ant@2", priced(START + 180), enabled=False)
    assert money(none) == [Settle("keep_warm_1", PRICE, 30)]


def test_refusals_come_in_the_order_of_requirements(lineage):
    with pytest.raises(errors.ServedChangedError):
        keep_family_warm(lineage, "ant", priced(), enabled=True, served=None)
    with pytest.raises(errors.FamilyEmptyError):
        keep_family_warm(start(lineage, "cat"), "cat", priced(), enabled=True)
    off = switch_family(lineage, "ant", priced(), on=False).lineage
    with pytest.raises(errors.FamilyOffError):
        keep_family_warm(off, "ant", priced(), enabled=True)
    with pytest.raises(errors.ModelOffError):
        keep_model_warm(lineage, "ant@1", priced(), enabled=True)
    with pytest.raises(errors.PriceChangedError):
        keep_family_warm(lineage, "ant", priced(), enabled=True, max_price_usd="0.0000005")
    with pytest.raises(errors.WarmCapacityError) as refused:
        keep_family_warm(lineage, "ant", priced(warm_room={BASE: 0}), enabled=True)
    assert refused.value.retry_after_s is not None
    with pytest.raises(errors.InsufficientCreditError, match=r"0\.0000006 USD"):
        keep_family_warm(lineage, "ant", priced(available_nano=599), enabled=True)


def test_past_the_limit_the_details_list_warm_models(warm):
    with pytest.raises(errors.WarmLimitError) as refused:
        keep_family_warm(warm, "bee", priced(START + 5), enabled=True)
    assert refused.value.details == [
        {"warm": [{"model": "ant@2", "keep_warm": False, "families": ["ant"], "used_at": START}]}
    ]


def test_switch_off_stops_keep_warm_and_leaves_the_switch_on(warm):
    change = keep_family_warm(warm, "bee", priced(START + 30), enabled=True, switch_off=["ant"])
    ant = change.lineage.families["ant"]
    assert (ant.keep_warm, ant.switch.is_on) == (False, True)
    assert money(change) == [Settle("keep_warm_1", PRICE, 10), Hold("keep_warm_2", PRICE)]
    with pytest.raises(errors.InvalidReferenceError):
        keep_family_warm(warm, "ant", priced(), enabled=False, switch_off=["bee"])
    with pytest.raises(errors.InvalidReferenceError):
        keep_family_warm(warm, "ant", priced(), enabled=True, switch_off=["ant"])


def test_it_follows_the_family_when_it_moves(warm):
    order = make_order("ftj_ant_3", dataset_version=3)
    lineage = continue_family(warm, "ant", order, make_growth(3), priced()).lineage
    later = priced(START + 60, available_nano=0, states={adapter("ant", 2): "loaded"})
    change = move_ready(join(lineage, "ftj_ant_3", conditions=later), priced(START + 90))
    lineage = change.lineage
    assert money(change) == []
    assert lineage.families["ant"].served == adapter("ant", 3)
    assert lineage.windows == {adapter("ant", 3): warm.windows[adapter("ant", 2)]}


def test_a_move_that_needs_an_hour_of_its_own_stops_it_without_credit(warm):
    lineage = switch_model(warm, "ant@2", priced(), on=True).lineage
    lineage = keep_model_warm(lineage, "ant@2", priced(), enabled=True).lineage
    order = make_order("ftj_ant_3", dataset_version=3)
    lineage = continue_family(lineage, "ant", order, make_growth(3), priced()).lineage
    poor = priced(START + 60, warm_limit=2, available_nano=0)
    lineage = join(lineage, "ftj_ant_3", conditions=poor)
    family = lineage.families["ant"]
    assert (family.served, family.keep_warm) == (adapter("ant", 3), False)
    assert family.keep_warm_stopped_at == START + 60
    assert lineage.windows.keys() == {adapter("ant", 2)}


def test_free_models_hold_no_money(lineage):
    change = keep_family_warm(lineage, "ant", at(available_nano=0), enabled=True)
    assert money(change) == []
    assert change.lineage.windows[adapter("ant", 2)].reserved_nano == 0
