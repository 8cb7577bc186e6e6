from __future__ import annotations

import asyncio
import json

import pytest

from steelyard.accounts.service import AccountService
from steelyard.errors import InvalidApiKeyError
from steelyard.storage import open_state


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("STEELYARD_HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def enter(home):
    """Return the caller that a server on this home sees."""

    def authenticate(secret):
        state = open_state(f"sqlite:///{home / 'state.sqlite'}")
        try:
            service = AccountService(state, accounts_enabled=True)
            return asyncio.run(service.authenticate(f"Bearer {secret}", "::1"))
        finally:
            state.close()

    return authenticate


def test_a_key_is_made_shown_once_listed_and_revoked(run, home, enter):
    assert run("account", "create", "acme").exit_code == 0
    made = run("key", "create", "--account", "acme", "--scope", "read", "--name", "laptop")
    assert made.exit_code == 0
    secret = made.stdout.strip()
    caller = enter(secret)
    assert caller.scope == "read"
    assert caller.key_id in made.stderr
    listed = run("key", "list")
    assert caller.key_id in listed.stdout
    assert {"laptop", "acme", "read"} <= set(listed.stdout.split())
    assert secret not in listed.output
    revoked = run("key", "revoke", caller.key_id)
    assert (revoked.exit_code, caller.key_id in revoked.stdout) == (0, True)
    with pytest.raises(InvalidApiKeyError):
        enter(secret)


def test_json_has_every_field(run, home, enter):
    options = ["--scope", "inference", "--monthly-cap-usd", "2.5", "--json"]
    made = json.loads(run("key", "create", *options).stdout)
    assert enter(made.pop("key")).key_id == made["id"]
    assert (made["scope"], made["monthly_cap_usd"], made["month_spent_usd"]) == (
        "inference",
        "2.5",
        "0",
    )
    [listed] = json.loads(run("key", "list", "--json").stdout)
    assert listed.pop("account") == "local"
    assert {**listed, "last_used_at": None} == made
    revoked = json.loads(run("key", "revoke", made["id"], "--json").stdout)
    assert revoked["revoked_at"] is not None


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("key", "create", "--account", "nobody"), "nobody"),
        (("key", "create", "--scope", "all"), "inference"),
        (("key", "create", "--monthly-cap-usd", "3"), "inference key"),
        (("key", "create", "--scope", "inference", "--monthly-cap-usd", "1e3"), "1e3"),
        (("key", "list", "--account", "nobody"), "nobody"),
        (("key", "revoke", "key_unknown"), "key_unknown"),
        (("account", "create", " "), "printable"),
        (("account", "create", "local"), "local"),
        (("account", "credit", "nobody", "1"), "nobody"),
        (("account", "credit", "local", "0"), "more than 0"),
        (("account", "credit", "local", "1.0000000001"), "1.0000000001"),
        (("account", "list", "--state-url", "mysql://u:secret@h/d"), "state_url"),
    ],
)
def test_refusals_have_reasons(run, home, arguments, said):
    result = run(*arguments)
    assert result.exit_code == 2
    assert said in result.stderr
    assert "secret" not in result.output


def test_credit_adds_up_exactly(run, home):
    made = run("account", "create", "acme").stdout.strip()
    assert run("account", "credit", "acme", "0.1").exit_code == 0
    result = run("account", "credit", made, "0.2")
    assert "0.3 USD" in result.stdout
    listed = {entry["name"]: entry for entry in json.loads(run("account", "list", "--json").stdout)}
    assert listed.keys() == {"local", "acme"}
    acme = listed["acme"]
    assert acme["id"] == made
    assert acme["wallet"]["available_usd"] == "0.3"
    assert {"acme", "0.3", made} <= set(run("account", "list").stdout.split())
    credited = json.loads(run("account", "credit", "acme", "1", "--json").stdout)
    assert credited["wallet"]["balance_usd"] == "1.3"


def test_names_cannot_move_the_cursor(run, home):
    assert run("account", "create", "a\x1b[2Jb").exit_code == 2


def test_the_options_win_over_the_environment(run, home, tmp_path):
    other = tmp_path / "other"
    assert run("account", "create", "there", "--home", str(other)).exit_code == 0
    url = f"sqlite:///{other / 'state.sqlite'}"
    assert "there" in run("account", "list", "--state-url", url).stdout
    assert "there" not in run("account", "list").stdout
