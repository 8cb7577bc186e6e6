"""The frontier of a dataset: which evaluations stand for its models, and the figures of each."""

from __future__ import annotations

import asyncio
import json

import pytest
from sqlalchemy import update

from steelyard import errors
from steelyard.app.foundation import open_frames
from steelyard.datasets.service import DatasetService
from steelyard.datasets.uploads import Upload
from steelyard.evaluations import frontier
from steelyard.evaluations.figures import EvaluationFigures
from steelyard.evaluations.frontier import EvaluationFrontier
from steelyard.evaluations.models import EvaluatedModels
from steelyard.evaluations.queries_wire import FrontierQuery, PolicyTrial
from steelyard.evaluations.run import EvaluationRuns
from steelyard.evaluations.tables import evaluations
from support.datasets.dataset_rows import make_rows
from support.models.evaluated import ME, claim, get, make_dataset, open_home, submit
from support.servers.calling import upload_rows

COSTS = {"pay": {"yes": 0, "no": 7}, "ask": {"yes": 1, "no": 1}}
REWARDS = [
    {
        "context": f"Case {number}",
        "decisions": [make_rows(1)[0]["decisions"][1]],
        "rewards": {"refund": {"yes": number, "no": 1}},
    }
    for number in range(6)
]


@pytest.fixture(scope="module")
def services(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    with open_home(home, base_models="second=hashing", prices="hashing=200,second=100") as services:
        yield services


@pytest.fixture(scope="module")
def scored(services):
    """A dataset of two versions with two evaluations each; the second has further rows."""
    dataset = make_dataset(services, make_rows(10))
    first = score(services, dataset.id)
    add_rows(services, dataset.id, make_rows(5, start=60))
    return dataset.id, first, score(services, dataset.id)


def add_rows(services, dataset_id, rows):
    async def add():
        with Upload("json", {}, body=json.dumps({"evaluation": rows}).encode()) as upload:
            await upload_rows(services.get(DatasetService), upload, dataset_id, caller=ME)

    asyncio.run(add())


def score(services, dataset_id, models=("hashing", "second")):
    """Ids of evaluations of both models, scored in this process."""
    found = [one.id for one in submit(services, dataset_id, models).data]
    runs = EvaluationRuns(
        services.state,
        open_frames(services.settings, "evaluations"),
        services.get(DatasetService),
        EvaluatedModels(services.models),
    )
    for evaluation_id in found:
        run = claim(services.state, runs, evaluation_id)
        while run.advance():
            pass
    return found


def frontier_of(services, dataset_id, **given):
    query = FrontierQuery(dataset=dataset_id, **given)
    return asyncio.run(services.get(EvaluationFrontier).find(ME, query))


def test_each_model_stands_by_its_evaluation_of_the_newest_version(services, scored):
    dataset_id, first, second = scored
    found = frontier_of(services, dataset_id)
    assert (found.dataset_version, found.measure, found.unlisted) == (2, "accuracy", 0)
    assert {one.evaluation for one in found.data} == set(second)
    older = frontier_of(services, dataset_id, version=1)
    assert older.dataset_version == 1
    assert {one.evaluation for one in older.data} == set(first)
    assert {one.estimate.n for one in older.data} == {20}


def test_of_a_model_the_newest_evaluation_on_the_rows_counts(services):
    dataset_id = make_dataset(services, make_rows(4, start=200)).id
    (older,) = score(services, dataset_id, ["hashing"])
    # The model has changed since: what was scored stands for it no more.
    services.state.write_now(
        lambda connection: connection.execute(
            update(evaluations).where(evaluations.c.id == older).values(model_sha256="ab" * 32)
        )
    )
    (newer,) = score(services, dataset_id, ["hashing"])
    assert newer != older
    assert [one.evaluation for one in frontier_of(services, dataset_id).data] == [newer]


def test_prices_are_of_a_thousand_decisions_and_the_cheapest_is_not_dominated(services, scored):
    dataset_id, _, second = scored
    found = {one.model: one for one in frontier_of(services, dataset_id).data}
    dear, cheap = found["hashing"], found["second"]
    assert not cheap.dominated
    is_slower = cheap.latency_ms > dear.latency_ms
    assert dear.dominated == (cheap.estimate.value >= dear.estimate.value and not is_slower)
    detail = services.get(EvaluationFigures).detail(ME, second[0])
    tokens = json.loads(bytes(asyncio.run(detail)))["input_tokens"]
    assert float(dear.price_usd_per_1000) == pytest.approx(1000 * tokens * 200e-9 / 30)
    assert float(cheap.price_usd_per_1000) * 2 == pytest.approx(float(dear.price_usd_per_1000))
    assert cheap.latency_ms > 0
    assert cheap.family is None


def test_log_loss_is_that_of_the_evaluation(services, scored):
    dataset_id, _, second = scored
    found = {
        one.evaluation: one for one in frontier_of(services, dataset_id, measure="log_loss").data
    }
    for evaluation_id in second:
        loss = get(services, evaluation_id).metrics.loss
        assert found[evaluation_id].estimate.value == pytest.approx(loss, rel=1e-12)


@pytest.mark.parametrize(
    ("given", "costs"),
    [
        ({"action_costs": json.dumps(COSTS)}, COSTS),
        (
            {"false_positive": 3.0, "false_negative": 1.0},
            {"yes": {"yes": 0, "no": 3}, "no": {"yes": 1, "no": 0}},
        ),
    ],
    ids=["actions", "binary"],
)
def test_expected_cost_is_that_of_the_policy(services, scored, given, costs):
    dataset_id, _, _ = scored
    found = frontier_of(
        services, dataset_id, measure="expected_cost", decision="refund", **given
    ).data
    trial = PolicyTrial(decision_id="refund", action_costs=costs)
    for one in found:
        tried = asyncio.run(services.get(EvaluationFigures).try_policy(ME, one.evaluation, trial))
        assert one.estimate == tried.cost
    assert len(found) == 2


def test_a_dataset_without_evaluations_has_no_points(services):
    found = frontier_of(services, make_dataset(services, make_rows(2, start=300)).id)
    assert (found.dataset_version, found.data) == (None, [])


def test_models_that_are_here_no_more_are_left_out(services, scored, monkeypatch):
    find = services.models.find
    monkeypatch.setattr(
        services.models, "find", lambda name: None if name == "second" else find(name)
    )
    (left,) = frontier_of(services, scored[0]).data
    assert (left.model, left.dominated) == ("hashing", False)


def test_many_models_are_cut_and_counted(services, scored, monkeypatch):
    monkeypatch.setattr(frontier, "MAX_POINTS", 1)
    found = frontier_of(services, scored[0])
    assert (len(found.data), found.unlisted) == (1, 1)


def test_rewards_have_none_of_the_measures(services):
    dataset_id = make_dataset(services, REWARDS).id
    score(services, dataset_id, ["hashing"])
    with pytest.raises(errors.SupervisionMismatchError, match="need targets"):
        frontier_of(services, dataset_id)
    with pytest.raises(errors.SupervisionMismatchError, match="need targets"):
        frontier_of(
            services,
            dataset_id,
            measure="expected_cost",
            decision="refund",
            action_costs=json.dumps(COSTS),
        )


def test_a_version_that_is_not_there(services, scored):
    with pytest.raises(errors.NotFoundError, match="no version 9"):
        frontier_of(services, scored[0], version=9)


@pytest.mark.parametrize(
    ("given", "paths"),
    [
        ({"decision": "refund", "false_positive": 1.0}, ["decision", "false_positive"]),
        ({"measure": "expected_cost"}, ["decision", "false_negative", "false_positive"]),
        (
            {
                "measure": "expected_cost",
                "decision": "d",
                "action_costs": "{}",
                "false_positive": 1,
            },
            ["false_positive"],
        ),
        ({"measure": "expected_cost", "decision": "d", "action_costs": "[1"}, ["action_costs"]),
        (
            {"measure": "expected_cost", "decision": "d", "action_costs": json.dumps(COSTS)},
            ["decision"],
        ),
        (
            {"measure": "expected_cost", "decision": "refund", "action_costs": '{"pay":{"yes":1}}'},
            ["action_costs.pay.no"],
        ),
    ],
    ids=["costs-elsewhere", "no-costs", "both", "no-json", "unknown-decision", "missing-cost"],
)
def test_wrong_fields_are_refused_with_their_place(services, scored, given, paths):
    with pytest.raises(errors.InvalidRequestError) as refused:
        frontier_of(services, scored[0], **given)
    found = [".".join(map(str, one.path)) for one in refused.value.violations]
    assert found == [f"query.{path}" for path in paths]
