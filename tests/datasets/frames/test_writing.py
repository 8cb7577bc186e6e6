from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from steelyard import errors
from steelyard.datasets.frames import placing, writing
from steelyard.datasets.frames.pages import RowStore
from steelyard.datasets.frames.scanning import load_definitions, scan
from steelyard.datasets.versions import Manifest
from steelyard.datasets.wire import Split
from steelyard.errors import StorageUnavailableError
from steelyard.storage.frame_store import FrameStore, open_store
from support.datasets.dataset_rows import (
    REFUND,
    make_row_dict,
    make_rows,
    read_all,
    target_rows,
    to_ndjson,
    write_version,
)

# The store is made anew for each test, and content-addressed: examples may share it.
some = settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def sides_of(store: FrameStore, manifest: Manifest) -> dict[bytes, str]:
    frame = scan(store, manifest).select("context_sha256", "side").unique().collect()
    sides = dict(frame.rows())
    assert len(sides) == frame.height
    return sides


def test_a_first_version(store: FrameStore) -> None:
    items = make_rows(50)
    manifest = write_version(store, [*items, items[3], make_row_dict("last")])
    assert (manifest.version, manifest.rows, manifest.added, manifest.contexts) == (1, 51, 51, 51)
    assert manifest.duplicates_removed == 1
    assert manifest.split == Split(
        training=41, evaluation=10, training_contexts=41, evaluation_contexts=10
    )
    assert manifest.method == "sft"
    assert not manifest.evaluation_only
    assert sorted(part.side for part in manifest.parts) == ["evaluation", "training"]
    assert {name.partition(".")[0] for name in store.names()} == manifest.files()


def test_a_row_with_other_labels_is_kept(store: FrameStore) -> None:
    items = [make_row_dict(targets={"refund": name}) for name in ("yes", "no", "yes")]
    manifest = write_version(store, items)
    assert (manifest.rows, manifest.contexts, manifest.duplicates_removed) == (2, 1, 1)


@some
@given(st.lists(target_rows(), min_size=1, max_size=12), st.randoms(use_true_random=False))
def test_hash_and_split_are_functions_of_content_alone(
    tmp_path: Path, items: list[dict[str, Any]], shuffler: random.Random
) -> None:
    store = open_store(tmp_path)
    first = write_version(store, items)
    shuffled = list(items)
    shuffler.shuffle(shuffled)
    # Other order, other chunks, other spelling of texts and numbers.
    spelled = re.sub(rb": 1\.0(?=[,}])", b": 1e0", to_ndjson(shuffled, ensure_ascii=False))
    second = write_version(store, data=spelled, sizes=[shuffler.randint(1, 99)])
    assert first.sha256 == second.sha256
    assert first.split == second.split
    assert sides_of(store, first) == sides_of(store, second)


@some
@given(st.lists(target_rows(), min_size=2, max_size=12), st.integers(1, 11))
def test_a_context_keeps_its_side_and_a_version_its_bytes(
    tmp_path: Path, items: list[dict[str, Any]], cut: int
) -> None:
    store = open_store(tmp_path)
    rows = RowStore(store)
    first = write_version(store, items[:cut])
    before = {side: b"".join(rows.download(first, side)) for side in ("all", "training")}
    try:
        second = write_version(store, items[cut:] or items, previous=first)
    except errors.NoNewRowsError:
        return
    assert second.version == 2
    assert second.sha256 != first.sha256
    assert second.parts[: len(first.parts)] == first.parts
    assert second.rows == first.rows + second.added
    old, new = sides_of(store, first), sides_of(store, second)
    assert old.items() <= new.items()
    after = {side: b"".join(rows.download(first, side)) for side in ("all", "training")}
    assert after == before
    assert b"".join(rows.download(second)).startswith(before["all"])


@some
@given(st.lists(target_rows(), min_size=1, max_size=12))
def test_a_download_comes_back_as_the_same_dataset(
    tmp_path: Path, items: list[dict[str, Any]]
) -> None:
    store = open_store(tmp_path)
    rows = RowStore(store)
    first = write_version(store, items)
    data = b"".join(rows.download(first))
    again = write_version(store, data=data)
    assert again.sha256 == first.sha256
    assert b"".join(rows.download(again)) == data
    assert [row.row_sha256 for row in read_all(data)] == list(
        dict.fromkeys(row.row_sha256 for row in read_all(to_ndjson(items)))
    )


