"""Signing in with an identity provider, and refused replies of one."""

from __future__ import annotations

import asyncio
import json
from contextlib import nullcontext

import httpx
import pytest
from sqlalchemy import text

from steelyard.cli.workbench import workbench_note
from steelyard.errors import IdentityProviderError
from steelyard.people.identity_provider import IdentityProvider
from steelyard.people.limits import CODE_S, CONFIRMED_S, HOUR_S
from steelyard.people.own_pages import OwnPages
from steelyard.settings import InvalidSettingError, read_settings
from support.accounts.console import Clock, open_console
from support.api.error_shape import assert_canonical_error

pytest.importorskip("authlib", reason="the extra oidc is not installed")
pytest.importorskip("joserfc", reason="the extra oidc is not installed")

from joserfc.jwk import RSAKey

from support.accounts.identity import CLIENT, SECRET, identity_provider

START, VERIFY, WHO = "/v1/auth/oidc", "/v1/auth/oidc/verify", "/v1/auth/session"
BACK = "http://127.0.0.1:8421/oidc"


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    clock = Clock()
    with identity_provider(clock) as identity:
        given = {
            "oidc_issuer": identity.url,
            "oidc_client_id": CLIENT,
            "oidc_client_secret": SECRET,
            "hosts": "console.example.org",
        }
        with open_console(tmp_path_factory.mktemp("console"), **given) as console:
            identity.now = console.clock
            console.account("acme", owner="mia@example.org")
            yield console, identity


@pytest.fixture
def console(shared, request):
    console, identity = shared
    console.clock.now += HOUR_S
    identity.email, identity.changed, identity.algorithm = "mia@example.org", {}, "RS256"
    return console


@pytest.fixture
def identity(console, shared):
    return shared[1]


def begin(browser, back=BACK):
    begun = browser.post(START, json={"redirect_uri": back})
    assert begun.status_code == 200, begun.text
    return begun.json()


def end(browser, identity, begun, back=BACK, **changed):
    code = identity.authorize(begun["authorize_url"])
    body = {"state": begun["state"], "code": code, "redirect_uri": back, **changed}
    return browser.post(VERIFY, json=body)


def test_users_of_the_provider_are_signed_in(console, identity):
    identity.email = "MIA@example.org"
    with console.browser() as browser:
        begun = begin(browser)
        assert begun["authorize_url"].startswith(f"{identity.url}/authorize?")
        signed_in = end(browser, identity, begun)
        assert signed_in.json()["accounts"][0]["name"] == "acme"
        assert "HttpOnly" in signed_in.headers["set-cookie"]
        who = browser.get(WHO).json()
        assert (who["user"]["email"], who["is_confirmed"]) == ("mia@example.org", True)
        kept = console.state.read_now(
            lambda found: str(found.execute(text("SELECT * FROM sign_in_challenges")).all())
        )
        assert begun["state"] not in kept
        assert_canonical_error(end(browser, identity, begun), 401, "invalid_code")


@pytest.mark.parametrize(
    ("ago_s", "is_confirmed"),
    [(0, True), (-30, True), (CONFIRMED_S - 60, True), (CONFIRMED_S, False), (None, False)],
)
def test_it_confirms_as_long_as_the_provider_asked_lately(console, identity, ago_s, is_confirmed):
    asked_at = None if ago_s is None else int(console.clock()) - ago_s
    identity.changed = {"auth_time": asked_at}
    with console.browser() as browser:
        assert end(browser, identity, begin(browser)).status_code == 200
        who = browser.get(WHO).json()
        assert who["is_confirmed"] is is_confirmed
        assert who["session"]["confirmed_at"] == min(asked_at or 0, console.clock())
        answer = browser.post("/v1/account/keys", json={"name": "mine", "scope": "inference"})
        if is_confirmed:
            assert answer.status_code == 200, answer.text
        else:
            assert_canonical_error(answer, 403, "confirm_sign_in")


def test_an_address_without_an_invitation_is_refused(console, identity):
    identity.email = "eve@example.org"
    with console.browser() as browser:
        refused = end(browser, identity, begin(browser))
        assert_canonical_error(refused, 403, "sign_up_refused")


@pytest.mark.parametrize(
    ("changed", "algorithm"),
    [
        ({"iss": "https://other.example"}, "RS256"),
        ({"aud": "another"}, "RS256"),
        ({"aud": [CLIENT, "another"]}, "RS256"),
        ({"azp": "another"}, "RS256"),
        ({"nonce": "another"}, "RS256"),
        ({"nonce": None}, "RS256"),
        ({"exp": 1}, "RS256"),
        ({"exp": None}, "RS256"),
        ({"email_verified": None}, "RS256"),
        ({"email_verified": "true"}, "RS256"),
        *(
            ({"email": email}, "RS256")
            for email in (None, "mia@example.org\n", "m\0a@b.org", "mia")
        ),
        ({}, "none"),
        ({}, "HS256"),
    ],
)
def test_a_token_that_proves_nothing(console, identity, changed, algorithm):
    identity.changed, identity.algorithm = changed, algorithm
    with console.browser() as browser:
        refused = end(browser, identity, begin(browser))
        assert_canonical_error(refused, 401, "invalid_code")
        assert_canonical_error(browser.get(WHO), 401, "not_signed_in")


def test_a_sign_in_that_was_not_begun_here_is_over_or_is_another_ones(console, identity):
    with console.browser() as browser:
        begun, other = begin(browser), begin(browser)
        for changed in ({"state": "made-up"}, {"code": "made-up"}):
            refused = end(browser, identity, begun, **changed)
            assert_canonical_error(refused, 401, "invalid_code")
        code = identity.authorize(begun["authorize_url"])
        refused = end(browser, identity, other, code=code)
        assert_canonical_error(refused, 401, "invalid_code")
        late = begin(browser)
        console.clock.now += CODE_S
        assert_canonical_error(end(browser, identity, late), 401, "invalid_code")


