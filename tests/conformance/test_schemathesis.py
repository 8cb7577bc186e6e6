"""Schemathesis over the whole OpenAPI document, on a real server with accounts and without.

Three sets of requests on every operation: requests that the document allows and others, made by
Schemathesis; the same with a key, without one and with an unknown one; and requests that the service
must answer, which Schemathesis cannot make, because most rules over a request's values have no form in
a schema. Every answer is held to Schemathesis's checks and to those of ``openapi_validation``.
``test_schemathesis_at_length.py`` sends many times the examples, and the boundary values of every
parameter.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.http.routing import Access
from support.api.conforming import (
    BODIES,
    NEEDS_A_KEY,
    answer_all,
    by_name,
    call,
    common,
    load,
    observed_outcomes,
)
from support.decisions import strategies

#: Examples of an operation: what keeps its rules is alike with a key, and a wrong key is refused
#: before anything is read.
FEW, FEWER, FEWEST = 20, 10, 5
OPEN = load(with_security=False)
KEYED = load(with_security=True)
GUESSED = load(with_security=True, guesses_keys=True)


@OPEN.parametrize()
@settings(common, max_examples=FEW)
def test_with_accounts_off(case, open_server):
    call(case, open_server)


@KEYED.parametrize()
@settings(common, max_examples=FEWER)
def test_with_a_key(case, keyed_server, key):
    call(case, keyed_server, headers={"Authorization": f"Bearer {key}"})


@GUESSED.parametrize()
@settings(common, max_examples=FEWEST)
def test_without_a_key_or_with_a_guessed_one(case, keyed_server):
    """Public operations are answered, the operator's to this machine, every other is refused."""
    response = call(case, keyed_server, excluded_checks=NEEDS_A_KEY)
    is_other_method = response.request.method != case.operation.method.upper()
    route = by_name()[case.operation.definition.raw["operationId"]]
    if is_other_method:
        assert response.status_code == 405
    elif route.access in {Access.KEYED, Access.CONSOLE}:
        # 403 for a cookie that no page of ours sends
        assert response.status_code in {401, 403}
    else:
        assert response.status_code != 401


class TestRequestsThatMustBeAnswered:
    """Valid requests are answered on every route of their shape, and as the document says."""

    @pytest.mark.parametrize("path", sorted(BODIES))
    def test_every_one_is(self, path, open_server):
        answer_all(OPEN[path]["POST"], open_server, FEW)


def test_stored_decisions_take_feedback_in_every_form(open_server):
    """Feedback needs a decision that exists, which no document can name."""

    @settings(common, max_examples=FEW)
    @given(strategies.requests(), st.data())
    def tell(request: dict[str, Any], data: st.DataObject) -> None:
        body = {**request, "store": True}
        case = OPEN["/v1/decide"]["POST"].Case(body=body, media_type="application/json")
        answer = call(case, open_server).json()
        observed = {
            id_: data.draw(observed_outcomes(list(decision["probabilities"])))
            for id_, decision in answer["decisions"].items()
        }
        report = {"decision_id": answer["id"], "outcomes": observed}
        case = OPEN["/v1/feedback"]["POST"].Case(body=report, media_type="application/json")
        response = call(case, open_server)
        assert response.json() == {"decision_id": answer["id"], "recorded": list(observed)}

    tell()
