"""The guide for coding agents describes the server as it is."""

from __future__ import annotations

import json
import re
from importlib.resources import files

import httpx
import pytest

from steelyard.app.application import ROUTES
from steelyard.errors import error_classes
from steelyard.http.access import OPERATIONS
from steelyard.http.routing import Access

pytestmark = pytest.mark.usefixtures("every_response_is_checked")

GUIDE = files("steelyard.http").joinpath("llms.txt").read_text(encoding="utf-8")
PATHS = {(route.method, route.path) for route in ROUTES}
#: Every JSON example with the route that takes it.
EXAMPLES = re.findall(
    r"^Body of `POST (/\S+)`(?:(?!```).)*?\n```json\n(.*?)\n```",
    GUIDE,
    flags=re.DOTALL | re.MULTILINE,
)


@pytest.fixture
def send(client: httpx.Client):
    def post(path: str, body: dict) -> httpx.Response:
        if body.get("model") == "steelyard-base-2":
            body = {**body, "model": "hashing"}  # the name of the shipped model is in the guide
        return client.post(path, json=body)

    return post


def test_it_is_served(client: httpx.Client):
    response = client.get("/llms.txt")
    assert response.text == GUIDE
    assert response.headers["content-type"].startswith("text/plain")


def test_every_route_that_it_names_is_there():
    named = set(re.findall(r"(GET|POST) (/[\w./{}-]*\w}?)", GUIDE))
    assert len(named) > 15
    assert named <= PATHS
    bare = set(re.findall(r"`(/(?:v1/)?[\w./{}-]+)`", GUIDE))
    assert bare <= {path for _, path in PATHS}


def test_every_route_for_customers_is_named():
    for_customers = {
        route.path
        for route in ROUTES
        if route.access is not Access.OPERATOR and OPERATIONS not in route.tags
    }
    named = set(re.findall(r"`(?:[A-Z]+ )?(/[\w./{}-]+)`", GUIDE))
    assert for_customers <= named


def test_every_example_has_a_route():
    assert len(EXAMPLES) == GUIDE.count("```json")
    assert len({path for path, _ in EXAMPLES}) == len(EXAMPLES)


@pytest.mark.parametrize(
    ("path", "text"), [example for example in EXAMPLES if example[0] != "/v1/feedback"]
)
def test_examples_are_answered(send, path: str, text: str):
    response = send(path, json.loads(text))
    assert response.status_code == 200, response.text


def test_the_answer_has_the_form_shown(send):
    examples = dict(EXAMPLES)
    answer = send("/v1/decide", json.loads(examples["/v1/decide"])).json()
    shown = GUIDE[GUIDE.index('    {\n      "id": "dec_') :]
    shown = json.loads(shown[: shown.index("\n\n")])
    assert answer.keys() == shown.keys()
    assert answer["decisions"].keys() == shown["decisions"].keys()
    for id_, decision in shown["decisions"].items():
        assert answer["decisions"][id_].keys() == decision.keys()
        assert list(answer["decisions"][id_]["probabilities"]) == list(decision["probabilities"])
        assert sum(decision["probabilities"].values()) == pytest.approx(1)
    for part in ("usage", "timing_ms", "charge"):
        assert answer[part].keys() == shown[part].keys()


def test_the_feedback_example_fits_the_decide_example(send):
    examples = dict(EXAMPLES)
    answer = send("/v1/decide", json.loads(examples["/v1/decide"])).json()
    feedback = {**json.loads(examples["/v1/feedback"]), "decision_id": answer["id"]}
    response = send("/v1/feedback", feedback)
    assert response.json()["recorded"] == list(feedback["outcomes"])


def test_every_error_is_explained():
    table = {
        (status, code)
        for status, codes in re.findall(r"^\| (\d{3}) \| (.+?) \|", GUIDE, flags=re.MULTILINE)
        for code in re.findall(r"`(\w+)`", codes)
    }
    assert table == {(str(cls.status), code) for code, cls in error_classes().items()}