def test_sides_by_name(store: FrameStore) -> None:
    sides = {"training": make_rows(3), "evaluation": make_rows(2, start=3)}
    manifest = write_version(store, sides=sides)
    assert (manifest.split.training, manifest.split.evaluation) == (3, 2)
    only = write_version(store, sides={"evaluation": make_rows(2)})
    assert (only.evaluation_only, only.evaluation_fraction) == (True, 1.0)
    more = write_version(store, make_rows(5, start=10), previous=only)
    assert more.split == Split(evaluation=7, evaluation_contexts=7)
    with pytest.raises(errors.EvaluationOnlyError):
        write_version(store, sides={"training": make_rows(1, start=90)}, previous=only)


def test_an_evaluation_only_dataset_results_from_a_fraction_of_one(store: FrameStore) -> None:
    manifest = write_version(store, make_rows(3), fraction=1.0)
    assert manifest.evaluation_only
    assert manifest.evaluation_fraction == 1.0


def test_a_context_sent_for_the_other_side_is_refused(store: FrameStore) -> None:
    row = make_row_dict("a")
    both = {"training": [make_row_dict("b"), row], "evaluation": [row]}
    with pytest.raises(errors.SideConflictError) as refused:
        write_version(store, sides=both)
    assert refused.value.details[0]["path"] == ["body", "evaluation", 0, "context"]
    first = write_version(store, sides={"training": [row]})
    other = make_row_dict("a", targets={"refund": "no"})
    with pytest.raises(errors.SideConflictError):
        write_version(store, sides={"evaluation": [other]}, previous=first)
    kept = write_version(store, [other], previous=first, fraction=1.0)
    assert kept.split.training == 2


def test_rows_that_are_not_taken_leave_nothing_but_the_old(store: FrameStore) -> None:
    first = write_version(store, make_rows(3))
    names = store.names()
    with pytest.raises(errors.NoNewRowsError):
        write_version(store, make_rows(3), previous=first)
    with pytest.raises(errors.NoRowsError):
        write_version(store, [])
    with pytest.raises(errors.TooFewRowsError):
        write_version(store, make_rows(1), min_rows=2)
    with pytest.raises(errors.TooManyRowsError):
        write_version(store, make_rows(9), previous=first, max_rows=8)
    assert store.names() == names


def test_counts_over_versions(store: FrameStore) -> None:
    first = write_version(store, make_rows(10))
    second = write_version(store, make_rows(10, start=5), previous=first)
    assert (second.rows, second.added, second.duplicates_removed) == (15, 5, 5)
    assert second.contexts == 15
    assert second.split.training + second.split.evaluation == 15
    assert second.evaluation_fraction == first.evaluation_fraction


def test_definitions_count_rows_and_expected_outcomes(store: FrameStore) -> None:
    items = make_rows(6)
    sides = {"training": items[:4], "evaluation": items[4:]}
    first = write_version(store, sides=sides)
    extra = [make_row_dict("new", decisions=[REFUND], targets={"refund": {"yes": 0.2, "no": 0.8}})]
    second = write_version(store, sides={"training": extra}, previous=first)
    by_id = {definition.id: definition for definition in load_definitions(store, second)}
    assert (by_id["refund"].training, by_id["refund"].evaluation) == (5, 2)
    assert by_id["refund"].expected == {"yes": 2, "no": 3}
    assert (by_id["route"].training, by_id["route"].expected["billing"]) == (4, 2)
    old = {definition.id: definition for definition in load_definitions(store, first)}
    assert old["refund"].training == 4


def test_rewards_are_kept(store: FrameStore) -> None:
    rewards = {"refund": {"yes": 2.5, "no": -1.0}}
    items = [make_row_dict(f"{n}", targets=..., rewards=rewards) for n in range(3)]
    manifest = write_version(store, items)
    assert manifest.method == "reward"
    (row,) = RowStore(store).page(manifest, limit=1)
    assert row.json.endswith(b'"rewards":{"refund":{"yes":2.5,"no":-1.0}}}')


