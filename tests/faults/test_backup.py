"""Backups of homes whose servers run, and homes restored from them."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner, Result

import steelyard
from faults.audit import audit
from faults.processes import MODEL, open_account, serve_process
from faults.traffic import clients, stop
from steelyard.app import backup
from steelyard.app.stored_files import find_files
from steelyard.cli.main import main
from steelyard.embedded import Embedded
from steelyard.room import NamedFile
from steelyard.settings import InvalidSettingError, read_settings
from steelyard.storage import open_state
from steelyard.storage.artifacts import ArtifactStore
from steelyard.storage.frame_store import open_store
from steelyard.storage.home import make_home, state_url_of
from support.datasets.dataset_rows import make_rows
from support.waiting import wait_until

PRICED = {"STEELYARD_ACCOUNTS": "on", "STEELYARD_PRICES": f"{MODEL}=7"}


def run(*arguments: str | Path, **variables: str) -> Result:
    environment = {"STEELYARD_ENGINE": "hashing", **variables}
    return CliRunner().invoke(main, [str(one) for one in arguments], env=environment)


def run_well(*arguments: str | Path) -> str:
    done = run(*arguments)
    assert done.exit_code == 0, done.output
    return done.stdout


def assert_refused(done: Result, *words: str) -> None:
    assert done.exit_code == 1, done.output
    for word in words:
        assert word in done.stderr
    assert "Traceback" not in done.output


def files_below(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.slow
def test_a_backup_under_load_has_all_that_was_acknowledged(tmp_path: Path) -> None:
    home, kept, restored = tmp_path / "home", tmp_path / "kept", tmp_path / "restored"
    _, secret = open_account(home)
    headers = {"Authorization": f"Bearer {secret}"}
    with serve_process(home, **PRICED) as server:
        server.start()
        rows = {"name": "tickets", "evaluation": make_rows(300)}
        url = f"{server.url}/v1/datasets"
        dataset = httpx.post(url, json=rows, headers=headers, timeout=60).json()["id"]
        rows_sent = httpx.get(f"{url}/{dataset}/download", headers=headers, timeout=60).content
        with clients(server.url, secret, seed=5) as running:
            wait_until(lambda: all(client.journal.answers for client in running))
            run_well("backup", kept, "--home", home)
            acknowledged = [dict(client.journal.answers) for client in running]
            decided = [dict(client.journal.decided) for client in running]
            n_before = sum(map(len, acknowledged))
            wait_a_second(kept)
            run_well("backup", kept, "--home", home)
            wait_until(lambda: sum(len(one.journal.answers) for one in running) > n_before)
            stop(running)
            assert all(client.journal.surprises == [] for client in running)
        server.stop()
    assert "ok    files" in run_well("restore", kept, "--home", restored)
    with serve_process(restored, **PRICED) as server:
        server.start()
        with httpx.Client(base_url=server.url, headers=headers, timeout=60) as http:
            for answers in acknowledged:
                for key, (payload, body) in answers.items():
                    again = http.post(
                        "/v1/decide",
                        content=payload,
                        headers={"Idempotency-Key": key, "Content-Type": "application/json"},
                    )
                    assert (again.status_code, again.content) == (200, body), key
                    assert again.headers["Idempotency-Replayed"] == "true"
            assert http.get(f"/v1/datasets/{dataset}/download").content == rows_sent
            wait_until(lambda: http.get("/v1/account").json()["wallet"]["reserved_usd"] == "0", 90)
        server.stop()
    books = audit(restored / "state.sqlite")  # every ledger sums to zero, or this fails
    assert books.count("pending") == 0
    assert {key for answers in decided for key in answers} <= books.decisions


def wait_a_second(kept: Path) -> None:
    """Wait until the next backup has a name of its own."""
    [first] = kept.iterdir()
    wait_until(lambda: time.strftime("%Y%m%dT%H%M%SZ", time.gmtime()) > first.name)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("whole") / "home"
    with steelyard.embed(home, engine="hashing") as server:
        body = {"name": "tickets", "evaluation": make_rows(30)}
        assert httpx.post(f"{server.url}/v1/datasets", json=body, timeout=60).status_code == 200
    (home / "samples").mkdir()
    (home / "samples" / "support_triage").touch()
    return home


@pytest.fixture
def home(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "home"))


@pytest.fixture
def copy(home: Path, tmp_path: Path) -> Path:
    run_well("backup", tmp_path / "kept", "--home", home)
    [made] = (tmp_path / "kept").iterdir()
    return made


def test_a_backup_is_for_its_user_alone_and_shares_nothing_with_the_home(
    home: Path, copy: Path
) -> None:
    held = {path.stat().st_ino for path in home.rglob("*") if path.is_file()}
    for path in (copy, *copy.rglob("*")):
        found = path.stat()
        if path == copy or path.is_file():
            assert found.st_mode & 0o077 == 0, path
        assert found.st_ino not in held
    files = json.loads((copy / backup.MANIFEST).read_bytes())["files"]
    assert files.keys() == files_below(copy).keys() - {backup.MANIFEST}
    assert {Path(name).parts[0] for name in files} == {"state.sqlite", "frames", "samples"}


def test_a_later_backup_stores_only_new_files(
    home: Path, copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [part] = (copy / "frames" / "datasets").glob("*.parquet")
    [other] = (copy / "frames" / "datasets").glob("*.json")
    other.write_bytes(b"rotten")
    wait_a_second(copy.parent)
    run_well("backup", copy.parent, "--home", home)
    later = max(copy.parent.iterdir())
    assert (later / part.relative_to(copy)).stat().st_ino == part.stat().st_ino
    assert (later / other.relative_to(copy)).read_bytes() != b"rotten"
    run_well("restore", later, "--home", home.with_name("restored"))


def test_a_restored_home_is_the_one_that_was_copied(home: Path, copy: Path) -> None:
    restored = home.with_name("restored")
    said = run_well("restore", copy.parent, "--home", restored)
    assert str(copy) in said
    before, after = files_below(home), files_below(restored)
    content = {name for name in before if name.startswith(("frames/datasets/", "samples"))}
    content -= {name for name in before if "owner" in name}
    assert content
    assert {name: before[name] for name in content} == {name: after[name] for name in content}
    assert restored.stat().st_mode & 0o077 == 0
    with steelyard.embed(restored, engine="hashing") as server:
        assert len(httpx.get(f"{server.url}/v1/datasets").json()["data"]) == 1
        # One that the server makes of itself is followed as a job, which the copy does not go on with.
        operator = server.client.operator
        assert operator.backups().data == []
        assert operator.back_up().task.status in {"running", "succeeded"}
        wait_until(lambda: operator.backups().task.status == "succeeded")
        [newest] = operator.backups().data
        assert newest.files == len(files_below(copy)) - 1
        [job] = server.client.jobs.all()
        assert (job.name, job.ended) == ("backup of the home", "succeeded")
    kept, again = restored.with_name("restored.backups"), home.with_name("again")
    run_well("restore", kept / newest.name, "--home", again)
    again.with_name("again.backups").write_text("no folder")
    with steelyard.embed(again, engine="hashing") as server:
        operator = server.client.operator
        assert operator.backups().task is None
        operator.back_up()
        wait_until(lambda: operator.backups().task.status == "failed")
        assert "setting `backups`" in operator.backups().task.error


def test_a_home_with_data_is_only_replaced_by_force_and_then_kept(home: Path, copy: Path) -> None:
    before = files_below(home)
    assert_refused(run("restore", copy, "--home", home), "holds data", "--force")
    assert files_below(home) == before
    run_well("restore", copy, "--home", home, "--force")
    [aside] = home.parent.glob("home.before-*")
    assert files_below(aside) == before
    assert not list(home.parent.glob("*.restoring-*"))


def test_a_log_without_its_database_counts_as_data(home: Path, copy: Path, tmp_path: Path) -> None:
    restored = tmp_path / "restored"
    restored.mkdir()
    (restored / "state.sqlite-wal").write_bytes(b"of another database")
    assert_refused(run("restore", copy, "--home", restored), "holds data")


def test_nothing_is_restored_while_a_server_runs(home: Path, copy: Path) -> None:
    with steelyard.embed(home, engine="hashing"):
        refused = run("restore", copy, "--home", home, "--force")
        assert_refused(refused, "A server or another command runs")
    run_well("restore", copy, "--home", home, "--force")


def spoil(path: Path) -> None:
    path.write_bytes(bytes(byte ^ 1 for byte in path.read_bytes()))


@pytest.mark.parametrize("name", ["state.sqlite", "frames/datasets/*.parquet", backup.MANIFEST])
@pytest.mark.parametrize("damage", [spoil, Path.unlink])
def test_a_damaged_backup_is_refused_and_nothing_is_written(
    home: Path, copy: Path, name: str, damage: Callable[[Path], object]
) -> None:
    [path] = copy.glob(name)
    damage(path)
    before = files_below(home)
    done = run("restore", copy, "--home", home, "--force")
    assert_refused(done, backup.MANIFEST if path.name == backup.MANIFEST else path.name)
    assert files_below(home) == before
    assert not list(home.parent.glob("home.*"))


def test_a_manifest_without_a_named_file_is_refused(home: Path, copy: Path) -> None:
    manifest = json.loads((copy / backup.MANIFEST).read_bytes())
    [gone] = [name for name in manifest["files"] if name.endswith(".parquet")]
    del manifest["files"][gone]
    (copy / backup.MANIFEST).write_text(json.dumps(manifest))
    before = files_below(home)
    assert_refused(run("restore", copy, "--home", home, "--force"), "is missing")
    assert files_below(home) == before


def test_files_of_a_manifest_lie_in_the_backup(home: Path, copy: Path) -> None:
    manifest = json.loads((copy / backup.MANIFEST).read_bytes())
    manifest["files"]["../outside"] = manifest["files"]["state.sqlite"]
    (copy / backup.MANIFEST).write_text(json.dumps(manifest))
    refused = run("restore", copy, "--home", home.with_name("restored"))
    assert_refused(refused, "../outside lies outside")


def test_the_newest_whole_backup_is_restored(home: Path, copy: Path) -> None:
    interrupted = copy.with_name("99991231T000000Z")
    shutil.copytree(copy, interrupted)
    (interrupted / backup.MANIFEST).unlink()
    assert str(copy) in run_well("restore", copy.parent, "--home", home.with_name("restored"))


def test_a_home_with_damage_is_not_copied(home: Path, tmp_path: Path) -> None:
    [part] = (home / "frames" / "datasets").glob("*.parquet")
    spoil(part)
    done = run("backup", tmp_path / "kept", "--home", home)
    assert_refused(done, part.name, "of version 1 of the dataset", "doctor --deep")
    assert list((tmp_path / "kept").iterdir()) == []


def test_files_deleted_during_the_copy_are_left_out(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy_state = backup._copy_state
    states = []
    with steelyard.embed(home, engine="hashing") as server:
        [dataset] = httpx.get(f"{server.url}/v1/datasets").json()["data"]

        def copy_and_delete(state: Path, target: Path) -> backup.BackupEntry:
            states.append(copy_state(state, target))
            if len(states) == 1:
                url = f"{server.url}/v1/datasets/{dataset['id']}"
                assert httpx.delete(url, timeout=60).status_code in {200, 204}
                for path in (home / "frames" / "datasets").glob("*.*"):
                    path.unlink()
            return states[-1]

        monkeypatch.setattr(backup, "_copy_state", copy_and_delete)
        run_well("backup", tmp_path / "kept", "--home", home)
    assert len(states) == 2
    run_well("restore", tmp_path / "kept", "--home", tmp_path / "restored")


def test_every_file_of_a_tuned_model_is_copied(tmp_path: Path) -> None:
    model = tmp_path / "model"
    model.mkdir()
    (model / "heads.json").write_bytes(b"{}")
    sha256 = backup._entry_of(model / "heads.json").sha256
    (model / "manifest.json").write_text(json.dumps({"files": {"heads.json": sha256}}))
    frames = tmp_path / "frames"
    name = ArtifactStore(frames / "models", tmp_path / "cache").put(model)
    found = find_files(
        [NamedFile("models", name, "a model")], partial(open_store, frames), deep=True
    )
    assert {(one.sha256, wrong) for one, _, wrong in found} == {(name, None), (sha256, None)}


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        ("STEELYARD_STATE_URL", "postgresql+psycopg://me@db/steelyard", "pg_dump"),
        ("STEELYARD_FRAMES_URL", "s3://bucket/frames", "the store's own versioning"),
    ],
)
def test_external_stores_are_copied_by_their_own_means(
    home: Path, copy: Path, tmp_path: Path, variable: str, value: str, words: str
) -> None:
    elsewhere = {variable: value}
    assert_refused(run("backup", tmp_path / "other", "--home", home, **elsewhere), words)
    assert_refused(run("restore", copy, "--home", tmp_path / "new", **elsewhere), words)


def test_a_backup_in_the_home_or_of_no_home_is_refused(home: Path, tmp_path: Path) -> None:
    assert_refused(run("backup", home / "kept", "--home", home), "choose another")
    assert_refused(run("backup", tmp_path / "kept", "--home", tmp_path / "none"), "not there")
    assert_refused(run("restore", tmp_path, "--home", tmp_path / "none"), "no whole backup")


@pytest.mark.parametrize("name", ["my%20data", "what? #1 ü & 日本 'a%2Fb\""])
def test_a_home_may_have_any_name(tmp_path: Path, name: str) -> None:
    home, restored = tmp_path / "from" / name, tmp_path / "to" / name
    with Embedded(home=home) as server:
        assert server.home == home
    assert (home / "state.sqlite").exists()
    run_well("backup", tmp_path / "copies", "--home", home)
    run_well("restore", tmp_path / "copies", "--home", restored)
    open_state(state_url_of(read_settings({"home": restored}, environ={}))).close()
    for folder in (home, restored):
        assert [path.name for path in folder.parent.iterdir()] == [name]


def test_a_state_beside_its_home_is_not_passed_over(tmp_path: Path) -> None:
    home, beside = tmp_path / "my%20data", tmp_path / "my data"
    (home / "frames").mkdir(parents=True)
    beside.mkdir()
    (beside / "state.sqlite").touch()
    with pytest.raises(InvalidSettingError, match="where an earlier version put it"):
        make_home(home)
