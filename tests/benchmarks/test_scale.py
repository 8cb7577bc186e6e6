"""The benchmarks of workers, writers and hosts: one small run of each."""

from __future__ import annotations

import json

import pytest

from support.servers.postgres_server import PostgresMissingError, postgres_server

SMALL = ["--workers", "2", "--clients", "2", "--requests", "3", "--rounds", "1"]
SMALL += ["--context", "short", "--processes", "1", "2", "--callers", "2", "--seconds", "0.5"]


@pytest.fixture
def _has_postgres():
    try:
        with postgres_server():
            pass
    except PostgresMissingError as error:
        pytest.skip(str(error))


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.usefixtures("_has_postgres")
def test_a_run_measures_servers_and_writers(script, tmp_path, capsys):
    figures = tmp_path / "figures.json"
    assert script("scale").main([*SMALL, "--json", str(figures)]) == 0
    told = json.loads(figures.read_text())
    assert [(one["state"], one["workers"]) for one in told["served"]] == [
        ("SQLite", 2),
        ("PostgreSQL", 2),
    ]
    assert all(one["cpu_ms"] > 0 and one["a_second"] > 0 for one in told["served"])
    assert [(one["state"], one["processes"]) for one in told["written"]] == [
        ("SQLite", 1),
        ("SQLite", 2),
        ("PostgreSQL", 1),
        ("PostgreSQL", 2),
    ]
    # A commit has the writes of several callers; never more commits than two an operation.
    for one in told["written"]:
        assert 0 < one["commits_a_second"] <= 2.1 * one["a_second"]
    assert "PostgreSQL wrote more with" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.usefixtures("_has_postgres")
def test_a_run_counts_the_trips_of_hosts(script, capsys):
    fleet = script("fleet")
    assert fleet.main(["--trips", "1", "--hosts", "2", "--callers", "2", "--seconds", "0.5"]) == 0
    [line] = capsys.readouterr().out.split("--\n")[-1].strip().splitlines()
    trip_ms, hosts, callers, statements, trips, a_second, *_ = map(float, line.split())
    assert (hosts, callers) == (2, 2)
    assert trip_ms >= 1
    assert statements >= trips > 0
    assert a_second > 0


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.usefixtures("_has_postgres")
def test_one_host_and_two_answer_the_same_requests(script, capsys):
    small = [
        "--engine",
        "hashing",
        "--callers",
        "2",
        "--requests",
        "3",
        "--rounds",
        "1",
        "--appends",
        "6",
    ]
    assert script("fleet").main(["--served", *small]) == 0
    _, appended, answered = capsys.readouterr().out.split("--\n")
    assert [line.split()[:3] for line in appended.splitlines()[:2]] == [[n, "6", "0"] for n in "12"]
    lines = answered.strip().splitlines()
    figures = [tuple(map(float, line.split())) for line in lines]
    assert [(hosts, callers) for hosts, callers, *_ in figures] == [(1, 2), (2, 2)]
    assert all(a_second > 0 and by_cpu > 0 for _, _, a_second, _, _, by_cpu in figures)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_frame_is_answered_alone_and_on_dask(script, capsys):
    pytest.importorskip("distributed")
    frames = ["--only", "frame", "--rows", "200", "--rounds", "1", "--workers", "1"]
    assert script("partitions").main(frames) == 0
    alone, spread = capsys.readouterr().out.split("--\n")[-1].strip().splitlines()
    assert alone.startswith("one process")
    assert spread.startswith("Dask, 1 workers")
    assert spread.endswith("never")  # a worker beside the process that waits for it


def test_dask_pays_once_its_rows_save_more_than_its_start(script):
    alone = {"rows_cpu_s": 20.0, "rows_s": 20.0, "upkeep": 0.0}
    spread = {"rows_cpu_s": 24.0, "rows_s": 20.0, "upkeep": 0.2}
    pays_from = script("partitions").pays_from
    # 20 ms a row alone; 20 ms by two cores less a fifth of one: 8.9 ms less, and 4 s later.
    assert pays_from(4.0, alone, spread, 1_000, 2) == "450"
    assert pays_from(4.0, alone, spread, 1_000, 1) == "never"


def test_outputs_of_both_are_compared(script):
    scale = script("scale")
    rates = {("SQLite", 1): 9.0, ("SQLite", 2): 5.0, ("PostgreSQL", 1): 8.0, ("PostgreSQL", 2): 7.0}
    found = [
        {"state": state, "processes": processes, "callers": 4, "a_second": a_second}
        for (state, processes), a_second in rates.items()
    ]
    assert scale.better_from(found) == "PostgreSQL wrote more with: 2 processes of 4 callers."
    assert scale.tree_cpu_s(1) >= 0
