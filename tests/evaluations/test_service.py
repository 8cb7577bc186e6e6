"""Evaluations asked for, listed, stopped and taken up again; a worker runs beside some of them."""

from __future__ import annotations

import asyncio
import json
import threading
from collections import Counter
from contextlib import contextmanager

import msgspec
import pytest
from sqlalchemy import insert

from steelyard import errors
from steelyard.accounts import store as account_rows
from steelyard.app.foundation import open_frames
from steelyard.app.job_runtime import open_worker
from steelyard.caller import Caller
from steelyard.datasets.service import DatasetService
from steelyard.datasets.store import erase_dataset, set_dataset_archived
from steelyard.datasets.uploads import Upload
from steelyard.evaluations import store as evaluation_rows
from steelyard.evaluations.figures import EvaluationFigures
from steelyard.evaluations.models import EvaluatedModel, EvaluatedModels
from steelyard.evaluations.queries_wire import (
    ComparisonQuery,
    CostTrial,
    EvaluationsQuery,
    RecordsQuery,
)
from steelyard.evaluations.run import EvaluationRuns
from steelyard.evaluations.service import EvaluationService
from steelyard.families.lineage.lineage import FamilyModel
from steelyard.families.tables import tuned_models
from steelyard.jobs.runtime import JobRuntime
from steelyard.jobs.work import LostRunError
from steelyard.operations.write import Write
from steelyard.serving.decide import DecideService
from support.datasets.dataset_rows import REFUND, make_row_dict, make_rows
from support.decisions.factories import decided
from support.families.lineage_cases import make_gate
from support.models.evaluated import (
    ME,
    act,
    claim,
    get,
    make_dataset,
    open_home,
    scored_contexts,
    scribbling,
    settings_of,
    submit,
    wait_for_evaluation,
)
from support.servers.calling import send_now, upload_rows
from support.waiting import next_turn

OTHER = Caller("acct_other", None, "full", "test")


@pytest.fixture
def services(tmp_path):
    with open_home(tmp_path, base_models="second=hashing") as services:
        yield services


def ask(services, payload, *, caller=ME, key=None):
    return send_now("POST /v1/evaluations", services, payload, caller=caller, key=key)


def listed(services, dataset_id, **given):
    query = EvaluationsQuery(dataset_id=dataset_id, **given)
    return asyncio.run(services.get(EvaluationService).page(ME, query))


def archive(services, dataset_id):
    services.state.write_now(lambda c: set_dataset_archived(c, dataset_id, 1.0))


def erase(services, dataset_id):
    services.state.write_now(lambda c: erase_dataset(c, dataset_id, 1.0))


def runs_of(services, models=None, **given):
    """The runs that score evaluations in this process."""
    store, models = (
        open_frames(services.settings, "evaluations"),
        models or EvaluatedModels(services.models),
    )
    return EvaluationRuns(services.state, store, services.get(DatasetService), models, **given)


def score(services, evaluation_id):
    """Score every row of an evaluation in this process, and measure them."""
    run = claim(services.state, runs_of(services), evaluation_id)
    while run.advance():
        pass


def test_a_submission_queues_each_pair_once(services):
    dataset = make_dataset(services)
    first = submit(services, dataset.id, ["hashing", "second", "hashing"])
    assert (first.queued, first.reused) == (2, 0)
    assert [one.model_label for one in first.data] == ["hashing", "second"]
    assert {one.status for one in first.data} == {"queued"}
    assert first.data[0].evaluation_rows == 40
    assert first.data[0].decisions == 80
    again = submit(services, dataset.id, ["second", "hashing"])
    assert (again.queued, again.reused) == (0, 2)
    assert {one.id for one in again.data} == {one.id for one in first.data}


