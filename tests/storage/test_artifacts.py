from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from pathlib import Path

import pytest
from pyarrow import fs

from steelyard.errors import EngineUnavailableError
from steelyard.storage.artifacts import ArtifactStore
from steelyard.storage.frame_store import FrameStore

CARD = b"# A model\n"


def make_model(folder: Path, **files: bytes) -> str:
    """Write a model of some files; give its name."""
    contents = {"MODEL_CARD.md": CARD, "parts/heads.json": b"{}", **files}
    hashes = {}
    for name, content in contents.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
        hashes[name] = hashlib.sha256(content).hexdigest()
    manifest = json.dumps({"format": "steelyard-model-1", "files": hashes}).encode()
    (folder / "manifest.json").write_bytes(manifest)
    return hashlib.sha256(manifest).hexdigest()


def contents_of(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def reason_of(error: EngineUnavailableError) -> str:
    assert error.details is not None
    return str(error.details[0]["reason"])


@pytest.fixture(params=["local", "objects"])
def artifacts(request: pytest.FixtureRequest, tmp_path: Path) -> ArtifactStore:
    """A store on the local disk, and one that is treated as an object store."""
    store = FrameStore(fs.LocalFileSystem(), str(tmp_path / "store"))
    store.is_local = request.param == "local"
    return ArtifactStore(store, tmp_path / "models")


def test_a_model_comes_back_byte_for_byte_under_the_hash_of_its_manifest(
    artifacts: ArtifactStore, tmp_path: Path
) -> None:
    name = make_model(tmp_path / "made")
    assert artifacts.put(tmp_path / "made") == name
    sent = contents_of(tmp_path / "made")
    shutil.rmtree(tmp_path / "made")
    folder = artifacts.fetch(name)
    assert folder.name == name
    assert contents_of(folder) == sent
    assert artifacts.holds(name)
    assert artifacts.fetch(name) == folder
    assert artifacts.put(folder) == name


@pytest.mark.parametrize("spoil", ["change", "remove", "empty"])
def test_a_folder_in_use_that_was_spoilt_is_made_anew(
    artifacts: ArtifactStore, tmp_path: Path, spoil: str
) -> None:
    name = make_model(tmp_path / "made")
    artifacts.put(tmp_path / "made")
    folder = artifacts.fetch(name)
    victim = folder / "parts/heads.json"
    victim.unlink()
    if spoil == "change":
        victim.write_bytes(b"[]")
    elif spoil == "empty":
        victim.touch()
    assert contents_of(artifacts.fetch(name)) == contents_of(tmp_path / "made")


def test_a_file_altered_in_the_store_is_never_served(
    artifacts: ArtifactStore, tmp_path: Path
) -> None:
    name = make_model(tmp_path / "made")
    artifacts.put(tmp_path / "made")
    stored = tmp_path / "store" / f"{hashlib.sha256(CARD).hexdigest()}.file"
    stored.write_bytes(b"# Another\n")
    with pytest.raises(
        EngineUnavailableError, match=r"altered.*restore it from a backup"
    ) as caught:
        artifacts.fetch(name)
    assert reason_of(caught.value) == "files_altered"
    stored.unlink()
    with pytest.raises(
        EngineUnavailableError, match=r"MODEL_CARD\.md is not in the store"
    ) as caught:
        artifacts.fetch(name)
    assert reason_of(caught.value) == "files_missing"
    # A draft of its folder is no folder of it.
    assert not list((tmp_path / "models").iterdir())


def test_an_altered_or_absent_manifest_is_refused(artifacts: ArtifactStore, tmp_path: Path) -> None:
    name = make_model(tmp_path / "made")
    with pytest.raises(EngineUnavailableError, match="not in the store"):
        artifacts.fetch(name)
    assert not artifacts.holds(name)
    artifacts.put(tmp_path / "made")
    (tmp_path / "store" / f"{name}.manifest.json").write_bytes(b'{"files": {}}')
    with pytest.raises(EngineUnavailableError, match=r"manifest\.json was altered") as caught:
        artifacts.fetch(name)
    assert reason_of(caught.value) == "files_altered"


def test_other_folders_are_not_stored_as_models(artifacts: ArtifactStore, tmp_path: Path) -> None:
    folder = tmp_path / "made"
    folder.mkdir()
    with pytest.raises(ValueError, match=r"has no manifest\.json"):
        artifacts.put(folder)
    name = make_model(folder)
    (folder / "MODEL_CARD.md").write_bytes(b"changed after the manifest\n")
    with pytest.raises(ValueError, match=r"MODEL_CARD\.md is not the one"):
        artifacts.put(folder)
    (folder / "MODEL_CARD.md").unlink()
    with pytest.raises(ValueError, match=r"lacks its file MODEL_CARD\.md"):
        artifacts.put(folder)
    assert not artifacts.holds(name)


@pytest.mark.parametrize("path", ["../outside", "/etc/hosts", "a/../../outside", "manifest.json"])
def test_a_manifest_cannot_name_files_outside_its_folder(
    artifacts: ArtifactStore, tmp_path: Path, path: str
) -> None:
    folder = tmp_path / "made"
    folder.mkdir()
    (folder / "manifest.json").write_text(json.dumps({"files": {path: "0" * 64}}))
    with pytest.raises(ValueError, match="manifest"):
        artifacts.put(folder)


def test_a_sweep_keeps_files_of_live_models(artifacts: ArtifactStore, tmp_path: Path) -> None:
    kept = make_model(tmp_path / "kept", **{"heads.safetensors": b"kept"})
    gone = make_model(tmp_path / "gone", **{"heads.safetensors": b"gone"})
    for name in ("kept", "gone"):
        artifacts.put(tmp_path / name)
    for name in (kept, gone):
        artifacts.fetch(name)
    half_made = tmp_path / "models" / f"{gone}.partial-1"
    strange = tmp_path / "models" / "notes"
    for folder in (half_made, strange):
        folder.mkdir()
    assert artifacts.sweep([kept]) == []  # too young: whoever stored it may not refer to it yet
    assert (tmp_path / "models" / gone).exists()
    for folder in (gone, kept):
        os.utime(tmp_path / "models" / folder, (0, time.time() - 120))
    assert artifacts.sweep([kept]) == []
    assert not (tmp_path / "models" / gone).exists()
    assert (tmp_path / "models" / kept).exists()
    assert half_made.exists()
    removed = artifacts.sweep([kept], older_than_s=0)
    assert not half_made.exists()
    assert strange.exists()
    lost = hashlib.sha256(b"gone").hexdigest()
    assert removed == sorted([f"{gone}.manifest.json", f"{lost}.file"])
    assert contents_of(artifacts.fetch(kept)) == contents_of(tmp_path / "kept")
    with pytest.raises(EngineUnavailableError):
        artifacts.fetch(gone)


def test_a_local_folder_shares_its_files_with_the_store(tmp_path: Path) -> None:
    artifacts = ArtifactStore(tmp_path / "store", tmp_path / "models")
    name = make_model(tmp_path / "made")
    artifacts.put(tmp_path / "made")
    stored = tmp_path / "store" / f"{hashlib.sha256(CARD).hexdigest()}.file"
    assert stored.samefile(artifacts.fetch(name) / "MODEL_CARD.md")
