"""Golden rows are asked on a clock, and answers that move beyond chance raise an alarm."""

from __future__ import annotations

import asyncio
import time
from types import SimpleNamespace

import httpx
import numpy as np
import pytest
from click.testing import CliRunner
from msgspec import structs

import steelyard
from steelyard.alarms import golden_checks, store
from steelyard.alarms.golden import Answers, compare_answers
from steelyard.alarms.golden_checks import (
    GoldenRowChecks,
    checks_with_answers,
    reason_to_check,
)
from steelyard.alarms.golden_wire import CheckGoldenRows, GoldenCheck
from steelyard.app.job_runtime import open_worker
from steelyard.caller import Caller
from steelyard.cli.main import main
from steelyard.cli.state_checkup import check_state
from steelyard.errors import InvalidReferenceError, InvalidRequestError, NotFoundError
from steelyard.evaluations.measures.records import records_from_columns
from steelyard.operations.write import Write
from steelyard.version import __version__
from support.models.teaching import is_even, taught_server
from support.waiting import wait_until

PAID = {"id": "paid", "kind": "binary", "question": "Was it paid twice?"}
HOUR_S, PATIENCE_S = 3600.0, 90
N_ROWS = 40


@pytest.fixture
def golden(tmp_path, monkeypatch):
    """A server with a model whose answers can be changed, golden rows, and a clock."""
    clock, answer = [time.time()], [is_even]
    monkeypatch.setattr(golden_checks, "LOOK_S", 86_400.0)  # the tests look themselves

    def answer_now(text):
        return answer[0](text)

    with (
        taught_server(tmp_path, {"far": answer_now}) as (server, models),
        steelyard.connect(server.url) as client,
    ):
        checks = server.services.get(GoldenRowChecks)
        monkeypatch.setattr(checks, "_now", lambda: clock[0])
        rows = [
            {
                "context": f"Invoice {number} was paid.",
                "decisions": [PAID],
                "targets": {"paid": {"yes" if number % 2 == 0 else "no": 1.0}},
            }
            for number in range(N_ROWS)
        ]
        dataset = client.datasets.create(
            "golden", training=[{**rows[0], "context": "Invoice 99."}], evaluation=rows
        )
        yield SimpleNamespace(
            server=server,
            client=client,
            checks=checks,
            dataset=dataset,
            clock=clock,
            answer=answer,
            far=models["far"],
        )


def look(golden, n):
    """Look until so many checks have ended, and return the newest."""

    def ended():
        golden.checks.tick()
        [state] = golden.client.alarms.rules().golden
        newest = state.checks[0]
        return newest if newest.number >= n and newest.ended_at is not None else None

    return wait_until(ended, PATIENCE_S)


def test_answers_that_move_raise_an_alarm(golden):
    client, clock = golden.client, golden.clock
    golden.checks.tick()
    assert golden.far.asked == [], "nobody has golden rows yet"
    client.alarms.set_rule("far", golden_dataset=golden.dataset.id, every_hours=6)
    with open_worker(golden.server.services.settings):
        frozen = look(golden, 1)
        assert (frozen.status, frozen.because) == ("frozen", "its answers are to be frozen")
        again = look(golden, 2)
        assert (again.status, again.result.moved, again.result.right.after) == ("unchanged", 0, 1.0)
        n_asked = len(golden.far.asked)
        golden.checks.tick()
        assert len(golden.far.asked) == n_asked == 2 * N_ROWS
        clock[0] += 7 * HOUR_S
        golden.answer[0] = lambda text: 0.9 if "0" in text else is_even(text)
        moved = look(golden, 3)
        assert (moved.status, moved.because) == ("unchanged", "it was time"), "all with 0 were yes"
        clock[0] += 7 * HOUR_S
        golden.answer[0] = lambda _: 0.9
        moved = look(golden, 4)
        assert (moved.status, moved.result.moved, moved.result.right.after) == ("moved", 0.5, 0.5)
        [alarm] = client.alarms.list(state="raised")
        assert (alarm.model, alarm.watch, alarm.evidence.figure) == ("far", "golden", "moved")
        assert "50.0% of 40 answers of far moved" in alarm.message
        assert alarm.evidence.reference.evaluation_id == frozen.evaluation_id
        shown = CliRunner().invoke(main, ["alarm", "rules", "--url", golden.server.url])
        assert "50.0% of 40 answers of far moved" in shown.output, shown.output
        golden.answer[0] = is_even
        client.alarms.check_golden("far")
        assert look(golden, 5).because == "somebody asked"
        assert list(client.alarms.list(state="raised")) == []
    metrics = httpx.get(f"{golden.server.url}/metrics").text
    assert 'steelyard_golden_checked_timestamp_seconds{account="local",model="far"}' in metrics
    clock[0] += 13 * HOUR_S
    golden.checks.tick()  # begins a check that no worker ends
    [stale] = client.alarms.list(state="raised")
    assert (stale.watch, stale.evidence.figure) == ("golden_stale", "stale")
    assert "last checked 13 h ago; every 6 h was set" in stale.message
    write = Write(Caller("another", None, "full", ""))
    with pytest.raises(NotFoundError):
        asyncio.run(golden.checks.check_now(write, CheckGoldenRows(model="far")))
    with open_worker(golden.server.services.settings):
        assert look(golden, 6).status == "unchanged"
    assert list(client.alarms.list(state="raised")) == []
    client.alarms.remove_rule("far")
    assert client.alarms.rules().golden == []


