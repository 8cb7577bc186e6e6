"""Files of predictions: the cost of requests, and files of releases that did not write it."""

from __future__ import annotations

import hashlib

import msgspec
import numpy as np
import pyarrow.parquet as pq
import pytest

from steelyard.evaluations import predictions
from steelyard.evaluations.measuring import measure_file
from steelyard.evaluations.prediction_columns import SCHEMA, Prediction, effort_of
from steelyard.storage.frame_store import open_store


@pytest.fixture
def store(tmp_path):
    return open_store(tmp_path)


def of_row(row, *, latency_ms, input_tokens=10, n_decisions=2):
    """The predictions of a row's decisions."""
    return [
        Prediction(
            row=row,
            place=place,
            context_sha256=f"{row:064x}",
            decision_id=f"d{place}",
            kind="binary",
            outcomes=("yes", "no"),
            probabilities=(0.75, 0.25),
            labels=(1.0, 0.0),
            context_tokens=3,
            facets="{}",
            input_tokens=input_tokens,
            latency_ms=latency_ms,
        )
        for place in range(n_decisions)
    ]


def test_times_of_requests_are_counted_once_a_row_over_all_parts(store):
    first = predictions.write_predictions(store, [*of_row(2, latency_ms=7.0, input_tokens=5)])
    resumed = [*of_row(0, latency_ms=3.0), *of_row(1, latency_ms=None, n_decisions=3)]
    second = predictions.write_predictions(store, resumed)
    effort = effort_of(predictions.merge(store, [first, second]))
    assert effort.latencies_ms == [3.0, 7.0]
    assert effort.input_tokens == 25


def test_files_of_releases_that_did_not_count_are_read(store):
    old = SCHEMA.names[: SCHEMA.names.index("input_tokens")]
    sha256 = predictions.write_predictions(store, of_row(0, latency_ms=1.0))
    table = predictions.read_table(store, [sha256]).select(old)
    sha256 = predictions.write_table(store, table)
    with store.open(f"{sha256}.parquet") as file:
        assert pq.read_schema(file).names == old
    newer = predictions.write_predictions(store, of_row(1, latency_ms=2.0))
    read = predictions.merge(store, [sha256, newer])
    assert read.schema == SCHEMA
    assert read.select(old).slice(0, 2).equals(table)
    effort = effort_of(read)
    assert effort.latencies_ms == [2.0]
    assert effort.input_tokens is None
    assert predictions.scored_rows(store, [sha256, newer]) == {0, 1}


def test_the_share_of_contexts_that_do_not_say_is_of_decisions_whose_model_knows(store):
    scored = [
        msgspec.structs.replace(prediction, unstated=unstated)
        for row, unstated in enumerate((0.9, 0.2, 0.7, None))
        for prediction in of_row(row, latency_ms=1.0, n_decisions=1)
    ]
    sha256 = predictions.write_predictions(store, scored)
    rate = measure_file(store, sha256, "targets").unstated_rate
    assert (rate.value, rate.n) == (pytest.approx(2 / 3), 3)
    assert rate.low <= rate.value <= rate.high
    sha256 = predictions.write_predictions(store, scored[3:])
    assert measure_file(store, sha256, "targets").unstated_rate is None


def test_the_share_of_each_step_is_told_where_several_answer(store):
    scored = [
        msgspec.structs.replace(prediction, decided_by=step)
        for row, step in enumerate(("words alone", "words and base model", "words alone"))
        for prediction in of_row(row, latency_ms=1.0, n_decisions=1)
    ]
    sha256 = predictions.write_predictions(store, scored)
    shares = measure_file(store, sha256, "targets").decided_by
    assert {step: (share.value, share.n) for step, share in shares.items()} == {
        "words alone": (pytest.approx(2 / 3), 3),
        "words and base model": (pytest.approx(1 / 3), 3),
    }
    sha256 = predictions.write_predictions(store, of_row(0, latency_ms=1.0))
    assert measure_file(store, sha256, "targets").decided_by == {}


def test_of_a_long_file_metrics_are_of_all_and_the_rest_of_whole_contexts(store):
    rng = np.random.default_rng(0)
    scored = [
        msgspec.structs.replace(
            one,
            context_sha256=hashlib.sha256(f"{row // 2}".encode()).hexdigest(),
            probabilities=(p := float(rng.random()), 1 - p),
            labels=(1.0, 0.0) if rng.random() < p else (0.0, 1.0),
        )
        for row in range(400)
        for one in of_row(row, latency_ms=1.0)
    ]
    parts = [
        predictions.write_predictions(store, scored[at : at + 100]) for at in range(0, 800, 100)
    ]
    joined = predictions.join_files(store, parts)
    assert predictions.read_table(store, [joined]).equals(predictions.merge(store, parts))
    whole = measure_file(store, joined, "targets")
    assert (whole.sample, whole.overall.n, whole.metrics.n) == (None, 800, 800)
    some = measure_file(store, joined, "targets", most=300)
    assert some.sample == 300 / 800
    assert 200 < some.overall.n < 400
    assert some.overall.n == 4 * some.overall.contexts
    assert some.overall.accuracy.value == pytest.approx(whole.metrics.accuracy, abs=0.1)
    for name in ("n", "accuracy", "loss", "brier", "ece", "latency_ms"):
        assert getattr(some.metrics, name) == pytest.approx(getattr(whole.metrics, name), rel=1e-12)
    assert some.input_tokens == whole.input_tokens == 4000
    # One context that is not chosen has them all.
    alone = [msgspec.structs.replace(one, context_sha256="f" * 64) for one in scored]
    sha256 = predictions.write_predictions(store, alone)
    assert len(predictions.read_sample(store, sha256, 300).table) == 800
