"""Every way a call can fail, named by where the failure arises, in the one body.

Each test also checks that nothing was scored: a refusal costs nothing.
"""

from __future__ import annotations

import base64
import gzip
import json
import logging
import random

import httpx
import pytest
from sanic import exceptions as sanic_errors

from steelyard.http.compression import zstd
from steelyard.http.errors import TRANSLATIONS
from support.api.error_shape import (
    assert_canonical_body,
    assert_canonical_error,
    parse_raw_response,
)
from support.api.openapi_validation import document
from support.servers.stand_ins import stand_in_server

pytestmark = pytest.mark.usefixtures("every_response_is_checked")

DECIDE = "/v1/decide"
JSON = {"Content-Type": "application/json"}


@pytest.fixture(autouse=True)
def nothing_scored(server):
    yield
    assert server.scorer.n_requests == 0


def decision(**fields):
    return {"id": "d", "question": "Which?", "outcomes": ["a", "b"], **fields}


def request_of(*decisions, **fields):
    return {"context": "A ticket.", "decisions": list(decisions) or [decision()], **fields}


def nested(depth: int) -> str:
    """Return a body whose deepest bracket is ``depth`` levels inside."""
    return '{"context":' + "[" * (depth - 1) + "]" * (depth - 1) + ',"decisions":[]}'


#: Name, body, path of the first detail, and a pattern in its message.
VIOLATIONS = [
    ("missing context", {"decisions": [decision()]}, ["body", "context"], "context"),
    ("missing decisions", {"context": "x"}, ["body", "decisions"], "decisions"),
    ("no decisions", {"context": "x", "decisions": []}, ["body", "decisions"], "1"),
    (
        "65 decisions",
        request_of(*(decision(id=str(n)) for n in range(65))),
        ["body", "decisions"],
        "64",
    ),
    ("unknown field", request_of(colour="red"), ["body", "colour"], "colour"),
    (
        "unknown decision field",
        request_of(decision(colour="red")),
        ["body", "decisions", 0, "colour"],
        "colour",
    ),
    ("context of a wrong type", request_of(context=3), ["body", "context"], ""),
    ("targets", request_of(targets={"d": "a"}), ["body", "targets"], "dataset"),
    (
        "256 outcomes",
        request_of(decision(outcomes=[str(n) for n in range(256)])),
        ["body", "decisions", 0, "outcomes"],
        "255",
    ),
    (
        "one outcome",
        request_of(decision(outcomes=["a"])),
        ["body", "decisions", 0, "outcomes"],
        "2",
    ),
    (
        "reserved outcome",
        request_of(decision(outcomes=["a", "abstain"])),
        ["body", "decisions", 0, "outcomes", 1],
        "abstain",
    ),
    (
        "reserved action",
        request_of(decision(policy={"action_costs": {"abstain": {"a": 1, "b": 1}}})),
        ["body", "decisions", 0, "policy", "action_costs", "abstain"],
        "abstain",
    ),
    (
        "ordinal without rubric",
        request_of(decision(kind="ordinal")),
        ["body", "decisions", 0, "rubric"],
        "rubric",
    ),
    (
        "rubric of another kind",
        request_of(decision(rubric=["x", "y"])),
        ["body", "decisions", 0, "rubric"],
        "rubric",
    ),
    (
        "duplicate outcomes",
        request_of(decision(outcomes=["a", "a"])),
        ["body", "decisions", 0, "outcomes", 1],
        "a",
    ),
    (
        "blank outcome",
        request_of(decision(outcomes=["a", " "])),
        ["body", "decisions", 0, "outcomes", 1],
        "blank|empty",
    ),
    (
        "empty outcomes",
        request_of(decision(outcomes=[])),
        ["body", "decisions", 0, "outcomes"],
        "2",
    ),
    (
        "duplicate ids",
        request_of(decision(), decision()),
        ["body", "decisions", 1, "id"],
        "d",
    ),
    (
        "blank question",
        request_of(decision(question=" ")),
        ["body", "decisions", 0, "question"],
        "blank|empty",
    ),
    (
        "both spellings of a policy",
        request_of(decision(policy={"abstain_below": 0.5}, abstain={"min_probability": 0.5})),
        ["body", "decisions", 0, "abstain"],
        "policy",
    ),
    ("temperature out of bounds", request_of(temperature=9), ["body", "temperature"], "5"),
    ("boolean temperature", request_of(temperature=True), ["body", "temperature"], ""),
]


