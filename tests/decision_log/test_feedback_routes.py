"""POST /v1/feedback: the real outcome of a stored decision."""

from __future__ import annotations

import pytest

from steelyard.decision_log.store import feedback_of_answers
from support.api.error_shape import assert_canonical_error

pytestmark = pytest.mark.usefixtures("every_response_is_checked")

PATH = "/v1/feedback"


@pytest.fixture
def decided(client, make_request):
    """The id of a stored decision."""
    return client.post("/v1/decide", json=make_request()).json()["id"]


@pytest.fixture
def recorded(server, decided):
    """Return the stored feedback of the decision."""
    state = server.services.state
    return lambda: state.read_now(lambda c: feedback_of_answers(c, [decided])).get(decided, {})


def send(client, decided, outcomes, **headers):
    return client.post(PATH, json={"decision_id": decided, "outcomes": outcomes}, headers=headers)


def test_outcomes_are_recorded_in_the_order_sent(client, decided, recorded):
    response = send(client, decided, {"urgency": "2", "team": {"billing": 0.75, "other": 0.25}})
    assert response.status_code == 200
    assert response.json() == {"decision_id": decided, "recorded": ["urgency", "team"]}
    assert recorded() == {"urgency": "2", "team": {"billing": 0.75, "other": 0.25}}


def test_a_later_report_replaces_an_earlier_one_of_the_same_decision(client, decided, recorded):
    send(client, decided, {"team": "billing", "refund": "yes"})
    send(client, decided, {"team": "other"})
    assert recorded() == {"team": "other", "refund": "yes"}


def test_clicks_count_only_where_they_are_named(client, decided, recorded):
    def report(outcomes, **origin):
        body = {"decision_id": decided, "outcomes": outcomes, **origin}
        return client.post(PATH, json=body).json()["recorded"]

    def n_observed(**query):  # other tests decide on this server too
        buckets = client.get("/v1/decisions/summary", params=query).json()["buckets"]
        return sum(bucket["with_feedback"] for bucket in buckets)

    def is_listed(**query):
        page = client.get("/v1/decisions/log", params={"has_feedback": True, **query}).json()
        return decided in {answer["id"] for answer in page["data"]}

    before = n_observed()

    assert report({"team": "billing"}, by="click") == ["team"]
    assert recorded() == {}
    assert (n_observed() - before, n_observed(by="click")) == (0, 1)
    assert [is_listed(), is_listed(by="click"), is_listed(by="expert")] == [False, True, False]

    assert report({"team": "other"}, by="expert", who="ada") == ["team"]
    assert report({"team": "billing", "refund": "no"}, by="model") == ["refund"]
    stored = client.get(f"/v1/decisions/log/{decided}").json()
    assert stored["feedback"] == recorded() == {"team": "other"}
    assert stored["feedback_by"]["team"] == {"by": "expert", "who": "ada", "outcome": "other"}
    assert stored["feedback_by"]["refund"]["by"] == "model"
    origins = ("click", "expert", "model")
    assert [n_observed(by=origin) for origin in origins] == [0, 1, 1]
    assert n_observed() - before == 1


def test_who_goes_with_by(client, decided):
    body = {"decision_id": decided, "outcomes": {"team": "other"}, "who": "ada"}
    error = assert_canonical_error(client.post(PATH, json=body), 422, "invalid_request")
    assert [detail["path"] for detail in error["details"]] == [["body", "who"]]


def test_probabilities_are_rescaled(client, decided, recorded):
    assert send(client, decided, {"refund": {"yes": 0.7, "no": 0.3005}}).status_code == 200
    assert sum(recorded()["refund"].values()) == pytest.approx(1, abs=1e-12)


def test_of_equal_probabilities_the_first_outcome_counts(client, decided, recorded):
    assert send(client, decided, {"refund": {"no": 0.5, "yes": 0.5}}).status_code == 200
    assert list(recorded()["refund"]) == ["yes", "no"]


def test_every_violation_is_listed_with_its_path(client, decided, recorded):
    outcomes = {
        "team": "finance",
        "nobody": "yes",
        "refund": {"yes": 0.7, "maybe": 0.3},
        "urgency": {"0": 0.5, "1": 0.4},
    }
    error = assert_canonical_error(send(client, decided, outcomes), 422, "invalid_request")
    base = ["body", "outcomes"]
    assert {tuple(detail["path"]): detail["type"] for detail in error["details"]} == {
        (*base, "team"): "unknown_outcome",
        (*base, "nobody"): "unknown_decision",
        (*base, "refund"): "unknown_outcome",
        (*base, "urgency"): "not_a_distribution",
    }
    assert recorded() == {}


@pytest.mark.parametrize(
    ("body", "paths"),
    [
        ({}, [["body", "decision_id"], ["body", "outcomes"]]),
        ({"decision_id": "", "outcomes": {}}, [["body", "decision_id"], ["body", "outcomes"]]),
        (
            {"decision_id": 1, "outcomes": {"a": 1, "b": {}, "c": {"x": 2}}, "extra": 1},
            [
                ["body", "decision_id"],
                ["body", "outcomes", "a"],
                ["body", "outcomes", "b"],
                ["body", "outcomes", "c", "x"],
                ["body", "extra"],
            ],
        ),
        ([], [["body"]]),
    ],
)
def test_a_body_of_another_shape_is_refused(client, body, paths):
    error = assert_canonical_error(client.post(PATH, json=body), 422, "invalid_request")
    assert [detail["path"] for detail in error["details"]] == paths


def test_a_decision_that_is_not_stored_takes_no_feedback(client, make_request):
    unstored = client.post("/v1/decide", json=make_request(store=False)).json()["id"]
    played = client.post("/v1/playground/decide", json=make_request()).json()["id"]
    for decision_id in (unstored, played, "dec_nothing"):
        response = send(client, decision_id, {"team": "other"})
        assert_canonical_error(response, 404, "not_found", message="stored")


def test_a_repeated_key_replays_and_does_not_record_again(client, decided, recorded):
    key = {"Idempotency-Key": "feedback-1"}
    first = send(client, decided, {"team": "billing"}, **key)
    send(client, decided, {"team": "other"})
    again = send(client, decided, {"team": "billing"}, **key)
    assert again.content == first.content
    assert recorded() == {"team": "other"}
    conflict = send(client, decided, {"team": "shipping"}, **key)
    assert_canonical_error(conflict, 409, "idempotency_conflict")


def test_a_refused_report_does_not_use_up_its_key(client, decided):
    key = {"Idempotency-Key": "feedback-2"}
    assert send(client, decided, {"team": "nothing"}, **key).status_code == 422
    assert send(client, decided, {"team": "other"}, **key).status_code == 200
