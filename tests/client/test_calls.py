"""Requests and responses: bodies, paths, errors, pages, and secrets that are never shown."""

from __future__ import annotations

import importlib
import inspect
import logging
import pkgutil

import pytest

import steelyard
from steelyard.client import AsyncClient, Client, ClientOptions, UnexpectedAnswerError
from steelyard.client import decide_calls as routes
from steelyard.client.calls import encode_body, segment
from steelyard.decisions.wire import DecisionInput
from steelyard.errors import (
    InvalidApiKeyError,
    InvalidReferenceError,
    InvalidRequestError,
    NotFoundError,
    error_classes,
)
from steelyard.settings import read_settings
from support.servers.scripted_server import (
    API_KEY,
    DECIDE_ANSWER,
    URL,
    ScriptedServer,
    answer,
    refusal,
)

DECISIONS = [{"id": "refund", "kind": "binary", "question": "Money back?"}]

both = pytest.mark.parametrize("client_class", [Client, AsyncClient])


@both
def test_only_given_fields_are_sent_and_structs_count_as_mappings(client_class):
    server = ScriptedServer(client_class, [answer()])
    decision = DecisionInput(id="refund", kind="binary", question="Money back?")
    server.ask(lambda client: client.decide({"text": "é"}, (decision,), store=False))
    body = server.body()
    assert body.keys() == {"context", "decisions", "store"}
    assert (body["context"], body["store"]) == ({"text": "é"}, False)
    assert body["decisions"][0]["id"] == "refund"


@both
def test_headers_say_who_asks(client_class):
    server = ScriptedServer(client_class, [answer()], api_key=API_KEY)
    server.ask(lambda client: client.decide("x", DECISIONS))
    assert server.header("Authorization") == [f"Bearer {API_KEY}"]
    assert server.header("Accept") == ["application/json"]
    assert server.header("Content-Type") == ["application/json"]
    assert server.header("User-Agent")[0].startswith(f"steelyard-python/{steelyard.__version__}")


@both
def test_unknown_fields_of_an_answer_are_passed_over(client_class):
    newer = {**DECIDE_ANSWER, "later": {"a": 1}}
    server = ScriptedServer(client_class, [answer(newer)])
    answered = server.ask(lambda client: client.decide("x", DECISIONS))
    assert answered.decisions["refund"].probabilities == {"yes": 0.75, "no": 0.25}


@both
def test_an_error_comes_back_as_its_class_with_where_it_happened(client_class):
    error = InvalidRequestError("Wrong.", details=[{"path": ["body"], "message": "Wrong."}])
    server = ScriptedServer(client_class, [refusal(error)])
    with pytest.raises(InvalidRequestError) as raised:
        server.ask(lambda client: client.decide("x", DECISIONS))
    assert raised.value.details == error.details
    assert raised.value.request_id == "req_1"


@both
def test_a_code_of_a_newer_server_is_kept(client_class):
    body = {"error": {"code": "scale_frozen", "message": "Thaw it.", "retryable": False}}
    server = ScriptedServer(client_class, [answer(body, 409, X_Request_ID="req_9")])
    with pytest.raises(UnexpectedAnswerError, match="Thaw it") as raised:
        server.ask(lambda client: client.health())
    assert (raised.value.server_code, raised.value.http_status) == ("scale_frozen", 409)
    assert raised.value.request_id == "req_9"


@both
def test_keys_are_walked_page_by_page(client_class):
    names = ("key_1", "key_2", "key_3")
    keys = [
        {
            "id": name,
            "name": name,
            "prefix": "sy_sk_a",
            "created_at": 1.5,
            "last_used_at": None,
            "revoked_at": None,
            "scope": "full",
            "role": "owner",
            "made_by": None,
            "monthly_cap_usd": None,
            "month_spent_usd": "0",
        }
        for name in names
    ]
    pages = [
        {"data": keys[:2], "has_more": True, "next_cursor": "key_2"},
        {"data": keys[2:], "has_more": False, "next_cursor": None},
    ]
    server = ScriptedServer(client_class, [answer(page) for page in pages])

    def walk(client):
        walked = client.account.keys(revoked=False, page_size=2)
        return [*walked] if client_class is Client else walked

    assert [key.id for key in server.ask(walk)] == list(names)
    assert [request.url.query.decode() for request in server.requests] == [
        "revoked=false&limit=2",
        "revoked=false&limit=2&cursor=key_2",
    ]


def test_a_deletion_sent_again_has_the_same_answer():
    modules = [each.name for each in pkgutil.iter_modules(steelyard.client.__path__)]
    keys = {}
    for name in modules:
        if not name.endswith("_calls"):
            continue
        module = importlib.import_module(f"steelyard.client.{name}")
        for function in vars(module).values():
            if "``DELETE " not in (inspect.getdoc(function) or ""):
                continue
            parameters = inspect.signature(function).parameters.values()
            required = ["x" for each in parameters if each.default is inspect.Parameter.empty]
            call = function(*required)
            assert call.method == "DELETE"
            keys[call.path] = call.idempotency_key
    assert len(keys) > 15
    assert all(keys.values()), keys


@both
def test_names_are_one_segment_of_the_path(client_class):
    server = ScriptedServer(client_class, [answer({"model": "router@3", "ready": True})])
    server.ask(lambda client: client.models.ready("router@3"))
    assert server.requests[0].url.raw_path == b"/v1/models/router%403/ready"


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a\\b", "a?b", "a#b", "a\0b"])
def test_a_name_that_is_another_path_is_refused(name):
    with pytest.raises(InvalidReferenceError):
        segment(name)


