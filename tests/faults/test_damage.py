"""Damaged files: reported by the routes, by readiness, in jobs and by the doctor."""

from __future__ import annotations

import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from click.testing import CliRunner, Result
from sqlalchemy import text

import steelyard
from steelyard.cli.main import main
from steelyard.errors import DataDamagedError
from steelyard.jobs.ticker import Ticker
from steelyard.settings import InvalidSettingError, read_settings
from steelyard.storage import open_state
from steelyard.storage.damage import DamageNotes, damage_of_database
from steelyard.storage.home import state_path_of
from support.api.error_shape import assert_canonical_error
from support.datasets.dataset_rows import make_rows
from support.waiting import wait_until

get = partial(httpx.get, timeout=60)
post = partial(httpx.post, timeout=60)


class Home:
    """A home with one dataset, while no server runs on it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with self.server() as server:
            body = {"name": "tickets", "evaluation": make_rows(300)}
            self.dataset = post(f"{server.url}/v1/datasets", json=body).json()["id"]

    def server(self) -> Any:
        return steelyard.embed(self.folder, engine="hashing")

    @property
    def state(self) -> Path:
        return self.folder / "state.sqlite"

    @property
    def part(self) -> Path:
        [found] = (self.folder / "frames" / "datasets").glob("*.parquet")
        return found

    def doctor(self, *arguments: str) -> Result:
        environment = {"STEELYARD_ENGINE": "hashing", "STEELYARD_PORT": "0"}
        command = ["doctor", "--home", str(self.folder), *arguments]
        return CliRunner().invoke(main, command, env=environment)

    def failures(self, *arguments: str) -> list[str]:
        """Return the failures in the doctor's report."""
        done = self.doctor(*arguments)
        lines = [line for line in done.stdout.splitlines() if line.startswith("fail")]
        assert done.exit_code == (1 if lines else 0), done.output
        return lines


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Home:
    return Home(tmp_path_factory.mktemp("whole") / "home")


@pytest.fixture
def home(whole: Home, tmp_path: Path) -> Home:
    copy = object.__new__(Home)
    copy.folder = Path(shutil.copytree(whole.folder, tmp_path / "home"))
    copy.dataset = whole.dataset
    return copy


def change(path: Path) -> None:
    content = bytearray(path.read_bytes())
    tenth = len(content) // 10
    content[tenth : 9 * tenth] = random.Random(7).randbytes(8 * tenth)
    path.write_bytes(content)