@pytest.mark.parametrize(
    ("body", "path", "message"), [case[1:] for case in VIOLATIONS], ids=[c[0] for c in VIOLATIONS]
)
def test_a_schema_violation(client, body, path, message):
    response = client.post(DECIDE, json=body)
    error = assert_canonical_error(response, 422, "invalid_request", path=path, message=message)
    assert all(detail["message"] and detail["path"][0] == "body" for detail in error["details"])


def test_every_violation_of_a_request_is_listed(client):
    body = request_of(decision(id="x", outcomes=["a"]), decision(id="y", question=""), model="")
    error = assert_canonical_error(client.post(DECIDE, json=body), 422, "invalid_request")
    paths = [detail["path"] for detail in error["details"]]
    assert ["body", "decisions", 0, "outcomes"] in paths
    assert ["body", "decisions", 1, "question"] in paths


#: Bodies that are no JSON a server may take.
BAD_JSON = [
    ("empty", b""),
    ("cut off", b'{"context": "x", "decis'),
    ("not an object", b"[1, 2]"),
    ("NaN", b'{"context": {"a": NaN}, "decisions": []}'),
    ("Infinity", b'{"context": {"a": -Infinity}, "decisions": []}'),
    ("number past the range", b'{"context": {"a": 1e999}, "decisions": []}'),
    ("lone surrogate in a text", rb'{"context": "\ud800", "decisions": []}'),
    ("lone surrogate in a key", rb'{"context": {"\udfff": 1}, "decisions": []}'),
    ("bytes that are not UTF-8", b'{"context": "\xff\xfe", "decisions": []}'),
    ("key that is no text", b'{1: "x"}'),
    ("nested 33 levels", nested(33).encode()),
    ("100,000 brackets", b"[" * 100_000),
    ("100,000 balanced brackets", nested(100_000).encode()),
]


@pytest.mark.parametrize("body", [case[1] for case in BAD_JSON], ids=[c[0] for c in BAD_JSON])
def test_bad_json(client, body):
    response = client.post(DECIDE, content=body, headers=JSON)
    error = assert_canonical_error(response, 422, "invalid_request")
    assert error["details"][0]["path"][0] == "body"


def test_an_unknown_model(client):
    response = client.post(DECIDE, json=request_of(model="nobody"))
    assert_canonical_error(response, 404, "not_found", message="nobody")


@pytest.mark.parametrize(
    "path", ["/v1/nothing", "/", "/v1/decide/", "//v1/decide", "/v1/health/", "/v1/DECIDE"]
)
def test_an_unknown_route(client, path):
    response = client.post(path, json=request_of())
    assert_canonical_error(response, 404, "not_found", message="route")


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_a_wrong_method(client, method):
    response = client.request(method, DECIDE)
    assert_canonical_error(response, 405, "method_not_allowed", message=method)
    assert response.headers["Allow"] == "POST"


def test_a_wrong_method_of_a_path_with_several(client):
    response = client.put("/v1/datasets/ds_1")
    assert_canonical_error(response, 405, "method_not_allowed", message="use DELETE or GET")
    allowed = document()["paths"]["/v1/datasets/{dataset}"]
    methods = {method.upper() for method in allowed} | {"HEAD"}
    assert response.headers["Allow"].split(", ") == sorted(methods)


@pytest.mark.parametrize(
    ("method", "path", "name"),
    [("GET", "/v1/models", "page"), ("GET", "/openapi.json", "x"), ("POST", DECIDE, "model")],
)
def test_a_query_where_none_is_taken(client, method, path, name):
    response = client.request(method, path, params={name: "1"}, headers=JSON)
    assert_canonical_error(response, 422, "invalid_request", message=name)
    assert response.json()["error"]["details"][0]["path"] == ["query", name]


@pytest.mark.parametrize(
    "content_type",
    [None, "text/plain", "application/x-www-form-urlencoded", "application/json; charset=utf-16"],
)
def test_a_wrong_media_type(client, content_type):
    headers = {} if content_type is None else {"Content-Type": content_type}
    response = client.post(DECIDE, content=json.dumps(request_of()).encode(), headers=headers)
    assert_canonical_error(response, 415, "unsupported_media_type", message="application/json")


