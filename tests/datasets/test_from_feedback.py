"""Feedback on stored decisions as rows: which become one, once, and which are left out and why."""

from __future__ import annotations

import asyncio
import json
from contextlib import closing

import msgspec
import pytest

from steelyard import errors
from steelyard.caller import LOCAL_ACCOUNT, Caller
from steelyard.datasets.frames.pages import RowStore
from steelyard.datasets.from_feedback import STORED_ID, FeedbackRows
from steelyard.decision_log.store import (
    FeedbackSource,
    StoredDecision,
    insert_decision,
    put_feedback,
)
from steelyard.operations.write import Write
from steelyard.storage.tables import accounts
from support.datasets.dataset_rows import REFUND, ROUTE, make_rows
from support.datasets.opened_datasets import OpenedDatasets
from support.servers.calling import answer_of

ME = Caller(LOCAL_ACCOUNT, None, "full", "test")
NOW = 1_000_000_000.0
DAY = 86_400.0
OTHERS = {"id": "spam", "kind": "binary", "question": "Is it spam?"}


class Opened(OpenedDatasets):
    """Datasets and stored decisions in a folder."""

    def __init__(self, folder):
        super().__init__(folder, min_rows=1)
        self.rows = FeedbackRows(
            self.state, self.datasets, self.store, self.writes, retention_days=30, now=lambda: NOW
        )

    def store_decision(self, number, outcomes=None, source=None, **given):
        fields = {
            "id": f"dec_{number}",
            "account_id": LOCAL_ACCOUNT,
            "created_at": NOW - 1000 + number,
            "model": "router",
            "version": "router@1",
            **given,
        }
        context = fields.pop("context", f"Message {number}.")
        decisions = fields.pop("decisions", [ROUTE, REFUND])
        request = msgspec.json.encode({"context": context, "decisions": decisions})
        stored = StoredDecision(request=request, results=b"{}", **fields)

        def work(connection):
            insert_decision(connection, stored)
            if outcomes:
                put_feedback(connection, stored.id, outcomes, recorded_at=NOW, source=source)

        self.state.write_now(work)

    def make(self, key=None, **body):
        services = {FeedbackRows: self.rows}
        return answer_of("POST /v1/datasets/from-feedback", services, body, caller=ME, key=key)

    def stored_rows(self, dataset_id):
        at = asyncio.run(self.datasets.dataset_at(ME, dataset_id))
        return [json.loads(row.json) for row in RowStore(self.store).iterate(at.manifest)]


@pytest.fixture
def opened(tmp_path):
    with closing(Opened(tmp_path)) as opened:
        yield opened


def test_observations_become_targets(opened):
    soft = {"billing": 0.75, "support": 0.25}
    opened.store_decision(1, {"route": "billing", "refund": "no"})
    opened.store_decision(2, {"route": soft}, metadata=b'{"channel":"mail"}')
    opened.store_decision(3)
    made = opened.make(name="from feedback")
    assert made["feedback"] == {
        "stored": 3,
        "added": 2,
        "without_feedback": 1,
        "already_there": 0,
        "other_decisions": 0,
        "without_text": 0,
        "duplicates": 0,
    }
    assert (made["name"], made["rows"], made["method"]) == ("from feedback", 2, "sft")
    first, second = opened.stored_rows(made["id"])
    assert first["targets"] == {"route": {"billing": 1.0}, "refund": {"no": 1.0}}
    # What nothing was observed of is not asked.
    assert second["targets"] == {"route": soft}
    assert [one["id"] for one in second["decisions"]] == ["route"]
    assert second["metadata"] == {"channel": "mail", STORED_ID: "dec_2"}


def test_rows_name_where_their_labels_came_from_and_leave_out_clicks(opened):
    expert, click = FeedbackSource("expert", "ada"), FeedbackSource("click")
    opened.store_decision(1, {"route": "billing"}, source=expert)
    opened.store_decision(2, {"route": "support"}, source=click)
    made = opened.make(name="observed")
    assert made["feedback"]["without_feedback"] == 1
    (row,) = opened.stored_rows(made["id"])
    assert row["metadata"] == {"by": "expert", "who": "ada", STORED_ID: "dec_1"}
    clicks = opened.make(name="clicks", by="click")
    (row,) = opened.stored_rows(clicks["id"])
    assert row["metadata"] == {"by": "click", STORED_ID: "dec_2"}