def cut_off(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def empty_folder(path: Path) -> None:
    shutil.rmtree(path.parent.parent)
    path.parent.parent.mkdir()


def assert_damaged(response: httpx.Response, *words: str) -> None:
    error = assert_canonical_error(response, 500, "data_damaged", retryable=False)
    assert "Retry-After" not in response.headers
    for word in (*words, "backup", "steelyard doctor --deep"):
        assert word in error["message"]


@pytest.mark.slow
@pytest.mark.parametrize("damage", [change, cut_off, Path.unlink, empty_folder])
def test_a_damaged_part_is_named_until_it_is_repaired(
    home: Home, damage: Callable[[Path], object]
) -> None:
    name, content = home.part.name, home.part.read_bytes()
    with home.server() as server:
        ready = get(f"{server.url}/v1/ready")
        assert ready.status_code == 200
        path = home.part
        damage(path)
        assert_damaged(get(f"{server.url}/v1/datasets/{home.dataset}/rows?limit=500"), name)
        assert_damaged(get(f"{server.url}/v1/datasets/{home.dataset}/facets"), name)
        ready = get(f"{server.url}/v1/ready")
        error = assert_canonical_error(ready, 500, "data_damaged", retryable=False)
        assert [one["part"] for one in error["details"]] == [f"frames/datasets/{name}"]
        assert name in error["details"][0]["message"]
        answer = post(f"{server.url}/v1/playground/decide", json=QUESTION)
        assert answer.status_code == 200
    with home.server() as server:
        assert get(f"{server.url}/v1/ready").status_code == 500
    shutil.rmtree(home.folder / "frames" / "datasets", ignore_errors=True)
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    with home.server() as server:
        assert get(f"{server.url}/v1/ready").status_code == 200


QUESTION = {
    "context": "Paid twice.",
    "decisions": [{"id": "d", "kind": "binary", "question": "Money back?"}],
}


@pytest.mark.slow
def test_an_evaluation_of_damaged_rows_fails_with_their_name(home: Home) -> None:
    with home.server() as server:
        body = {"dataset_id": home.dataset, "models": ["hashing"]}
        change(home.part)
        made = post(f"{server.url}/v1/evaluations", json=body)
        if made.status_code == 500:
            assert_damaged(made, home.part.name)
            return
        url = f"{server.url}/v1/evaluations/{made.json()['data'][0]['id']}"
        ended = wait_until(
            lambda: found if (found := get(url).json())["status"] == "failed" else None
        )
        assert ended["error"]["code"] == "data_damaged"


def test_the_decisions_of_a_version_are_held_against_their_hash(home: Home) -> None:
    [path] = (home.folder / "frames" / "datasets").glob("*.json")
    path.write_bytes(path.read_bytes().replace(b"?", b"!"))
    with home.server() as server:
        response = get(f"{server.url}/v1/datasets/{home.dataset}/decisions")
        if response.status_code != 404:
            assert_damaged(response, path.name)


def page_of(path: Path, table: str) -> tuple[int, bytes]:
    """Return the place of the first page of a table or an index, and its bytes."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        [size] = connection.execute("PRAGMA page_size").fetchone()
        query = "SELECT rootpage FROM sqlite_master WHERE name = ?"
        [page] = connection.execute(query, (table,)).fetchone()
    place = (page - 1) * size
    return place, path.read_bytes()[place : place + size]


def spoil_page_of(path: Path, table: str) -> None:
    place, content = page_of(path, table)
    with path.open("r+b") as file:
        file.seek(place)
        file.write(random.Random(3).randbytes(len(content)))


def test_damaged_pages_of_the_state_are_reported(home: Home) -> None:
    spoil_page_of(home.state, "dataset_versions")
    with home.server() as server:
        assert_damaged(get(f"{server.url}/v1/datasets/{home.dataset}"), "state's database")
        answer = post(f"{server.url}/v1/decide", json={**QUESTION, "store": True})
        assert answer.status_code == 200  # what lies in other pages goes on
        error = assert_canonical_error(
            get(f"{server.url}/v1/ready"), 500, "data_damaged", retryable=False
        )
        assert [one["part"] for one in error["details"]] == ["state"]
    [line] = home.failures()
    assert str(home.state) in line


def test_a_write_that_meets_damage_fails_alone(home: Home) -> None:
    spoil_page_of(home.state, "decisions")
    with home.server() as server:
        kept = {**QUESTION, "store": True}
        assert_damaged(post(f"{server.url}/v1/decide", json=kept), "state's database")
        unkept = {**QUESTION, "store": False}
        assert post(f"{server.url}/v1/decide", json=unkept).status_code == 200


@pytest.mark.parametrize("value", [b"{", "CAST(x'80' AS TEXT)"], ids=["json", "text"])
def test_an_unreadable_row_of_the_state_is_reported(home: Home, value: bytes | str) -> None:
    with closing(sqlite3.connect(home.state)) as connection, connection:
        if isinstance(value, bytes):
            connection.execute("UPDATE dataset_versions SET manifest = ?", (value,))
        else:
            connection.execute(f"UPDATE dataset_versions SET added_from = {value}")
    with home.server() as server:
        url = f"{server.url}/v1/datasets/{home.dataset}/versions"
        assert_damaged(get(url), "state's database")


def test_a_state_that_is_no_database_ends_the_start(home: Home, tmp_path: Path) -> None:
    home.state.write_bytes(b"not a database " * 1000)
    command = ["serve", "--port", "0", "--home", str(home.folder), "--engine", "hashing"]
    done = CliRunner().invoke(main, command)
    assert done.exit_code == 1
    [line] = done.stderr.splitlines()
    assert line.startswith("Error (data_damaged): The state's database is damaged.")
    with pytest.raises(DataDamagedError), home.server():
        pass


def test_the_doctor_finds_nothing_wrong_with_a_whole_home(home: Home) -> None:
    assert home.failures() == home.failures("--deep") == []
    assert "3 files that the state names are there" in home.doctor("--deep").stdout


@pytest.mark.parametrize(
    ("damage", "word"),
    [(Path.unlink, "is missing"), (cut_off, "bytes in place of"), (empty_folder, "is missing")],
)
def test_the_doctor_names_each_file_that_is_not_there(
    home: Home, damage: Callable[[Path], object], word: str
) -> None:
    name = home.part.stem
    damage(home.part)
    lines = home.failures()
    assert len(lines) == (3 if damage is empty_folder else 1)
    [line] = [line for line in lines if name in line]
    assert word in line
    assert f"version 1 of the dataset {home.dataset}" in line


def test_the_doctor_reads_every_file_when_it_is_to_look_deep(home: Home) -> None:
    change(home.part)
    assert home.failures() == []
    [line] = home.failures("--deep")
    assert f"{home.part.name}, of version 1 of the dataset {home.dataset}, is not what" in line


def test_the_doctor_checks_the_indexes_of_a_database_when_it_is_to_look_deep(home: Home) -> None:
    index = "ix_datasets_account_id_listed_at"
    place, before = page_of(home.state, index)
    with closing(sqlite3.connect(home.state)) as connection, connection:
        connection.execute("UPDATE datasets SET listed_at = listed_at + 1")
    page_of(home.state, index)
    with home.state.open("r+b") as file:
        file.seek(place)
        file.write(before)
    assert home.failures() == []
    [line] = home.failures("--deep")
    assert "state.sqlite is damaged" in line


def test_the_counters_of_requests_are_checked_too(home: Home) -> None:
    (home.folder / "rates.sqlite").write_bytes(b"not a database " * 1000)
    [line] = home.failures()
    assert "rates.sqlite is damaged" in line


def test_damage_is_known_to_all_processes_of_the_home(tmp_path: Path) -> None:
    one, other = DamageNotes(tmp_path), DamageNotes(tmp_path)
    assert one.found() == {}
    one.note("frames/datasets/a.parquet", DataDamagedError("It is missing."))
    one.note("frames/datasets/a.parquet", DataDamagedError("It is still missing."))
    assert other.found() == {"frames/datasets/a.parquet": "It is missing."}
    other.drop("frames/datasets/a.parquet")
    assert one.found() == {}


def test_a_sound_database_has_nothing_wrong(home: Home) -> None:
    assert damage_of_database(home.state, deep=True) is None
    assert state_path_of(read_settings({"home": str(home.folder)}, environ={})) == home.state


@pytest.mark.parametrize("how", ["emptied", "removed", "no tables"])
def test_no_state_is_made_beside_the_files_of_another(home: Home, how: str) -> None:
    home.state.unlink()
    if how == "emptied":
        home.state.touch()
    elif how == "no tables":
        with closing(sqlite3.connect(home.state)) as connection:
            connection.execute("VACUUM")
    with pytest.raises(InvalidSettingError, match="--new-state on"), home.server():
        pass
    with steelyard.embed(home.folder, engine="hashing", new_state="on") as server:
        assert get(f"{server.url}/v1/datasets").json()["data"] == []
    with home.server():  # from then on it is the state
        pass


@pytest.mark.parametrize("met", ["use", "upload", "stream"])
def test_state_that_a_route_cannot_read_makes_the_server_unready(
    home: Home, monkeypatch: pytest.MonkeyPatch, met: str
) -> None:
    async def decode(*_: object) -> object:
        return msgspec.json.decode(b"{")

    async def pieces(*_: object) -> Iterator[bytes]:
        return (piece if piece == b"." else msgspec.json.decode(piece) for piece in (b".", b"{"))

    datasets = "steelyard.datasets"
    monkeypatch.setattr(f"{datasets}.service.DatasetService._read", decode)
    monkeypatch.setattr(f"{datasets}.service.DatasetService.add_rows", decode)
    monkeypatch.setattr(f"{datasets}.row_service.DatasetRows.export", pieces)
    with home.server() as server:
        url = f"{server.url}/v1/datasets/{home.dataset}"
        if met == "use":
            assert_damaged(get(url), "state's database")
        elif met == "upload":
            rows = {"evaluation": make_rows(1)}
            assert_damaged(post(f"{url}/versions", json=rows), "state's database")
        else:
            with pytest.raises(httpx.RemoteProtocolError):
                get(f"{url}/export?format=csv")
        assert get(f"{server.url}/v1/ready").status_code == 500


def test_state_that_a_sweep_cannot_read_makes_the_server_unready(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    notes = DamageNotes(tmp_path)
    with closing(open_state(f"sqlite:///{tmp_path / 'state.sqlite'}", notes)) as state:

        def tick() -> None:
            stored = state.read_now(lambda connection: connection.scalar(text("SELECT '{'")))
            msgspec.json.decode(stored)

        ticker = Ticker(tick, name="t", failure="Could not sweep", explain=state.explain)
        wait_until(notes.found)
        ticker.close()
    assert list(notes.found()) == ["state"]
    assert "Traceback" not in caplog.text
    assert "(DecodeError: " in caplog.text
