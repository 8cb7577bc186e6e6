from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow.parquet as pq
import pytest

from steelyard.calibration.temperature import TemperatureTable
from steelyard.decisions.rendering import RenderedDecision, RenderedRequest
from steelyard.errors import EngineUnavailableError
from steelyard.families.wire import MAX_SEED
from steelyard.scoring.hashing import HashingScorer
from steelyard.scoring.tuned import check_artifact, load_tuned
from steelyard.settings import child_environment
from steelyard.trainer import program
from steelyard.trainer.program import run, run_or_tell
from steelyard.trainer.progress import Reporter
from steelyard.trainer.records import GROUPS
from steelyard.trainer.task import (
    FAILED,
    MODULE,
    STOPPED,
    FineTuneFailure,
    FineTuneResult,
    FineTuneTask,
    Progress,
    TaskBase,
    TaskRow,
    environment_of,
)
from support.families.trainer_folders import (
    BASE,
    N_HELD_OUT,
    N_TRAINING,
    TEAM,
    URGENT,
    make_rows,
    records_of,
    result_of,
    untimed,
    write_task,
)
from support.kills import kills_and_seed
from support.waiting import wait_until

SERVER = Path(__file__).parents[2] / "server"


def start(folder: Path, **options: Any) -> subprocess.Popen[bytes]:
    """Start the program as a job does."""
    return subprocess.Popen(
        [sys.executable, "-m", MODULE, str(folder)],
        env=child_environment(PYTHONPATH=str(SERVER), **environment_of(1)),
        stderr=subprocess.PIPE,
        **{"stdin": subprocess.DEVNULL, **options},
    )


def finish(folder: Path) -> FineTuneResult:
    process = start(folder)
    _, told = process.communicate()
    assert process.returncode == 0, (told.decode(), (folder / "error.json").read_text())
    return result_of(folder)


def failure_of(folder: Path) -> FineTuneFailure:
    assert not (folder / "result.json").exists()
    return msgspec.json.decode((folder / "error.json").read_bytes(), type=FineTuneFailure)


