"""Schemathesis on the OpenAPI document: its requests, and the checks of answers."""

from __future__ import annotations

import json
from functools import cache
from typing import Any
from urllib.parse import urlsplit

import httpx
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

from steelyard.app.application import ROUTES
from steelyard.errors import AccountsOffError
from steelyard.http.browsers import ACCOUNT_HEADER, CONSOLE_HEADER
from steelyard.http.routing import Access, Route
from support.api.openapi_validation import check_response, document
from support.decisions import strategies
from support.servers.live_server import LiveServer

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


@schemathesis.serializer("application/x-ndjson")
def to_lines(context: SerializationContext, value: Any) -> Any:
    """Write rows a line each; anything but a list, as one line."""
    rows = value if isinstance(value, list) else [value]
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def as_sent_here(*, with_security: bool) -> dict[str, Any]:
    """Return the document for the requests of Schemathesis.

    It never compresses a body, whatever ``Content-Encoding`` says. And with accounts off every
    operation takes requests without a key.
    """
    adapted = dict(document())
    adapted["paths"] = {
        path: {
            method: _adapt(operation, with_security)
            for method, operation in item.items()
            if _is_answered(by_name()[operation["operationId"]], with_security)
        }
        for path, item in document()["paths"].items()
    }
    adapted["paths"] = {path: item for path, item in adapted["paths"].items() if item}
    return adapted


def _is_answered(route: Route, with_security: bool) -> bool:
    """Whether a call without a session is answered; tests/people call the others as everybody."""
    if route.access in {Access.SIGN_IN, Access.CONSOLE} and not route.takes_keys:
        return False
    # Without accounts there is no money either, and with them models are an operator's to connect.
    if with_security:
        return not route.path.startswith(("/v1/backups", "/v1/judges", "/v1/routes"))
    return route.access is not Access.CONSOLE and AccountsOffError not in route.errors


def _adapt(operation: dict[str, Any], with_security: bool) -> dict[str, Any]:
    encoding = {"$ref": "#/components/parameters/ContentEncoding"}
    parameters = [
        one
        for one in operation.get("parameters", ())
        # A call with a key, or without a session, is not read for what goes with a session.
        if one != encoding and one.get("name") not in {CONSOLE_HEADER, ACCOUNT_HEADER}
    ]
    security = operation["security"] if with_security else []
    return {**operation, "parameters": parameters, "security": security}


def load(*, with_security: bool, guesses_keys: bool = False, boundaries: bool = False) -> Any:
    """Return the decorator that makes test functions of the operations.

    Boundary values are made when the tests are collected, and of some operations there are
    thousands.
    """
    config = {
        "phases": {"coverage": {"enabled": boundaries}},
        "generation": {
            "database": "none",
            "deterministic": True,
            "with-security-parameters": guesses_keys,
        },
        # Refusals are held to more, by ``refused_for_what_no_schema_says``.
        "checks": {"positive_data_acceptance": {"expected-statuses": ["2xx", "404", "409", "422"]}},
    }
    return schemathesis.openapi.from_dict(
        as_sent_here(with_security=with_security), config=SchemathesisConfig.from_dict(config)
    )


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
    """The observed result of a decision: one outcome, or a probability for each."""
    chosen = draw(st.sampled_from(outcomes))
    other = draw(st.sampled_from(outcomes))
    if draw(st.booleans()):
        return chosen
    return {chosen: 1.0} if chosen == other else {chosen: 0.75, other: 0.25}


def declared_in_full(ctx: CheckContext, response: Response, case: Case) -> None:
    """Check the error's code and our own headers, which Schemathesis does not look at."""
    headers = httpx.Headers([(n, v) for n, values in response.headers.items() for v in values])
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
    """Check that only rules over values refuse requests that the document allows."""
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


def answer_all(operation: Any, server: LiveServer, n_examples: int) -> None:
    """Send so many requests that must be answered to an operation with a body."""

    @settings(common, max_examples=n_examples)
    @given(BODIES[operation.path])
    def answer(body: Any) -> None:
        case = operation.Case(body=body, media_type="application/json")
        assert call(case, server).status_code == 200

    answer()