def test_a_stored_decision_is_taken_once_by_a_dataset(opened):
    for number in range(1, 4):
        opened.store_decision(number, {"route": "billing"})
    made = opened.make(name="n")
    with pytest.raises(errors.NoNewRowsError, match="3 of them are rows"):
        opened.make(dataset_id=made["id"])
    # Feedback that came since changes nothing of a row that is there.
    opened.state.write_now(lambda c: put_feedback(c, "dec_1", {"route": "other"}, recorded_at=NOW))
    opened.store_decision(4, {"route": "support"})
    grown = opened.make(dataset_id=made["id"], dataset_version=1)
    assert grown["feedback"]["already_there"] == 3
    assert grown["feedback"]["added"] == 1
    assert (grown["version"], grown["rows"]) == (2, 4)
    # Another dataset takes them all.
    assert opened.make(name="again")["feedback"]["added"] == 4


def test_decisions_that_the_dataset_does_not_ask_are_left_out(opened):
    dataset_id = opened.create(make_rows(10))["id"]
    reworded = {**REFUND, "question": "Refund?"}
    opened.store_decision(1, {"spam": "yes"}, decisions=[OTHERS])
    opened.store_decision(2, {"route": "other", "refund": "yes"}, decisions=[ROUTE, reworded])
    opened.store_decision(3, {"refund": "yes"}, decisions=[reworded])
    # The same as a row that the dataset has.
    opened.store_decision(
        4, {"route": "billing", "refund": "yes"}, context=make_rows(1)[0]["context"]
    )
    grown = opened.make(dataset_id=dataset_id)
    assert grown["feedback"] == {
        "stored": 4,
        "added": 1,
        "without_feedback": 0,
        "already_there": 0,
        "other_decisions": 2,
        "without_text": 0,
        "duplicates": 1,
    }
    assert opened.stored_rows(dataset_id)[-1]["targets"] == {"route": {"other": 1.0}}


def test_decisions_without_rows_keep_no_others_out(opened):
    foreign = {**ROUTE, "id": "team", "outcomes": ["billing", "abstain"]}
    opened.store_decision(1, {"team": "billing"}, decisions=[foreign])
    opened.store_decision(2, {"team": "billing", "route": "billing"}, decisions=[foreign, ROUTE])
    many = [{**REFUND, "id": f"q{n}"} for n in range(70)]
    opened.store_decision(3, {one["id"]: "yes" for one in many}, decisions=many)
    made = opened.make(name="from feedback")
    assert made["feedback"]["added"] == 2
    assert made["feedback"]["other_decisions"] == 1
    asked = [[one["id"] for one in row["decisions"]] for row in opened.stored_rows(made["id"])]
    assert sorted(map(len, asked)) == [1, 64]
    assert ["route"] in asked
    opened.store_decision(4, {"team": "billing", "route": "support"}, decisions=[foreign, ROUTE])
    grown = opened.make(dataset_id=made["id"])
    assert (grown["feedback"]["added"], grown["feedback"]["already_there"]) == (1, 2)


def test_a_range_a_model_and_decisions_choose(opened):
    for number in range(1, 7):
        opened.store_decision(
            number,
            {"route": "billing", "refund": "no"},
            version="router@1" if number < 4 else "router@2",
        )
    opened.store_decision(7, {"route": "billing"}, model="base", version=None)
    opened.store_decision(8, {"route": "billing"}, created_at=NOW - 40 * DAY)
    opened.store_decision(9, {"route": "billing"}, account_id=other_account(opened))

    def chosen(**filter_):
        rows = opened.stored_rows(opened.make(name="n", **filter_)["id"])
        return [row["metadata"][STORED_ID] for row in rows]

    at = NOW - 1000
    assert chosen() == [f"dec_{number}" for number in range(1, 8)]
    assert chosen(since=at + 2, until=at + 4) == ["dec_2", "dec_3"]
    assert chosen(model="router@2") == ["dec_4", "dec_5", "dec_6"]
    assert chosen(model="base") == ["dec_7"]
    assert len(chosen(decisions=["refund"])) == 6
    made = opened.make(name="n", model="router", since=at + 2, decisions=["refund"])
    assert made["feedback"]["added"] == 5
    assert all(list(row["targets"]) == ["refund"] for row in opened.stored_rows(made["id"]))