def reports_of(folder: Path) -> list[Progress]:
    path = folder / "progress.jsonl"
    if not path.exists():
        return []
    lines = path.read_bytes().splitlines(keepends=True)
    return [msgspec.json.decode(one, type=Progress) for one in lines if one.endswith(b"}\n")]


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of a fine-tune that ended; not to be changed."""
    folder = write_task(tmp_path_factory.mktemp("fine-tunes") / "first")
    finish(folder)
    return folder


def test_a_fine_tune_learns_is_measured_and_judged(first: Path) -> None:
    result = result_of(first)
    assert result.gate.passed
    assert result.gate.against == "base"
    assert (result.gate.reasons, result.sentences) == ([], [])
    assert set(result.gate.groups) == {"new"}
    assert result.gate.groups["new"].decisions == 60
    assert result.groups == ["adapted", "base"]
    assert set(result.heldout) == {"n", "accuracy", "loss", "brier", "ece"}
    assert result.heldout["n"] == 60
    assert result.heldout["accuracy"] > 0.6  # the base has a third
    counts = result.rows
    assert (counts.new_training, counts.training_decisions) == (N_TRAINING, 160)
    assert (counts.new_evaluation, counts.evaluation_decisions) == (N_HELD_OUT, 60)
    assert (counts.earlier_training, counts.earlier_evaluation) == (0, 0)
    assert not (first / "error.json").exists()


def test_records_have_every_held_out_decision_of_every_model_in_order(first: Path) -> None:
    records = records_of(first)
    rows = list(make_rows(N_HELD_OUT, "evaluation"))
    for group in ("adapted", "base"):
        assert [(one["row"], one["place"]) for one in records[group]] == [
            (row, place) for row in range(N_HELD_OUT) for place in range(2)
        ]
        for one in records[group]:
            row = rows[one["row"]]
            assert one["context_sha256"] == row.context_sha256
            assert row.targets is not None
            labels = row.targets[one["decision_id"]]
            assert dict(zip(one["outcomes"], one["labels"], strict=True)) == labels
            assert sum(one["probabilities"]) == pytest.approx(1, abs=1e-6)
    assert records["parent"] == []
    losses = [
        -np.log(max(1e-6, np.dot(one["probabilities"], one["labels"])))
        for one in records["adapted"]
    ]
    assert np.mean(losses) == pytest.approx(result_of(first).heldout["loss"], abs=1e-6)


def test_the_artifact_answers_as_it_was_measured(first: Path) -> None:
    result = result_of(first)
    manifest = check_artifact(first / "model", result.artifact_sha256)
    assert manifest.base.name == "hashing"
    assert not manifest.has_adapter
    assert "numpy" in manifest.versions
    assert {"MODEL_CARD.md", "heads.json"} <= set(manifest.files)
    model = load_tuned(first / "model", HashingScorer(), threads=1)
    decisions = (
        RenderedDecision("single", "Which team?", ("billing", "sales", "support")),
        RenderedDecision("binary", "Is it urgent?", ("yes", "no")),
    )
    records = records_of(first)["adapted"]
    rows = list(make_rows(N_HELD_OUT, "evaluation"))
    for number in (0, 13, 29):
        context = json.dumps(rows[number].context, ensure_ascii=False)
        [scored] = model.score([RenderedRequest(context, decisions)])
        for one, answer in zip(records[2 * number : 2 * number + 2], scored, strict=True):
            assert answer.is_calibrated
            np.testing.assert_allclose(
                np.exp(answer.logits.astype(float)), one["probabilities"], atol=1e-6
            )


def test_the_card_has_its_sources_and_figures(first: Path) -> None:
    card = (first / "model" / "MODEL_CARD.md").read_text()
    for told in ("router", "ds_1, version 2", "80 new, 0 earlier", "Which team?", "log loss",
                 "the text baseline", "Passed, against its base", "n = 60"):  # fmt: skip
        assert told in card
    assert "ftj_1" not in card
    assert str(first) not in card


def test_reports_follow_the_phases_and_the_curve_falls(first: Path) -> None:
    reports = reports_of(first)
    phases = list(dict.fromkeys(report.phase for report in reports))
    known = ["features", "lora", "heads", "calibration", "scoring", "gate"]
    assert phases == [phase for phase in known if phase in phases]
    assert {"features", "heads", "scoring", "gate"} <= set(phases)
    assert all(0 <= report.step <= report.steps and report.message for report in reports)
    curve = result_of(first).curve
    steps = [point.step for point in curve]
    assert steps == sorted(set(steps))
    assert all(np.isfinite(point.loss) for point in curve)


def test_a_fine_tune_that_ended_is_not_run_again(
    first: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {path: path.stat().st_mtime_ns for path in first.rglob("*")}

    def refuse(*_: Any) -> None:
        raise AssertionError

    monkeypatch.setattr(HashingScorer, "score", refuse)
    assert untimed(run(first)) == result_of(first)
    assert {path: path.stat().st_mtime_ns for path in first.rglob("*")} == before


@pytest.mark.slow
def test_equal_rows_and_seed_give_equal_artifacts_whichever_job_asks(
    first: Path, tmp_path: Path
) -> None:
    again = finish(write_task(tmp_path / "again", job_id="ftj_2"))
    assert again == result_of(first)


def test_a_continuation_is_judged_against_its_parent_on_both_groups(
    first: Path, tmp_path: Path
) -> None:
    rows = [
        *make_rows(40, "training", seed=1),
        *make_rows(40, "training", group="earlier"),
        *make_rows(20, "evaluation", seed=1),
        *make_rows(N_HELD_OUT, "evaluation", group="earlier"),
    ]
    folder = write_task(
        tmp_path / "next", rows, parent=str(first / "model"), against="parent", seed=8
    )
    result = run(folder)
    assert result.groups == ["adapted", "base", "parent"]
    assert set(result.gate.groups) == {"new", "earlier"}
    assert result.gate.against == "parent"
    assert result.rows.earlier_training == 40
    records = records_of(folder)
    assert [len(records[group]) for group in GROUPS] == [100, 100, 100]
    # What the parent is measured to say is what it said of the same rows as a candidate.
    earlier = [one["probabilities"] for one in records["parent"][40:]]
    told = [one["probabilities"] for one in records_of(first)["adapted"]]
    np.testing.assert_allclose(np.concatenate(earlier), np.concatenate(told), atol=1e-6)
    manifest = check_artifact(folder / "model")
    assert manifest.parent_sha256 == result_of(first).artifact_sha256


def test_words_that_answer_first_are_compared_with_and_change_nothing(
    first: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = write_task(tmp_path / "words", heads="words")
    before = run(words)
    rows = [
        msgspec.structs.replace(row, is_seen=row.side == "training")
        for row in map(
            msgspec.json.Decoder(TaskRow).decode, (words / "rows.jsonl").read_bytes().splitlines()
        )
    ]
    loaded: list[TaskBase] = []
    load = program.load_base
    monkeypatch.setattr(
        program, "load_base", lambda base, *given: loaded.append(base) or load(base, *given)
    )
    after = write_task(
        tmp_path / "after", rows, parent=str(words / "model"), parent_base=BASE, against="parent"
    )
    result = run(after)
    assert loaded == [BASE]  # one base model for both
    assert result.report == result_of(first).report
    for name in ("heads.json", "heads.safetensors"):
        assert (after / "model" / name).read_bytes() == (first / "model" / name).read_bytes()
    assert result.gate.against == "parent"
    answers = (records_of(after)["parent"], records_of(words)["adapted"])
    for later, earlier in zip(*answers, strict=True):
        assert later["probabilities"] == earlier["probabilities"]
    assert check_artifact(after / "model").parent_sha256 == before.artifact_sha256


@pytest.mark.slow
def test_a_parent_on_another_base_is_compared_with_and_nothing_else(
    first: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = TaskBase(name="double", engine="hashing", double="hashing", key="double")
    rows = [
        *make_rows(N_TRAINING, "training", group="earlier"),
        *make_rows(20, "training", seed=1),
        *make_rows(20, "evaluation", seed=1),
        *make_rows(N_HELD_OUT, "evaluation", group="earlier"),
    ]
    unasked = {
        **URGENT,
        "id": "urgent",
        "question": "Does it press?",
    }  # the parent has no head for it
    rows[-1] = msgspec.structs.replace(rows[-1], decisions=[TEAM, unasked])
    # What the parent was trained on, nothing that reads on this base was.
    told = [msgspec.structs.replace(row, is_seen=row.side == "training") for row in rows]
    moved = write_task(
        tmp_path / "moved", told, base=other, parent=str(first / "model"), parent_base=BASE,
        against="parent",
    )  # fmt: skip
    tables = {"hashing": 2.0, "double": 0.5}
    load = program.load_base

    def load_calibrated(named: TaskBase, *given: Any) -> Any:
        kinds = {kind: {"2": tables[named.name]} for kind in ("single", "binary", "ordinal")}
        return replace(load(named, *given), temperatures=TemperatureTable(kinds))

    monkeypatch.setattr(program, "load_base", load_calibrated)
    result = run(moved)
    alone = run(write_task(tmp_path / "alone", rows, base=other))
    assert result.report == alone.report
    for name in ("heads.json", "heads.safetensors"):
        found = [(folder / "model" / name).read_bytes() for folder in (moved, tmp_path / "alone")]
        assert found[0] == found[1]
    assert result.gate.against == "parent"
    assert set(result.gate.groups) == {"new", "earlier"}
    records, own, before = (records_of(one) for one in (moved, tmp_path / "alone", first))
    assert [len(records[group]) for group in GROUPS] == [100, 100, 100]
    assert (records["adapted"], records["base"]) == (own["adapted"], own["base"])
    said = [one["probabilities"] for one in records["parent"][40:-1]]
    wanted = [one["probabilities"] for one in before["adapted"][:-1]]
    np.testing.assert_allclose(np.concatenate(said), np.concatenate(wanted), atol=1e-6)
    context = json.dumps(rows[-1].context, ensure_ascii=False)
    asked = RenderedDecision("binary", "Does it press?", ("yes", "no"))
    for group, scorer, temperature in (
        ("parent", HashingScorer(), 2.0),
        ("base", HashingScorer("double"), 0.5),
    ):
        [[scored]] = scorer.score([RenderedRequest(context, (asked,))])
        cooled = np.exp(scored.logits.astype(float) / temperature)
        np.testing.assert_allclose(
            records[group][-1]["probabilities"], cooled / cooled.sum(), atol=1e-6
        )
    manifest = check_artifact(moved / "model")
    assert manifest.base.name == "double"
    assert manifest.parent_sha256 == result_of(first).artifact_sha256
    card = (moved / "model" / "MODEL_CARD.md").read_text()
    assert "the base model; its parent, model " in card
    assert "of hashing, was compared with alone" in card


def test_tasks_that_the_version_before_could_write_are_read_by_either(first: Path) -> None:
    sent = (first / "task.json").read_bytes()
    assert "parent_base" not in json.loads(sent)
    task = msgspec.json.decode(sent, type=FineTuneTask)
    fields = FineTuneTask.__struct_fields__
    written = {name: msgspec.to_builtins(getattr(task, name)) for name in fields}
    assert written.pop("parent_base") is None
    assert msgspec.convert(written, FineTuneTask) == task


def test_rewards_are_trained_and_judged_as_rewards(tmp_path: Path) -> None:
    folder = write_task(tmp_path / "reward", method="reward")
    result = run(folder)
    assert set(result.heldout) == {"n", "expected_reward"}
    assert isinstance(result.gate.groups["new"].scaled_reward, msgspec.Struct)
    assert check_artifact(folder / "model").method == "reward"
    for one in records_of(folder)["adapted"]:
        assert sum(one["probabilities"]) == pytest.approx(1, abs=1e-6)


def test_the_largest_seed_trains(tmp_path: Path) -> None:
    rows = [*make_rows(40, "training"), *make_rows(10, "evaluation")]
    result = run(write_task(tmp_path / "seeded", rows, seed=MAX_SEED))
    assert result.heldout["n"] == 20


def test_too_little_to_judge_is_no_failure(tmp_path: Path) -> None:
    rows = [*make_rows(20, "training"), *make_rows(4, "evaluation")]
    result = run(write_task(tmp_path / "few", rows))
    assert not result.gate.passed
    assert result.gate.reasons == ["too_few_evaluation_decisions"]
    assert "8 new evaluation decisions" in result.sentences[0]
    none = run(write_task(tmp_path / "none", list(make_rows(20, "training"))))
    assert none.gate.reasons == ["too_few_evaluation_decisions"]
    assert none.heldout == {"n": 0.0}
    assert pq.read_table(tmp_path / "none" / "records.parquet").num_rows == 0
    check_artifact(tmp_path / "none" / "model", none.artifact_sha256)


def test_unlabelled_decisions_are_left_out(tmp_path: Path) -> None:
    rows = []
    for row in [*make_rows(40, "training"), *make_rows(N_HELD_OUT, "evaluation")]:
        assert row.targets is not None
        rows.append(msgspec.structs.replace(row, targets={"urgent": row.targets["urgent"]}))
    result = run(write_task(tmp_path / "half", rows))
    assert (result.rows.training_decisions, result.rows.evaluation_decisions) == (40, 30)
    assert {one["decision_id"] for one in records_of(tmp_path / "half")["base"]} == {"urgent"}


def _spoilt(change: Callable[[TaskRow], TaskRow]) -> list[TaskRow]:
    rows = [*make_rows(60, "training"), *make_rows(30, "evaluation")]
    return [*rows[:70], change(rows[70]), *rows[71:]]


@pytest.mark.parametrize(
    ("rows", "changed", "code", "told"),
    [
        (_spoilt(lambda r: msgspec.structs.replace(r, targets=None)), {}, "not_measurable",
         "has no targets"),
        (_spoilt(lambda r: msgspec.structs.replace(r, decisions=[{"id": "team"}])), {},
         "invalid_request", "question"),
        (list(make_rows(30, "evaluation")), {}, "not_measurable", "No training row"),
        (None, {"lora_rank": 4}, "training_unavailable", "lora_rank"),
        (None, {"parent": "absent"}, "engine_unavailable", "has no manifest"),
        (None, {"base": TaskBase(name="m", engine="onnxruntime-float32", folder="absent")},
         "engine_unavailable", "manifest"),
        (None, {"against": "parent"}, "internal_error", "ValueError"),
    ],
)  # fmt: skip
def test_an_untrainable_task_ends_as_a_failure(
    tmp_path: Path, rows: list[TaskRow] | None, changed: dict[str, Any], code: str, told: str
) -> None:
    folder = write_task(tmp_path / "job", rows, **changed)
    assert not run_or_tell(folder)
    failure = failure_of(folder)
    assert failure.code == code
    assert told in failure.message


def test_a_parent_of_another_base_is_a_failure(first: Path, tmp_path: Path) -> None:
    base = msgspec.structs.replace(BASE, key="another")
    folder = write_task(tmp_path / "job", parent=str(first / "model"), base=base)
    with pytest.raises(EngineUnavailableError, match="other weights"):
        run(folder)


def test_an_answer_that_is_not_finite_fails_the_job_and_is_never_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_task(tmp_path / "job")
    score = HashingScorer.score

    def broken(self: HashingScorer, requests: Any) -> Any:
        scored = score(self, requests)
        if (folder / "phases" / "heads.json").exists():
            scored[-1][-1].logits[0] = np.nan
        return scored

    monkeypatch.setattr(HashingScorer, "score", broken)
    assert not run_or_tell(folder)
    assert failure_of(folder).code == "not_measurable"
    assert "UnmeasurableError" in capsys.readouterr().err
    monkeypatch.setattr(HashingScorer, "score", score)
    # Started again once it works, it goes on and ends.
    assert run_or_tell(folder)
    assert not (folder / "error.json").exists()


def test_a_log_of_a_failure_holds_no_text_of_a_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_task(tmp_path / "job")

    def broken(_: HashingScorer, requests: Any) -> Any:
        raise RuntimeError(f"cannot read {requests[0].context}")

    monkeypatch.setattr(HashingScorer, "score", broken)
    assert not run_or_tell(folder)
    assert failure_of(folder).code == "internal_error"
    told = capsys.readouterr().err + failure_of(folder).message
    assert "RuntimeError" in told
    assert "subject" not in told


# The program as a process.


def wait_for(process: subprocess.Popen[bytes], phase: str, folder: Path) -> bool:
    """Wait until a phase is reported; tell whether the program still runs."""
    reached = wait_until(
        lambda: (
            any(report.phase == phase for report in reports_of(folder))
            or ("ended" if process.poll() is not None else False)
        )
    )
    return reached is True


@pytest.mark.slow
def test_a_failed_program_says_so_in_its_status(tmp_path: Path) -> None:
    folder = write_task(tmp_path / "job", lora_rank=2)
    process = start(folder)
    process.communicate()
    assert process.returncode == FAILED
    assert failure_of(folder).code == "training_unavailable"


@pytest.mark.slow
def test_sigterm_ends_the_program_at_once(tmp_path: Path) -> None:
    folder = write_task(tmp_path / "job")
    process = start(folder)
    assert wait_for(process, "features", folder)
    process.send_signal(signal.SIGTERM)
    process.communicate()
    assert process.returncode == -signal.SIGTERM
    assert not (folder / "result.json").exists()


@pytest.mark.slow
def test_the_end_of_its_starter_ends_the_program(tmp_path: Path) -> None:
    folder = write_task(tmp_path / "job")
    process = start(folder, stdin=subprocess.PIPE)
    assert wait_for(process, "features", folder)
    assert process.stdin is not None
    process.stdin.close()
    assert process.wait() == STOPPED
    assert process.stderr is not None
    process.stderr.close()
    assert not (folder / "result.json").exists()


@pytest.mark.slow
def test_without_its_environment_the_program_starts_itself_with_it(tmp_path: Path) -> None:
    folder = write_task(tmp_path / "job", [])
    environment = child_environment(
        PYTHONPATH=str(SERVER), OMP_WAIT_POLICY="ACTIVE", OMP_NUM_THREADS="1"
    )
    told = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", MODULE, str(folder)],
        env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=False,
    )  # fmt: skip
    assert told.returncode == FAILED
    # The interpreter's own options came along, and the second start is one that trains.
    assert told.stderr.count(b"steelyard.trainer.task") >= 2
    assert b"numpy" in told.stderr


PHASES = ("features", "heads", "scoring", "gate")


def _kill_in(folder: Path, phase: str, delay_s: float) -> bool:
    """Run the program until some time after a phase begins, then kill it; tell whether it was."""
    seen = len(reports_of(folder))
    process = start(folder)
    try:
        wait_until(
            lambda: (
                process.poll() is not None
                or any(report.phase == phase for report in reports_of(folder)[seen:])
            )
        )
        with suppress(subprocess.TimeoutExpired):
            process.wait(delay_s)
        process.kill()
    finally:
        process.communicate()
    return process.returncode == -signal.SIGKILL


def _outcome(folder: Path) -> tuple[str, bytes, FineTuneResult]:
    result = result_of(folder)
    check_artifact(folder / "model", result.artifact_sha256)
    records = hashlib.sha256((folder / "records.parquet").read_bytes()).digest()
    return result.artifact_sha256, records, result


@pytest.mark.slow
def test_a_killed_program_goes_on_and_ends_with_the_same_artifact(
    first: Path, tmp_path: Path
) -> None:
    folder = write_task(tmp_path / "job")
    for phase in ("features", "heads", "scoring"):
        _kill_in(folder, phase, 0.01)
    finish(folder)
    assert _outcome(folder) == _outcome(first)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("phase", PHASES)
def test_killed_many_times_in_a_phase_it_ends_with_the_same_artifact(
    first: Path, tmp_path: Path, phase: str
) -> None:
    rng = random.Random(phase)
    unbroken = _outcome(first)
    n_killed, (n_kills, _) = 0, kills_and_seed()
    folder = write_task(tmp_path / "job-0")
    for number in range(3 * n_kills):
        n_killed += _kill_in(folder, phase, rng.random() * 0.2)
        if (folder / "result.json").exists():
            assert _outcome(folder) == unbroken
            shutil.rmtree(folder)
            folder = write_task(tmp_path / f"job-{number + 1}")
        if n_killed == n_kills:
            break
    assert n_killed == n_kills
    finish(folder)
    assert _outcome(folder) == unbroken


@pytest.mark.slow
def test_a_second_program_waits_for_the_first(tmp_path: Path) -> None:
    folder = write_task(tmp_path / "job")
    processes = [start(folder), start(folder)]
    told = [process.communicate() for process in processes]
    assert [process.returncode for process in processes] == [0, 0], told
    # One of them did the work, the other found it done.
    assert sum(report.phase == "gate" and report.step == 1 for report in reports_of(folder)) == 1


# Reports and the curve.


def test_reports_come_once_a_second_and_at_the_edges_of_a_phase(tmp_path: Path) -> None:
    now = [0.0]
    with Reporter(tmp_path / "progress.jsonl", tmp_path / "c.jsonl", lambda: now[0]) as reporter:
        for step in range(1, 11):
            now[0] += 0.3
            reporter.tell("lora", step, 10, loss=1.0 / step, learning_rate=1e-3, message="x")
        reporter.tell("scoring", 0, 4)
        reporter.tell("scoring", 1, 4)
    told = [(report.phase, report.step) for report in reports_of(tmp_path)]
    assert told == [("lora", 1), ("lora", 5), ("lora", 9), ("lora", 10), ("scoring", 0)]


def test_a_curve_counts_a_step_that_was_done_again_once(tmp_path: Path) -> None:
    paths = (tmp_path / "progress.jsonl", tmp_path / "curve.jsonl")
    with Reporter(*paths) as reporter:
        for step in range(1, 301):
            reporter.tell("lora", step, 500, loss=9.0, learning_rate=0.1)
    with paths[1].open("ab") as file:
        file.write(b'["lora",301,')  # a crash cut it short
    with Reporter(*paths) as reporter:
        for step in range(201, 501):
            reporter.tell("lora", step, 500, loss=float(step), learning_rate=0.2)
        reporter.tell("heads", 1, 2, loss=0.1)
        curve = reporter.curve()
    assert len(curve) <= 200
    assert [point.step for point in curve][-1] == 500
    assert curve[0].loss == 9.0
    assert curve[-1].loss == pytest.approx(499.0, abs=1.1)
    assert curve[-1].learning_rate == 0.2
    with Reporter(*paths) as reporter, pytest.raises(ValueError, match="not finite"):
        reporter.tell("heads", 2, 2, loss=float("nan"))


def test_nothing_of_a_program_is_left_running(tmp_path: Path) -> None:
    folder = write_task(tmp_path / "job", [])
    process = start(folder, stdin=subprocess.PIPE)
    process.communicate()
    with pytest.raises(ProcessLookupError):
        os.kill(process.pid, 0)
