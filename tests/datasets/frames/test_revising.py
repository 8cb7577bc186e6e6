"""Versions without some rows, and with others in their place: shared files, stored parts, counts."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

from steelyard.datasets.frames import writing
from steelyard.datasets.frames.differences import compare_versions
from steelyard.datasets.frames.pages import RowStore
from steelyard.datasets.frames.scanning import load_definitions, load_retired, scan
from steelyard.datasets.rows import read_row
from steelyard.datasets.version_service import DatasetAt
from steelyard.errors import TooFewRowsError
from steelyard.families.fine_tuning.counts import count_evaluation
from steelyard.review.revising import write_revision
from support.datasets.dataset_rows import make_rows, write_version

LABEL = {"route": {"other": 1.0}, "refund": {"yes": 1.0}}


def revise(store, version, excluded=(), relabelled=(), min_rows=1):
    rows = {"training": [], "evaluation": []}
    for stored in RowStore(store).rows_at(version, list(relabelled)):
        row = json.loads(stored.json)
        row["targets"] = LABEL
        rows[stored.side].append(read_row(json.dumps(row).encode(), stored.index + 1))
    return write_revision(
        store,
        version,
        excluded=np.array(sorted(excluded), dtype=np.int64),
        replaced=np.array(sorted(relabelled), dtype=np.int64),
        rows={side: [batch] for side, batch in rows.items()},
        min_rows=min_rows,
    )


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch):
    monkeypatch.setattr(writing, "GROUP_ROWS", 8)
    monkeypatch.setattr(writing, "PART_ROWS", 16)


def indexes(store, version):
    return scan(store, version).select("index").collect()["index"].sort().to_list()


def sides(store, version):
    frame = scan(store, version).select("context_sha256", "side").unique().collect()
    return dict(frame.rows())


def test_untouched_parts_are_shared_and_rows_keep_their_indexes(store):
    first = write_version(store, make_rows(60))
    second = revise(store, first, excluded=[3], relabelled=[7])
    touched = {part.sha256 for part in first.parts} - {part.sha256 for part in second.parts}
    assert 1 <= len(touched) <= 2
    assert (second.version, second.rows, second.added, second.next_index) == (2, 59, 1, 61)
    assert indexes(store, second) == [n for n in range(61) if n not in (3, 7)]
    assert indexes(store, first) == list(range(60))
    kept = set(sides(store, second).items())
    assert kept < set(sides(store, first).items())
    assert second.split.training + second.split.evaluation == 59


def test_pages_and_downloads_pass_over_the_gaps(store):
    rows = RowStore(store)
    version = revise(store, write_version(store, make_rows(60)), excluded=[0, 20, 59])
    paged = [
        row.index
        for offset in range(0, 57, 10)
        for row in rows.page(version, offset=offset, limit=10)
    ]
    assert paged == [row.index for row in rows.iterate(version)] == indexes(store, version)
    for side in ("training", "evaluation"):
        n_rows = version.rows_of(side)
        page = [row.index for row in rows.page(version, partition=side, limit=100)]
        assert page == [row.index for row in rows.iterate(version, side)]
        assert len(page) == n_rows


def test_definitions_are_counted_as_the_rows_are(store):
    rows = make_rows(40)
    version = revise(store, write_version(store, rows), excluded=[1, 2, 3], relabelled=[4, 5])
    frame = scan(store, version).select("side", "labels").collect()
    for one in load_definitions(store, version):
        assert one.training == version.split.training
        assert one.evaluation == version.split.evaluation
        counted = (
            frame.filter(pl.col("side") == "training")
            .explode("labels")
            .unnest("labels")
            .filter(pl.col("is_top") & (pl.col("decision") == one.id))
            .group_by("outcome")
            .len()
        )
        assert one.expected == dict(counted.rows())


def test_the_hash_covers_exclusions_and_their_places(store):
    first = write_version(store, make_rows(20))
    made = {revise(store, first, excluded=[n]).sha256 for n in range(3)}
    assert len({first.sha256, *made}) == 4
    assert revise(store, first, excluded=[1]).sha256 in made


def test_a_context_that_was_excluded_comes_back_to_its_side_under_a_new_index(store):
    rows = make_rows(30)
    first = write_version(store, rows)
    before = sides(store, first)
    second = revise(store, first, excluded=list(range(12)))
    assert len(load_retired(store, second)) == 12
    third = write_version(store, rows[:12], previous=second)
    assert sides(store, third) == before
    assert third.split == first.split
    assert indexes(store, third) == list(range(12, 42))
    fourth = revise(store, third, excluded=[41])
    assert indexes(store, fourth) == list(range(12, 41))
    assert write_version(store, make_rows(1, 99), previous=fourth).next_index == 43


def test_a_row_that_becomes_another_is_left_out_as_a_duplicate(store):
    rows = make_rows(10)
    rows.append({**rows[4], "targets": LABEL})
    first = write_version(store, rows)
    second = revise(store, first, relabelled=[4])
    assert (second.rows, second.added, second.duplicates_removed) == (10, 0, 1)


def test_new_and_judged_rows_are_counted_over_gaps(store):
    first = write_version(store, make_rows(50))
    judged = [row.index for row in RowStore(store).iterate(first, "evaluation")]
    trained = [row.index for row in RowStore(store).iterate(first, "training")]
    second = revise(store, first, excluded=trained[:3], relabelled=[trained[5], judged[0]])
    assert second.rows_before("training", first) == first.split.training - 4
    assert second.split.training - second.rows_before("training", first) == 1
    counts = count_evaluation(store, second, first, "sft")
    # A judged row whose label changed is to be judged anew.
    assert (counts.new_rows, counts.earlier_rows) == (1, first.split.evaluation - 1)
    third = write_version(store, make_rows(20, 500), previous=second)
    assert third.rows_before("training", second) == second.split.training
    assert DatasetAt("ds", "n", third).evaluation_sha256 != DatasetAt("ds", "n", second).sha256


def test_the_difference_tells_both_ways(store):
    first = write_version(store, make_rows(30))
    second = revise(store, first, excluded=[0, 1], relabelled=[6, 7])
    diff = compare_versions(store, first, second)
    assert (diff.rows, diff.removed, diff.first, diff.contexts) == (2, 4, 30, 0)
    moved = {(one.decision, one.before, one.after): one.contexts for one in diff.relabelled}
    assert [one.both for one in diff.relabelled] == [0, 0, 0]
    assert moved == {
        ("route", "billing", "other"): 1,
        ("route", "support", "other"): 1,
        ("refund", "no", "yes"): 1,
    }


@pytest.mark.parametrize("side", ["training", "evaluation"])
def test_a_side_is_not_emptied(store, side):
    first = write_version(store, make_rows(20))
    gone = [row.index for row in RowStore(store).iterate(first, side)]
    with pytest.raises(TooFewRowsError, match=side):
        revise(store, first, excluded=gone)


def test_too_few_rows_are_refused(store):
    with pytest.raises(TooFewRowsError):
        revise(store, write_version(store, make_rows(10)), excluded=[1, 2], min_rows=9)
