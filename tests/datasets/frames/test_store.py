from __future__ import annotations

import hashlib
import os
import stat
import traceback
from pathlib import Path

import pytest
from pyarrow import fs

from steelyard.errors import StorageUnavailableError
from steelyard.storage import frame_store as store_module
from steelyard.storage.frame_store import FrameStore, open_store


def test_a_file_is_named_by_its_bytes(store: FrameStore) -> None:
    sha256 = store.put(b"rows", ".parquet")
    assert sha256 == hashlib.sha256(b"rows").hexdigest()
    assert store.put(b"rows", ".parquet") == sha256
    assert store.names() == [f"{sha256}.parquet"]
    assert store.read(f"{sha256}.parquet") == b"rows"
    assert store.damage_of(f"{sha256}.parquet") is None


def test_a_store_in_memory_is_used_alike() -> None:
    memory = FrameStore(fs._MockFileSystem(), "bucket")
    sha256 = memory.put(b"rows", ".json")
    assert memory.read(f"{sha256}.json") == b"rows"
    assert memory.sweep([], older_than_s=0) == [f"{sha256}.json"]
    assert memory.names() == []


def test_bytes_that_changed_are_noticed(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    name = f"{store.put(b'rows', '.json')}.json"
    (tmp_path / name).write_bytes(b"rowz")
    assert store.damage_of(name) is not None
    assert store.damage_of("absent.json") is not None


def test_a_sweep_takes_unreferenced_and_old_files(store: FrameStore) -> None:
    kept, gone = store.put(b"kept", ".json"), store.put(b"gone", ".json")
    assert store.sweep([kept]) == []
    assert store.sweep([kept], older_than_s=0) == [f"{gone}.json"]
    assert store.names() == [f"{kept}.json"]


def test_a_sweep_leaves_files_rewritten_after_its_listing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(tmp_path)
    again, gone = (f"{store.put(rows, '.json')}.json" for rows in (b"again", b"gone"))
    for name in (again, gone):
        os.utime(tmp_path / name, (0, 0))
    infos = FrameStore._infos

    def list_them(self: FrameStore) -> list[fs.FileInfo]:
        found = infos(self)
        store.put(b"again", ".json")
        return found

    monkeypatch.setattr(FrameStore, "_infos", list_them)
    assert store.sweep([]) == [gone]
    assert store.read(again) == b"again"


def test_a_sweep_takes_drafts_that_a_dead_process_left(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    draft = tmp_path / "drafts" / "x.draft"
    draft.write_bytes(b"half")
    store.sweep([])
    assert draft.exists()
    os.utime(draft, (0, 0))
    # As one that was there when they were listed, and is no more.
    draft.with_name("gone.draft").symlink_to(tmp_path / "nowhere")
    store.sweep([])
    assert not draft.exists()


def test_a_draft_is_removed_when_its_write_fails(tmp_path: Path) -> None:
    store = open_store(tmp_path)

    def fail() -> None:
        with store.draft() as draft:
            draft.write_bytes(b"half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert list((tmp_path / "drafts").iterdir()) == []
    assert store.names() == []


def test_a_file_is_on_the_disk_before_its_name_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(tmp_path)
    steps: list[str] = []
    fsync, replace = os.fsync, Path.replace

    def note_fsync(handle: int) -> None:
        steps.append("flush directory" if stat.S_ISDIR(os.fstat(handle).st_mode) else "flush")
        fsync(handle)

    def note_replace(self: Path, target: Path) -> Path:
        steps.append("rename")
        return replace(self, target)

    monkeypatch.setattr(store_module.os, "fsync", note_fsync)
    monkeypatch.setattr(Path, "replace", note_replace)
    store.put(b"rows", ".json")
    assert steps == ["flush", "rename", "flush directory"]


def test_a_failing_disk_is_reported_without_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(tmp_path)

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device", str(tmp_path))

    monkeypatch.setattr(store_module.os, "fsync", full)
    with pytest.raises(StorageUnavailableError, match="No space left") as caught:
        store.put(b"rows", ".json")
    assert str(tmp_path) not in str(caught.value)
    assert store.names() == []
    with pytest.raises(StorageUnavailableError):
        store.read("absent.json")


def test_an_address_of_no_store_is_refused() -> None:
    with pytest.raises(ValueError, match="no address of a store"):
        open_store("ftp://example.test/frames")


@pytest.mark.parametrize(
    "url", ["s3x://key:hush@bucket/frames", "s3://key:hush@bucket/a b", "s3://key:hush@bucket?a=b"]
)
def test_an_address_that_is_refused_keeps_its_secret(url: str) -> None:
    with pytest.raises(ValueError, match="no address of a store") as raised:
        open_store(url, "datasets")
    assert "hush" not in "".join(traceback.format_exception(raised.value))


def test_files_derived_from_a_file_go_with_it(store):
    kept, gone = store.put(b"kept", ".parquet"), store.put(b"gone", ".parquet")
    for sha256 in (kept, gone):
        store.put_beside(f"{sha256}.vectors.npy", b"made")
    assert store.find(f"{kept}.vectors.npy") == b"made"
    assert store.find("nothing.npy") is None
    removed = store.sweep({kept}, older_than_s=0)
    assert removed == [f"{gone}.parquet", f"{gone}.vectors.npy"]
    assert store.find(f"{kept}.vectors.npy") == b"made"
