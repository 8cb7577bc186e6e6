"""Decisions about frames and files: added columns, refusals, and resuming a dead run."""

from __future__ import annotations

import datetime as dt
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from types import SimpleNamespace

import msgspec
import pandas as pd
import polars as pl
import pytest
from sklearn.utils.estimator_checks import check_estimator
from sqlalchemy import select, update

import steelyard
from jobs.workers import kill, start_job_worker
from steelyard.app.deployment import open_deployment
from steelyard.app.job_runtime import open_worker
from steelyard.batch import queued, scoring
from steelyard.batch import workers as batch_workers
from steelyard.batch.queued import open_queue
from steelyard.batch.scoring import Questions, decide_file
from steelyard.batch.workers import Workers
from steelyard.bulk import store as bulk_rows
from steelyard.bulk.tables import bulk_partitions, bulk_runs
from steelyard.errors import ContextTooLongError, EngineUnavailableError, InvalidRequestError
from steelyard.settings import read_settings
from support.models.evaluated import settings_of
from support.waiting import wait_until

TEAM = {"id": "team", "question": "Which team?", "outcomes": {"billing": "money", "other": None}}
URGENCY = {"id": "urgency", "kind": "ordinal", "question": "How urgent?", "rubric": ["low", "high"]}
ADDED = [
    *(f"team.{name}" for name in ("top", "p_top", "action", "p.billing", "p.other")),
    *(f"urgency.{name}" for name in ("top", "p_top", "action", "expected_level", "p.0", "p.1")),
    "error",
]
TEXTS = [f'Order {number} was charged twice,\nsaid "x"; é.' for number in range(10)]


@pytest.fixture(scope="module")
def deployment():
    with open_deployment(read_settings({"engine": "hashing"}, environ={})) as opened:
        yield opened


@pytest.fixture(autouse=True)
def here(deployment, monkeypatch):
    """The model of this process is the test double, and parts are of four rows."""
    monkeypatch.setattr("steelyard.app.deployment.default_deployment", lambda *_: deployment)
    monkeypatch.setattr(scoring, "PART_ROWS", 4)


class Server:
    """A client whose calls are counted, of a server that may fail."""

    def __init__(self, deployment, *, fails_at=None):
        self.answers, self.keys, self.fails_at = deployment.answers, [], fails_at

    def decide(self, context, *, idempotency_key, **asked):
        self.keys.append(idempotency_key)
        if len(self.keys) == self.fails_at:
            raise EngineUnavailableError("The engine is gone; try again.")
        if context == "long":
            raise ContextTooLongError("Shorten it.", path=("body", "context"))
        answer = self.answers.answer({"context": context, **asked})
        return SimpleNamespace(decisions=answer.decisions)


def expected(deployment, context, name="team"):
    return deployment.answers.answer_dict({"context": context, "decisions": [TEAM, URGENCY]})[
        "decisions"
    ][name]


@pytest.mark.parametrize("kind", [pl.DataFrame, pd.DataFrame])
def test_a_frame_gets_the_answer_of_decide_for_each_row(deployment, kind):
    frame = kind({"n": list(range(11)), "text": [*TEXTS, None]})
    scored = steelyard.decide_frame(frame, [TEAM, URGENCY], progress=False)
    assert type(scored) is kind
    assert list(scored.columns) == ["n", "text", *ADDED]
    assert list(frame.columns) == ["n", "text"]
    rows = scored.to_dicts() if kind is pl.DataFrame else scored.to_dict("records")
    for row, text in zip(rows, TEXTS, strict=False):
        team, urgency = (expected(deployment, text, name) for name in ("team", "urgency"))
        assert row["team.p.billing"] == pytest.approx(team["probabilities"]["billing"])
        assert (row["team.top"], row["team.action"]) == (team["top"], team["action"])
        assert row["urgency.expected_level"] == pytest.approx(urgency["expected_level"])
        assert pd.isna(row["error"])
    assert "context is null" in rows[-1]["error"]
    assert pd.isna(rows[-1]["team.top"])