@pytest.mark.parametrize(
    ("back", "status"),
    [
        ("https://console.example.org/sign-in", 200),
        ("http://console.example.org/sign-in", 422),
        ("https://a@console.example.org/sign-in", 422),
        ("http://localhost:8421/oidc", 200),
        ("http://[::1]:8421/oidc", 200),
        ("http://127.0.0.1:5006/oidc", 422),
        ("http://127.0.0.1/oidc", 422),
        ("http://127.0.0.1:8421/sign-in", 422),
        ("http://127.0.0.1:8421/oidc?a=1", 422),
        ("http://a@127.0.0.1:8421/oidc", 422),
        ("https://elsewhere.example/sign-in", 422),
        ("javascript:alert(1)", 422),
        ("//[", 422),
    ],
)
def test_it_leads_back_to_own_pages_alone(console, identity, back, status):
    with console.browser() as browser:
        answer = browser.post(START, json={"redirect_uri": back})
        assert answer.status_code == status
        if status == 422:
            assert_canonical_error(answer, 422, "invalid_request", path=["body", "redirect_uri"])


def test_it_leads_back_to_the_workbenches_beside_it(tmp_path):
    pages = OwnPages(read_settings({"home": tmp_path, "workbenches": ""}, environ={}))
    back = "http://127.0.0.1:5006/oidc"
    with workbench_note(tmp_path, "http://127.0.0.1:5006"):
        assert pages.may_return_to(back)
        assert not pages.may_return_to("http://127.0.0.1:8421/oidc")
    assert not pages.may_return_to(back)
    ended = {"url": "http://127.0.0.1:5006", "pid": 2**22 + 1}  # above the most that Linux gives
    (tmp_path / "workbench-5006.json").write_text(json.dumps(ended))
    assert not pages.may_return_to(back)


def test_new_keys_of_the_provider_are_read_when_one_is_met(console, identity):
    with console.browser() as browser:
        assert end(browser, identity, begin(browser)).status_code == 200
        identity.keys = [RSAKey.generate_key(auto_kid=True)]
        assert end(browser, identity, begin(browser)).status_code == 200


def test_a_provider_that_names_another_issuer_or_is_away(console, identity):
    url, identity.url = identity.url, "https://other.example"
    console.clock.now += HOUR_S  # what it said of itself is no longer kept
    with console.browser() as browser:
        refused = browser.post(START, json={"redirect_uri": BACK})
        assert_canonical_error(refused, 503, "identity_provider_unavailable", retryable=True)
        identity.url = url
        assert end(browser, identity, begin(browser)).status_code == 200


def test_a_server_without_a_provider_says_so(tmp_path):
    with open_console(tmp_path) as console, console.browser() as browser:
        refused = browser.post(START, json={"redirect_uri": BACK})
        assert_canonical_error(refused, 503, "oidc_off")


@pytest.mark.parametrize(
    "given",
    [
        {"oidc_client_secret": None},
        {"oidc_issuer": "http://id.example.org"},
        {"oidc_issuer": "id.example.org"},
    ],
)
def test_settings_that_are_no_provider(given):
    whole = {
        "oidc_issuer": "https://id.example.org",
        "oidc_client_id": "a",
        "oidc_client_secret": "b",
    }
    settings = read_settings({**whole, **given}, environ={})
    with pytest.raises(InvalidSettingError, match="oidc_issuer"):
        IdentityProvider.of(settings)


@pytest.mark.parametrize(
    ("address", "is_taken"),
    [
        ("https://id.example.org/keys", True),
        ("https://keys.example.com/keys", True),
        ("https://[fec0::1]/keys", False),
        ("https://192.0.0.192/keys", False),
        ("https://168.63.129.16/keys", False),
        ("http://127.0.0.1:1/keys", False),
        ("http://id.example.org/keys", False),
    ],
)
def test_a_provider_leads_to_no_private_address(address, is_taken):
    provider = IdentityProvider("https://id.example.org", "client", "secret")
    own = "https://id.example.org/token"
    about = {"issuer": provider.issuer, "authorization_endpoint": own, "token_endpoint": own}
    with nullcontext() if is_taken else pytest.raises(ValueError, match="The provider's jwks_uri"):
        provider._check(about | {"jwks_uri": address})


@pytest.mark.parametrize("content", [b"null", b"7", b"[" * 10_000, b'{"a":' * 10_000, b"[]"])
@pytest.mark.parametrize("path", ["/.well-known/openid-configuration", "/keys"])
def test_an_answer_that_is_no_object_is_a_provider_that_is_away(monkeypatch, path, content):
    issuer = "https://id.example.org"
    about = {
        "issuer": issuer,
        "authorization_endpoint": f"{issuer}/authorize",
        "token_endpoint": f"{issuer}/token",
        "jwks_uri": f"{issuer}/keys",
    }

    def answer(request):
        if request.url.path == path:
            return httpx.Response(200, content=content)
        return httpx.Response(200, json=about)

    client, transport = httpx.AsyncClient, httpx.MockTransport(answer)
    monkeypatch.setattr(httpx, "AsyncClient", lambda **given: client(transport=transport, **given))
    provider = IdentityProvider(issuer, "client", "secret")
    with pytest.raises(IdentityProviderError):
        asyncio.run(provider.authorize_url("state", f"{issuer}/back"))