def test_a_check_has_one_evaluation_whenever_its_process_is_killed(golden, monkeypatch):
    client = golden.client
    with pytest.raises(InvalidRequestError, match=r"^golden goes with a model"):
        client.alarms.set_rule(None, golden_dataset=golden.dataset.id)
    client.named_decisions.create("desk", [{**PAID, "question": "Whose?"}], model="far")
    with pytest.raises(InvalidReferenceError, match="in other words than the rows"):
        client.alarms.set_rule("decision:desk", golden_dataset=golden.dataset.id)
    with pytest.raises(NotFoundError, match="has no golden rows"):
        client.alarms.check_golden("far")
    client.alarms.set_rule("far", golden_dataset=golden.dataset.id)

    def killed(*_):
        raise MemoryError

    with monkeypatch.context() as patched:
        patched.setattr(store, "add_golden_check", killed)
        for _ in range(2):
            golden.checks.tick()
    with open_worker(golden.server.services.settings):
        assert look(golden, 1).status == "frozen"
    assert len(golden.far.asked) == N_ROWS
    findings = check_state(golden.server.services.settings)
    [finding] = [each for each in findings if each.check == "golden rows"]
    assert (finding.status, "far: checked 0 h ago" in finding.message) == ("ok", True)


LAST = GoldenCheck(
    number=2,
    status="unchanged",
    evaluation_id="eval_1",
    started_at=0.0,
    ended_at=1.0,
    model_key="key",
    software=__version__,
    provider_model="far-1",
)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, ""),
        ({"is_due": True}, "it was time"),
        ({"model_key": "other"}, "the model, or its settings, changed"),
        ({"provider_model": "far-2"}, "the provider's model is far-2, and was far-1"),
        ({"provider_model": ""}, ""),
        ({"software": "0.1.9"}, f"this is version {__version__}, and was 0.1.9"),
        ({"software": "0.1.9", "is_here": False}, ""),
        ({"n_before": 1}, "it is seen what moves by chance"),
        ({"n_before": 0}, "its answers are to be frozen"),
    ],
)
def test_reasons_to_check(change, expected):
    options = {"is_here": True, "is_due": False, "since": -1.0, **change}
    last = structs.replace(LAST, software=options.pop("software", __version__))
    before = [last] * options.pop("n_before", 2)
    key, provider = options.pop("model_key", "key"), options.pop("provider_model", "far-1")
    assert reason_to_check(before, key, provider, **options) == expected


def test_hosts_that_differ_do_not_ask_in_turn():
    """One host has another engine, version and name of the provider's model than the other."""
    hosts = [("key", __version__, "far-1"), ("other", "0.1.9", "far-2")]
    before = [
        structs.replace(LAST, model_key=key, software=software, provider_model=name)
        for key, software, name in hosts
    ]
    options = {"is_here": True, "is_due": False}
    for known in (before, before[::-1]):
        assert reason_to_check(known, "key", "far-1", since=-1.0, **options) == ""
    # After the hours that were set only the last one counts.
    changed = reason_to_check(before, "key", "far-1", since=1.0, **options)
    assert changed == "the model, or its settings, changed"


def test_a_check_that_failed_is_not_what_later_ones_are_held_to():
    checks = [
        structs.replace(LAST, number=number, status=status, subject=subject)
        for number, status, subject in (
            (1, "failed", "far"),
            (2, "frozen", "far"),
            (3, "frozen", "near"),
            (4, "unchanged", "far"),
        )
    ]
    assert [each.number for each in checks_with_answers(checks, "far")] == [2, 4]


def answers(tops):
    shares = [[0.9, 0.1] if top == 0 else [0.1, 0.9] for top in tops]
    n = len(tops)
    records = records_from_columns(
        contexts=[f"{place:03}" for place in range(n)],
        decision_ids=["d"] * n,
        kinds=["binary"] * n,
        outcomes=[("yes", "no")] * n,
        probabilities=shares,
        labels=[[1.0, 0.0]] * n,
        supervision="targets",
    )
    return Answers(records, 10.0)


def test_chance_alone_raises_an_alarm_in_one_of_twenty_histories():
    """A model that answers one of twenty otherwise each time, over 10 checks; then one of five."""
    random = np.random.default_rng(5)
    n_rows, n_checks, n_histories = 60, 10, 60

    def asked(flips):
        return answers((random.random(n_rows) < flips).astype(int))

    raised = detected = 0
    for _ in range(n_histories):
        frozen, again = asked(0.05), asked(0.05)
        found = [
            compare_answers(frozen, again, asked(0.05), n_checks=n).has_moved
            for n in range(1, n_checks + 1)
        ]
        raised += any(found)
        detected += compare_answers(frozen, again, asked(0.4), n_checks=3).has_moved
    assert raised <= 0.15 * n_histories
    assert detected >= 0.9 * n_histories
