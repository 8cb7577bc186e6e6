"""Schemathesis over the whole OpenAPI document, on a real server with accounts and without.

Three sets of requests on every operation: what the document allows and what it does not, made by
Schemathesis; the same with a key, without one and with one that nobody has; and requests that the
service must answer, which Schemathesis cannot make, because most rules over a request's values
have no form in a schema. Every answer is held to Schemathesis's checks and to those of
``openapi_validation``. With ``-m slow`` there are many times the examples.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any
from urllib.parse import urlsplit

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import Case, CheckContext, GenerationMode, Response, SerializationContext
from schemathesis.config import SchemathesisConfig
from schemathesis.core.failures import Failure
from schemathesis.specs.openapi.checks import (
    missing_required_header,
    negative_data_rejection,
    positive_data_acceptance,
)

import strategies
from live_server import LiveServer, live_server
from openapi_validation import check_response, document
from steelyard.api.app import ROUTES
from steelyard.api.routing import Access, Route

FEW, MANY = 20, 400

#: What is wrong where a request breaks a rule that the document states by itself: a request made
#: to fit the document must not be refused for it.
STATED = {"out_of_range", "unknown_field"}

#: A slow machine is no fault of the service's; the same examples in every run.
common = settings(
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.explicit, Phase.generate, Phase.shrink),
)
#: Without the boundary values of every parameter, which Schemathesis gives as explicit examples and
#: of which some operations have thousands: where they have been sent to the same code before.
sampled = settings(common, phases=(Phase.generate, Phase.shrink))


@schemathesis.serializer("application/x-ndjson")
def to_lines(context: SerializationContext, value: Any) -> Any:
    """Write rows a line each; what is no list, as one line."""
    rows = value if isinstance(value, list) else [value]
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def as_sent_here(*, with_security: bool) -> dict[str, Any]:
    """Give the document as it holds for what Schemathesis sends.

    It never compresses a body, whatever ``Content-Encoding`` says. And with accounts off every
    operation takes requests without a key.
    """
    adapted = dict(document())
    adapted["paths"] = {
        path: {method: _adapt(operation, with_security) for method, operation in item.items()}
        for path, item in document()["paths"].items()
    }
    return adapted


def _adapt(operation: dict[str, Any], with_security: bool) -> dict[str, Any]:
    encoding = {"$ref": "#/components/parameters/ContentEncoding"}
    parameters = [one for one in operation.get("parameters", ()) if one != encoding]
    security = operation["security"] if with_security else []
    return {**operation, "parameters": parameters, "security": security}


def load(*, with_security: bool, guesses_keys: bool) -> Any:
    """Give what makes test functions of the operations."""
    config = {
        "generation": {
            "database": "none",
            "deterministic": True,
            "with-security-parameters": guesses_keys,
        },
        # Refusals are held to more, by ``refused_for_what_no_schema_says``.
        "checks": {"positive_data_acceptance": {"expected-statuses": ["2xx", "404", "422"]}},
    }
    return schemathesis.openapi.from_dict(
        as_sent_here(with_security=with_security), config=SchemathesisConfig.from_dict(config)
    )


OPEN = load(with_security=False, guesses_keys=False)
KEYED = load(with_security=True, guesses_keys=False)
GUESSED = load(with_security=True, guesses_keys=True)
#: With a key that nobody has, everything is refused, also what the document allows, and nothing is
#: looked at before that.
NEEDS_A_KEY = [positive_data_acceptance, negative_data_rejection, missing_required_header]


@cache
def by_name() -> dict[str, Route]:
    return {route.name: route for route in ROUTES}


@st.composite
def systemone_questions(draw: st.DrawFn, n_labels: int) -> dict[str, Any]:
    """A valid question in TypeSafe's shape, with so many labels or levels at least."""
    content = strategies.texts | strategies.json_containers
    asked = strategies.texts.filter(str.strip) | strategies.json_containers
    type_ = draw(st.sampled_from(["noul", "choice", "score"]))
    question = {"type": type_, "instructions": draw(asked)}
    if type_ == "noul":
        if draw(st.booleans()):
            described = st.dictionaries(st.sampled_from(["true", "false"]), content)
            question["criteria"] = draw(described)
    elif type_ == "choice":
        labels = draw(strategies.unique_names(n_labels))
        question["criteria"] = {label: draw(st.none() | content) for label in labels}
    else:
        question["criteria"] = draw(st.lists(content, min_size=n_labels, max_size=5))
    return question


def systemone_requests(n_labels: int = 1) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {
            "model": st.sampled_from(["hashing", "jev-latest"]),
            "state": strategies.texts | strategies.json_containers,
            "questions": st.dictionaries(
                strategies.names, systemone_questions(n_labels), min_size=1, max_size=3
            ),
        }
    )


@st.composite
def openai_questions(draw: st.DrawFn) -> dict[str, Any]:
    """A valid question in OpenAI's shape."""
    type_ = draw(st.sampled_from(["predicate", "choice", "score"]))
    question: dict[str, Any] = {
        "type": type_,
        "instructions": draw(strategies.texts.filter(str.strip)),
        "name": draw(st.none() | strategies.names),
    }
    described = st.none() | strategies.texts
    if type_ == "choice":
        values = draw(strategies.unique_names())
        question["choices"] = [{"value": v, "description": draw(described)} for v in values]
    elif type_ == "score":
        labels = draw(strategies.unique_names())
        question["levels"] = [{"label": one, "description": draw(described)} for one in labels]
    return question


