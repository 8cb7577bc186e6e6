"""How lines are told: every member, null or left out exactly where it should be."""

from __future__ import annotations

import msgspec
import pytest

from steelyard.families.deletion import delete_model
from steelyard.families.fine_tunes import finish_job, start_job
from steelyard.families.fine_tuning.wire import CurvePoint, JobProgress
from steelyard.families.lineage import Lines, latest_of
from steelyard.families.rollback import roll_back
from steelyard.families.serializers import tell_family, tell_job
from steelyard.families.switching import switch_family, switch_model
from support.family_lines import BASE, DAY, START, adapter, at, grow, make_gate, make_growth, start

FAMILY = {
    "id", "object", "switched_on", "used_at", "switches_off_at", "off_reason", "off_at",
    "dataset_id", "origin", "created_at", "served", "latest", "models", "keep_warm",
    "keep_warm_window", "keep_warm_stopped_at", "move", "moved",
}  # fmt: skip
MODEL = {
    "version", "ref", "adapter", "status", "state", "on_at", "keep_warm", "keep_warm_window",
    "keep_warm_stopped_at", "used_at", "switches_off_at", "off_reason", "off_at", "parent",
    "created_at", "gate", "heldout",
}  # fmt: skip
DELETED = {"version", "ref", "adapter", "parent", "status", "deleted_at"}
JOB = {
    "id", "dataset_id", "status", "created_at", "updated_at", "model", "method", "hyperparameters",
    "output_model", "metrics", "error", "limits", "split", "progress", "family", "parent",
    "family_deleted", "dataset_version", "outcome", "reason", "lineage", "price_usd", "charge",
    "rows_deleted",
}  # fmt: skip


@pytest.fixture
def lines() -> Lines:
    """ant@1 to ant@3: ready, deleted, discarded."""
    lines = delete_model(grow(Lines(), "ant", 3), "ant@2", at(START + 1)).lines
    return roll_back(lines, "ant", "ant@1", ["ant@3"], at(START + 2)).lines


def tell(lines: Lines, **members) -> dict:
    return msgspec.to_builtins(tell_family(lines, lines.families["ant"], at(), **members))


def test_jobs_and_continue_stand_where_they_are_asked_for(lines):
    assert tell(lines).keys() == FAMILY
    listed = tell(lines, growth=make_growth(4))
    assert listed.keys() == FAMILY | {"continue"}
    assert listed["continue"]["state"] == "new_data"
    alone = tell(lines, growth=None, with_jobs=True)
    assert alone.keys() == FAMILY | {"continue", "jobs"}
    assert alone["continue"] is None
    assert [job["id"] for job in alone["jobs"]] == ["ftj_ant_3", "ftj_ant_2", "ftj_ant_1"]
    assert [job["outcome"] for job in alone["jobs"]] == ["rolled_back", "joined", "joined"]


def test_each_model_has_the_members_of_its_status(lines):
    ready, deleted, discarded = tell(lines)["models"]
    assert (ready.keys(), ready["status"]) == (MODEL, "ready")
    assert (deleted.keys(), deleted["status"]) == (DELETED, "deleted")
    assert (discarded.keys(), discarded["status"]) == (MODEL | {"discarded_at"}, "discarded")
    assert (deleted["deleted_at"], discarded["discarded_at"]) == (START + 1, START + 2)
    assert ready["gate"]["passed"]
    assert ready["heldout"] == {"accuracy": 0.9}


def test_a_family_on_a_model_that_moved():
    told = tell(grow(Lines(), "ant", 2))
    assert told["moved"] == {"at": START, "from": "ant@1"}
    assert told["served"] == told["latest"] == told["models"][1]
    assert (told["off_reason"], told["off_at"], told["move"]) == (None, None, None)
    assert (told["used_at"], told["switches_off_at"]) == (START, START + 7 * DAY)
    assert told["models"][0]["on_at"] is None
    assert told["origin"] == BASE


def test_a_family_that_serves_nothing_yet():
    told = tell(start(Lines(), "ant"))
    assert told["switched_on"] is True
    for member in ("served", "latest", "moved", "move", "switches_off_at", "keep_warm_window"):
        assert told[member] is None
    first = msgspec.to_builtins(tell(grow(Lines(), "ant", 1)))
    assert first["moved"] == {"at": START, "from": None}


def test_off_says_by_whom(lines):
    lines = switch_family(lines, "ant", at(START + 9), on=False).lines
    lines = switch_model(lines, "ant@1", at(START + 9), on=True).lines
    told = tell(lines)
    assert (told["switched_on"], told["off_reason"], told["off_at"]) == (False, "owner", START + 9)
    assert told["switches_off_at"] is None
    assert told["models"][0]["on_at"] == START + 9
    assert told["models"][0]["switches_off_at"] == START + 9 + 7 * DAY


def test_a_fine_tune_from_queue_to_end():
    lines = start(Lines(), "ant")
    queued = msgspec.to_builtins(tell_job(lines.jobs["ftj_ant_1"]))
    assert queued.keys() == JOB
    assert (queued["metrics"], queued["progress"], queued["price_usd"]) == (None, None, "0")
    lines = start_job(lines, "ftj_ant_1", at()).lines
    progress = JobProgress(step=5, steps=20, loss=1.5, phase="heads")
    curve = [CurvePoint(step=5, loss=1.5, learning_rate=1e-4)]
    running = tell_job(lines.jobs["ftj_ant_1"], progress=progress, curve=curve)
    assert (running.progress, running.curve) == (progress, msgspec.UNSET)
    lines = finish_job(lines, "ftj_ant_1", make_gate(), {}, at()).lines
    done = tell_job(lines.jobs["ftj_ant_1"], progress=progress, curve=curve)
    assert (done.progress, done.curve) == (None, curve)
    assert done.metrics is not None
    assert done.metrics.gate == make_gate()
    assert done.output_model == adapter("ant", 1)


def test_what_is_stored_comes_back(lines):
    assert msgspec.json.decode(msgspec.json.encode(lines), type=Lines) == lines
    assert latest_of(lines, lines.families["ant"]).ref == "ant@1"
