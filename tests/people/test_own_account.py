"""An account renamed, deleted after days of grace or not after all, removed in full, and exported."""

from __future__ import annotations

import csv
import io
import json
import re
import signal
import subprocess
import sys
import textwrap
import time
import zipfile
from typing import Any

import httpx
import pytest
from sqlalchemy import CheckConstraint, Connection, Table, insert, select

from steelyard.billing.tables import provider_events
from steelyard.people import export_service, export_tables, limits
from steelyard.people.removal import AccountRemoval
from steelyard.people.tables import users
from steelyard.storage import open_state
from steelyard.storage.tables import accounts, metadata
from support.accounts.console import begin_session, cookie_of, open_console
from support.api.error_shape import assert_canonical_error
from support.servers.live_server import live_server

MIA, LEO = "mia@example.org", "leo@example.org"
ACCOUNT = "/v1/account"
#: Tables of nobody's account: people, codes and letters.
SHARED = {
    "users",
    "sessions",
    "passkeys",
    "sign_in_challenges",
    "letters",
    "provider_events",
    "alarm_looks",
    "rate_windows",
    "oldest_version",
    "model_declarations",
    "model_hosts",
}


@pytest.fixture
def console(tmp_path):
    with open_console(tmp_path) as opened:
        opened.id = opened.account("acme", owner=MIA, developer=LEO)
        yield opened


@pytest.mark.usefixtures("every_response_is_checked")
def test_an_account_is_renamed_and_its_deletion_taken_back(console):
    for name in ("other", LEO):
        console.account(name)
    with console.sign_in(MIA) as mia, console.sign_in(LEO) as leo:
        assert mia.patch(ACCOUNT, json={"name": "acme 2"}).json()["user"]["name"] == "acme 2"
        refused = mia.patch(ACCOUNT, json={"name": "other"})
        assert_canonical_error(refused, 422, "invalid_request", path=["body", "name"])
        # Whether an account is named by an address is not told.
        told = {
            mia.patch(ACCOUNT, json={"name": name}).json()["error"]["message"]
            for name in (LEO, "eve@example.org")
        }
        assert len(told) == 1
        for refused in (leo.patch(ACCOUNT, json={"name": "b"}), leo.delete(ACCOUNT)):
            assert_canonical_error(refused, 403, "role_forbidden")
        assert_canonical_error(leo.patch(ACCOUNT, json={"store": "on"}), 403, "role_forbidden")
        limited = mia.patch(ACCOUNT, json={"store": "features"}).json()
        assert (limited["store"], limited["user"]["name"]) == ("features", "acme 2")
        console.box.clear()
        at = console.clock.now + 7 * 86_400
        console.clock.now += 1
        assert mia.delete(ACCOUNT).json()["deletes_at"] == at + 1
        console.clock.now += 1
        assert mia.delete(ACCOUNT).json()["deletes_at"] == at + 1
        assert leo.get(ACCOUNT).json()["deletes_at"] == at + 1
        console.mail.tick()
        assert [(one.to, "acme 2" in one.text()) for one in console.box] == [(MIA, True)]
        assert mia.post("/v1/account/restore").json()["deletes_at"] is None
        told = [one["action"] for one in mia.get("/v1/account/audit").json()["data"]]
        assert told[:4] == [
            "account.restored",
            "account.deletion_asked",
            "account.store_changed",
            "account.renamed",
        ]
        console.clock.now += limits.CONFIRMED_S
        assert_canonical_error(mia.delete(ACCOUNT), 403, "confirm_sign_in")
    console.members.invite_now("local", MIA, "owner")
    with console.sign_in(MIA, **{"X-Steelyard-Account": "local"}) as mia:
        assert_canonical_error(mia.delete(ACCOUNT), 409, "account_needed")
        refused = mia.patch(ACCOUNT, json={"name": "b"})
        assert_canonical_error(refused, 409, "account_needed")


def test_after_the_days_of_grace_no_user_gets_in(console):
    secret = console.accounts.create_key(account="acme").secret
    remover = AccountRemoval(console.state, now=console.clock)
    with console.sign_in(MIA) as mia, console.browser() as program:
        program.headers["Authorization"] = f"Bearer {secret}"
        mia.delete(ACCOUNT)
        console.clock.now += limits.GRACE_S - 1
        remover.tick()
        assert program.get(ACCOUNT).status_code == 200
        console.clock.now += 1
        remover.tick()
        assert_canonical_error(program.get(ACCOUNT), 401, "invalid_api_key")
        assert_canonical_error(mia.get(ACCOUNT), 401, "not_signed_in")
    assert [entry.id for entry in console.accounts.list_accounts()] == ["local"]
    emails = console.state.read_now(lambda found: list(found.scalars(select(users.c.email))))
    assert emails == []


