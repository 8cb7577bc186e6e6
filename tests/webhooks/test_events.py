"""Sources of events: changes of lineage, ends of jobs, credit that becomes little."""

from __future__ import annotations

import json

import pytest
from sqlalchemy import select

from steelyard.evaluations import store as evaluations
from steelyard.evaluations.tables import evaluations as evaluation_rows
from steelyard.families.fine_tune_wire import JobError
from steelyard.families.lineage.fine_tunes import fail_job, finish_job, start_job
from steelyard.families.lineage.happenings import happenings
from steelyard.families.lineage.lineage import Lineage
from steelyard.families.lineage.moving import move_ready
from steelyard.families.lineage.rollback import roll_back
from steelyard.families.lineage.switching import switch_family
from steelyard.jobs.store import PendingJob, set_runner
from steelyard.labeling import store as labeling
from steelyard.labeling.tables import labeling_jobs
from steelyard.operations.low_balance import LOW_BALANCE_NANO, publish_low_balance
from steelyard.outbox.names import EVENTS
from steelyard.outbox.tables import webhook_deliveries
from steelyard.prompt_tuning import store as prompt_tuning
from steelyard.prompt_tuning.tables import prompt_tunings
from steelyard.storage import open_state
from steelyard.webhooks.store import WEBHOOKS
from support.accounts.buying import Till
from support.families.lineage_cases import START, at, grow, make_gate, start


def told(before, after):
    return [(one.event, one.subject, one.data) for one in happenings(before, after)]


@pytest.fixture
def grown():
    """ant@1 to ant@3; ant serves the last."""
    return grow(Lineage(), "ant", 3)


def test_unchanged_or_new_families_send_no_event(grown):
    assert told(grown, grown) == told(Lineage(), grown) == []


def training():
    return start_job(start(Lineage(), "ant"), "ftj_ant_1", at()).lineage


@pytest.mark.parametrize("passed", [True, False])
def test_a_fine_tunes_end_sends_its_gate_and_then_the_familys_state(passed):
    before = training()
    after = finish_job(before, "ftj_ant_1", make_gate(passed), {}, at()).lineage
    after = move_ready(after, at()).lineage
    found = told(before, after)
    gate, job, *moved = found
    assert gate[:2] == ("gate.passed" if passed else "gate.failed", "ant")
    assert gate[2]["model"] == ("ant@1" if passed else None)
    assert gate[2]["reasons"] == ([] if passed else ["new_rows_worse"])
    assert job[:2] == ("job.succeeded", "ftj_ant_1")
    assert job[2]["outcome"] == ("joined" if passed else "gate_failed")
    assert [one[0] for one in moved] in ([], ["family.moved"])


def test_a_failed_fine_tune_tells_why():
    error = JobError(code="invalid_rows", message="No rows.")
    before = training()
    ((event, subject, data),) = told(before, fail_job(before, "ftj_ant_1", error, at()).lineage)
    assert (event, subject) == ("job.failed", "ftj_ant_1")
    assert data["error"] == {"code": "invalid_rows", "message": "No rows."}


def test_a_rollback_and_a_switch_send_events(grown):
    back = roll_back(grown, "ant", "ant@1", ["ant@3", "ant@2"], at(START + 9)).lineage
    data = {"family": "ant", "serves": "ant@1", "discarded": ["ant@2", "ant@3"]}
    assert told(grown, back) == [("family.rolled_back", "ant", data)]
    off = switch_family(grown, "ant", at(), on=False).lineage
    data = {"family": "ant", "reason": "owner"}
    assert told(grown, off) == [("family.switched_off", "ant", data)]


@pytest.fixture
def state(tmp_path):
    opened = open_state(f"sqlite:///{tmp_path / 'state.sqlite'}")
    values = {
        "id": "wh_1",
        "account_id": "local",
        "url": "https://hooks.example/",
        "description": "",
        "events": " ".join(EVENTS),
        "secret": "whsec_AAAA",
        "created_at": 0.0,
        "updated_at": 0.0,
    }
    opened.write_now(lambda connection: WEBHOOKS.insert(connection, values))
    yield opened
    opened.close()


def published(state):
    found = state.read_now(lambda connection: connection.execute(select(webhook_deliveries)).all())
    return [(one.event, one.subject, json.loads(one.body)["data"]) for one in found]


def test_low_credit_sends_an_event_at_once_and_once_a_day(state):
    low = LOW_BALANCE_NANO
    for before, after in ((low + 9, low), (low, low - 1), (low + 1, low - 5), (low - 5, low - 9)):
        state.write_now(
            lambda c, before=before, after=after: publish_low_balance(
                c, "local", before_nano=before, after_nano=after
            )
        )
    data = {"available_usd": "4.999999999", "threshold_usd": "5"}
    assert published(state) == [("balance.low", "local", data)]


