"""What continuing a family would do: the first refusal that holds, and the counts beside it."""

from __future__ import annotations

import pytest

from steelyard.errors import (
    DatasetArchivedError,
    DatasetDeletedError,
    FamilyTrainingError,
    InvalidReferenceError,
    ModelDeletedError,
    NoNewDataError,
    NotEnoughEvaluationDataError,
    NotFoundError,
    TrainingUnavailableError,
)
from steelyard.families.continuing import (
    check_continue,
    continue_state,
    tell_continue,
    trained_version,
)
from steelyard.families.deletion import delete_family
from steelyard.families.fine_tunes import (
    cancel_job,
    continue_family,
    finish_job,
    start_family,
    start_job,
)
from steelyard.families.lineage import Lines
from steelyard.families.switching import switch_family
from steelyard.families.wire import ContinueRows
from support.family_lines import (
    BASE,
    adapter,
    at,
    grow,
    join,
    make_gate,
    make_growth,
    make_order,
    start,
)

NOTHING_NEW = ContinueRows(new=0, earlier=0, evaluation=8)


@pytest.fixture
def lines() -> Lines:
    """ant@1, trained on version 1."""
    return grow(Lines(), "ant", 1)


def state(lines, growth, **members) -> str:
    return continue_state(lines, lines.families["ant"], growth, at(**members))


def queue(lines: Lines, version: int) -> Lines:
    order = make_order("ftj_ant_2", dataset_version=version)
    return continue_family(lines, "ant", order, make_growth(version), at()).lines


def test_the_first_that_holds_is_told(lines):
    """Each line lifts the first refusal of the line before it."""
    queued = queue(lines, 2)
    running = start_job(queued, "ftj_ant_2", at()).lines
    few = {"evaluation_decisions": 19}
    every = {"is_deleted": True, "is_archived": True, "rows": NOTHING_NEW, **few}
    cannot = {"trainable": frozenset()}
    for told, given, growth, members in [
        ("fine_tuning_off", queued, make_growth(1, **every), {"lacking": "x", **cannot}),
        ("dataset_deleted", queued, make_growth(1, **every), cannot),
        ("dataset_archived", queued, make_growth(1, **every | {"is_deleted": False}), cannot),
        ("origin_gone", queued, make_growth(1, rows=NOTHING_NEW, **few), cannot),
        ("queued", queued, make_growth(1, rows=NOTHING_NEW, **few), {}),
        ("training", running, make_growth(1, rows=NOTHING_NEW, **few), {}),
        ("no_new_data", lines, make_growth(1, **few), {}),
        ("no_new_data", lines, make_growth(2, rows=NOTHING_NEW, **few), {}),
        ("not_enough_evaluation_data", lines, make_growth(2, **few), {}),
        ("new_data", lines, make_growth(2, evaluation_decisions=20), {}),
    ]:
        assert state(given, growth, **members) == told


def test_a_run_that_failed_on_the_newest_version_is_retried(lines):
    lines = cancel_job(queue(lines, 2), "ftj_ant_2", at()).lines
    assert state(lines, make_growth(2)) == "retry"
    assert state(lines, make_growth(3)) == "new_data"


def test_a_gate_that_failed_has_trained_on_its_version(lines):
    lines = start_job(queue(lines, 2), "ftj_ant_2", at()).lines
    lines = finish_job(lines, "ftj_ant_2", make_gate(passed=False), {}, at()).lines
    assert trained_version(lines, lines.families["ant"]) == 2
    assert state(lines, make_growth(2)) == "no_new_data"


def test_a_list_counts_nothing(lines):
    growth = make_growth(2, rows=None, evaluation_decisions=None)
    told = tell_continue(lines, lines.families["ant"], growth, at())
    assert (told.state, told.version, told.rows, told.evaluation_decisions, told.price_usd) == (
        "new_data",
        2,
        None,
        None,
        None,
    )


def test_counts_are_told_where_the_data_decide(lines):
    growth = make_growth(2, price_nano=0)
    told = tell_continue(lines, lines.families["ant"], growth, at())
    assert (told.evaluation_decisions, told.needed, told.price_usd) == (30, 20, "0")
    assert told.rows == growth.rows
    short = make_growth(2, evaluation_decisions=3, price_nano=0)
    told = tell_continue(lines, lines.families["ant"], short, at())
    assert (told.state, told.evaluation_decisions, told.price_usd) == (
        "not_enough_evaluation_data",
        3,
        None,
    )
    queued = queue(lines, 2)
    told = tell_continue(queued, queued.families["ant"], growth, at())
    assert (told.state, told.evaluation_decisions, told.rows) == ("queued", None, None)
    for price_nano, price_usd in ((None, None), (7_000, "0.000007")):
        grown = make_growth(2, price_nano=price_nano)
        assert tell_continue(lines, lines.families["ant"], grown, at()).price_usd == price_usd


@pytest.mark.parametrize(
    ("growth", "members", "error"),
    [
        (make_growth(2), {"lacking": "No trainer."}, TrainingUnavailableError),
        (make_growth(2, is_deleted=True), {}, DatasetDeletedError),
        (make_growth(2, is_archived=True), {}, DatasetArchivedError),
        (make_growth(2), {"trainable": frozenset()}, InvalidReferenceError),
        (make_growth(1), {}, NoNewDataError),
        (make_growth(2, rows=NOTHING_NEW), {}, NoNewDataError),
        (make_growth(2, evaluation_decisions=0), {}, NotEnoughEvaluationDataError),
    ],
)
def test_each_refusal_has_its_error(lines, growth, members, error):
    with pytest.raises(error):
        check_continue(lines, lines.families["ant"], growth, at(**members))


def test_a_version_may_be_named(lines):
    family = lines.families["ant"]
    check_continue(lines, family, make_growth(3), at(), dataset_version=2)
    with pytest.raises(NoNewDataError):
        check_continue(lines, family, make_growth(3), at(), dataset_version=1)
    with pytest.raises(NotFoundError):
        check_continue(lines, family, make_growth(3), at(), dataset_version=4)
    queued = queue(lines, 2)
    with pytest.raises(FamilyTrainingError):
        check_continue(queued, queued.families["ant"], make_growth(3), at(), dataset_version=4)


def test_an_origin_that_is_gone_holds_only_a_family_without_models(lines):
    lines = start_family(lines, "bee", "ant@1", make_order("ftj_b1"), at()).lines
    joined = join(lines, "ftj_b1")
    lines = cancel_job(lines, "ftj_b1", at()).lines
    gone = switch_family(lines, "ant", at(), on=False).lines
    gone = delete_family(gone, "ant", at()).lines
    bee = gone.families["bee"]
    assert continue_state(gone, bee, make_growth(1), at()) == "origin_gone"
    with pytest.raises(ModelDeletedError):
        check_continue(gone, bee, make_growth(1), at())
    kept = switch_family(joined, "ant", at(), on=False).lines
    kept = delete_family(kept, "ant", at()).lines
    assert kept.models[adapter("ant", 1)].status == "deleted"
    assert continue_state(kept, kept.families["bee"], make_growth(2), at()) == "new_data"


def test_a_family_that_never_finished_has_everything_before_it():
    lines = cancel_job(start(Lines(), "ant"), "ftj_ant_1", at()).lines
    assert trained_version(lines, lines.families["ant"]) is None
    assert state(lines, make_growth(1)) == "retry"
    assert lines.families["ant"].base == BASE