@pytest.mark.parametrize("value", [float("nan"), "\ud800", {1: "a"}, {"a", "b"}, object()])
def test_values_outside_json_are_refused_with_their_place(value):
    with pytest.raises(InvalidRequestError) as raised:
        encode_body({"context": {"fine": 1, "wrong": value}})
    assert raised.value.details[0]["path"][:3] == ["body", "context", "wrong"]


def test_endless_nesting_is_refused():
    endless: list[object] = []
    endless.append(endless)
    with pytest.raises(InvalidRequestError, match="nests deeper"):
        encode_body({"context": endless})


@pytest.mark.parametrize("key", ["", "a b", "é", "x" * 256])
def test_an_idempotency_key_that_cannot_be_sent_is_refused(key):
    with pytest.raises(InvalidRequestError) as raised:
        routes.feedback("dec_1", {"a": "b"}, idempotency_key=key)
    assert raised.value.details[0]["path"] == ["header", "Idempotency-Key"]


@pytest.mark.parametrize(
    "url",
    [
        "",
        "127.0.0.1:8420",
        "ftp://a",
        "http://",
        "http://a/v1",
        "http://a?b=c",
        "http://a#b",
        "http://user:hunter2@a",
        "http://a:port",
        "http://a/steelyard/v1",
        "http://a/../b",
        "http://a/%2e%2e/b",
        "http://a/b c",
    ],
)
def test_an_address_that_is_no_servers_is_refused(url):
    with pytest.raises(ValueError, match=r"server.s address") as raised:
        ClientOptions(url)
    assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize("url", ["https://a/tools/steelyard", "https://a//tools/steelyard/"])
def test_an_address_may_have_the_path_that_a_proxy_serves_it_under(url):
    assert ClientOptions(url).url == "https://a/tools/steelyard"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("timeout_s", 0),
        ("timeout_s", float("inf")),
        ("timeout_s", float("nan")),
        ("max_retries", -1),
        ("max_retries", 11),
        ("gzip_over", -1),
    ],
)
def test_options_out_of_range_are_named(field, value):
    with pytest.raises(ValueError, match=field):
        ClientOptions(URL, **{field: value})


@pytest.mark.parametrize("key", ["", "two words", "schlüssel", "tab\t"])
def test_a_key_that_no_header_can_carry_is_refused_unseen(key):
    with pytest.raises(ValueError, match="API key") as raised:
        ClientOptions(URL, key)
    assert not key or key not in str(raised.value)


def test_proxies_are_for_other_machines():
    for url in ("http://127.0.0.1:1", "http://localhost", "http://[::1]:8420"):
        assert ClientOptions(url).is_loopback
    assert not ClientOptions("https://scale.example").is_loopback


@both
def test_the_key_is_never_shown(client_class, caplog):
    caplog.set_level(logging.DEBUG)
    options = ClientOptions(URL, API_KEY)
    server = ScriptedServer(
        client_class, [refusal(InvalidApiKeyError("Unknown key."))], api_key=API_KEY
    )
    with pytest.raises(InvalidApiKeyError) as raised:
        server.ask(lambda client: client.account.get())
    shown = [repr(options), str(raised.value), repr(raised.value), caplog.text]
    shown.append(repr(client_class(options)))
    shown.append(repr(routes.get_account()))
    assert not any(API_KEY in text for text in shown)


def test_arguments_win_over_the_environment_over_the_defaults(monkeypatch):
    monkeypatch.delenv("STEELYARD_URL", raising=False)
    assert steelyard.connect().url == "http://127.0.0.1:8420"
    monkeypatch.setenv("STEELYARD_URL", "http://scale.test:1/")
    monkeypatch.setenv("STEELYARD_API_KEY", "of_the_environment")
    with steelyard.connect() as client:
        assert client.url == "http://scale.test:1"
        assert client._options.api_key == "of_the_environment"
    with steelyard.connect("http://scale.test:2", "mine") as client:
        assert (client.url, client._options.api_key) == ("http://scale.test:2", "mine")
    with pytest.raises(ValueError, match="API key"):
        steelyard.connect(api_key="")


def test_the_settings_do_not_show_the_key():
    settings = read_settings(environ={"STEELYARD_API_KEY": API_KEY})
    assert settings.api_key == API_KEY
    assert API_KEY not in repr(settings)


def test_errors_of_a_client_are_no_errors_of_a_server():
    assert "server_unreachable" not in error_classes()


def test_both_clients_have_the_same_calls_with_the_same_help():
    names = {name for name in dir(Client) if not name.startswith("_")}
    assert names == {name for name in dir(AsyncClient) if not name.startswith("_")}
    for name in ("decide", "estimate", "feedback", "systemone", "ready"):
        blocking, awaited = getattr(Client, name), getattr(AsyncClient, name)
        assert inspect.signature(blocking) == inspect.signature(awaited)
        assert blocking.__doc__ == awaited.__doc__ == getattr(routes, name).__doc__
        assert inspect.iscoroutinefunction(awaited)
        assert not inspect.iscoroutinefunction(blocking)
    signature = inspect.signature(Client.decide)
    assert list(signature.parameters)[:3] == ["self", "context", "decisions"]
    assert signature.return_annotation == "DecideAnswer"


@both
def test_a_missing_model_is_a_lookup_error(client_class):
    server = ScriptedServer(client_class, [refusal(NotFoundError("There is no model 'x'."))])
    with pytest.raises(LookupError, match="no model"):
        server.ask(lambda client: client.models.get("x"))