@pytest.mark.slow
def test_a_partitioned_set_is_scored_by_a_cluster_of_two(deployment, monkeypatch, tmp_path):
    distributed = pytest.importorskip("distributed")
    dask = pytest.importorskip("dask.dataframe")
    monkeypatch.setenv("STEELYARD_ENGINE", "hashing")  # the workers' own
    rows = pd.DataFrame({"text": [*TEXTS, None]})
    dask.from_pandas(rows, npartitions=4).to_parquet(tmp_path / "rows")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        read = dask.read_parquet(tmp_path / "rows")
        for options, told in (({"resume": tmp_path}, "resume"), ({"client": object()}, "workers")):
            with pytest.raises(ValueError, match=told):
                steelyard.decide_frame(read, [TEAM], **options)
        scored = steelyard.decide_frame(read, [TEAM, URGENCY])
        assert list(scored.columns) == ["text", *ADDED]
        [lost, _] = client.run(os.getpid).values()
        writing = client.compute(scored.to_parquet(tmp_path / "scored", compute=False))
        os.kill(lost, signal.SIGKILL)  # what it had is done again
        writing.result(timeout=60)
    found = pd.read_parquet(tmp_path / "scored")
    alone = steelyard.decide_frame(rows, [TEAM, URGENCY], progress=False)
    pd.testing.assert_frame_equal(found, alone.astype(found.dtypes), check_names=False)


def test_several_columns_make_an_object_and_an_empty_frame_gets_columns(deployment):
    frame = pl.DataFrame({"subject": ["Twice"], "body": ["Charged."]})
    options = {"context": ["subject", "body"], "progress": False}
    row = steelyard.decide_frame(frame, [TEAM], **options).to_dicts()[0]
    asked = {"subject": "Twice", "body": "Charged."}
    assert row["team.p_top"] == pytest.approx(expected(deployment, asked)["p_top"])
    empty = steelyard.decide_frame(frame.clear(), [TEAM], **options)
    assert empty.columns == ["subject", "body", *ADDED[:5], "error"]


def test_invalid_questions_are_refused_before_anything_is_scored():
    frame = pl.DataFrame({"text": ["x"], "error": ["y"]})
    with pytest.raises(ValueError, match="no column 'mail'"):
        steelyard.decide_frame(frame, [TEAM], context="mail")
    with pytest.raises(ValueError, match="have a column 'error'"):
        steelyard.decide_frame(frame, [TEAM])
    with pytest.raises(InvalidRequestError):
        steelyard.decide_frame(frame, [{"id": "team"}])
    with pytest.raises(TypeError, match="collect"):
        steelyard.decide_frame(frame.lazy(), [TEAM])


def test_a_server_is_asked_once_for_each_row_and_again_only_for_lost_ones(deployment, tmp_path):
    frame = pl.DataFrame({"text": [*TEXTS[:9], "long"]})
    options = {"progress": False, "resume": tmp_path / "kept"}
    failing = Server(deployment, fails_at=7)
    with pytest.raises(EngineUnavailableError):
        steelyard.decide_frame(frame, [TEAM], client=failing, **options)
    again = Server(deployment)
    scored = steelyard.decide_frame(frame, [TEAM], client=again, **options)
    # The first part is kept; a row that may have been charged has the key that it had.
    assert len(again.keys) == 6
    assert set(failing.keys[4:]) <= set(again.keys)
    assert scored["error"].to_list() == [None] * 9 + ["Shorten it."]
    assert scored["team.top"][8] == expected(deployment, TEXTS[8])["top"]
    with pytest.raises(ValueError, match="other rows"):
        steelyard.decide_frame(frame.head(3), [TEAM], client=again, **options)


def write(frame, path):
    if path.suffix == ".parquet":
        frame.write_parquet(path)
    elif path.suffix == ".jsonl":
        path.write_bytes(b"\n".join(map(msgspec.json.encode, frame.to_dicts())) + b"\n\n")
    else:
        frame.write_csv(path, separator="\t" if path.suffix == ".tsv" else ",", include_bom=True)


def read(path):
    if path.suffix == ".parquet":
        return pl.read_parquet(path)
    if path.suffix == ".jsonl":
        return pl.read_ndjson(path)
    return pl.read_csv(path, separator="\t" if path.suffix == ".tsv" else ",")