@pytest.mark.parametrize("encoding", ["br", "deflate", "gzip, identity"])
def test_a_body_compressed_in_another_way(client, encoding):
    headers = {**JSON, "Content-Encoding": encoding}
    response = client.post(DECIDE, content=b"\x1f\x8b", headers=headers)
    assert_canonical_error(response, 415, "unsupported_encoding", message=encoding.split(",")[0])


def test_a_body_too_large(client, server):
    limit = server.services.settings.body_bytes
    response = client.post(DECIDE, content=b" " * (limit + 1), headers=JSON)
    assert_canonical_error(response, 413, "payload_too_large", message=str(limit))


def test_a_chunked_body_too_large(client, server):
    limit = server.services.settings.body_bytes
    chunks = (b" " * 65536 for _ in range(limit // 65536 + 1))
    response = client.post(DECIDE, content=chunks, headers=JSON)
    assert_canonical_error(response, 413, "payload_too_large", message=str(limit))


#: Random bytes, which do not compress below the bound.
IMAGE = base64.b64encode(random.Random(7).randbytes(1 << 21)).decode()
LONG_IMAGES = [
    request_of(images=[{"id": 1, "media_type": "image/png", "data": IMAGE}]),
    {"images": [{"data": IMAGE, "id": 1, "media_type": "image/png"}], **request_of()},
    {"model": "m", "input": [{"role": "user", "content": [{"type": "input_image"}, IMAGE]}]},
    request_of(context=f"data:image/png;base64,{IMAGE}"),
]


@pytest.mark.parametrize("sent", LONG_IMAGES)
@pytest.mark.parametrize("coding", ["identity", "gzip", "zstd"])
def test_a_body_too_large_for_its_images(client, server, sent, coding):
    compress = {"identity": bytes, "gzip": gzip.compress, "zstd": zstd.compress}[coding]
    body, headers = compress(json.dumps(sent).encode()), {**JSON, "Content-Encoding": coding}
    route = "/v1/decisions" if "input" in sent else DECIDE
    response = client.post(route, content=body, headers=headers)
    assert response.status_code == 422
    assert response.json()["error"]["code"] == "images_not_supported"
    # So it is in chunks, but on no route that does not take images.
    chunks = (body[start : start + 65_536] for start in range(0, len(body), 65_536))
    chunked = client.post(route, content=chunks, headers=headers)
    assert chunked.json()["error"]["message"] == response.json()["error"]["message"]
    lint = client.post("/v1/lint", content=body, headers=headers)
    assert_canonical_error(lint, 413, "payload_too_large")


def test_a_body_too_large_that_only_mentions_images(client):
    mention = json.dumps({"images": [{"id": 1, "data": "data:image/png"}]})
    for context in (mention + "x" * (1 << 20), {"images": [mention], "text": "x" * (1 << 20)}):
        response = client.post(DECIDE, json=request_of(context=context))
        assert_canonical_error(response, 413, "payload_too_large")


def raw_post(*headers: str, body: bytes = b"") -> bytes:
    head = "\r\n".join(["POST /v1/decide HTTP/1.1", "Host: localhost", *headers])
    return f"{head}\r\n\r\n".encode() + body


VALID_BODY = json.dumps(request_of()).encode()

CHUNKED = ("Content-Type: application/json", "Transfer-Encoding: chunked")
#: Name, raw bytes, status, code.
RAW_REQUESTS = [
    ("no HTTP at all", b"hello there\r\n\r\n", 400, "malformed_request"),
    ("another protocol", b"GET / HTTP/3.0\r\n\r\n", 400, "malformed_request"),
    ("a header without a colon", b"GET / HTTP/1.1\r\nbroken\r\n\r\n", 400, "malformed_request"),
    ("a length that is no number", raw_post("Content-Length: many"), 400, "malformed_request"),
    ("a negative length", raw_post("Content-Length: -1"), 400, "malformed_request"),
    (
        "two lengths",
        raw_post("Content-Length: 5", "Content-Length: 6", body=b"hello"),
        400,
        "malformed_request",
    ),
    (
        "a length that claims too much",
        raw_post("Content-Type: application/json", "Content-Length: 99999999", body=b"{}"),
        413,
        "payload_too_large",
    ),
    (
        "a length that claims too little",
        raw_post(
            "Content-Type: application/json",
            "Connection: close",
            "Content-Length: 10",
            body=VALID_BODY,
        ),
        422,
        "invalid_request",
    ),
    (
        "a space before a colon",
        raw_post("Content-Length : 2", body=b"{}"),
        400,
        "malformed_request",
    ),
    ("a NUL in a header", raw_post("X-Name: a\0b"), 400, "malformed_request"),
    ("a header folded over two lines", raw_post("X-Name: a", " b"), 400, "malformed_request"),
    ("no host", b"GET /health HTTP/1.1\r\n\r\n", 400, "malformed_request"),
    (
        "two hosts",
        b"GET /health HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n",
        400,
        "malformed_request",
    ),
    (
        "no path",
        b"GET ?key=SECRET HTTP/1.1\r\nHost: localhost\r\n\r\n",
        400,
        "malformed_request",
    ),
    *(
        (name, raw_post(*CHUNKED, body=body), 400, "malformed_request")
        for name, body in (
            ("a chunk longer than it says", b"2\r\n{}XX0\r\n\r\n"),
            ("a chunk's length in Python's way", b"0x2\r\n{}\r\n0\r\n\r\n"),
            ("a chunk with a long extension", b"2;" + b"a" * 100_000 + b"\r\n{}\r\n0\r\n\r\n"),
            ("a length that is no number in a chunk", b"zz\r\nhello\r\n0\r\n\r\n"),
        )
    ),
    (
        "an expectation nobody meets",
        raw_post("Expect: miracles", "Content-Length: 2", body=b"{}"),
        400,
        "malformed_request",
    ),
    ("headers too long", raw_post(f"X-Long: {'a' * 20_000}"), 413, "payload_too_large"),
    (
        "an address too long",
        b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\n\r\n",
        413,
        "payload_too_large",
    ),
    ("an address that is not ASCII", "GET /é HTTP/1.1\r\n\r\n".encode(), 400, "malformed_request"),
]


@pytest.mark.parametrize(
    ("sent", "status", "code"), [c[1:] for c in RAW_REQUESTS], ids=[c[0] for c in RAW_REQUESTS]
)
def test_a_request_that_is_not_http(server, client, sent, status, code, caplog):
    # What follows in the same bytes is no second request: the connection is closed.
    got_status, headers, body = parse_raw_response(server.exchange(sent))
    assert got_status == status, body
    assert b"SECRET" not in body
    assert "SECRET" not in caplog.text
    assert_canonical_body(body, headers, code)
    assert client.get("/health").status_code == 200


def test_bytes_past_the_stated_length_are_no_part_of_the_body(server):
    sent = raw_post(
        "Content-Type: application/json",
        f"Content-Length: {len(b'{}')}",
        body=b"{}" + VALID_BODY + b"\r\n\r\n",
    )
    status, headers, body = parse_raw_response(server.exchange(sent))
    assert status == 422
    assert_canonical_body(body, headers, "invalid_request")


class TestUnexpected:
    """Faults of the server: the caller learns the request id and nothing else."""

    @pytest.fixture
    def broken(self):
        with stand_in_server() as server:
            server.decisions.failure = RuntimeError("secret /etc/key")
            yield server

    @pytest.mark.parametrize("failure", [RuntimeError("secret /etc/key"), MemoryError("secret")])
    def test_a_service_that_raises(self, broken, caplog, failure):
        broken.decisions.failure = failure
        with caplog.at_level(logging.ERROR, logger="steelyard"):
            response = httpx.post(f"{broken.url}{DECIDE}", json=request_of(context="my context"))
        error = assert_canonical_error(response, 500, "internal_error")
        assert "secret" not in response.text
        assert error["request_id"] in caplog.text
        assert "my context" not in caplog.text

    def test_the_server_answers_after_a_fault(self, broken):
        assert httpx.post(f"{broken.url}{DECIDE}", json=request_of()).status_code == 500
        broken.decisions.failure = None
        assert httpx.post(f"{broken.url}{DECIDE}", json=request_of()).status_code == 200


def test_every_exception_of_sanic_is_translated():
    translated = tuple(kind for kind, _ in TRANSLATIONS)
    # Raised by features that no route uses, or by the server's own start; as faults they are 500.
    faults = {"ServerError", "URLBuildError", "Forbidden", "Unauthorized"}
    http_errors = [
        cls
        for cls in vars(sanic_errors).values()
        if isinstance(cls, type) and issubclass(cls, sanic_errors.HTTPException)
    ]
    missing = [
        cls.__name__
        for cls in http_errors
        if cls is not sanic_errors.HTTPException
        and not issubclass(cls, translated)
        and cls.__name__ not in faults
    ]
    assert missing == []