messages = st.fixed_dictionaries(
    {
        "role": st.sampled_from(["user", "assistant", "developer", "system"]),
        "content": strategies.texts
        | st.lists(
            st.fixed_dictionaries({"type": st.just("input_text"), "text": strategies.texts}),
            min_size=1,
            max_size=3,
        ),
    }
)
openai_requests = st.fixed_dictionaries(
    {
        "model": st.just("hashing"),
        "input": strategies.texts | st.lists(messages, min_size=1, max_size=3),
        "questions": st.lists(openai_questions(), min_size=1, max_size=3),
    }
)

BODIES = {
    "/v1/decide": strategies.requests(),
    "/v1/decide/estimate": strategies.requests(),
    "/v1/playground/decide": strategies.requests(),
    "/v1/lint": strategies.requests(),
    "/v1/systemone": systemone_requests(),
    "/v1/systemone/estimate": systemone_requests(),
    # A question with one answer has none in decide's shape.
    "/v1/systemone/translate": systemone_requests(n_labels=2),
    "/v1/decisions": openai_requests,
}


@st.composite
def observed_outcomes(draw: st.DrawFn, outcomes: list[str]) -> Any:
    """What came true of a decision: one outcome, or how probable each is."""
    chosen = draw(st.sampled_from(outcomes))
    other = draw(st.sampled_from(outcomes))
    if draw(st.booleans()):
        return chosen
    return {chosen: 1.0} if chosen == other else {chosen: 0.75, other: 0.25}


def declared_in_full(ctx: CheckContext, response: Response, case: Case) -> None:
    """Check the error's code and our own headers, which Schemathesis does not look at."""
    headers = {name: ", ".join(values) for name, values in response.headers.items()}
    path = urlsplit(response.request.url).path
    try:
        check_response(
            response.request.method, path, response.status_code, headers, response.content
        )
    except AssertionError as problem:
        raise Failure(
            operation=case.operation.label, title="Not declared", message=str(problem)
        ) from None


def refused_for_what_no_schema_says(ctx: CheckContext, response: Response, case: Case) -> None:
    """Check that what the document allows is refused only by rules over values."""
    if case.meta is None or case.meta.generation.mode is not GenerationMode.POSITIVE:
        return
    if response.status_code != 422:
        return
    stated = [
        detail
        for detail in response.json()["error"].get("details") or ()
        if detail["type"] in STATED
    ]
    if stated:
        raise Failure(
            operation=case.operation.label, title="The document allows it", message=str(stated)
        )


#: What is wrong with rows is their answer, and no refusal.
TELLS_WHAT_IS_WRONG = {"/v1/datasets/check"}

CHECKS = [declared_in_full, refused_for_what_no_schema_says]


def call(case: Case, server: LiveServer, **options: Any) -> Response:
    if case.operation.path in TELLS_WHAT_IS_WRONG:
        options["excluded_checks"] = [*options.get("excluded_checks", ()), negative_data_rejection]
    return case.call_and_validate(base_url=server.url, additional_checks=CHECKS, **options)


@pytest.fixture(scope="module")
def open_server():
    with live_server() as server:
        yield server


@pytest.fixture(scope="module")
def keyed_server():
    with live_server(accounts="on", prices="hashing=1") as server:
        yield server


@pytest.fixture(scope="module")
def key(keyed_server):
    accounts = keyed_server.services.accounts
    account = accounts.create_account("conformance").id
    accounts.add_credit(account, 10**15)
    return accounts.create_key(account=account).secret


@OPEN.parametrize()
@settings(common, max_examples=FEW)
def test_with_accounts_off(case, open_server):
    call(case, open_server)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@OPEN.parametrize()
@settings(common, max_examples=MANY)
def test_with_accounts_off_at_length(case, open_server):
    call(case, open_server)


@KEYED.parametrize()
@settings(sampled, max_examples=FEW)
def test_with_a_key(case, keyed_server, key):
    call(case, keyed_server, headers={"Authorization": f"Bearer {key}"})


@pytest.mark.slow
@pytest.mark.timeout(3600)
@KEYED.parametrize()
@settings(common, max_examples=MANY)
def test_with_a_key_at_length(case, keyed_server, key):
    call(case, keyed_server, headers={"Authorization": f"Bearer {key}"})


@GUESSED.parametrize()
@settings(sampled, max_examples=FEW)
def test_without_a_key_or_with_a_guessed_one(case, keyed_server):
    """Public operations are answered, the operator's to this machine, every other with 401."""
    response = call(case, keyed_server, excluded_checks=NEEDS_A_KEY)
    is_other_method = response.request.method != case.operation.method.upper()
    route = by_name()[case.operation.definition.raw["operationId"]]
    if is_other_method:
        assert response.status_code == 405
    elif route.access is Access.KEYED:
        assert response.status_code == 401
    else:
        assert response.status_code != 401


class TestRequestsThatMustBeAnswered:
    """What keeps every rule is answered on every route of its shape, and as the document says."""

    @pytest.mark.parametrize("path", sorted(BODIES))
    def test_every_one_is(self, path, open_server):
        answer_all(path, open_server, FEW)

    @pytest.mark.slow
    @pytest.mark.timeout(3600)
    @pytest.mark.parametrize("path", sorted(BODIES))
    def test_every_one_is_at_length(self, path, open_server):
        answer_all(path, open_server, MANY)


def answer_all(path: str, server: LiveServer, n_examples: int) -> None:
    operation = OPEN[path]["POST"]

    @settings(common, max_examples=n_examples)
    @given(BODIES[path])
    def answer(body: Any) -> None:
        case = operation.Case(body=body, media_type="application/json")
        assert call(case, server).status_code == 200

    answer()


def test_what_is_stored_takes_feedback_in_every_form(open_server):
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