@pytest.mark.parametrize(
    ("source", "target"),
    [("a.csv", "b.parquet"), ("a.tsv", "b.csv"), ("a.jsonl", "b.tsv"), ("a.parquet", "b.jsonl")],
)
def test_a_file_is_scored_into_any_format(deployment, tmp_path, source, target):
    write(pl.DataFrame({"id": range(10), "text": TEXTS}), tmp_path / source)
    seen = []
    done = decide_file(
        tmp_path / source,
        tmp_path / target,
        Questions([TEAM, URGENCY]),
        progress=lambda n_done, _: seen.append(n_done),
    )
    assert (done.rows, done.errors, done.resumed) == (10, 0, 0)
    assert seen == [0, 4, 8, 10, 10]
    scored = read(tmp_path / target)
    assert scored.columns == ["id", "text", *ADDED]
    assert scored["text"].to_list() == TEXTS
    assert scored["team.p.other"].to_list() == pytest.approx(
        [expected(deployment, text)["probabilities"]["other"] for text in TEXTS]
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == [source, target]


@pytest.mark.parametrize("target", ["b.csv", "b.tsv", "b.jsonl", "b.parquet"])
def test_columns_of_lists_and_bytes_are_written_in_every_format(deployment, tmp_path, target):
    columns = {
        "tags": [["a", "é"], []],
        "of": [{"n": 1, "raw": b"\xff"}, {"n": 2, "raw": b"x"}],
        "raw": [b"\xff", None],
        "took": [dt.timedelta(seconds=3), None],
    }
    rows = pl.DataFrame({"text": [text.encode() for text in TEXTS[:2]], **columns})
    write(rows, tmp_path / "a.parquet")
    done = decide_file(tmp_path / "a.parquet", tmp_path / target, Questions([TEAM]))
    assert done.errors == 0
    scored = read(tmp_path / target)
    assert scored["team.top"].to_list() == [expected(deployment, text)["top"] for text in TEXTS[:2]]
    if target == "b.parquet":
        assert scored.select(rows.columns).equals(rows)
        return
    tags = scored["tags"].to_list()
    assert (tags if target == "b.jsonl" else list(map(json.loads, tags))) == columns["tags"]
    assert json.loads(scored["of"][0]) == {"n": 1, "raw": "/w=="}
    assert scored["raw"].to_list() == ["/w==", None]
    assert scored["took"].to_list() == ["PT3S", None]


def test_a_file_goes_on_where_a_run_died(deployment, tmp_path):
    source, target = tmp_path / "a.jsonl", tmp_path / "b.parquet"
    write(pl.DataFrame({"text": TEXTS}), source)
    with pytest.raises(EngineUnavailableError):
        decide_file(source, target, Questions([TEAM], client=Server(deployment, fails_at=6)))
    assert not target.exists()
    with pytest.raises(ValueError, match="other decisions"):
        decide_file(source, target, Questions([URGENCY]))
    done = decide_file(source, target, Questions([TEAM], client=Server(deployment)))
    assert (done.rows, done.resumed) == (10, 4)
    assert pl.read_parquet(target)["text"].to_list() == TEXTS
    with pytest.raises(ValueError, match="there already"):
        decide_file(source, target, Questions([TEAM]))
    assert decide_file(source, target, Questions([TEAM]), overwrite=True).resumed == 0


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("a.csv", b"mail\nx\n", "no column 'text'"),
        ("a.csv", b"text,n\nx\n", "no rows. Line 2: It has 1 cells"),
        ("a.csv", b"text\n\xff\xfe\n", "UTF-8"),
        ("a.csv", b"text\n", "no rows"),
        ("a.jsonl", b"\n[]\n", "no rows. Line 2: It is no JSON object"),
        ("a.jsonl", b'{"mail": "x"}\n', "no field 'text'"),
        ("a.jsonl", b'{"text": "x", "team.top": "y"}\n', "column 'team.top'"),
        ("a.doc", b"x", "as one of .csv"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_with_its_place(tmp_path, name, content, told):
    source = tmp_path / name
    source.write_bytes(content)
    with pytest.raises(ValueError, match=told):
        decide_file(source, tmp_path / "b.parquet", Questions([TEAM]))
    assert not (tmp_path / "b.parquet").exists()


def test_rows_of_objects_keep_their_contexts(deployment, tmp_path):
    contexts = [{"a": 1, "b": {"c": "x"}}, {"a": "two"}, ["x", 3]]
    lines = [json.dumps({"text": one, "n": place}) for place, one in enumerate(contexts)]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    decide_file(tmp_path / "a.jsonl", tmp_path / "b.parquet", Questions([TEAM]))
    scored = pl.read_parquet(tmp_path / "b.parquet")
    assert [json.loads(one) for one in scored["text"]] == contexts
    assert scored["team.p_top"].to_list() == pytest.approx(
        [expected(deployment, one)["p_top"] for one in contexts]
    )


def test_the_classifier_passes_the_estimator_checks_and_learns(monkeypatch):
    assert steelyard.SteelyardClassifier.__name__ in steelyard.__all__
    with pytest.warns(UserWarning, match="requires input"):  # texts alone
        checks = check_estimator(steelyard.SteelyardClassifier())
    assert {one["status"] for one in checks} == {"passed"}
    texts = [f"{word} {number}" for number in range(15) for word in ("refund", "parcel")]
    labels = [["billing", "shipping"][place % 2] for place in range(len(texts))]
    fitted = steelyard.SteelyardClassifier("Which team?", {"billing": "money"}).fit(texts, labels)
    shares = fitted.predict_proba(texts[:5])
    assert shares.shape == (5, 2)
    assert shares.sum(axis=1) == pytest.approx(1)
    assert set(fitted.predict(texts)) <= {"billing", "shipping"}
    plain = steelyard.SteelyardClassifier("Which team?", calibrate=False).fit(texts, labels)
    asked = {"id": "x", "question": "Which team?", "outcomes": ["billing", "shipping"]}
    answer = steelyard.decide(texts[0], [asked])["decisions"]["x"]
    assert plain.predict_proba(texts[:1])[0] == pytest.approx(
        list(answer["probabilities"].values()), abs=1e-6
    )
    for wrong, told in ((([1], ["a"]), "give texts"), ((["x", "y"], ["a", "a"]), "1 class")):
        with pytest.raises(ValueError, match=told):
            steelyard.SteelyardClassifier().fit(*wrong)


def test_a_classifier_of_several_labels_learns_each_by_itself():
    words = ["refund", "parcel", "refund parcel"]
    texts = [f"{word} {number}" for number in range(10) for word in words]
    labels = [text.split()[:-1] for text in texts]
    question = 'Is it about "{}"?'
    fitted = steelyard.SteelyardClassifier(question, multi=True).fit(texts, labels)
    assert fitted.classes_.tolist() == ["parcel", "refund"]
    assert fitted.predict_proba(texts[:4]).shape == (4, 2)
    assert set(fitted.predict(texts).ravel()) <= {0, 1}
    plain = steelyard.SteelyardClassifier(question, calibrate=False, multi=True).fit(texts, labels)
    asked = steelyard.multi_label("class", ["parcel", "refund"], question)
    answers = steelyard.decide(texts[0], asked)["decisions"].values()
    assert plain.predict_proba(texts[:1])[0] == pytest.approx(
        [answer["probabilities"]["yes"] for answer in answers], abs=1e-6
    )
    for wrong, match in ((["refund"] * 30, "a list of classes"), ([["a"]] * 30, "1 class")):
        with pytest.raises(ValueError, match=match):
            steelyard.SteelyardClassifier(multi=True).fit(texts, wrong)


@pytest.mark.slow
def test_processes_share_a_file_and_one_that_is_killed_loses_nothing(
    deployment, tmp_path, monkeypatch
):
    monkeypatch.setenv("STEELYARD_THREADS", "1")
    source, alone, shared = (tmp_path / name for name in ("a.csv", "b.parquet", "c.parquet"))
    write(pl.DataFrame({"text": [f"Order {number} is late." for number in range(400)]}), source)
    decide_file(source, alone, Questions([TEAM]))
    folder = tmp_path / "c.parquet.parts"
    killed, seen = [], []

    def kill_one(n_done, _):
        seen.append(n_done)
        running = multiprocessing.active_children()
        if n_done >= 40 and not killed:
            assert len(running) == 2
            killed.append(running[0].pid)
            os.kill(running[0].pid, signal.SIGKILL)

    workers = Workers(2, "hashing", 1)
    done = decide_file(source, shared, Questions([TEAM]), workers=workers, progress=kill_one)
    assert (done.rows, done.errors, done.resumed) == (400, 0, 0)
    assert killed
    assert seen == sorted(seen)
    assert pl.read_parquet(shared).equals(pl.read_parquet(alone))
    assert not folder.exists()
    # A run goes on from whatever parts are there.
    with pytest.raises(RuntimeError, match="enough"):
        decide_file(source, shared, Questions([TEAM]), overwrite=True, progress=stop_at(80))
    for number in (3, 7, 11):
        (folder / f"part-{number:08}.parquet").unlink()
    done = decide_file(source, shared, Questions([TEAM]), overwrite=True)
    assert (done.rows, done.resumed) == (400, 68)
    assert pl.read_parquet(shared).equals(pl.read_parquet(alone))


def refuse(told):
    raise RuntimeError(told)


def stop_at(n_rows):
    def progress(n_done, _):
        if n_done >= n_rows:
            raise RuntimeError("enough")

    return progress


class DyingPool(ThreadPoolExecutor):
    """Processes that die with whatever they are given."""

    def __init__(self):
        super().__init__(1)

    def submit(self, *_):
        return super().submit(self._die)

    def _die(self):
        raise BrokenProcessPool


def test_processes_that_only_die_end_the_run_with_a_remedy(tmp_path, monkeypatch):
    write(pl.DataFrame({"text": TEXTS}), tmp_path / "a.csv")
    files = (tmp_path / "a.csv", tmp_path / "b.parquet")
    monkeypatch.setattr(batch_workers, "_pool", lambda _: DyingPool())
    with pytest.raises(EngineUnavailableError, match="died 6 times"):
        decide_file(*files, Questions([TEAM]), workers=Workers(2))


@pytest.fixture
def home(tmp_path):
    return settings_of(tmp_path / "home")


def runs_and_files(settings):
    """The remaining runs of a state, and their files."""
    with open_queue(settings) as queue:
        runs = queue.state.read_now(lambda c: c.execute(select(bulk_runs)).all())
        return len(runs), queue.state.read_now(bulk_rows.live_files)


@pytest.mark.slow
def test_workers_of_a_state_share_a_file_and_those_that_are_killed_lose_nothing(
    deployment, tmp_path, state_url
):
    home = settings_of(tmp_path / "home", state_url=state_url)
    source, alone, shared = (tmp_path / name for name in ("a.csv", "b.parquet", "c.parquet"))
    write(pl.DataFrame({"text": [f"Order {number} is late." for number in range(400)]}), source)
    decide_file(source, alone, Questions([TEAM]))
    workers = [start_job_worker(tmp_path / "home", state_url=state_url) for _ in range(2)]

    def kill_one(n_done, _):
        if n_done >= 40 and len(workers) == 2:
            kill(workers.pop())

    def run(progress):
        with open_queue(home) as queue:
            return decide_file(source, shared, Questions([TEAM]), workers=queue, progress=progress)

    try:
        with pytest.raises(RuntimeError, match="enough"):
            run(stop_at(20))
        # What was answered in the meantime is fetched by the command that goes on.
        done = run(kill_one)
    finally:
        for worker in workers:
            kill(worker)
    assert len(workers) == 1
    assert (done.rows, done.errors) == (400, 0)
    assert done.resumed >= 20
    assert pl.read_parquet(shared).equals(pl.read_parquet(alone))
    assert runs_and_files(home) == (0, set())


def test_a_run_without_answers_says_why_and_is_given_up_after_a_week(tmp_path, home, monkeypatch):
    files = tmp_path / "a.csv", tmp_path / "b.parquet"
    write(pl.DataFrame({"text": TEXTS}), files[0])
    asked = Questions([TEAM], model="nobody")
    with open_worker(home), open_queue(home) as queue:
        for _ in range(2):  # again after its reason may have gone
            with pytest.raises(EngineUnavailableError, match="no model named 'nobody'"):
                decide_file(*files, asked, workers=queue)
        left = queue.state.read_now(bulk_rows.live_files)
        assert len(left) == 3
        monkeypatch.setattr(queued, "_PATIENCE_S", 0.0)
    with open_queue(home, say=refuse) as queue:
        with pytest.raises(RuntimeError, match="steelyard worker"):
            decide_file(*files, asked, workers=queue)
        assert {job.runner for job in queue.state.read_now(bulk_rows.pending)} == {None}
        later = time.time() + bulk_rows.STORED_S + 60
        bulk_rows.sweep(queue.state, queue.store, lambda: later)
    assert runs_and_files(home) == (0, set())


def test_a_run_keeps_its_model_with_other_later_workers(tmp_path, home):
    files = tmp_path / "a.csv", tmp_path / "b.parquet"
    write(pl.DataFrame({"text": TEXTS}), files[0])
    with open_queue(home) as queue:
        with open_worker(home), pytest.raises(RuntimeError, match="enough"):
            decide_file(*files, Questions([TEAM]), workers=queue, progress=stop_at(4))
        changed = update(bulk_runs).values(model_sha256="0" * 64)
        queue.state.write_now(lambda c: c.execute(changed))
        # What is answered already is fetched; what is left is not answered by another model.
        queue.state.write_now(
            lambda c: c.execute(update(bulk_partitions).values(output_sha256=None))
        )
        with open_worker(home), pytest.raises(EngineUnavailableError, match="--restart"):
            decide_file(*files, Questions([TEAM]), workers=queue)
        with open_worker(home):
            done = decide_file(*files, Questions([TEAM]), workers=queue, restart=True)
    assert (done.rows, done.resumed) == (10, 0)


@pytest.mark.slow
@pytest.mark.timeout(1200)  # twenty starts of the command, on a busy machine too
@pytest.mark.parametrize("workers", [(), ("--workers", "2"), ("--queue",)])
def test_a_killed_command_goes_on(tmp_path, workers):
    n_rows = 20_000
    if workers == ("--queue",):
        n_rows *= 5  # a worker goes on while nobody fetches
        workers = ("--queue", "--home", str(tmp_path / "home"))
        worker = start_job_worker(tmp_path / "home")
    else:
        worker = None
        workers = ("--engine", "hashing", *workers)
    try:
        kill_again_and_again(tmp_path, workers, n_rows)
    finally:
        if worker is not None:
            kill(worker)


def kill_again_and_again(tmp_path, workers, n_rows):
    frame = pl.DataFrame({"text": [f"Order {number}" for number in range(n_rows)]})
    frame.write_csv(tmp_path / "a.csv")
    ask = ("--question", "Which team?", "--outcome", "billing", "--outcome", "other", "--json")
    files = ("--input", str(tmp_path / "a.csv"), "--output", str(tmp_path / "b.parquet"))
    command = [
        sys.executable,
        "-m",
        "steelyard",
        "decide",
        *files,
        *ask,
        *workers,
    ]

    def n_parts() -> int:
        return len(list(tmp_path.glob("b.parquet.parts/part-*.parquet")))

    kept = 0
    for _ in range(20):
        before = n_parts()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        wait_until(
            lambda before=before, process=process: process.poll() is not None or n_parts() > before
        )
        if process.poll() is None:
            process.kill()
            kept += 1
        process.wait()
        if (tmp_path / "b.parquet").exists():
            break
    assert kept > 5
    if not (tmp_path / "b.parquet").exists():
        done = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
        assert done["resumed"] > 0
    scored = pl.read_parquet(tmp_path / "b.parquet")
    assert scored["text"].to_list() == frame["text"].to_list()
    assert scored["error"].null_count() == n_rows