@pytest.mark.parametrize("sizes", [[1], [5, 3], [100_000]])
def test_parts_are_the_same_bytes_however_rows_arrive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sizes: list[int]
) -> None:
    monkeypatch.setattr(writing, "GROUP_ROWS", 8)
    monkeypatch.setattr(writing, "PART_ROWS", 16)
    store = open_store(tmp_path)
    items = make_rows(100)
    whole = write_version(store, items)
    monkeypatch.setattr("steelyard.datasets.ingest.BATCH_ROWS", sizes[0])
    assert write_version(store, items, sizes=sizes).parts == whole.parts
    assert [part.rows for part in whole.parts_of("training")] == [16, 16, 16, 16, 16]


def test_a_full_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store(tmp_path)

    def full(*args: Any, **options: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(writing.pq.ParquetWriter, "write_table", full)
    with pytest.raises(StorageUnavailableError, match="No space left"):
        write_version(store, make_rows(3))
    assert store.names() == []
    assert list((tmp_path / "drafts").iterdir()) == []


def test_an_error_of_the_caller_removes_staged_files(tmp_path: Path) -> None:
    store = open_store(tmp_path)

    def fail() -> None:
        with writing.VersionWriter(store, "ds_1") as writer:
            writer.add(read_all(to_ndjson(make_rows(3))))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert list((tmp_path / "drafts").iterdir()) == []


@some
@given(
    st.lists(target_rows(), min_size=1, max_size=12),
    st.lists(target_rows(), max_size=6),
    st.sampled_from([None, "training", "evaluation"]),
    st.integers(min_value=1, max_value=5),
)
def test_ranges_of_hashes_do_not_show(
    tmp_path: Path,
    first: list[dict[str, Any]],
    second: list[dict[str, Any]],
    side: str | None,
    range_rows: int,
) -> None:
    # As a dataset of millions of rows is placed: a range of contexts after the other.
    store = open_store(tmp_path)

    def write() -> list[object]:
        latest = write_version(store, [*first, *first[:2]])
        made: list[object] = [latest]
        for rows in (second, [*first, *second]):
            try:
                latest = write_version(store, previous=latest, sides={side: rows})
            except errors.SteelyardError as error:
                made.append(error.body())
            else:
                made.append(latest)
        return made

    whole = write()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(placing, "RANGE_ROWS", range_rows)
        assert write() == whole


def test_an_append_reads_no_more_files_the_more_came_before(
    store: FrameStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    n_read: list[int] = []
    reading = store.reading

    def count(*names: str) -> Any:
        n_read[-1] += len(names)
        return reading(*names)

    monkeypatch.setattr(store, "reading", count)
    manifest = None
    for number in range(12):
        n_read.append(0)
        # The first of them is there already.
        rows = make_rows(5 if number else 4, start=max(0, 4 * number - 1))
        manifest = write_version(store, rows, previous=manifest)
    assert manifest is not None
    assert manifest.rows == 48
    assert len(manifest.known) == 1
    assert n_read[11] == n_read[1] <= 2


@pytest.mark.parametrize("lost", ["file", "field", "part"])
def test_rows_are_known_without_the_file_of_their_hashes(store: FrameStore, lost: str) -> None:
    manifest = write_version(store, make_rows(6))
    manifest = write_version(store, make_rows(9), previous=manifest)
    if lost == "file":
        store.sweep(manifest.files() - set(manifest.known), older_than_s=0)
    elif lost == "field":
        manifest = msgspec.structs.replace(manifest, known=())
    else:
        gone = manifest.parts[-1]
        parts = tuple(part for part in manifest.parts if part != gone)
        manifest = msgspec.structs.replace(manifest, parts=parts, rows=manifest.rows - gone.rows)
    n_missing = 9 - manifest.rows
    more = write_version(store, make_rows(12), previous=manifest)
    assert more.added == 3 + n_missing
    again = write_version(store, make_rows(13), previous=more)
    assert (again.added, len(again.known)) == (1, 1)