def test_a_purchase_is_told_once_however_often_it_is_paid_and_that_its_refund_left_little(state):
    till = Till(state)
    purchase = till.buy("20")
    for event, kind in (("one", "paid"), ("one", "paid"), ("two", "paid"), ("three", "refunded")):
        till.tell(event, kind, purchase)
    data = {"amount_usd": "20", "is_top_up": False}
    low = {"available_usd": "0", "threshold_usd": "5"}
    paid, little = published(state)
    assert paid == ("purchase.paid", purchase.id, data)
    assert little == ("balance.low", "local", low)


JOB = PendingJob(
    id="job_1",
    account_id="local",
    status="queued",
    created_at=0.0,
    generation=1,
    attempt=1,
    runner="me",
)
SHARED = {"id": JOB.id, "account_id": "local", "created_at": 0.0, "updated_at": 0.0}


def add_prompt_tuning(connection):
    asked = {"dataset_id": "ds_1", "dataset_version": 1, "decision": "team", "asked": b"{}"}
    model = {"model": "far", "model_id": "far", "model_sha256": "0", "effort": "standard"}
    values = {**SHARED, **asked, **model, "price_nano": 0}
    prompt_tuning.JOBS.add(connection, values)


def add_labeling(connection):
    source = {"id": "src_1", "account_id": "local", "name": "", "rows": 1, "open_rows": 0}
    more = {"tokens": 1, "sha256": "0", "receipt": b"{}", "created_at": 0.0}
    labeling.SOURCES.insert(connection, {**source, **more})
    asked = {"source_id": "src_1", "name": "", "teachers": b"[]", "weighting": "", "rows": 1}
    counts = ("completed_rows", "valid_rows", "agreement_rows", "error_rows")
    values = {**SHARED, **asked, **dict.fromkeys(counts, 0), "price_nano": 0}
    labeling.JOBS.add(connection, values)


def add_evaluation(connection):
    rows = {"dataset_id": "ds_1", "dataset_version": 1, "dataset_sha256": "0", "method": "sft"}
    model = {"model_id": "far", "model_sha256": "0", "model_label": "far", "model_name": "far"}
    scored = {"evaluation_sha256": "0", "evaluation_rows": 1, "decisions": 1}
    evaluations.EVALUATIONS.add(connection, {**SHARED, **rows, **model, **scored})


SCORED = {"metrics": b"{}", "decisions": 7, "predictions_sha256": "0", "detail_sha256": "0"}
KINDS = {
    "prompt_tuning": (
        add_prompt_tuning,
        prompt_tuning.JOBS.finish,
        {"result": b"{}", "is_charged": False},
    ),
    "labeling": (add_labeling, labeling.finish_run, {"completed_rows": 1}),
    "evaluation": (add_evaluation, evaluations.finish_run, SCORED),
}
TABLES = {
    "prompt_tuning": prompt_tunings,
    "labeling": labeling_jobs,
    "evaluation": evaluation_rows,
}
FURTHER = {
    "labeling": [("labeling.review_ready", {"id": "job_1", "rows": 1})],
    "evaluation": [
        (
            "evaluation.succeeded",
            {"id": "job_1", "dataset_id": "ds_1", "dataset_version": 1, "model": "far"}
            | {"decisions": 7, "fine_tune_id": None},
        )
    ],
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_succeeded_job_sends_one_event_with_its_status(state, kind):
    add, finish, values = KINDS[kind]

    def work(connection):
        add(connection)
        set_runner(connection, TABLES[kind], JOB, status="running", updated_at=1.0)
        return [finish(connection, JOB, at=2.0, **values) for _ in range(2)]

    assert state.write_now(work) == [True, False]
    data = {"id": "job_1", "kind": kind, "status": "succeeded"}
    *further, last = published(state)
    assert last == ("job.succeeded", "job_1", data)
    assert [(event, data) for event, _, data in further] == FURTHER.get(kind, [])


@pytest.mark.parametrize("kind", KINDS)
def test_a_failed_job_sends_one_event_with_its_reason(state, kind):
    add = KINDS[kind][0]
    stores = {
        "prompt_tuning": prompt_tuning.JOBS,
        "labeling": labeling.JOBS,
        "evaluation": evaluations.EVALUATIONS,
    }
    end = stores[kind].move
    error = {"code": "no_rows", "message": "There are none."}

    def work(connection):
        add(connection)
        given = {"at": 2.0, "only_if": ("queued",), "error": json.dumps(error).encode()}
        return [end(connection, "job_1", "failed", **given) for _ in range(2)]

    assert state.write_now(work) == [True, False]
    data = {"id": "job_1", "kind": kind, "status": "failed", "error": error}
    assert published(state) == [("job.failed", "job_1", data)]
