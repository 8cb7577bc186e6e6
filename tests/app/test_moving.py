"""A home moved to PostgreSQL and an object store, and back: each row, each file, or nothing."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from sqlalchemy import NullPool, create_engine, select

import steelyard
from steelyard.cli.main import main
from steelyard.storage.database import parse_url
from steelyard.storage.tables import metadata
from support.datasets.dataset_rows import make_rows
from support.servers.serving import ENVIRONMENT

QUESTION = {"id": "team", "question": "Which team?", "outcomes": ["billing", "shipping"]}


@pytest.fixture(scope="module")
def worked_in(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with work in it."""
    home = tmp_path_factory.mktemp("worked") / "home"
    with steelyard.embed(home, engine="hashing", dataset_min_rows=1) as server:
        client = server.client
        dataset = client.datasets.create("tickets", make_rows(30), evaluation_fraction=0.5)
        client.datasets.add_rows(dataset.id, make_rows(60)[30:])
        client.evaluations.wait(client.evaluations.create(dataset.id, ["hashing"]).data[0])
        answer = client.decide("Parcel 7 was paid twice. ✓", [QUESTION], store=True)
        client.feedback(answer.id, {"team": "billing"})
        client.named_decisions.create("triage", [QUESTION])
    return home


@pytest.fixture
def home(worked_in: Path, tmp_path: Path) -> Path:
    """A copy of that home."""
    return shutil.copytree(worked_in, tmp_path / "home")


def move(*arguments: str | Path, **variables: str) -> str:
    done = CliRunner().invoke(main, ["move-home", *map(str, arguments)], env=variables)
    assert isinstance(done.exception, SystemExit | None), done.exception
    return done.output


def rows_of(url: str) -> dict[str, list[str]]:
    with create_engine(parse_url(url), poolclass=NullPool).connect() as connection:
        return {
            table.name: sorted(map(repr, connection.execute(select(table))))
            for table in metadata.sorted_tables
        }


def files_of(folder: Path) -> dict[str, bytes]:
    """Return the files that are named by their hash; the others are made of them again."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.glob("*/*.*")
        if re.fullmatch(r"[0-9a-f]{64}\.(parquet|json|file|manifest\.json)", path.name)
    }


def test_a_home_goes_on_at_the_other_place_and_back(home, tmp_path, postgres, bucket):
    names, store = bucket
    url = postgres.new_database()
    before = rows_of(f"sqlite:///{home}/state.sqlite")
    files = files_of(home / "frames")
    said = move("--home", home, "--to", url, "--object-store", store)
    assert f"{sum(map(len, before.values())):,} rows; " in said
    assert rows_of(url) == before
    assert {name.removeprefix("at/prefix/") for name in names() if "." in name} <= files.keys()
    there = {"state_url": url, "frames_url": store}
    with steelyard.embed(
        tmp_path / "host", engine="hashing", dataset_min_rows=1, **there
    ) as server:
        client = server.client
        [dataset] = client.datasets.iterate()
        assert len(client.datasets.to_polars(dataset.id)) == 60
        assert client.datasets.add_rows(dataset.id, make_rows(61)[60:]).version == 3
        assert client.decision("triage").decide("Late.", store=True).decision.version == 1
        # It runs, so nothing is moved from it.
        variables = {"STEELYARD_STATE_URL": url, "STEELYARD_FRAMES_URL": store}
        assert "has the state open" in move("--to", tmp_path / "back", **variables)
    assert "rows" in move("--to", tmp_path / "back", **variables)
    assert rows_of(f"sqlite:///{tmp_path}/back/state.sqlite") == rows_of(url)
    with steelyard.embed(tmp_path / "back", engine="hashing") as server:
        assert len(server.client.datasets.to_polars(dataset.id)) == 61
        assert "has the state open" in move("--home", server.home, "--to", tmp_path / "third")


def test_a_target_that_is_not_empty_is_refused_and_stays(home, tmp_path, postgres, bucket):
    names, store = bucket
    full, empty = postgres.new_state(), postgres.new_database()
    before = rows_of(full)
    assert "has tables already" in move("--home", home, "--to", full, "--object-store", store)
    assert (rows_of(full), names()) == (before, [])
    there = tmp_path / "files"
    (there / "datasets").mkdir(parents=True)
    (there / "datasets" / "of-another").write_text("x")
    assert "of-another" in move("--home", home, "--to", empty, "--object-store", there)
    assert "is there already" in move("--home", home, "--to", home)
    assert "nothing was stored" in move("--home", tmp_path / "none", "--to", empty)
    file = next((home / "frames").glob("datasets/*.parquet"))
    content = file.read_bytes()
    file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    assert "is not what was written" in move("--home", home, "--to", empty, "--object-store", store)
    file.unlink()
    assert "is missing" in move("--home", home, "--to", empty, "--object-store", store)


@pytest.mark.parametrize("place", ["_copy_file", "_TableDigest.add"])
@pytest.mark.parametrize("to", ["database", "folder"])
def test_a_killed_move_is_begun_again(home, tmp_path, postgres, place, to):
    program = f"""
import itertools, os, signal
from steelyard.app import moving
from steelyard.cli.main import main
work, calls = moving.{place}, itertools.count()
def kill(*given):
    if next(calls) == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return work(*given)
moving.{place} = kill
main()
"""
    url = postgres.new_database()
    places = {
        "database": ("--to", url, "--object-store", str(tmp_path / "files")),
        "folder": ("--to", str(tmp_path / "new")),
    }
    command = ["move-home", "--home", str(home), *places[to]]
    killed = subprocess.run(
        [sys.executable, "-c", program, *command], env=ENVIRONMENT, check=False, timeout=110
    )
    assert killed.returncode == -9
    assert not (tmp_path / "new" / "state.sqlite").exists()
    assert "rows" in move(*command[1:])
    state = f"sqlite:///{tmp_path}/new/state.sqlite" if to == "folder" else url
    assert rows_of(state) == rows_of(f"sqlite:///{home}/state.sqlite")
    frames = tmp_path / ("new/frames" if to == "folder" else "files")
    assert {} != files_of(frames).items() <= files_of(home / "frames").items()
