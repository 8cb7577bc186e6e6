from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from steelyard.datasets.frames import writing
from steelyard.datasets.frames.pages import RowStore
from steelyard.datasets.versions import Manifest
from steelyard.errors import DataDamagedError
from steelyard.storage.frame_store import FrameStore, open_store
from support.datasets.dataset_rows import make_row_dict, make_rows, write_version

PARTITIONS = ["all", "training", "evaluation"]


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory) -> tuple[RowStore, Manifest]:
    """Three versions of rows in small groups and parts."""
    store = open_store(tmp_path_factory.mktemp("frames"))
    patch = pytest.MonkeyPatch()
    patch.setattr(writing, "GROUP_ROWS", 4)
    patch.setattr(writing, "PART_ROWS", 12)
    manifest: Manifest | None = None
    for start, stop in ((0, 70), (70, 71), (71, 110)):
        items = make_rows(stop - start, start)
        manifest = write_version(store, items, previous=manifest, fraction=0.3)
    patch.undo()
    assert manifest is not None
    return RowStore(store), manifest


@settings(
    max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
@given(st.sampled_from(PARTITIONS), st.integers(0, 120), st.integers(1, 60))
def test_a_page_is_a_slice(
    grown: tuple[RowStore, Manifest], partition: Any, offset: int, limit: int
) -> None:
    rows, manifest = grown
    every = list(rows.iterate(manifest, partition))
    page = rows.page(manifest, partition=partition, offset=offset, limit=limit)
    assert page == every[offset : offset + limit]


def test_both_sides_come_in_the_order_sent(grown: tuple[RowStore, Manifest]) -> None:
    rows, manifest = grown
    every = list(rows.iterate(manifest))
    assert [row.index for row in every] == list(range(110))
    contexts = [json.loads(row.json)["context"] for row in every]
    assert contexts == [item["context"] for item in make_rows(110)]
    sides = [list(rows.iterate(manifest, side)) for side in ("training", "evaluation")]
    assert sorted([*sides[0], *sides[1]], key=lambda row: row.index) == every
    assert [len(side) for side in sides] == [manifest.split.training, manifest.split.evaluation]


def test_a_page_reads_the_groups_that_it_touches_alone(
    grown: tuple[RowStore, Manifest], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, manifest = grown
    read: list[int] = []
    inner = rows._read_groups

    def count(part: Any, groups: list[int]) -> Any:
        read.extend(groups)
        return inner(part, groups)

    monkeypatch.setattr(rows, "_read_groups", count)
    for offset in (0, 40, manifest.split.training - 4):
        read.clear()
        assert len(rows.page(manifest, partition="training", offset=offset, limit=4)) == 4
        assert len(read) <= 2


def test_a_download_is_the_rows_a_line_each(grown: tuple[RowStore, Manifest]) -> None:
    rows, manifest = grown
    for partition in PARTITIONS:
        data = b"".join(rows.download(manifest, partition))
        lines = [row.json for row in rows.iterate(manifest, partition)]
        assert data.split(b"\n") == [*lines, b""]


def test_a_row_comes_back_as_it_was_sent(store: FrameStore, rows: RowStore) -> None:
    sent = {
        "context": {"b": [1, 1.5, 10**25], "a": 'é "quoted"\n'},
        "decisions": make_row_dict()["decisions"],
        "targets": {"refund": {"no": 0.25, "yes": 0.75}, "route": {"other": 1.0, "billing": 0.0}},
        "model": "steelyard-base",
        "store": False,
        "metadata": {"ticket": 7},
    }
    manifest = write_version(store, [sent, make_row_dict('line\n"two"\u2028\x01')])
    first, second = rows.page(manifest)
    assert first.json.decode() == json.dumps(sent, ensure_ascii=False, separators=(",", ":"))
    assert json.loads(second.json)["context"] == 'line\n"two"\u2028\x01'
    assert b"\n" not in second.json


def test_images_come_back(store: FrameStore, rows: RowStore) -> None:
    images = [{"id": 1, "media_type": "image/png", "data": "aW1n"}]
    manifest = write_version(store, [make_row_dict("<image:1>", images=images)])
    assert json.loads(rows.page(manifest)[0].json)["images"] == images


def test_a_side_without_rows_has_empty_pages(store: FrameStore, rows: RowStore) -> None:
    manifest = write_version(store, make_rows(2))
    assert manifest.split.evaluation == 0
    assert rows.page(manifest, partition="evaluation") == []
    assert list(rows.download(manifest, "evaluation")) == []
    assert rows.find(manifest, partition="evaluation") == (0, [])
    assert rows.page(manifest, offset=5) == []


def test_rows_by_their_places(grown: tuple[RowStore, Manifest]) -> None:
    rows, manifest = grown
    assert [row.index for row in rows.rows_at(manifest, [70, 3, 999])] == [70, 3]


@pytest.mark.parametrize("damage", [None, b"PAR1 and nothing PAR1", b""])
def test_a_missing_or_damaged_part_is_reported(tmp_path: Any, damage: bytes | None) -> None:
    store = open_store(tmp_path)
    rows = RowStore(store)
    manifest = write_version(store, make_rows(3))
    path = tmp_path / f"{manifest.parts[0].sha256}.parquet"
    path.unlink()
    if damage is not None:
        path.write_bytes(damage)
    with pytest.raises(DataDamagedError):
        rows.page(manifest)
    with pytest.raises(DataDamagedError):
        rows.find(manifest)
    with pytest.raises(DataDamagedError):
        rows.facets(manifest)
    with pytest.raises(DataDamagedError):
        list(rows.download(manifest))
