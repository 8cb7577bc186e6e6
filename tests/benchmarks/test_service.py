"""The service benchmark: its clients, its figures, and one small run of the whole."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from support.servers.live_server import live_server


@pytest.mark.slow
def test_a_run_measures_both_modes_alone_and_at_load(script, tmp_path, capsys):
    service = script("service")
    figures = tmp_path / "figures.json"
    given = ["--engine", "hashing", "--rounds", "2", "--requests", "2", "--clients", "3"]
    given += ["--context", "short", "--starts", "0", "--home", str(tmp_path)]
    given += ["--against", str(Path(__file__).parents[2])]
    assert service.main([*given, "--json", str(figures)]) == 0
    rounds = json.loads(figures.read_text())["rounds"]
    assert [(one["mode"], one["n_clients"]) for one in rounds] == [
        (mode, n_clients)
        for n_clients in (1, 3)
        for mode in ("plain", "durable", "plain, before", "durable, before")
    ]
    for one in rounds:
        assert len(one["p50_ms"]) == len(one["scorer_cpu_ms"]) == 2
        assert all(low <= high for low, high in zip(one["p50_ms"], one["p95_ms"], strict=True))
        assert all(1 <= batch <= one["n_clients"] for batch in one["batch"])
    printed = capsys.readouterr().out
    assert "durable / plain at p50" in printed
    assert "CPU added at load over before, durable" in printed


def test_a_refusal_ends_the_measurement(script):
    load = script("service_load")
    with live_server() as server:
        request = load.make_request(server.port, b'{"context": ""}', {})
        with pytest.raises(load.UnexpectedAnswerError, match="invalid_request"):
            load.run_clients(server.port, [[request]])


def test_every_request_has_a_context_of_its_own(script):
    service = script("service")
    options = service.parse(["--requests", "3"])

    server = SimpleNamespace(about={"port": 1, "api_key": "key"})
    which = [(turn, n, client, number) for turn in (0, 1) for n, client, number in SENT]
    for mode in service.MODES:
        bodies = [service.request_of(server, mode, one, options) for one in which]
        contexts = {json.loads(body.partition(b"\r\n\r\n")[2])["context"] for body in bodies}
        assert len(contexts) == len(which)
        assert all((b"Idempotency-Key" in body) == (mode == "durable") for body in bodies)


#: Clients in all, one of them, one of its requests.
SENT = [(1, 0, 0), (1, 0, 300), (8, 0, 0), (8, 7, 0), (8, 7, 300)]


def test_figures_are_paired_within_their_round(script):
    service = script("service")
    rounds = [
        service.Rounds(mode, n_clients, [p50, 2 * p50], [9.0, 9.0], [3.0, 3.0], [1.0, 2.0])
        for n_clients in (1, 8)
        for mode, p50 in (("plain", 10.0), ("durable", 11.0))
    ]
    table = service.target_table(rounds)
    assert "1.100 (1.100 to 1.100)" in table
    assert "2.250 (1.500 to 3.000)" in table
    assert [line.split()[-1] for line in table.splitlines() if "at p50" in line] == ["kept"]
    assert [
        line.split()[-1] for line in table.splitlines() if "scorer CPU at load, plain" in line
    ] == ["over"]
