"""The OpenAPI document: valid, complete, the one that is served, and the one that is committed."""

from __future__ import annotations

import re
import subprocess
import sys

import httpx
import msgspec
import pytest
from jsonschema import Draft202012Validator

from steelyard import errors
from steelyard.app.application import ROUTES
from steelyard.app.openapi import COMMITTED
from steelyard.errors import error_classes
from steelyard.http.openapi import build_document, errors_of, to_text
from steelyard.http.routing import Access
from steelyard.wire.schemas import portable_pattern
from support.api.openapi_validation import check_response, document

pytestmark = pytest.mark.usefixtures("every_response_is_checked")

HEADERS = {"content-type": "application/json", "x-request-id": "req_1"}


def references(value):
    if isinstance(value, dict):
        if "$ref" in value:
            yield value["$ref"]
        for member in value.values():
            yield from references(member)
    elif isinstance(value, list):
        for member in value:
            yield from references(member)


def patterns(value):
    if isinstance(value, dict):
        if isinstance(value.get("pattern"), str):
            yield value["pattern"]
        for member in value.values():
            yield from patterns(member)
    elif isinstance(value, list):
        for member in value:
            yield from patterns(member)


def operations():
    for path, methods in document()["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation


WAYS = ("email", "oidc", "passkey")
ESTIMATED = (
    "decide",
    "families",
    "families/{family}/continue",
    "fine-tuning/jobs",
    "named-comparisons",
    "systemone",
)


def test_the_committed_copy_is_the_one_that_the_routes_make():
    assert COMMITTED.read_text(encoding="utf-8") == to_text(build_document(ROUTES)), (
        "run: python -m steelyard.app.openapi --write"
    )


def test_the_command_prints_it():
    done = subprocess.run(
        [sys.executable, "-m", "steelyard.app.openapi"], capture_output=True, text=True, check=True
    )
    assert done.stdout == to_text(document())


def test_it_is_served(client):
    response = client.get("/openapi.json")
    assert response.headers["content-type"] == "application/json"
    assert response.json() == document()
    assert (response.json()["openapi"], response.json()["info"]["version"]) == ("3.1.0", "0.1.0")
    (named,) = response.json()["servers"]
    assert response.url.join(named["url"]) == client.base_url.join("/"), "the server that sent it"


def test_no_pattern_takes_a_line_feed_at_the_end_or_means_another_elsewhere():
    structs = {
        struct
        for route in ROUTES
        for struct in (route.request, *route.also_takes, route.response, route.query)
        if struct is not None
    }
    _, schemas = msgspec.json.schema_components(structs)
    ours, published = set(patterns(schemas)), set(patterns(document()))
    assert [pattern for pattern in ours if pattern.endswith("$")] == [], r"end it with \Z"
    assert {pattern for pattern in published if r"\Z" in pattern} == set()
    assert {portable_pattern(pattern) for pattern in ours} <= published


def test_every_reference_leads_somewhere():
    for reference in references(document()):
        target = document()
        for step in reference.removeprefix("#/").split("/"):
            target = target[step]


def test_every_schema_is_a_schema():
    for schema in document()["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)
    for _, _, operation in operations():
        for parameter in operation.get("parameters", ()):
            if "schema" in parameter:
                Draft202012Validator.check_schema(parameter["schema"])


def test_every_route_is_an_operation_with_a_name_of_its_own():
    assert [(method, path) for method, path, _ in operations()] == sorted(
        ((route.method, route.path) for route in ROUTES),
        key=[(method, path) for method, path, _ in operations()].index,
    )
    names = [operation["operationId"] for _, _, operation in operations()]
    assert len(set(names)) == len(names) == len(ROUTES)


def test_path_parameters_are_those_of_the_path():
    for _, path, operation in operations():
        named = [p["name"] for p in operation.get("parameters", ()) if p.get("in") == "path"]
        assert named == re.findall(r"\{(\w+)\}", path)


def test_query_parameters_have_the_defaults_of_their_routes():
    for path, expected in {
        "/v1/evaluations": {"limit": 200},
        "/v1/datasets/{dataset}/rows": {"limit": 100, "offset": 0, "partition": "all"},
    }.items():
        parameters = document()["paths"][path]["get"]["parameters"]
        schemas = {p["name"]: p["schema"] for p in parameters if p["in"] == "query"}
        defaults = {name: s["default"] for name, s in schemas.items() if "default" in s}
        assert defaults == expected


def test_public_operations_need_no_key_and_keyed_ones_do():
    for route in ROUTES:
        operation = document()["paths"][route.path][route.method.lower()]
        needs_nobody = route.access in {Access.PUBLIC, Access.SIGN_IN}
        assert (operation["security"] == []) == needs_nobody
        # A code, or a provider's signature, may be refused where nobody has a key.
        may_refuse = not needs_nobody or any(error.status == 401 for error in route.errors)
        assert ("401" in operation["responses"]) == may_refuse


def test_operations_for_operators_name_no_other_role():
    ours = {route.name: route for route in ROUTES if route.for_operators}
    told = {
        operation["operationId"]: operation["description"]
        for *_, operation in operations()
        if operation["operationId"] in ours
    }
    assert told.keys() == ours.keys()
    assert [text for text in told.values() if "session of an operator" not in text] == []
    assert [text for text in told.values() if "any user" in text or "`read`" in text] == []


def test_all_that_changes_something_is_done_once_for_a_key():
    """Those of sign-in are of one use by themselves; the others here change nothing."""
    unkeyed = {
        f"{route.method} {route.path}"
        for route in ROUTES
        if route.is_write and errors.IdempotencyConflictError not in route.errors
    }
    assert unkeyed == {
        *(f"POST /v1/auth/{way}{step}" for way in WAYS for step in ("", "/verify")),
        "POST /v1/auth/sign-out",
        "POST /v1/account/passkeys/challenge",
        "POST /v1/billing/providers/{provider}/events",
        "POST /v1/datasets/check",
        "POST /v1/datasets/{dataset}/rows/search",
        "POST /v1/datasets/{dataset}/rows/similar",
        "POST /v1/drafts/{draft}/rows",
        *(f"POST /v1/evaluations/{{evaluation}}/{of}" for of in ("costs", "policy", "threshold")),
        *(f"POST /v1/{of}/estimate" for of in ESTIMATED),
        "POST /v1/lint",
        "POST /v1/playground/decide",
        "POST /v1/systemone/translate",
    }


def test_every_error_is_declared_somewhere():
    declared = {error.code for route in ROUTES for error in errors_of(route)}
    # Answered where no operation is.
    assert error_classes().keys() - declared == {"method_not_allowed"}


class TestTheCheckItself:
    """The plugin finds planted faults."""

    @pytest.mark.parametrize(
        ("status", "headers", "content", "problem"),
        [
            (201, {}, b"{}", "status"),
            (200, {}, b"{}", "required property"),
            (200, {"content-type": "text/plain"}, b"{}", "content type"),
            (200, {"x-request-id": "other"}, b'{"warnings":[]}', "x-request-id"),
            (200, {"x-news": "1"}, b'{"warnings":[]}', "not documented"),
            (
                429,
                {"retry-after": "soon"},
                b'{"error":{"code":"rate_limited","message":"","retryable":true,"request_id":"r"}}',
                "retry-after",
            ),
            (
                422,
                {},
                b'{"error":{"code":"no_rows","message":"","retryable":true,"request_id":"r"}}',
                "no_rows",
            ),
        ],
    )
    def test_a_wrong_response_is_found(self, status, headers, content, problem):
        with pytest.raises(AssertionError, match=problem):
            check_response("POST", "/v1/lint", status, {**HEADERS, **headers}, content)

    def test_every_call_of_httpx_is_checked(self, server, monkeypatch):
        monkeypatch.setitem(document()["paths"]["/health"]["get"], "responses", {})
        with pytest.raises(AssertionError, match="status is not declared"):
            httpx.get(f"{server.url}/health")


def test_head_answers_where_get_does(client):
    paths = [path for path, methods in document()["paths"].items() if "get" in methods]
    for path in paths:
        head, get = client.head(path), client.get(path)
        assert (head.status_code, head.content) == (get.status_code, b""), path
        assert head.headers["Content-Type"] == get.headers["Content-Type"], path
