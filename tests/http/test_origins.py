"""Requests that pages of browsers make: under another name, from another site, for the operator."""

from __future__ import annotations

import httpx
import pytest

from steelyard.http.access import Origins
from steelyard.settings import read_settings
from support.api.error_shape import assert_canonical_error
from support.servers.live_server import live_server

pytestmark = pytest.mark.usefixtures("every_response_is_checked")

ROW = {
    "context": "Paid twice.",
    "decisions": [{"id": "d", "kind": "binary", "question": "Money back?"}],
    "labels": {"d": "yes"},
}
CROSS_SITE = [
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {"Origin": "http://[broken"},
    {"Sec-Fetch-Site": "cross-site"},
]


@pytest.fixture(scope="module")
def server():
    with live_server(hosts="steelyard.example, Weigh.Example") as running:
        yield running


@pytest.fixture
def client(server):
    with httpx.Client(base_url=server.url) as http:
        yield http


class TestHost:
    @pytest.mark.parametrize(
        "host",
        [
            "127.0.0.1",
            "localhost:8420",
            "[::1]:1",
            "127.1.2.3",
            "steelyard.example",
            "weigh.example:443",
        ],
    )
    def test_its_own_names_are_answered(self, client, host):
        assert client.get("/v1/datasets", headers={"Host": host}).status_code == 200

    @pytest.mark.parametrize("path", ["/v1/datasets", "/v1/health", "/metrics", "/nowhere"])
    @pytest.mark.parametrize(
        "host", ["evil.example:8420", "localhost.evil.example", "10.0.0.1", ""]
    )
    def test_another_name_is_refused(self, client, host, path):
        response = client.get(path, headers={"Host": host})
        assert_canonical_error(response, 421, "misdirected_request")

    @pytest.mark.parametrize(
        ("target", "host", "status"),
        [
            ("http://evil.example/v1/datasets", "localhost", 421),
            ("http://localhost/v1/datasets", "evil.example", 200),
            ("http://localhost:1@evil.example/v1/datasets", "localhost", 400),
            ("http:///v1/datasets", "localhost", 400),
        ],
    )
    def test_a_whole_url_says_who_is_meant(self, client, target, host, status):
        response = client.get("/", headers={"Host": host}, extensions={"target": target.encode()})
        assert response.status_code == status, response.text

    @pytest.mark.parametrize(("hosts", "is_answered"), [("", True), ("steelyard.example", False)])
    def test_off_loopback_the_setting_alone_bounds_the_names(self, hosts, is_answered):
        settings = read_settings({"host": "0.0.0.0", "accounts": "on", "hosts": hosts}, environ={})
        request = httpx.Request("GET", "http://evil.example/v1/datasets")
        if is_answered:
            Origins(settings).check_host(request)
        else:
            with pytest.raises(LookupError, match="STEELYARD_HOSTS"):
                Origins(settings).check_host(request)


class TestPagesOfOtherSites:
    @pytest.mark.parametrize("headers", CROSS_SITE, ids=str)
    def test_a_form_cannot_make_a_dataset(self, client, headers):
        form = {"file": ("rows.jsonl", b"{}", "application/jsonl")}
        response = client.post("/v1/datasets?name=stolen", files=form, headers=headers)
        assert_canonical_error(response, 403, "cross_site_request")
        assert client.get("/v1/datasets").json()["data"] == []

    @pytest.mark.parametrize("headers", CROSS_SITE, ids=str)
    def test_a_public_route_takes_anybodys(self, client, headers):
        body = {key: ROW[key] for key in ("context", "decisions")}
        assert client.post("/v1/playground/decide", json=body, headers=headers).status_code == 200

    @pytest.mark.parametrize(
        "headers",
        [
            {},
            {"Origin": "http://localhost:5006", "Sec-Fetch-Site": "same-site"},
            {"Origin": "https://steelyard.example"},
        ],
        ids=str,
    )
    def test_a_program_and_a_page_of_its_own_may_write(self, client, headers):
        body = {key: ROW[key] for key in ("context", "decisions")}
        assert client.post("/v1/decide", json=body, headers=headers).status_code == 200


@pytest.mark.parametrize("path", ["/metrics", "/v1/ready"])
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Host": "steelyard.example"}, 401),
        ({"Via": "1.1 proxy"}, 401),
        ({"Origin": "http://localhost:3000"}, 401),
        ({"Referer": "http://localhost:3000/"}, 401),
    ],
    ids=str,
)
def test_the_operators_routes_are_for_a_program_of_this_machine(path, headers, status):
    with live_server(accounts="on", hosts="steelyard.example") as running:
        assert httpx.get(f"{running.url}{path}", headers=headers).status_code == status
