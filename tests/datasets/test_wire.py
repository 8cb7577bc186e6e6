from __future__ import annotations

import msgspec
import pytest

from steelyard.datasets import wire as datasets
from steelyard.datasets.versions import Manifest, Part
from steelyard.datasets.wire import Dataset, DatasetVersion, Split

STRUCTS = [
    value
    for value in vars(datasets).values()
    if isinstance(value, type)
    and issubclass(value, msgspec.Struct)
    and value.__module__ == datasets.__name__
]
SPLIT = Split(training=8, evaluation=2, training_contexts=7, evaluation_contexts=2)


@pytest.mark.parametrize("struct", STRUCTS, ids=lambda struct: struct.__name__)
def test_requests_have_no_unknown_fields(struct: type[msgspec.Struct]) -> None:
    requests = {"RowDecisionInput", "RowInput", "CreateDataset", "AddRows"}
    requests |= {"RenameDataset", "ArchiveDataset", "RestoreDataset"}
    is_sent = struct.__name__ in requests or struct.__name__.endswith("Query")
    assert struct.__struct_config__.forbid_unknown_fields == is_sent


def test_unknown_facts_of_a_dataset_are_left_out() -> None:
    told = Dataset(
        id="ds_1",
        name="mail",
        created_at=1.5,
        sha256="ab",
        version=1,
        rows=10,
        contexts=9,
        duplicates_removed=0,
        method="sft",
        evaluation_only=False,
        evaluation_fraction=0.2,
        archived_at=None,
        used_at=None,
        split=SPLIT,
        storage_window=None,
    )
    fields = msgspec.json.decode(msgspec.json.encode(told))
    assert fields["storage_window"] is None
    assert fields["split"]["training_contexts"] == 7
    assert {"prompt_tuning", "input", "labeling", "labels_to_check"}.isdisjoint(fields)


def test_a_manifest_is_stored_as_json() -> None:
    part = Part(sha256="ab", side="training", rows=8, bytes=99, first=0, last=9)
    manifest = Manifest(
        dataset_id="ds_1",
        version=2,
        sha256="cd",
        method="reward",
        rows=10,
        added=4,
        contexts=9,
        duplicates_removed=1,
        split=SPLIT,
        evaluation_fraction=0.2,
        evaluation_only=False,
        parts=(part,),
        definitions="ef",
    )
    assert msgspec.json.decode(msgspec.json.encode(manifest), type=Manifest) == manifest
    assert manifest.files() == {"ab", "ef"}
    assert manifest.to_wire(5.0, "csv") == DatasetVersion(
        version=2,
        created_at=5.0,
        sha256="cd",
        rows=10,
        added=4,
        contexts=9,
        split=SPLIT,
        added_via="csv",
        added_from=None,
    )