@pytest.mark.parametrize(
    ("status", "error"),
    [
        ("discarded", errors.ModelDiscardedError),
        ("deleted", errors.ModelDeletedError),
        ("ready", None),
    ],
)
def test_a_model_that_went_between_its_name_and_the_queue_is_refused(
    services, monkeypatch, status, error
):
    model = FamilyModel(
        adapter="ft-ftj_1",
        family="router",
        version=2,
        job_id="ftj_1",
        base="hashing",
        parent=None,
        created_at=1.0,
        gate=make_gate(),
        status=status,
    )
    row = {"account_id": ME.account_id, "body": msgspec.json.encode(model)}
    for name in ("adapter", "family", "version", "job_id", "status", "created_at"):
        row[name] = getattr(model, name)
    services.state.write_now(lambda connection: connection.execute(insert(tuned_models), row))

    async def find(*_):
        await next_turn()
        return EvaluatedModel(
            id=model.adapter,
            label=model.ref,
            evaluation_key="ab" * 32,
            family="router",
            version=2,
            job_id=model.job_id,
        )

    monkeypatch.setattr(services.get(EvaluationService)._models, "find", find)
    payload = {"dataset_id": make_dataset(services).id, "models": ["router@2"]}
    if error is None:
        assert json.loads(ask(services, payload).body)["queued"] == 1
        return
    with pytest.raises(error, match="router@2"):
        ask(services, payload)
    assert listed(services, payload["dataset_id"]).data == []


def test_the_same_key_gives_the_same_answer(services):
    payload = {"dataset_id": make_dataset(services).id, "models": ["hashing"]}
    first = ask(services, payload, key="k")
    act(services, "cancel", json.loads(first.body)["data"][0]["id"])
    again = ask(services, payload, key="k")
    assert again.is_replay
    assert again.body == first.body
    with pytest.raises(errors.IdempotencyConflictError):
        ask(services, {**payload, "models": ["second"]}, key="k")


@pytest.mark.parametrize(
    ("payload", "paths"),
    [
        ({}, [["body", "dataset_id"], ["body", "models"]]),
        ({"dataset_id": "", "models": []}, [["body", "dataset_id"], ["body", "models"]]),
        ({"dataset_id": "ds_1", "models": ["a"], "n": 1}, [["body", "n"]]),
    ],
)
def test_every_wrong_field_is_reported(services, payload, paths):
    with pytest.raises(errors.InvalidRequestError) as raised:
        ask(services, payload)
    assert [detail["path"] for detail in raised.value.details] == paths


def test_what_is_not_there_is_not_found(services):
    dataset = make_dataset(services)
    for payload in (
        {"dataset_id": "ds_none", "models": ["hashing"]},
        {"dataset_id": dataset.id, "models": ["nobody"]},
    ):
        with pytest.raises(errors.NotFoundError):
            ask(services, payload)
    with pytest.raises(errors.NotFoundError):
        get(services, "eval_none")


def test_another_account_sees_nothing(services):
    dataset = make_dataset(services)
    (evaluation,) = submit(services, dataset.id).data
    with pytest.raises(errors.NotFoundError):
        ask(services, {"dataset_id": dataset.id, "models": ["hashing"]}, caller=OTHER)
    with pytest.raises(errors.NotFoundError):
        get(services, evaluation.id, caller=OTHER)
    with pytest.raises(errors.NotFoundError):
        asyncio.run(
            services.get(EvaluationService).page(OTHER, EvaluationsQuery(dataset_id=dataset.id))
        )


def test_an_archived_dataset_takes_no_evaluation(services):
    dataset = make_dataset(services)
    archive(services, dataset.id)
    with pytest.raises(errors.DatasetArchivedError):
        submit(services, dataset.id)


LEAVING = [(archive, errors.DatasetArchivedError), (erase, errors.DatasetDeletedError)]


@pytest.mark.parametrize(("leave", "error"), LEAVING)
def test_none_is_queued_on_a_dataset_that_leaves_meanwhile(services, monkeypatch, leave, error):
    dataset = make_dataset(services)

    def leaving(*_):
        leave(services, dataset.id)
        return []

    monkeypatch.setattr("steelyard.evaluations.service.load_definitions", leaving)
    with pytest.raises(error):
        submit(services, dataset.id)
    assert listed(services, dataset.id).data == []


@pytest.mark.parametrize(("leave", "error"), LEAVING)
def test_none_is_retried_on_a_dataset_that_left(services, leave, error):
    dataset = make_dataset(services)
    (evaluation,) = submit(services, dataset.id).data
    act(services, "cancel", evaluation.id)
    leave(services, dataset.id)
    with pytest.raises(error):
        act(services, "retry", evaluation.id)
    assert get(services, evaluation.id).status == "cancelled"


