"""POST /v1/lint: decide's body, warnings for an answer, and no model."""

from __future__ import annotations

import json

import pytest

from steelyard.decisions.lint.service import lint_dict
from support.api.error_shape import assert_canonical_error

pytestmark = pytest.mark.usefixtures("every_response_is_checked")

PATH = "/v1/lint"
NEGATED = {"id": "late", "kind": "binary", "question": "Is the parcel not late?"}
CLEAN = {"id": "late", "kind": "binary", "question": "Is the parcel late?"}


@pytest.fixture(autouse=True)
def nothing_scored(server):
    yield
    assert server.scorer.n_requests == 0


def test_a_clean_request_has_an_empty_array(client, make_request):
    response = client.post(PATH, json=make_request(decisions=[CLEAN]))
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/json"
    assert response.headers["x-request-id"].startswith("req_")
    assert response.json() == {"warnings": []}


def test_warnings_have_the_four_fields(client, make_request):
    [warning] = client.post(PATH, json=make_request(decisions=[NEGATED])).json()["warnings"]
    assert warning.keys() == {"decision", "rule", "severity", "message"}
    assert warning["decision"] == "late"
    assert (warning["rule"], warning["severity"]) == ("negation", "warning")


def test_the_wire_equals_the_process(client, make_request):
    request = make_request(context="")
    assert client.post(PATH, json=request).json() == lint_dict(request)


def test_a_long_body_is_linted_too(client, make_request):
    request = make_request(context="a ticket. " * 5000, decisions=[NEGATED])
    found = client.post(PATH, json=request).json()["warnings"]
    assert [warning["rule"] for warning in found] == ["negation", "long_context"]


def test_more_outcomes_than_are_compared_at_once_are_refused(client, make_request):
    decisions = [
        {
            "id": f"d{n}",
            "kind": "single",
            "question": "Which?",
            "outcomes": [f"o{i}" for i in range(255)],
        }
        for n in range(5)
    ]
    response = client.post(PATH, json=make_request(decisions=decisions[:4]))
    assert response.status_code == 200
    response = client.post(PATH, json=make_request(decisions=decisions))
    assert_canonical_error(
        response, 422, "invalid_request", path=["body", "decisions"], message="1275 outcomes in all"
    )


def test_the_fields_of_decide_are_taken_and_no_model_is_looked_up(client, make_request):
    fields = {
        "model": "router@3",
        "fallback": ["nobody"],
        "temperature": 2,
        "independent": True,
        "store": True,
        "metadata": {"run": 1},
        "images": [{"id": 1, "media_type": "image/png", "data": "AAAA"}],
    }
    response = client.post(PATH, json=make_request(decisions=[CLEAN], **fields))
    assert response.json() == {"warnings": []}


def test_it_is_public(client, make_request):
    response = client.post(PATH, json=make_request(), headers={"Authorization": "Bearer nonsense"})
    assert response.status_code == 200


def test_every_violation_is_listed_as_by_decide(client, make_request):
    body = make_request(
        decisions=[{"id": "a", "question": "", "outcomes": ["x"]}, NEGATED, NEGATED], colour="red"
    )
    error = assert_canonical_error(client.post(PATH, json=body), 422, "invalid_request")
    decided = client.post("/v1/decide", json=body).json()["error"]
    assert error["details"] == decided["details"]
    assert len(error["details"]) == 4


@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        ({"Content-Type": "text/plain"}, 415, "unsupported_media_type"),
        ({"Content-Type": "application/json; charset=latin-1"}, 415, "unsupported_media_type"),
        (
            {"Content-Type": "application/json", "Content-Encoding": "br"},
            415,
            "unsupported_encoding",
        ),
    ],
)
def test_headers_are_held_to_decides_rules(client, make_request, headers, status, code):
    response = client.post(PATH, content=json.dumps(make_request()), headers=headers)
    assert_canonical_error(response, status, code)


def test_a_body_over_the_bound_is_refused(client, server, make_request):
    body = json.dumps(make_request(context="a" * server.services.settings.body_bytes))
    response = client.post(PATH, content=body, headers={"Content-Type": "application/json"})
    assert_canonical_error(response, 413, "payload_too_large")


def test_other_methods_are_refused(client):
    response = client.get(PATH)
    assert_canonical_error(response, 405, "method_not_allowed")
    assert response.headers["Allow"] == "POST"
