"""``steelyard doctor`` on a sound installation, and on each kind of broken one."""

from __future__ import annotations

import json
import re
import shutil
import socket
import sqlite3
import sys
from pathlib import Path

import pytest

import steelyard
from steelyard.cli import checkup
from steelyard.cli.checkup import EXTRAS, REQUIRED, examine
from steelyard.cli.findings import CheckFinding
from steelyard.cli.going_out import addresses_of, check_network
from steelyard.scoring.shipped import BASE
from steelyard.settings import read_settings
from steelyard.storage import open_state
from support.tree.repository import read_pyproject

NOBODY = 2**22 - 1  # no process has it: it is the largest number that one may have


@pytest.fixture
def home(tmp_path, monkeypatch):
    """An empty home, a free port and the fast engine, for commands of this process."""
    for name in ("STEELYARD_STATE_URL", "STEELYARD_URL", "STEELYARD_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("STEELYARD_ENGINE", "hashing")
    monkeypatch.setenv("STEELYARD_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("STEELYARD_PORT", "0")
    return tmp_path / "home"


def findings(url: str | None = None) -> dict[str, CheckFinding]:
    return {finding.check: finding for finding in examine(url)}


def test_a_sound_installation_passes_and_stays_as_it_was(home, run):
    result = run("doctor", "--json")
    report = json.loads(result.stdout)
    assert result.exit_code == 0
    by_name = {check["check"]: check for check in report["checks"]}
    assert {name for name, check in by_name.items() if check["status"] != "ok"} == {"engine"}
    assert steelyard.__version__ in by_name["package"]["message"]
    assert "not there yet" in by_name["state"]["message"]
    assert re.search(r"\d ms", by_name["engine"]["message"])
    assert not home.exists()


def test_outgoing_connections_are_named_with_their_settings(home, monkeypatch):
    webhooks = "endpoints of webhooks that an account added"
    assert findings()["network"].message == f"nothing goes out but to {webhooks}"
    home.mkdir()
    model = 'wire = "decide"\nurl = "https://models.example/v1"\n'
    (home / "models.toml").write_text(f"[models.other]\n{model}")
    for name, value in (
        ("STATE_URL", "postgresql://me:secret@db.example:5432/steelyard"),
        ("FRAMES_URL", "file:///srv/frames"),
        ("SCORER", "triton://gpu.example:8001"),
        ("PAYMENTS", "stripe"),
    ):
        monkeypatch.setenv(f"STEELYARD_{name}", value)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://traces.example:4318")
    reached = (
        "db.example:5432 (STEELYARD_STATE_URL), gpu.example:8001 (STEELYARD_SCORER), "
        "traces.example:4318 (OTEL_EXPORTER_OTLP_ENDPOINT), api.stripe.com (STEELYARD_PAYMENTS), "
        f"models.example (the connected model other), {webhooks}"
    )
    [found] = check_network(read_settings())
    assert (found.status, found.message) == ("ok", f"nothing goes out but to {reached}")
    page = Path(__file__).parents[2] / "docs/operators/security-model.md"
    table = page.read_text(encoding="utf-8").partition("| Named by |")[2].partition("| judges")[0]
    variables = set(re.findall(r"(?:STEELYARD|OTEL)_[A-Z_]+", table))
    assert variables == addresses_of(read_settings()).keys() | {"STEELYARD_WEBHOOK_HOSTS"}


def test_two_packages_of_the_same_files_are_a_warning(home, monkeypatch):
    monkeypatch.setattr(checkup, "version", lambda name: "0.2.0")
    assert findings()["client"].advice.startswith("pip uninstall steelyard-client")


def test_every_failed_line_has_a_remedy(home, run, monkeypatch):
    monkeypatch.setattr(checkup, "FULL_DISK_BYTES", 2**80)
    monkeypatch.setattr(checkup, "LOW_DISK_BYTES", 2**80)
    result = run("doctor")
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    [place] = [index for index, line in enumerate(lines) if line.startswith("fail")]
    assert "GiB free" in lines[place]
    assert "STEELYARD_HOME" in lines[place + 1]


def test_a_disk_that_is_nearly_full_is_a_warning(home, monkeypatch):
    monkeypatch.setattr(checkup, "LOW_DISK_BYTES", 2**80)
    assert findings()["disk"].status == "warn"


@pytest.mark.parametrize("harm", ["missing", "altered", "no manifest"])
def test_a_model_that_is_not_whole_fails(home, tmp_path, monkeypatch, harm):
    folder = tmp_path / "model"
    shutil.copytree(BASE, folder)
    if harm == "missing":
        (folder / "encoder.safetensors").unlink()
    elif harm == "altered":
        with (folder / "tokenizer.json").open("ab") as file:
            file.write(b" ")
    else:
        (folder / "manifest.json").unlink()
    for module in ("assets", "shipped"):
        monkeypatch.setattr(f"steelyard.scoring.{module}.BASE", folder)
    monkeypatch.setenv("STEELYARD_ENGINE", "auto")
    found = findings()
    assert (found["model"].status, found["engine"].status) == ("fail", "fail")
    assert str(folder) in found["model"].message


def test_a_home_that_cannot_be_written_fails(home, monkeypatch):
    home.write_text("a file")
    monkeypatch.setenv("STEELYARD_HOME", str(home / "inner"))
    assert findings()["disk"].status == "fail"


def test_a_state_of_this_version_is_written_to(home):
    open_state(f"sqlite:///{home / 'state.sqlite'}").close()
    found = findings()
    assert (found["state"].status, found["operations"].status) == ("ok", "ok")


def test_a_state_of_another_version_is_not_migrated(home):
    path = home / "state.sqlite"
    open_state(f"sqlite:///{path}").close()
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '0000'")
    connection.close()
    assert findings()["state"].status == "warn"
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT version_num FROM alembic_version").fetchone() == ("0000",)
    connection.close()


def test_a_state_that_is_no_database_fails(home):
    home.mkdir()
    (home / "state.sqlite").write_bytes(b"not a database " * 1000)
    assert findings()["state"].status == "fail"


def test_an_unreachable_database_fails_without_its_password(home, monkeypatch):
    monkeypatch.setenv("STEELYARD_STATE_URL", "postgresql://me:hunter2@127.0.0.1:1/db")
    found = findings()
    assert found["state"].status == "fail"
    assert not any("hunter2" in repr(finding) for finding in found.values())


@pytest.mark.parametrize("url", ["nonsense", "mysql://a/b"])
def test_a_state_of_no_known_kind_fails(home, monkeypatch, url):
    monkeypatch.setenv("STEELYARD_STATE_URL", url)
    assert findings()["state"].status == "fail"


def test_work_of_a_dead_server_is_reported(home):
    path = home / "state.sqlite"
    open_state(f"sqlite:///{path}").close()
    with sqlite3.connect(path) as connection:
        connection.execute(
            "INSERT INTO operations (id, account_id, route, model, state, instance, accepted_at,"
            " reserved_nano, amount_nano) VALUES ('op_1', 'local', 'decide', 'm', 'pending',"
            " 'srv_00000000000000000000000000', 1, 0, 0)"
        )
    connection.close()
    found = findings()
    assert found["operations"].status == "warn"
    assert found["operations"].message.startswith("1 ")


def test_files_of_a_dead_server_are_reported(home):
    home.mkdir()
    (home / "serve.json").write_text(json.dumps({"url": "http://127.0.0.1:9", "pid": NOBODY}))
    (home / "serve.partial").write_text("")
    found = findings()["leftovers"]
    assert found.status == "warn"
    assert "serve.json" in found.message
    assert "serve.partial" in found.message


def test_a_free_port_is_reported(home, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    monkeypatch.setenv("STEELYARD_PORT", str(port))
    found = findings()["server"]
    assert found.status == "ok"
    assert f"127.0.0.1:{port} is free" in found.message


def test_a_port_that_another_program_holds_fails(home, monkeypatch):
    monkeypatch.setattr(checkup, "_SERVER_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        monkeypatch.setenv("STEELYARD_PORT", str(listener.getsockname()[1]))
        found = findings()["server"]
    assert found.status == "fail"
    assert "taken" in found.message


def test_an_address_of_another_machine_fails(home, monkeypatch):
    monkeypatch.setenv("STEELYARD_HOST", "192.0.2.1")
    monkeypatch.setenv("STEELYARD_PORT", "8420")
    found = findings()["server"]
    assert found.status == "fail"
    assert "192.0.2.1:8420" in found.message


def test_a_running_server_is_asked(home, tmp_path, monkeypatch):
    with steelyard.embed(tmp_path / "other", engine="hashing") as server:
        by_url = findings(server.url)
        monkeypatch.setenv("STEELYARD_PORT", server.url.rsplit(":", 1)[1])
        by_port = findings()
        monkeypatch.setattr(checkup, "__version__", "0.0.1")
        older = findings(server.url)
    for found in (by_url, by_port):
        assert (found["server"].status, found["ready"].status) == ("ok", "ok")
    assert "state" in by_url["ready"].message
    assert older["server"].status == "warn"


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "nowhere"])
def test_a_server_that_is_not_there_fails(home, url, run):
    assert findings(url)["server"].status == "fail"
    assert run("doctor", "--url", url).exit_code == 1


def test_settings_that_cannot_be_read_fail(home, monkeypatch, run):
    monkeypatch.setenv("STEELYARD_PORT", "http")
    result = run("doctor", "--json")
    assert result.exit_code == 1
    assert "STEELYARD_PORT" in json.loads(result.stdout)["checks"][-1]["message"]


def test_a_check_that_breaks_is_a_finding(home, monkeypatch):
    def breaks(_):
        raise KeyError("gone")
        yield

    monkeypatch.setattr(checkup, "check_engine", breaks)
    found = findings()
    assert found["engine"].status == "fail"
    assert "KeyError" in found["engine"].message
    assert "server" in found


@pytest.mark.parametrize(("policy", "status"), [("ACTIVE", "warn"), ("PASSIVE", "ok")])
def test_spinning_threads_are_a_warning(home, monkeypatch, policy, status):
    monkeypatch.setenv("OMP_WAIT_POLICY", policy)
    assert findings()["openmp"].status == status


def test_more_threads_than_cores_are_a_warning(home, monkeypatch):
    monkeypatch.setenv("STEELYARD_THREADS", "100000")
    assert findings()["threads"].status == "warn"


def test_the_packages_named_are_the_projects():
    project = read_pyproject()["project"]

    def names(requirements):
        return {re.match(r"[\w-]+", requirement).group() for requirement in requirements}

    assert names(project["dependencies"]) >= {*REQUIRED}
    for extra, packages in EXTRAS.items():
        assert names(project["optional-dependencies"][extra]) == {*packages}


def test_a_missing_package_fails(home, monkeypatch):
    monkeypatch.setattr(checkup, "REQUIRED", (*REQUIRED, "steelyard-of-nobody"))
    found = findings()["requirements"]
    assert found.status == "fail"
    assert "steelyard-of-nobody" in found.message


def test_where_it_looks_is_the_package_that_runs(home):
    found = findings()
    assert str(Path(steelyard.__file__).parent) in found["package"].message
    assert sys.executable in found["python"].message