def test_one_that_was_accepted_is_scored_though_its_dataset_is_archived(services):
    dataset = make_dataset(services, make_rows(5))
    (evaluation,) = submit(services, dataset.id).data
    archive(services, dataset.id)
    score(services, evaluation.id)
    assert get(services, evaluation.id).status == "succeeded"


def test_a_dataset_without_evaluation_rows_is_refused(services):
    body = json.dumps({"name": "t", "training": make_rows(5)}).encode()
    with Upload("json", {}, body=body) as upload:
        create = upload_rows(services.get(DatasetService), upload, caller=ME)
        dataset_id = json.loads(asyncio.run(create).body)["id"]
    with pytest.raises(errors.TooFewRowsError):
        submit(services, dataset_id)


def test_queues_are_bounded_per_account_and_in_all(tmp_path):
    given = {"base_models": "second=hashing", "job_queue": 3, "job_queue_per_account": 2}
    with open_home(tmp_path, **given) as services:
        services.state.write_now(
            lambda c: account_rows.insert_account(c, OTHER.account_id, "other", 1.0)
        )
        dataset = make_dataset(services)
        submit(services, dataset.id, ["hashing", "second"])
        other = make_dataset(services, make_rows(3, start=100))
        with pytest.raises(errors.TenantQueueFullError) as full:
            submit(services, other.id)
        assert full.value.retry_after_s is not None
        theirs = make_dataset(services, caller=OTHER)
        with pytest.raises(errors.QueueFullError):
            submit(services, theirs.id, ["hashing", "second"], caller=OTHER)
        assert submit(services, theirs.id, caller=OTHER).queued == 1
        # What is reused takes no place.
        assert submit(services, dataset.id, ["hashing", "second"]).reused == 2


def test_pages_and_statuses(services):
    dataset = make_dataset(services)
    submission = submit(services, dataset.id, ["hashing", "second"])
    first, second = submission.data
    act(services, "cancel", first.id)
    assert [one.id for one in listed(services, dataset.id).data] == [second.id, first.id]
    page = listed(services, dataset.id, limit=1)
    assert (page.has_more, page.next_cursor) == (True, second.id)
    rest = listed(services, dataset.id, limit=1, cursor=page.next_cursor)
    assert ([one.id for one in rest.data], rest.has_more) == ([first.id], False)
    for statuses in (["cancelled"], ["failed", "cancelled"]):
        found = listed(services, dataset.id, status=statuses)
        assert [one.id for one in found.data] == [first.id]
    with pytest.raises(errors.InvalidRequestError):
        listed(services, dataset.id, cursor="eval_none")


def test_cancelling_a_queued_evaluation_ends_it_and_retrying_queues_it(services):
    (evaluation,) = submit(services, make_dataset(services).id).data
    with pytest.raises(errors.EvaluationNotRetryableError):
        act(services, "retry", evaluation.id)
    assert act(services, "cancel", evaluation.id).status == "cancelled"
    assert act(services, "cancel", evaluation.id).status == "cancelled"
    again = act(services, "retry", evaluation.id)
    assert (again.status, again.generation) == ("queued", 2)


def test_a_dataset_is_used_when_an_evaluation_of_it_is_queued(services):
    dataset = make_dataset(services, make_rows(5))

    def used_at():
        return asyncio.run(services.get(DatasetService).get(ME, dataset.id)).used_at

    assert used_at() is None
    (evaluation,) = submit(services, dataset.id).data
    queued_at = used_at()
    assert dataset.created_at < queued_at <= evaluation.created_at
    assert submit(services, dataset.id).reused == 1
    score(services, evaluation.id)
    assert submit(services, dataset.id).reused == 1
    assert used_at() == queued_at
    (second,) = submit(services, dataset.id, ["second"]).data
    queued_at = used_at()
    assert queued_at > evaluation.created_at
    act(services, "cancel", second.id)
    assert used_at() == queued_at
    act(services, "retry", second.id)
    assert used_at() > queued_at


def test_a_dataset_that_is_evaluated_cannot_be_deleted(services):
    dataset = make_dataset(services)
    (evaluation,) = submit(services, dataset.id).data
    with pytest.raises(errors.VersionInUseError):
        asyncio.run(services.get(DatasetService).delete(Write(ME), dataset.id))
    act(services, "cancel", evaluation.id)
    asyncio.run(services.get(DatasetService).delete(Write(ME), dataset.id))


