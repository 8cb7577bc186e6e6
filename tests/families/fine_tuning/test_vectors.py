"""Vectors of a dataset's rows on their way to a trainer, and back."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from steelyard.datasets.frames.vectors import (
    read_contexts,
    rendered,
    store_vectors,
    stored_vectors,
)
from steelyard.decisions.rendering import render_context
from steelyard.families.fine_tuning.vectors import store_read, write_stored
from steelyard.storage.frame_store import open_store
from steelyard.trainer.task import VECTORS
from steelyard.trainer.vectors import key_of, read_vectors, write_vectors
from support.datasets.dataset_rows import make_rows, write_version

HALVES = np.linspace(0, 1, 12, dtype=np.float16).reshape(6, 2).astype(np.float32)


def test_a_trainer_gets_stored_vectors_and_those_that_it_read_are_stored(tmp_path: Path) -> None:
    store = open_store(tmp_path / "frames")
    rows = make_rows(3, 100)
    rows[1]["context"] = {"ticket": "The kettle won't open.", "orders": [1, 2.0]}
    sides = {"training": make_rows(6), "evaluation": rows}
    manifest = write_version(store, sides=sides)
    [training], [evaluation] = manifest.parts_of("training"), manifest.parts_of("evaluation")
    folder = tmp_path / "job"
    folder.mkdir()
    write_stored(folder, store, manifest, "base")
    assert not (folder / VECTORS).exists()
    store_vectors(store, training, "base", read_contexts(store, training), HALVES)
    write_stored(folder, store, manifest, "base")
    read = read_vectors(folder / VECTORS)
    np.testing.assert_array_equal(
        [read[key_of(text)] for text in rendered(read_contexts(store, training))], HALVES
    )
    for n_read, are_all in ((2, False), (3, True)):
        texts = rendered(read_contexts(store, evaluation))[:n_read]
        write_vectors(folder / VECTORS, {key_of(text): HALVES[i] for i, text in enumerate(texts)})
        store_read(folder, store, manifest, "base")
        stored = stored_vectors(store, evaluation, "base", read_contexts(store, evaluation))
        assert (stored is not None) is are_all
    assert texts[1] == render_context(rows[1]["context"])
    np.testing.assert_array_equal(stored, HALVES[:3])
    assert stored_vectors(store, training, "other", read_contexts(store, training)) is None
