from __future__ import annotations

from pathlib import Path

import pytest
from pyarrow import fs

from steelyard.datasets.frames.pages import RowStore
from steelyard.storage.frame_store import FrameStore, open_store


@pytest.fixture(params=["directory", "objects"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> FrameStore:
    """A store in a directory, and one that is reached as an object store is."""
    if request.param == "directory":
        return open_store(tmp_path / "frames")
    (tmp_path / "bucket").mkdir()
    filesystem = fs.SubTreeFileSystem(str(tmp_path / "bucket"), fs.LocalFileSystem())
    return FrameStore(filesystem, "prefix/frames")


@pytest.fixture
def rows(store: FrameStore) -> RowStore:
    return RowStore(store)