def test_figures_wait_for_success(services):
    (evaluation,) = submit(services, make_dataset(services).id).data
    with pytest.raises(errors.EvaluationNotReadyError):
        asyncio.run(services.get(EvaluationFigures).detail(ME, evaluation.id))


def test_predictions_are_those_of_decide(tmp_path):
    rows = make_rows(12)
    with open_home(tmp_path) as services:
        dataset = make_dataset(services, rows)
        (evaluation,) = submit(services, dataset.id).data
        with open_worker(settings_of(tmp_path)):
            ended = wait_for_evaluation(services, evaluation.id)
        assert ended.status == "succeeded"
        assert ended.metrics.n == 24
        records = services.get(EvaluationFigures).records
        page = asyncio.run(records(ME, evaluation.id, RecordsQuery(limit=500)))
        assert page.total == 24
        model = services.models.default
        decide: DecideService = model.decide
        answers = [
            decided(
                decide,
                {"context": row["context"], "decisions": row["decisions"]},
                lambda request: model.queue.submit(request).result(),
            )
            for row in rows
        ]
        expected = Counter(
            tuple(result.probabilities.items())
            for answer in answers
            for result in answer.decisions.values()
        )
        assert Counter(tuple(one.probabilities.items()) for one in page.data) == expected
        wrong = asyncio.run(records(ME, evaluation.id, RecordsQuery(decision="refund", wrong=True)))
        assert {one.decision_id for one in wrong.data} == {"refund"}
        assert {one.accuracy for one in wrong.data} == {0.0}
        # The same rows and the same model are not scored again.
        assert submit(services, dataset.id).reused == 1


@pytest.mark.parametrize("n_rows", [1, 9, 10, 25])
def test_rows_are_scored_window_by_window_and_kept_between_two_runs(tmp_path, n_rows):
    with open_home(tmp_path) as services:
        (evaluation,) = submit(services, make_dataset(services, make_rows(n_rows)).id).data
        runs = runs_of(services, window_rows=5, commit_s=0.0)
        assert claim(services.state, runs, evaluation.id).advance()
        run = claim(services.state, runs, evaluation.id)
        while get(services, evaluation.id).completed_rows < n_rows:
            assert run.advance()
        assert not run.advance()
        with pytest.raises(LostRunError):
            run.advance()
        ended = get(services, evaluation.id)
        assert (ended.status, ended.metrics.n) == ("succeeded", 2 * n_rows)


def test_only_referenced_files_are_kept(tmp_path):
    with open_home(tmp_path) as services:
        (evaluation,) = submit(services, make_dataset(services).id).data
        with open_worker(settings_of(tmp_path)):
            wait_for_evaluation(services, evaluation.id)
        store = open_frames(services.settings, "evaluations")
        assert len(store.names()) >= 3
        store.sweep(services.state.read_now(evaluation_rows.live_files), older_than_s=0)
        assert len(store.names()) == 2
        runs_of(services).sweep()
        assert asyncio.run(services.get(EvaluationFigures).detail(ME, evaluation.id))


def test_scores_of_rows_go_with_their_dataset(services):
    figures = services.get(EvaluationFigures)
    store = open_frames(services.settings, "evaluations")

    def swept():
        live = services.state.read_now(evaluation_rows.live_files)
        store.sweep(live, older_than_s=0)
        return store.names()

    def scored(rows):
        dataset = make_dataset(services, rows)
        (evaluation,) = submit(services, dataset.id).data
        score(services, evaluation.id)
        return dataset, get(services, evaluation.id)

    scored(make_rows(6))
    needed = swept()
    dataset, evaluation = scored(make_rows(6, 50))
    (failed,) = submit(services, dataset.id, ["second"]).data
    runs = runs_of(services)
    run = claim(services.state, runs, failed.id)
    assert run.advance()
    run.close()
    runs.fail(run.job, errors.QueueFullError("Its predictions stay."))
    assert get(services, failed.id).error.code == errors.QueueFullError.code
    assert len(swept()) > len(needed) + 2
    asyncio.run(services.get(DatasetService).delete(Write(ME), dataset.id))
    assert swept() == needed
    costs = CostTrial(decision_id="refund", false_positive=1, false_negative=1)
    for asked in (
        figures.detail(ME, evaluation.id),
        figures.detail(ME, failed.id),
        figures.records(ME, evaluation.id, RecordsQuery()),
        figures.compare(ME, ComparisonQuery(before=evaluation.id, after=evaluation.id)),
        figures.cost_curve(ME, evaluation.id, costs),
    ):
        with pytest.raises(errors.DatasetDeletedError):
            asyncio.run(asked)
    assert get(services, evaluation.id) == evaluation
    assert evaluation.metrics.n == 12