def fill(connection: Connection, account_id: str) -> None:
    """Write a row that belongs to an account into every table that has such."""
    made: dict[Table, dict[str, Any]] = {}
    for table in metadata.sorted_tables:
        if table.name in SHARED:
            continue
        values: dict[str, Any] = {}
        for column in table.columns:
            key = next(iter(column.foreign_keys), None)
            kind = column.type.python_type
            if key is not None:
                values[column.name] = made[key.column.table][key.column.name]
            elif column.name == "account_id" or (table is accounts and column.name == "id"):
                values[column.name] = account_id
            elif column.primary_key and kind is int and column.autoincrement is True:
                continue
            elif kind is str:
                values[column.name] = one_of(table, column.name) or f"{account_id} {column.name}"
            else:
                values[column.name] = b"{}" if kind is bytes else kind(1)
        connection.execute(insert(table), values)
        made[table] = values
    paid = {"provider": account_id, "id": "e", "received_at": 1.0, "outcome": "applied"}
    purchase = next(row["id"] for table, row in made.items() if table.name == "purchases")
    connection.execute(insert(provider_events), {**paid, "purchase_id": purchase, "notice": b""})


def one_of(table: Table, column: str) -> str | None:
    """Return a value that a table's checks allow a column."""
    for check in table.constraints:
        if isinstance(check, CheckConstraint):
            found = re.search(rf"\b{column} IN \('(\w+)'", str(check.sqltext))
            if found is not None:
                return found[1]
    return None


def rows_of(state: Any, account_id: str) -> dict[str, int]:
    """Return how many rows of each table tell of an account."""

    def work(connection: Connection) -> dict[str, int]:
        found = {}
        for table in metadata.sorted_tables:
            rows = connection.execute(select(table)).all()
            n = sum(account_id in str(tuple(row)) for row in rows)
            if n:
                found[table.name] = n
        return found

    return state.read_now(work)


def test_everything_of_an_account_is_removed_and_nothing_else(state):
    for account_id in ("acct_gone", "acct_kept"):
        state.write_now(lambda connection, account_id=account_id: fill(connection, account_id))
    kept = rows_of(state, "acct_kept")
    tables = {table.name for table in metadata.sorted_tables}
    assert kept.keys() == tables - SHARED | {"provider_events"}, "a table that removal misses"
    over = accounts.update().where(accounts.c.id == "acct_kept").values(deletes_at=1e12)
    state.write_now(lambda connection: connection.execute(over).close())
    AccountRemoval(state).tick()
    assert rows_of(state, "acct_gone") == {}
    assert rows_of(state, "acct_kept") == kept


REMOVE = """
    import sys
    from steelyard.app import bootstrap
    from steelyard.people import removal
    from steelyard.storage import open_state

    removal._AT_ONCE = 1
    state = open_state(sys.argv[1])
    delete = removal._delete_some

    def told(*given, **named):
        n = delete(*given, **named)
        print(flush=True)
        sys.stdin.readline()
        return n

    removal._delete_some = told
    removal.AccountRemoval(state).tick()
    state.close()
"""


@pytest.mark.slow
def test_a_removal_that_is_killed_goes_on(tmp_path):
    url = f"sqlite:///{tmp_path / 'state.sqlite'}"
    state = open_state(url)
    for account_id in ("acct_gone", "acct_kept"):
        state.write_now(lambda connection, account_id=account_id: fill(connection, account_id))
    over = accounts.update().where(accounts.c.id == "acct_kept").values(deletes_at=None)
    state.write_now(lambda connection: connection.execute(over).close())
    left = rows_of(state, "acct_gone")
    for _ in range(3):
        with subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(REMOVE), url],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            for _ in range(12):
                assert process.stdout.readline()
                process.stdin.write("\n")
                process.stdin.flush()
            process.send_signal(signal.SIGKILL)
            process.wait(30)
        before, left = left, rows_of(state, "acct_gone")
        assert sum(left.values()) < sum(before.values())
        assert "accounts" in left
    AccountRemoval(state).tick()
    assert rows_of(state, "acct_gone") == {}
    assert rows_of(state, "acct_kept")["accounts"] == 1
    state.close()


ROW = {
    "context": "The parcel came open.",
    "decisions": [{"id": "d", "kind": "binary", "question": "Is it damaged?"}],
}