def other_account(opened):
    values = {"id": "acct_2", "name": "other", "created_at": 0.0}
    opened.state.write_now(lambda c: c.execute(accounts.insert(), values))
    return "acct_2"


def test_a_page_is_no_bound(opened, monkeypatch):
    monkeypatch.setattr("steelyard.datasets.from_feedback._PAGE", 3)
    for number in range(8):
        opened.store_decision(number, {"route": "billing"}, created_at=NOW - 5)
    rows = opened.stored_rows(opened.make(name="n")["id"])
    assert [row["metadata"][STORED_ID] for row in rows] == [f"dec_{n}" for n in range(8)]


def test_a_key_repeats_its_answer_after_later_feedback(opened):
    opened.store_decision(1, {"route": "billing"})
    first = opened.make(key="k", name="n")
    opened.store_decision(2, {"route": "billing"})
    assert opened.make(key="k", name="n") == first
    with pytest.raises(errors.IdempotencyConflictError):
        opened.make(key="k", name="other")
    grown = opened.make(key="k2", dataset_id=first["id"])
    assert opened.make(key="k2", dataset_id=first["id"]) == grown


def test_every_refusal(opened):
    with pytest.raises(errors.NoRowsError, match="0 stored decisions"):
        opened.make(name="n")
    with pytest.raises(errors.InvalidRequestError) as refused:
        opened.make(name=" ", dataset_id="ds_1", since=5, until=5, evaluation_fraction=3, more=1)
    assert {tuple(one["path"]) for one in refused.value.details} == {
        ("body", "name"),
        ("body", "until"),
        ("body", "evaluation_fraction"),
        ("body", "more"),
    }
    with pytest.raises(errors.InvalidRequestError, match="name is missing"):
        opened.make(until=4)
    with pytest.raises(errors.InvalidRequestError, match="since is a text"):
        opened.make(name="n", since="x", until=4)
    with pytest.raises(errors.InvalidRequestError, match="dataset_version"):
        opened.make(name="n", dataset_version=2)
    with pytest.raises(errors.NotFoundError):
        opened.make(dataset_id="ds_1")
    opened.store_decision(1, {"route": "billing"})
    made = opened.make(name="n", evaluation_fraction=0.5)
    with pytest.raises(errors.DatasetChangedError):
        opened.make(dataset_id=made["id"], dataset_version=2)
    asyncio.run(opened.datasets.delete(Write(ME), made["id"]))
    with pytest.raises(errors.DatasetDeletedError):
        opened.make(dataset_id=made["id"])
    rewards = {"route": {"billing": 1, "support": 0, "other": 0}, "refund": {"yes": 2, "no": 1}}
    rewarded = [{**row, "rewards": rewards} for row in make_rows(4)]
    for row in rewarded:
        del row["targets"]
    with pytest.raises(errors.SupervisionMismatchError):
        opened.make(dataset_id=opened.create(rewarded)["id"])


def test_a_dataset_that_grew_meanwhile_is_not_added_to(opened, monkeypatch):
    opened.store_decision(1, {"route": "billing"})
    made = opened.make(name="n")
    opened.store_decision(2, {"route": "other"})
    write = FeedbackRows._write

    def write_late(self, *given):
        counts = write(self, *given)
        monkeypatch.undo()
        opened.make(dataset_id=made["id"])
        return counts

    monkeypatch.setattr(FeedbackRows, "_write", write_late)
    with pytest.raises(errors.DatasetChangedError):
        opened.make(dataset_id=made["id"])