class SlowModels:
    """Opens a model when a test lets it."""

    def __init__(self, models):
        self._models = models
        self.opening, self.may_open = threading.Event(), threading.Event()
        self.n_open = 0

    @contextmanager
    def open(self, account_id, model_id):
        self.opening.set()
        assert self.may_open.wait(30)
        with self._models.open(account_id, model_id) as model:
            self.n_open += 1
            yield model
            self.n_open -= 1


@pytest.mark.parametrize("is_retried", [False, True])
def test_a_cancellation_while_the_model_is_loaded_is_not_lost(services, is_retried):
    (evaluation,) = submit(services, make_dataset(services).id).data
    models = SlowModels(EvaluatedModels(services.models))
    with JobRuntime(services.state, [runs_of(services, models)]):
        assert models.opening.wait(30)
        assert act(services, "cancel", evaluation.id).status == "cancelling"
        wait_for_evaluation(services, evaluation.id, lambda e: e.status == "cancelled")
        if is_retried:
            assert act(services, "retry", evaluation.id).status == "queued"
        models.may_open.set()
        ended = wait_for_evaluation(services, evaluation.id)
    assert models.n_open == 0
    assert (ended.status, ended.generation, ended.completed_rows) == (
        ("succeeded", 2, ended.evaluation_rows) if is_retried else ("cancelled", 1, 0)
    )


def test_a_model_that_changed_is_not_scored(tmp_path):
    with open_home(tmp_path, base_models="second=hashing") as services:
        (evaluation,) = submit(services, make_dataset(services).id, ["second"]).data
        with open_worker(settings_of(tmp_path)):
            ended = wait_for_evaluation(services, evaluation.id)
    assert (ended.status, ended.error.code) == ("failed", "model_unavailable")


def test_rewards_and_rows_that_ask_less(tmp_path):
    rewards = [
        make_row_dict(
            f"Case {number}",
            decisions=[REFUND],
            targets=...,
            rewards={"refund": {"yes": float(number), "no": 1.0}},
        )
        for number in range(5)
    ]
    with open_home(tmp_path) as services:
        (evaluation,) = submit(services, make_dataset(services, rewards).id).data
        assert evaluation.method == "reward"
        with open_worker(settings_of(tmp_path)):
            metrics = wait_for_evaluation(services, evaluation.id).metrics
    assert metrics.n == 5
    assert 0 <= metrics.expected_reward <= 4


def test_a_running_evaluation_stops_and_continues_from_its_scores(tmp_path):
    file = tmp_path / "scored.txt"
    rows = make_rows(400)
    with open_home(tmp_path) as services:
        (evaluation,) = submit(services, make_dataset(services, rows).id).data
        with open_worker(settings_of(tmp_path), load_model=scribbling(file, 0.02)):
            wait_for_evaluation(services, evaluation.id, lambda e: e.completed_rows > 0)
            assert act(services, "cancel", evaluation.id).status in {"cancelling", "cancelled"}
            stopped = wait_for_evaluation(
                services, evaluation.id, lambda e: e.status == "cancelled"
            )
        assert 0 < get(services, evaluation.id).completed_rows < len(rows)
        assert stopped.generation == 1
        n_kept = get(services, evaluation.id).completed_rows
        n_before = len(scored_contexts(file))
        assert act(services, "retry", evaluation.id).generation == 2
        with open_worker(settings_of(tmp_path), load_model=scribbling(file)):
            ended = wait_for_evaluation(services, evaluation.id)
    assert (ended.status, ended.completed_rows) == ("succeeded", len(rows))
    assert len(scored_contexts(file)) - n_before == len(rows) - n_kept