def test_an_export_has_all_of_an_accounts_data_and_none_of_others():
    with live_server(accounts="on", prices="hashing=7", store="on") as server:
        service = server.services.accounts
        for name in ("acme", "other"):
            service.add_credit(service.create_account(name).id, 10**9)
        keys = {name: service.create_key(account=name).secret for name in ("acme", "other")}
        [acme, other] = [one.id for one in service.list_accounts() if one.id != "local"]
        with httpx.Client(base_url=server.url, timeout=30) as http:
            for name, secret in keys.items():
                bearer = {"Authorization": f"Bearer {secret}"}
                told = {**ROW, "context": f"The parcel of {name} came open."}
                rows = [
                    {**told, "context": f"{told['context']} {n}", "targets": {"d": "yes"}}
                    for n in range(10)
                ]
                made = {"name": f"Parcels/{name}", "examples": rows}
                assert http.post("/v1/datasets", json=made, headers=bearer).status_code == 200
                answer = http.post("/v1/decide", json=told, headers=bearer).json()
                observed = {"decision_id": answer["id"], "outcomes": {"d": "yes"}, "by": "expert"}
                http.post("/v1/feedback", json=observed, headers=bearer)
                decision = {"name": "damage", "decisions": told["decisions"], "owner": name}
                assert http.post("/v1/named-decisions", json=decision, headers=bearer).is_success
            token = begin_session(server.services.state, MIA, at=time.time(), account_id=acme)
            owner = cookie_of(token)
            sent = http.get("/v1/account/export", headers=owner)
            assert sent.headers["content-type"] == "application/zip"
            archive = zipfile.ZipFile(io.BytesIO(sent.content))
            assert archive.testzip() is None
            files = {name: archive.read(name).decode() for name in archive.namelist()}
            dataset = next(name for name in files if name.endswith("v1.jsonl"))
            assert dataset.startswith("datasets/Parcels-acme-ds_")
            assert len(files[dataset].splitlines()) == 10
            stored = json.loads(files["decisions.jsonl"])
            assert stored["feedback"] == {"d": "yes"}
            assert stored["feedback_by"]["d"]["by"] == "expert"
            assert stored["request"]["context"] == "The parcel of acme came open."
            named = json.loads(files["tables/named_decisions.jsonl"])
            assert (named["name"], named["owner"]) == ("damage", "acme")
            version = json.loads(files["tables/named_versions.jsonl"])
            assert version["content"]["decisions"][0]["question"] == "Is it damaged?"
            ledger = list(csv.DictReader(io.StringIO(files["ledger.csv"])))
            assert {row["book"] for row in ledger} >= {"revenue", "paid"}
            assert json.loads(files["account.json"])["user"]["id"] == acme
            everything = "".join(files.values())
            assert other not in everything
            assert "of other" not in everything
            assert keys["acme"] not in everything
            for _ in range(2):
                assert http.get("/v1/account/export", headers=owner).status_code == 200
            refused = http.get("/v1/account/export", headers=owner)
            assert_canonical_error(refused, 429, "rate_limited", retryable=True)


def test_an_export_has_every_table_with_rows_of_accounts(state, monkeypatch):
    """A table that is added is exported, or named as one that others show."""
    tables = {table.name for table in metadata.sorted_tables}
    elsewhere = export_tables.IN_OTHER_FILES | export_tables.OF_THE_SERVER
    assert elsewhere <= tables - SHARED, "a table that is no more"
    for account_id in ("acct_a", "acct_b"):
        state.write_now(lambda connection, account_id=account_id: fill(connection, account_id))
    monkeypatch.setattr(export_tables, "_AT_ONCE", 1)
    files = {
        name: b"".join(pieces).decode()
        for name, pieces in export_tables.export_tables(state, "acct_a")
    }
    assert {name[len("tables/") : -len(".jsonl")] for name in files} == tables - SHARED - elsewhere
    assert all(len(lines.splitlines()) == 1 for lines in files.values())
    everything = "".join(files.values())
    assert "acct_b" not in everything
    assert "secret" not in everything


def test_an_export_is_made_as_it_is_read(monkeypatch):
    """Rows are read on demand: memory does not grow with an account."""
    asked = []

    def piece(n):
        asked.append(n)
        return bytes(json.dumps([n] * 20_000), "ascii")

    monkeypatch.setattr(export_service, "_PIECE", 1)
    pieces = export_service.zipped([("a.jsonl", (piece(n) for n in range(50)))])
    next(pieces)
    assert len(asked) < 50
    rest = sum(map(len, pieces))
    assert rest > 0
    assert len(asked) == 50
