from __future__ import annotations

import gzip
import json
import math
from collections import Counter

import numpy as np
import pytest

from steelyard_base_recipe import mixture as mixture_module
from steelyard_base_recipe.mixture import (
    CATEGORY_WEIGHTS,
    VALIDATION_SOURCES,
    Mixture,
    MixtureRow,
    load_mixture,
    read_rows,
    source_of,
)


def texts(rows: list[MixtureRow]) -> list[str]:
    return [row.context for row in rows]


def test_rows_are_read_as_written(data) -> None:
    rows = read_rows(data / "train.jsonl.gz")
    assert len(rows) == 64
    first = rows[0]
    assert [decision["id"] for decision in first.decisions] == ["topic", "cold", "level"]
    assert set(first.targets) == {"topic", "cold", "level"}
    assert source_of(first) == "tickets"
    assert {source_of(row) for row in rows if "/" in row.source} == {
        "labels",
        "unclear",
        "unlisted",
    }


def test_shares_sum_to_one_and_go_by_rows_multiplier_and_category(mixture: Mixture) -> None:
    assert math.fsum(mixture.shares.values()) == pytest.approx(1, abs=1e-12)
    assert set(mixture.shares) == set(mixture.rows) == {"tickets", "labels"}
    tickets = 24 * 2.0 * CATEGORY_WEIGHTS["intent / routing / support"]
    labels = 12 * 1.0 * CATEGORY_WEIGHTS["tools"]
    assert mixture.shares["tickets"] == pytest.approx(tickets / (tickets + labels))


def test_no_source_has_more_than_its_bound(data, monkeypatch) -> None:
    monkeypatch.setattr(mixture_module, "MAX_ROWS_PER_EPOCH", 12)
    shares = load_mixture(data, ("clear", "note"))[0].shares
    weights = [CATEGORY_WEIGHTS[name] for name in ("intent / routing / support", "tools")]
    assert shares["tickets"] == pytest.approx(weights[0] / sum(weights))


def test_validation_tasks_are_never_trained_on(data) -> None:
    mixture, validation = load_mixture(data, ("clear", "note", "unclear"))
    assert set(validation) == set(VALIDATION_SOURCES[:2])
    assert [len(rows) for rows in validation.values()] == [8, 8]
    trained = [row for rows in mixture.rows.values() for row in rows]
    assert {source_of(row) for row in trained}.isdisjoint(VALIDATION_SOURCES)
    assert set(mixture.labels).isdisjoint(VALIDATION_SOURCES)
    rng = np.random.default_rng(0)
    assert {source_of(row) for row in mixture.sample(rng, 300)}.isdisjoint(VALIDATION_SOURCES)


def test_only_sources_of_the_statuses_asked_for_are_trained_on(data) -> None:
    for statuses, expected in {
        ("clear",): {"tickets"},
        ("note", "unclear"): {"labels", "unclear"},
        ("clear", "note", "unclear"): {"tickets", "labels", "unclear"},
    }.items():
        assert set(load_mixture(data, statuses)[0].rows) == expected


def test_labels_are_those_seen_more_than_once(mixture: Mixture) -> None:
    assert set(mixture.labels) == {"tickets", "labels"}
    assert sorted(mixture.labels["labels"]) == [f"labels label {index}" for index in range(6)]
    assert set(mixture.labels["tickets"]) == {"bank money", "cold city", "late train", "book"}


def test_labels_leave_out_the_rare_and_the_long(tmp_path, data) -> None:
    decision = {"id": "d", "kind": "single", "question": "?"}
    rows = [
        {
            "context": "c",
            "source": "tickets",
            "decisions": [{**decision, "outcomes": outcomes}],
            "targets": {"d": {outcomes[0]: 1.0}},
        }
        for outcomes in (["often", "rare", "l" * 61], ["often", "l" * 61], ["often"])
    ]
    lines = "\n".join(map(json.dumps, rows))
    (tmp_path / "train.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    (tmp_path / "weights.json").write_bytes((data / "weights.json").read_bytes())
    assert load_mixture(tmp_path, ("clear",))[0].labels == {"tickets": ["often"]}


def test_a_steps_rows_depend_on_the_seed_and_the_step_alone(mixture: Mixture) -> None:
    def step(seed: int, number: int) -> list[str]:
        return texts(mixture.sample(np.random.default_rng([seed, number]), 16))

    unbroken = [step(1, number) for number in range(6)]
    assert [step(1, number) for number in range(3, 6)] == unbroken[3:]
    assert step(2, 0) != unbroken[0]
    assert len({tuple(rows) for rows in unbroken}) == 6


def test_sources_are_drawn_by_their_shares_and_rows_evenly(mixture: Mixture) -> None:
    drawn = mixture.sample(np.random.default_rng(3), 4_000)
    counts = Counter(map(source_of, drawn))
    for source, share in mixture.shares.items():
        assert counts[source] / len(drawn) == pytest.approx(share, abs=0.03)
    rows = Counter(row.context for row in drawn if source_of(row) == "labels")
    assert len(rows) == 12
    assert max(rows.values()) < 3 * min(rows.values())


def test_every_category_has_a_positive_weight() -> None:
    assert all(weight > 0 for weight in CATEGORY_WEIGHTS.values())
